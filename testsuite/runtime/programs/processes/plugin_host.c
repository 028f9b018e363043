/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program without OpenMP may load a plugin that has it, close it while the runtime's threads are
 * parked, load it again, a thousand times, and end.  plugin_host PLUGIN
 * @plain
 * @plugin plugin
 * @mends stock libgomp is unmapped under its parked threads, which crash
 */
#include "../threads.h"
#include <dlfcn.h>

enum { ROUNDS = 1000, MORE = 24 };

int main(int argc, char **argv)
{
    int warm = 0;
    CHECK(argc == 2, "usage: plugin_host PLUGIN");
    for (int round = 0; round < ROUNDS; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        CHECK(plugin, "dlopen: %s", dlerror());
        int (*sum)(int);
        *(void **)&sum = dlsym(plugin, "plugin_sum");
        CHECK(sum, "dlsym: %s", dlerror());
        for (int n = round < 20 ? 1 : 3; n < (round < 20 ? 12 : 4); n += 3)
            CHECK(sum(n) == n * n * (n + 1) / 2, "sum(%d) is %d", n, sum(n));
        CHECK(dlclose(plugin) == 0, "dlclose: %s", dlerror());
        if (round < 3)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        if (round == 10)
            warm = kernel_threads();
    }
    CHECK(kernel_threads() <= warm + MORE, "%d threads have become %d", warm, kernel_threads());
    return check_ok();
}
