/* SPDX-License-Identifier: GPL-3.0-or-later */
/* omp_capture_affinity tells each thread its own numbers, in nested regions too, and the kernel
 * thread that it is; omp_set_affinity_format holds for all.
 * @env OMP_NUM_THREADS=10
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>

static void compare(const char *format, const char *expected)
{
    char text[200];
    size_t length = omp_capture_affinity(text, sizeof text, format);
    CHECK(length == strlen(text) && strcmp(text, expected) == 0, "'%s', not '%s'", text, expected);
}

static void check_numbers(void)
{
    char expected[200];
    snprintf(expected, sizeof expected, "%d of %d, level %d, ancestor %d, process %d",
             omp_get_thread_num(), omp_get_num_threads(), omp_get_level(),
             omp_get_ancestor_thread_num(omp_get_level() - 1), getpid());
    compare("%n of %N, level %L, ancestor %a, process %P", expected);
    compare(NULL, expected); /* the format that was set */
    snprintf(expected, sizeof expected, "0x%lx", (unsigned long)pthread_self());
    compare("%i", expected);
}

int main(void)
{
    omp_set_max_active_levels(2);
    omp_set_affinity_format("%n of %N, level %L, ancestor %a, process %P");
    for (int round = 0; round < 20; round++) {
        int members = 0;
        check_numbers();
#pragma omp parallel reduction(+ : members)
        {
            check_numbers();
            if (round % 2) {
#pragma omp barrier
                check_numbers();
            }
            members++;
        }
        CHECK(members == 10, "%d members", members);
#pragma omp parallel num_threads(3) reduction(+ : members)
#pragma omp parallel num_threads(4) reduction(+ : members)
        {
            check_numbers();
#pragma omp barrier
            check_numbers();
            members++;
        }
        CHECK(members == 22, "%d members", members);
    }
    return check_ok();
}
