/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A reduction over a static loop, with one partial sum for each thread number added up in their
 * order, is bitwise what the same split gives in serial code, however cores come and go.  The
 * program gives them reason to: it alternates regions of unequal work with sleep.
 * static_reduction [ROUNDS]
 */
#include "../check.h"
#include <omp.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 40000, MAX = 1024 };

static double items[ITEMS], partial[MAX];

static double heavy(double x, int work)
{
    for (int i = 0; i < work; i++)
        x = x * 0.999999 + 1e-7 / (1.0 + x * x);
    return x;
}

static double serial(int n, int work)
{
    double total = 0;
    for (int t = 0; t < n; t++) {
        /* schedule(static): the first ITEMS % n threads get one item more. */
        int share = ITEMS / n, rest = ITEMS % n;
        int low = t * share + (t < rest ? t : rest), high = low + share + (t < rest);
        double sum = 0;
        for (int i = low; i < high; i++)
            sum += heavy(items[i], work);
        total += sum;
    }
    return total;
}

static double parallel(int n, int work)
{
    double total = 0;
    memset(partial, 0, sizeof partial);
#pragma omp parallel
    {
        double sum = 0;
        CHECK(omp_get_num_threads() == n, "team of %d, not %d", omp_get_num_threads(), n);
#pragma omp for schedule(static)
        for (int i = 0; i < ITEMS; i++)
            sum += heavy(items[i], work);
        partial[omp_get_thread_num()] += sum;
    }
    for (int t = 0; t < n; t++)
        total += partial[t];
    return total;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 12, n = omp_get_max_threads();
    CHECK(n <= MAX, "too many threads");
    for (int i = 0; i < ITEMS; i++)
        items[i] = 1.0 / (i + 1.7) - (i % 13) * 0.01;
    double expected[3];
    for (int work = 0; work < 3; work++)
        expected[work] = serial(n, work * 8);
    for (int round = 0; round < rounds; round++) {
        double result = parallel(n, round % 3 * 8), wanted = expected[round % 3];
        CHECK(memcmp(&result, &wanted, sizeof result) == 0, "round %d: %a, not %a", round, result,
              wanted);
        int sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
        for (int i = 0; i < ITEMS; i++)
            sum += i % 7;
        int plain = 0;
        for (int i = 0; i < ITEMS; i++)
            plain += i % 7;
        CHECK(sum == plain, "round %d: integer sum %d, not %d", round, sum, plain);
        if (round % 4 == 3)
            nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    return check_ok();
}
