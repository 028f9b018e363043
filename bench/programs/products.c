/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * products.c - a parallel loop over small problems, each of which multiplies matrices with the BLAS: its
 * threads, if the BLAS has any, are nested in those of the loop.
 *
 *   products [PROBLEMS] [SIZE] [STEPS]
 *
 * Each step multiplies all problems' matrices in one parallel loop, and scales the products outside it.
 */
#include "program.h"
#include <math.h>

enum { ROW_MAJOR = 101, PLAIN = 111 };
void cblas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc);

static double *filled(size_t count, uint64_t seed)
{
    double *data = malloc(count * sizeof *data);
    if (!data) {
        perror("products");
        exit(1);
    }
    for (size_t i = 0; i < count; i++)
        data[i] = (double)(mix_bits(seed + i) >> 11) / (double)(UINT64_C(1) << 53);
    return data;
}

int main(int argc, char **argv)
{
    int problems = number_argument(argc, argv, 1, 16), n = number_argument(argc, argv, 2, 192);
    int steps = number_argument(argc, argv, 3, 10);
    size_t entries = (size_t)n * (size_t)n;
    double *a = filled(entries * (size_t)problems, 1), *b = filled(entries, 2);
    double *c = filled(entries * (size_t)problems, 3), sum = 0;
    for (int step = 0; step < steps; step++) {
#pragma omp parallel for
        for (int p = 0; p < problems; p++)
            cblas_dgemm(ROW_MAJOR, PLAIN, PLAIN, n, n, n, 1.0 / n, a + entries * (size_t)p, n, b, n, 0,
                        c + entries * (size_t)p, n);
#pragma omp parallel for
        for (size_t i = 0; i < entries * (size_t)problems; i++)
            a[i] = sqrt(c[i] + 1);
    }
    for (size_t i = 0; i < entries * (size_t)problems; i++)
        sum += a[i];
    printf("checksum %.9e\n", sum);
    free(a), free(b), free(c);
    return 0;
}
