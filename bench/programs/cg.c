/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cg.c - conjugate gradients with a diagonal preconditioner on a sparse matrix in compressed rows:
 * 27 points of a grid that is cut into layers among the ranks.  An iteration is a halo exchange
 * (Irecv, Isend, Waitall), a matrix-vector product, three dot products (reduction, Allreduce) and
 * three vector updates, each a parallel loop of its own.  MPI and OpenMP.
 *
 * Usage: cg [ITERATIONS [POINTS]]: of the grid, in each direction.  The checksum is the norm of the
 * solution: the order of the sums depends on ranks and threads.
 */
#include <math.h>
#include <mpi.h>
#include <omp.h>

#include "program.h"

/* My rows of the matrix.  Columns at and behind `rows` are the neighbours': the layer below mine,
 * then the one above. */
struct matrix {
    long rows, layer; /* layer: points in one */
    int below, above; /* ranks, or MPI_PROC_NULL */
    long *start;
    int *column;
    double *value, *inverse; /* inverse: of the diagonal */
};

struct vectors {
    double *x, *b, *r, *z, *p, *q;
};

static int rank, ranks;

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "cg: no memory for %zu items\n", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static long column_of(const struct matrix *a, long n, long x, long y, long z, long layers)
{
    long in_layer = y * n + x;
    if (z < 0)
        return a->rows + in_layer;
    if (z >= layers)
        return a->rows + (a->below == MPI_PROC_NULL ? 0 : a->layer) + in_layer;
    return z * a->layer + in_layer;
}

/* One row: 26 on the diagonal and a little more where the grid's material changes, -1 beside it. */
static long fill_row(struct matrix *a, long n, long x, long y, long z, long first, long layers,
                     long at)
{
    long row = z * a->layer + y * n + x;
    double diagonal = 26.0 + 0.5 * (double)((x / 8 + y / 8 + (first + z) / 8) % 2);
    for (long dz = -1; dz <= 1; dz++)
        for (long dy = -1; dy <= 1; dy++)
            for (long dx = -1; dx <= 1; dx++) {
                long nx = x + dx, ny = y + dy, nz = first + z + dz;
                if (nx < 0 || nx >= n || ny < 0 || ny >= n || nz < 0 || nz >= n)
                    continue;
                a->column[at] = (int)column_of(a, n, nx, ny, z + dz, layers);
                a->value[at++] = dx || dy || dz ? -1.0 : diagonal;
            }
    a->inverse[row] = 1 / diagonal;
    a->start[row + 1] = at;
    return at;
}

static struct matrix make_matrix(long n)
{
    long first = n * rank / ranks, layers = n * (rank + 1) / ranks - first, at = 0;
    struct matrix a = {.rows = layers * n * n,
                       .layer = n * n,
                       .below = rank > 0 ? rank - 1 : MPI_PROC_NULL,
                       .above = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL};
    a.start = allocate((size_t)a.rows + 1, sizeof *a.start);
    a.column = allocate(27 * (size_t)a.rows, sizeof *a.column);
    a.value = allocate(27 * (size_t)a.rows, sizeof *a.value);
    a.inverse = allocate((size_t)a.rows, sizeof *a.inverse);
    for (long z = 0; z < layers; z++)
        for (long y = 0; y < n; y++)
            for (long x = 0; x < n; x++)
                at = fill_row(&a, n, x, y, z, first, layers, at);
    return a;
}

/* The layers of `v` beside mine come to its end. */
static void exchange(const struct matrix *a, double *v)
{
    MPI_Request request[4];
    MPI_Status status[4];
    int count = (int)a->layer;
    double *ghost = v + a->rows;
    MPI_Irecv(ghost, count, MPI_DOUBLE, a->below, 0, MPI_COMM_WORLD, &request[0]);
    if (a->below != MPI_PROC_NULL)
        ghost += a->layer;
    MPI_Irecv(ghost, count, MPI_DOUBLE, a->above, 1, MPI_COMM_WORLD, &request[1]);
    MPI_Isend(v, count, MPI_DOUBLE, a->below, 1, MPI_COMM_WORLD, &request[2]);
    MPI_Isend(v + a->rows - a->layer, count, MPI_DOUBLE, a->above, 0, MPI_COMM_WORLD, &request[3]);
    MPI_Waitall(4, request, status);
}

static void multiply(const struct matrix *a, const double *v, double *product)
{
#pragma omp parallel for
    for (long row = 0; row < a->rows; row++) {
        double sum = 0;
        for (long i = a->start[row]; i < a->start[row + 1]; i++)
            sum += a->value[i] * v[a->column[i]];
        product[row] = sum;
    }
}

static double dot(long n, const double *v, const double *w)
{
    double sum = 0, total;
#pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < n; i++)
        sum += v[i] * w[i];
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

/* w = alpha v + beta w */
static void combine(long n, double alpha, const double *v, double beta, double *w)
{
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        w[i] = alpha * v[i] + beta * w[i];
}

static void precondition(const struct matrix *a, const double *r, double *z)
{
#pragma omp parallel for
    for (long i = 0; i < a->rows; i++)
        z[i] = a->inverse[i] * r[i];
}

static struct vectors make_vectors(const struct matrix *a)
{
    size_t n = (size_t)(a->rows + 2 * a->layer);
    struct vectors v;
    double **all[] = {&v.x, &v.b, &v.r, &v.z, &v.p, &v.q};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = allocate(n, sizeof(double));
    return v;
}

/* `iterations` of them, from zero; the norm of the last residual over the first. */
static double solve(const struct matrix *a, struct vectors *v, int iterations)
{
    long n = a->rows;
    memset(v->x, 0, (size_t)n * sizeof *v->x);
    memcpy(v->r, v->b, (size_t)n * sizeof *v->r);
    double first = sqrt(dot(n, v->r, v->r)), last = first, rho = 0;
    for (int k = 0; k < iterations && last > 1e-12 * first; k++) {
        double old = rho;
        precondition(a, v->r, v->z);
        rho = dot(n, v->r, v->z);
        combine(n, 1, v->z, k ? rho / old : 0, v->p);
        exchange(a, v->p);
        multiply(a, v->p, v->q);
        double alpha = rho / dot(n, v->p, v->q);
        combine(n, alpha, v->p, 1, v->x);
        combine(n, -alpha, v->q, 1, v->r);
        last = sqrt(dot(n, v->r, v->r));
    }
    return last / first;
}

int main(int argc, char **argv)
{
    enum { SET = 50 }; /* iterations of one solution; sets of them are repeated */
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int iterations = number_argument(argc, argv, 1, 2000);
    long n = number_argument(argc, argv, 2, 48);
    if (n < ranks) {
        fprintf(stderr, "cg: %ld layers for %d ranks\n", n, ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    struct matrix a = make_matrix(n);
    struct vectors v = make_vectors(&a);
#pragma omp parallel for
    for (long i = 0; i < a.rows; i++)
        v.b[i] = 1 + sin(0.001 * (double)(i + n * rank / ranks * a.layer));

    double residual = 0, start = MPI_Wtime();
    for (int done = 0; done < iterations; done += SET)
        residual = solve(&a, &v, iterations - done < SET ? iterations - done : SET);
    double seconds = MPI_Wtime() - start, norm = sqrt(dot(a.rows, v.x, v.x));
    if (rank == 0)
        printf("cg: %d ranks, %d threads, %ld points\nresidual %.6e\nseconds %.6f\n"
               "checksum %.12e\n",
               ranks, omp_get_max_threads(), n * n * n, residual, seconds, norm);
    MPI_Finalize();
    return 0;
}
