/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program has been told the size of teams when no thread can be made any more: implicit tasks that
 * do not wait are run by the threads that there are.  Prints how many.  refused wait: they wait.
 * @helper
 */
#include "../check.h"
#include "../meet.h"
#include <omp.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
    int told = omp_get_max_threads(), wait = argc > 1 && argv[1][0] == 'w';
    CHECK(told > 2, "told %d", told);
    CHECK(setrlimit(RLIMIT_NPROC, &(struct rlimit){1, 1}) == 0, "setrlimit");
    for (int round = 0; round < 1000; round++) {
        int sum = 0;
#pragma omp parallel reduction(+ : sum)
        {
            sum += omp_get_num_threads() == told;
            if (wait)
                meet();
        }
        CHECK(sum == told, "%d of %d", sum, told);
    }
    printf("%d\n", told);
    return 0;
}
