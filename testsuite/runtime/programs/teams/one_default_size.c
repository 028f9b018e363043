/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All threads of a program have one default size: a program may divide its data by what
 * omp_get_max_threads says in one thread, and compute in a region of another thread.  The argument says
 * which thread is the first to be told of the size, and how.
 * @each main main-region main-copy thread thread-region
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>

static int region_size(void)
{
    int size = 0, ran = 0;
#pragma omp parallel reduction(+ : ran)
    {
        ran++;
#pragma omp single
        size = omp_get_num_threads();
    }
    CHECK(ran == size, "%d of %d threads ran", ran, size);
    return size;
}

static void *ask(void *told)
{
    *(int *)told = omp_get_max_threads();
    return NULL;
}

static void *compute(void *size)
{
    *(int *)size = region_size();
    return NULL;
}

static int in_a_thread(void *(*what)(void *))
{
    int result = 0;
    pthread_t id;
    CHECK(pthread_create(&id, NULL, what, &result) == 0, "pthread_create");
    CHECK(pthread_join(id, NULL) == 0, "pthread_join");
    return result;
}

static int first_size(const char *how)
{
    if (strcmp(how, "main") == 0)
        return omp_get_max_threads();
    if (strcmp(how, "main-region") == 0)
        return region_size();
    if (strcmp(how, "main-copy") == 0)
        omp_set_dynamic(0); /* the initial thread has control variables of its own from here on */
    return in_a_thread(strcmp(how, "thread-region") == 0 ? compute : ask);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2, "usage: one_default_size main|main-region|main-copy|thread|thread-region");
    int size = first_size(argv[1]);
    CHECK(size >= 1, "size %d", size);
    for (int i = 0; i < 3; i++) {
        int told = omp_get_max_threads(), ran = region_size();
        CHECK(told == size && ran == size, "main: told %d, ran %d, first %d", told, ran, size);
        told = in_a_thread(ask), ran = in_a_thread(compute);
        CHECK(told == size && ran == size, "thread: told %d, ran %d, first %d", told, ran, size);
    }
    omp_set_num_threads(size + 3);
    CHECK(region_size() == size + 3, "a size that the program sets is another");
    CHECK(in_a_thread(compute) == size, "the default has changed");
    return check_ok();
}
