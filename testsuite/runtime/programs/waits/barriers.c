/* SPDX-License-Identifier: GPL-3.0-or-later */
/* barriers THREADS COUNT: a region of COUNT barriers.  test_barrier_calls.py counts the system
 * calls that it makes.
 * @helper
 */
#include "../check.h"

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1, count = argc > 2 ? atoi(argv[2]) : 1000;
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < count; i++) {
#pragma omp barrier
    }
    return check_ok();
}
