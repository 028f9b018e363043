/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fibonacci.h - a number of Fibonacci by explicit tasks, two for each call. */
#ifndef FIBONACCI_H
#define FIBONACCI_H

/* Tasks for numbers below final_below are final. */
static int fibonacci(int n, int final_below)
{
    int a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a) final(n < final_below)
    a = fibonacci(n - 1, final_below);
#pragma omp task shared(b) final(n < final_below)
    b = fibonacci(n - 2, final_below);
#pragma omp taskwait
    return a + b;
}

#endif
