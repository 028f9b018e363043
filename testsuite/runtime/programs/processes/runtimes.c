/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several OpenMP runtimes in one process, each brought in by a plugin that was compiled for it,
 * work beside each other: by turns, from threads at once, and in each other's regions.
 * runtimes PLUGIN...
 * @helper
 */
#include "../check.h"
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>

enum { MAX_PLUGINS = 8, ROUNDS = 30 };

static int (*sum_of[MAX_PLUGINS])(int);
static int plugins;

static int own_sum(int threads)
{
    int sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
#pragma omp barrier
        sum += omp_get_num_threads() * (omp_get_thread_num() + 1);
    }
    return sum;
}

static void check_sum(int which, int threads)
{
    int sum = sum_of[which](threads), wanted = threads * threads * (threads + 1) / 2;
    CHECK(sum == wanted, "runtime %d: sum(%d) is %d, not %d", which, threads, sum, wanted);
}

static void *work(void *argument)
{
    for (int round = 0; round < ROUNDS; round++)
        check_sum((int)(long)argument, 1 + round % 5);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t ids[MAX_PLUGINS];
    sum_of[plugins++] = own_sum;
    for (int i = 1; i < argc && plugins < MAX_PLUGINS; i++) {
        void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        CHECK(plugin, "dlopen: %s", dlerror());
        *(void **)&sum_of[plugins] = dlsym(plugin, "plugin_sum");
        CHECK(sum_of[plugins], "dlsym: %s", dlerror());
        plugins++;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < plugins; i++)
            check_sum(i, 1 + round % 7);
    for (int i = 0; i < plugins; i++)
        CHECK(pthread_create(&ids[i], NULL, work, (void *)(long)i) == 0, "pthread_create");
    for (int i = 0; i < plugins; i++)
        CHECK(pthread_join(ids[i], NULL) == 0, "pthread_join");
#pragma omp parallel num_threads(3)
    for (int i = 1; i < plugins; i++)
        check_sum(i, 1); /* whether it nests is each runtime's own affair */
    return check_ok();
}
