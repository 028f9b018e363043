/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a program computes does not depend on where its cores went.  Bitwise: what static loops put
 * into buffers of their thread numbers, and what tasks put where only they write, or add in the
 * order of their dependences.  A reduction clause combines partial sums in the order in which the
 * threads end, as with any OpenMP: it is right but for rounding.
 * @changing
 */
#include "../check.h"
#include <math.h>
#include <omp.h>
#include <string.h>

enum { ITEMS = 20000, TASKS = 200, ROUNDS = 8, MAX = 1024 };

static double items[ITEMS];

static double heavy(double x, int work)
{
    for (int i = 0; i < work; i++)
        x = x * 0.999999 + 1e-7 / (1.0 + x * x);
    return x;
}

/* Unequal, so that threads end in another order than they begin. */
static double item(int i) { return heavy(items[i], 10 + i % 7 * 20) * (i % 2 ? 1e9 : 1e-9); }

static double loop(int n)
{
    static double partial[MAX];
    double sum = 0;
    memset(partial, 0, sizeof partial);
#pragma omp parallel for schedule(static) num_threads(n)
    for (int i = 0; i < ITEMS; i++)
        partial[omp_get_thread_num()] += item(i);
    for (int t = 0; t < n; t++)
        sum += partial[t];
    return sum;
}

static double tasks(int n)
{
    static double part[TASKS];
    double sum = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int t = 0; t < TASKS; t++) {
#pragma omp task firstprivate(t) depend(out : part[t]) shared(part)
        {
            part[t] = 0;
            for (int i = t; i < ITEMS; i += TASKS)
                part[t] += item(i);
        }
#pragma omp task firstprivate(t) depend(in : part[t]) depend(inout : sum) shared(part, sum)
        sum += part[t];
    }
    return sum;
}

static double reduced(int n)
{
    double sum = 0;
#pragma omp parallel for schedule(static) num_threads(n) reduction(+ : sum)
    for (int i = 0; i < ITEMS; i++)
        sum += item(i);
    return sum;
}

int main(void)
{
    int n = omp_get_max_threads() < MAX ? omp_get_max_threads() : MAX;
    for (int i = 0; i < ITEMS; i++)
        items[i] = (i * 37 % 1000) / 1000.0;
    double by_loop = loop(n), by_tasks = tasks(n);
    for (int round = 0; round < ROUNDS; round++) {
        double now = loop(n);
        CHECK(!memcmp(&now, &by_loop, sizeof now), "loop: %.17g, not %.17g", now, by_loop);
        now = tasks(n);
        CHECK(!memcmp(&now, &by_tasks, sizeof now), "tasks: %.17g, not %.17g", now, by_tasks);
        now = reduced(n);
        CHECK(fabs(now - by_loop) <= 1e-12 * fabs(by_loop), "reduction: %.17g, not %.17g", now,
              by_loop);
    }
    return check_ok();
}
