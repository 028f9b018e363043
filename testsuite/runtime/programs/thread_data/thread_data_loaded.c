/* SPDX-License-Identifier: GPL-3.0-or-later */
/* threadprivate variables of an object that is loaded after many regions belong to their thread
 * numbers from its first region on, also where they are used from a region of the program's own.
 * @plugin thread_data_plugin
 */
#include "../check.h"
#include <dlfcn.h>
#include <omp.h>

enum { BEFORE = 3000, ROUNDS = 60 };

/* All threads that work for the program do so in this region. */
static int run(int (*work)(int), int argument)
{
    int bad = 0;
#pragma omp parallel reduction(+ : bad)
    bad += work(argument);
    return bad;
}

static int some(int argument)
{
    for (volatile int i = 0; i < 2000; i++)
        ;
    return argument & 0;
}

int main(int argc, char **argv)
{
    int (*own_regions)(int), (*set)(int), (*wrong)(int);
    CHECK(argc == 2, "usage: thread_data_loaded PLUGIN");
    for (int i = 0; i < BEFORE; i++)
        CHECK(run(some, i) == 0, "region %d", i);
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(plugin, "dlopen: %s", dlerror());
    *(void **)&own_regions = dlsym(plugin, "own_regions");
    *(void **)&set = dlsym(plugin, "set");
    *(void **)&wrong = dlsym(plugin, "wrong");
    CHECK(own_regions && set && wrong, "dlsym: %s", dlerror());
    for (int i = 1; i <= ROUNDS; i++) {
        run(set, i);
        int bad = run(wrong, i);
        CHECK(bad == 0, "round %d: %d threads have another's value", i, bad);
    }
    CHECK(own_regions(ROUNDS) == 0, "%d threads have another's value", own_regions(ROUNDS));
    return check_ok();
}
