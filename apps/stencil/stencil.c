/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * stencil.c - heat on a square plate, in over- or under-decomposed form: Jacobi's method with
 * the five-point stencil on an N x N grid, cut into blocks among the ranks.  A step exchanges
 * the edges of the blocks (Isend, Irecv, Waitall), computes the new temperatures in a static
 * `parallel for` over rows, and agrees on the largest change (Allreduce).  Plain MPI+OpenMP.
 *
 * Each temperature is computed from the same four neighbours in the same order on every rank
 * and thread, and the checksum is a sum of integers, one per point: the same for any number of
 * ranks and threads.
 */
#include <argp.h>
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NORTH, SOUTH, WEST, EAST, SIDES };

struct options {
    long n;     /* points in a row of the grid */
    long steps; /* time steps */
};

/* My block, with a border of one point that belongs to the neighbours or to the plate's edge. */
struct block {
    MPI_Comm comm;
    int neighbour[SIDES]; /* MPI_PROC_NULL at the edge of the plate */
    long row0, col0;      /* of the whole grid: my first inner point */
    long rows, cols, width;
    double *now, *next;
    MPI_Datatype column;
};

static const struct argp_option option_table[] = {
    {"size", 'n', "N", 0, "Points in a row and in a column of the grid (default 1024)", 0},
    {"steps", 's', "N", 0, "Time steps (default 200)", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    char *end = NULL;
    if (key == ARGP_KEY_ARG)
        argp_usage(state);
    if (key != 'n' && key != 's')
        return ARGP_ERR_UNKNOWN;
    long value = strtol(arg, &end, 10);
    if (end == arg || *end || value < 1 || value > 1 << 20)
        argp_error(state, "'%s' is not a number from 1 to %d", arg, 1 << 20);
    *(key == 'n' ? &o->n : &o->steps) = value;
    return 0;
}

static double *grid_of(const struct block *b)
{
    double *grid = calloc((size_t)((b->rows + 2) * b->width), sizeof *grid);
    if (!grid) {
        fprintf(stderr, "stencil: no memory for a block of %ld x %ld\n", b->rows, b->cols);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return grid;
}

/* Hot on the northern edge, and a hot spot: something that spreads. */
static double initial(long row, long col, long n)
{
    if (row < 0)
        return 1;
    return row >= n / 4 && row < n / 2 && col >= n / 4 && col < n / 3 ? 2 : 0;
}

static void fill(struct block *b, double *grid, long n)
{
#pragma omp parallel for schedule(static)
    for (long r = 0; r < b->rows + 2; r++)
        for (long c = 0; c < b->width; c++)
            grid[r * b->width + c] = initial(b->row0 + r - 1, b->col0 + c - 1, n);
}

static struct block make_block(long n)
{
    int size, rank, dims[2] = {0, 0}, periods[2] = {0, 0}, at[2];
    struct block b;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &b.comm);
    MPI_Comm_rank(b.comm, &rank);
    MPI_Cart_coords(b.comm, rank, 2, at);
    MPI_Cart_shift(b.comm, 0, 1, &b.neighbour[NORTH], &b.neighbour[SOUTH]);
    MPI_Cart_shift(b.comm, 1, 1, &b.neighbour[WEST], &b.neighbour[EAST]);
    b.row0 = n * at[0] / dims[0];
    b.col0 = n * at[1] / dims[1];
    b.rows = n * (at[0] + 1) / dims[0] - b.row0;
    b.cols = n * (at[1] + 1) / dims[1] - b.col0;
    b.width = b.cols + 2;
    b.now = grid_of(&b);
    b.next = grid_of(&b);
    fill(&b, b.now, n);
    fill(&b, b.next, n);
    MPI_Type_vector((int)b.rows, 1, (int)b.width, MPI_DOUBLE, &b.column);
    MPI_Type_commit(&b.column);
    return b;
}

static void free_block(struct block *b)
{
    MPI_Type_free(&b->column);
    MPI_Comm_free(&b->comm);
    free(b->now);
    free(b->next);
}

/* My outermost rows and columns go to the neighbours, theirs into my border. */
static void exchange(struct block *b)
{
    MPI_Request requests[2 * SIDES];
    MPI_Status statuses[2 * SIDES];
    double *g = b->now;
    long w = b->width;
    struct {
        double *out, *in;
        int count;
        MPI_Datatype type;
    } side[SIDES] = {
        [NORTH] = {g + w + 1, g + 1, (int)b->cols, MPI_DOUBLE},
        [SOUTH] = {g + b->rows * w + 1, g + (b->rows + 1) * w + 1, (int)b->cols, MPI_DOUBLE},
        [WEST] = {g + w + 1, g + w, 1, b->column},
        [EAST] = {g + w + b->cols, g + w + b->cols + 1, 1, b->column},
    };
    for (int s = 0; s < SIDES; s++)
        MPI_Irecv(side[s].in, side[s].count, side[s].type, b->neighbour[s], s ^ 1, b->comm,
                  &requests[s]);
    for (int s = 0; s < SIDES; s++)
        MPI_Isend(side[s].out, side[s].count, side[s].type, b->neighbour[s], s, b->comm,
                  &requests[SIDES + s]);
    MPI_Waitall(2 * SIDES, requests, statuses);
}

/* One row of new temperatures; returns the largest change in it. */
static double relax_row(const double *north, const double *here, const double *south, double *next,
                        long cols)
{
    double largest = 0;
    for (long c = 1; c <= cols; c++) {
        double sum = (north[c] + south[c]) + (here[c - 1] + here[c + 1]);
        double change = 0.25 * sum - here[c];
        next[c] = here[c] + 0.8 * change;
        double size = fabs(change);
        largest = size > largest ? size : largest;
    }
    return largest;
}

static double relax(struct block *b)
{
    double largest = 0;
    long w = b->width;
#pragma omp parallel for schedule(static) reduction(max : largest)
    for (long r = 1; r <= b->rows; r++) {
        const double *here = b->now + r * w;
        double change = relax_row(here - w, here, here + w, b->next + r * w, b->cols);
        largest = change > largest ? change : largest;
    }
    double *old = b->now;
    b->now = b->next;
    b->next = old;
    return largest;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

/* A hash of every point with its place, summed. */
static uint64_t checksum(const struct block *b, long n)
{
    uint64_t sum = 0, total;
    for (long r = 0; r < b->rows; r++)
        for (long c = 0; c < b->cols; c++) {
            uint64_t bits;
            memcpy(&bits, &b->now[(r + 1) * b->width + c + 1], sizeof bits);
            sum += mix(bits + mix((uint64_t)((b->row0 + r) * n + b->col0 + c)));
        }
    MPI_Allreduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, b->comm);
    return total;
}

int main(int argc, char **argv)
{
    struct options o = {.n = 1024, .steps = 200};
    const struct argp argp = {.options = option_table, .parser = parse_option,
                              .doc = "Heat on a plate: a stencil on blocks of a grid."};
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    struct block b = make_block(o.n);

    double largest = 0;
    MPI_Barrier(b.comm);
    double start = MPI_Wtime();
    for (long step = 0; step < o.steps; step++) {
        exchange(&b);
        double mine = relax(&b);
        MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, b.comm);
    }
    double seconds = MPI_Wtime() - start;
    uint64_t sum = checksum(&b, o.n);
    if (rank == 0)
        printf("stencil: %d ranks, %d threads, %ld steps on %ld x %ld points\n"
               "seconds %.6f\nlargest_change %.17g\nchecksum %016llx\n",
               size, omp_get_max_threads(), o.steps, o.n, o.n, seconds, largest,
               (unsigned long long)sum);
    free_block(&b);
    MPI_Finalize();
    return 0;
}
