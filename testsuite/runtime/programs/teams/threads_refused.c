/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When the system gives us no thread and the implicit tasks of a region need some, since they wait
 * for each other, the program ends and says so, as with stock libgomp, and does not hang.
 * @env OMP_STACKSIZE=200000G
 * @status 1
 */
#include "../check.h"

int main(void)
{
    check_ok();
    fflush(stdout);
#pragma omp parallel num_threads(4)
    {
#pragma omp barrier
    }
    return 0;
}
