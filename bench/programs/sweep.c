/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sweep.c - discrete-ordinates transport: particles that stream through a box of cells in the
 * directions of eight octants, scattered in each cell from one direction into the others.  The
 * box is cut into columns along x among the ranks (Koch, Baker, Alcouffe), and each column into
 * chunks.  A chunk of an octant can be computed when the faces upwind have come from two
 * neighbours: a rank polls MPI_Testany for them, takes what has arrived, in any order, and sends
 * the faces downwind.  Inside a chunk all cells of a diagonal plane are independent: a parallel
 * loop for each plane, over cells, with angles and energy groups inside.  These are thousands of
 * regions of some microseconds.  MPI and OpenMP.
 *
 * Usage: sweep [ITERATIONS [CELLS]]: of the box in each direction.  Fluxes of octants are summed in
 * the octants' order, so the checksum, a sum of integers, is the same for any number of ranks.
 */
#include <math.h>
#include <mpi.h>
#include <omp.h>

#include "program.h"

enum { OCTANTS = 8, SETS = 2, ITEMS = OCTANTS * SETS, ANGLES = 4, GROUPS = 4 };
enum { WIDE = ANGLES * GROUPS }; /* numbers on a face of a cell, of one set of groups */
enum { CHUNK = 4 };              /* cells in x that are computed at once */
enum { Y, Z };

/* What an octant and a set of groups need; index (s, o) -> s * OCTANTS + o. */
struct item {
    int chunk;                /* the next one, in the order of the octant */
    int arrived;              /* of its faces from Y and Z */
    double *x_face;           /* [z][y]: between chunks */
    double *face[2], *out[2]; /* [x of a chunk][z or y] */
    double *flux;             /* [x][z][y][GROUPS]: of the octant alone */
    MPI_Request sent[2];
};

static struct item items[ITEMS];
static MPI_Request receives[2 * ITEMS];
static MPI_Comm grid;
static int rank, ranks, dims[2], coords[2], n, chunks;
static int first[2], cells[2]; /* my cells in y and z */
static double *source, *scattered, cosine[ANGLES][3], sigma[SETS * GROUPS];

static double *allocate(size_t count)
{
    double *memory = calloc(count, sizeof *memory);
    if (!memory) {
        fprintf(stderr, "sweep: no memory for %zu numbers\n", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static int sign_of(int octant, int axis) /* 0: x, 1: y, 2: z */
{
    return octant >> axis & 1 ? -1 : 1;
}

/* The neighbour in y or z from (-1) or to (1) which an octant streams. */
static int neighbour(int octant, int axis, int direction)
{
    int at[2] = {coords[Y], coords[Z]}, other;
    at[axis] += direction * sign_of(octant, axis + 1);
    if (at[axis] < 0 || at[axis] >= dims[axis])
        return MPI_PROC_NULL;
    MPI_Cart_rank(grid, at, &other);
    return other;
}

static int face_count(int axis) { return CHUNK * cells[!axis] * WIDE; }

static size_t cell_at(int x, int y, int z)
{
    return ((size_t)x * (size_t)cells[Z] + (size_t)z) * (size_t)cells[Y] + (size_t)y;
}

static void set_up(void)
{
    int periods[2] = {0, 0};
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, coords);
    for (int axis = Y; axis <= Z; axis++) {
        first[axis] = n * coords[axis] / dims[axis];
        cells[axis] = n * (coords[axis] + 1) / dims[axis] - first[axis];
    }
    size_t mine = cell_at(n, 0, 0);
    source = allocate(mine);
    scattered = allocate(mine * SETS * GROUPS);
    for (int i = 0; i < ITEMS; i++) {
        items[i].flux = allocate(mine * GROUPS);
        items[i].x_face = allocate((size_t)(cells[Y] * cells[Z] * WIDE));
        for (int axis = Y; axis <= Z; axis++) {
            items[i].face[axis] = allocate((size_t)face_count(axis));
            items[i].out[axis] = allocate((size_t)face_count(axis));
            items[i].sent[axis] = MPI_REQUEST_NULL;
        }
    }
    for (int a = 0; a < ANGLES; a++) {
        double polar = 0.15 + 0.2 * a, turn = 0.3 + 0.25 * a;
        cosine[a][0] = polar;
        cosine[a][1] = sqrt(1 - polar * polar) * cos(turn);
        cosine[a][2] = sqrt(1 - polar * polar) * sin(turn);
    }
    for (int g = 0; g < SETS * GROUPS; g++)
        sigma[g] = 1 + 0.3 * g;
    for (int x = 0; x < n; x++)
        for (int z = 0; z < cells[Z]; z++)
            for (int y = 0; y < cells[Y]; y++)
                source[cell_at(x, y, z)] = x < n / 2 && first[Y] + y < n / 2 ? 1 : 0.05;
}

/* One cell, all angles and groups of a set: what comes in by three faces, and what goes out. */
static void cell(const struct item *item, int set, int x_in, int x, int y, int z)
{
    size_t at = cell_at(x, y, z);
    double *fx = item->x_face + (size_t)(z * cells[Y] + y) * WIDE;
    double *fy = item->face[Y] + (size_t)(x_in * cells[Z] + z) * WIDE;
    double *fz = item->face[Z] + (size_t)(x_in * cells[Y] + y) * WIDE;
    double *flux = item->flux + at * GROUPS, sum[GROUPS] = {0};
    const double *in = scattered + at * SETS * GROUPS + (size_t)(set * GROUPS);
    for (int a = 0; a < ANGLES; a++) {
        double cx = 2 * cosine[a][0], cy = 2 * cosine[a][1], cz = 2 * cosine[a][2];
        for (int g = 0; g < GROUPS; g++) {
            int i = a * GROUPS + g;
            double psi = (source[at] + in[g] + cx * fx[i] + cy * fy[i] + cz * fz[i]) /
                         (sigma[set * GROUPS + g] + cx + cy + cz);
            fx[i] = fmax(0, 2 * psi - fx[i]);
            fy[i] = fmax(0, 2 * psi - fy[i]);
            fz[i] = fmax(0, 2 * psi - fz[i]);
            sum[g] += psi / (OCTANTS * ANGLES);
        }
    }
    memcpy(flux, sum, sizeof sum);
}

/* All planes of a chunk: cells whose distances from the upwind corner have the same sum. */
static void compute_chunk(const struct item *item, int set, int octant)
{
    int sx = sign_of(octant, 0), sy = sign_of(octant, 1), sz = sign_of(octant, 2);
    for (int plane = 0; plane < CHUNK + cells[Y] + cells[Z] - 2; plane++) {
        int low = plane - (CHUNK - 1) - (cells[Y] - 1), high = plane;
        low = low > 0 ? low : 0;
        high = high < cells[Z] - 1 ? high : cells[Z] - 1;
#pragma omp parallel for collapse(2)
        for (int dz = low; dz <= high; dz++)
            for (int dx = 0; dx < CHUNK; dx++) {
                int dy = plane - dz - dx;
                if (dy < 0 || dy >= cells[Y])
                    continue;
                int step = item->chunk * CHUNK + dx;
                cell(item, set, dx, sx > 0 ? step : n - 1 - step, sy > 0 ? dy : cells[Y] - 1 - dy,
                     sz > 0 ? dz : cells[Z] - 1 - dz);
            }
    }
}

static void post(int i)
{
    for (int axis = Y; axis <= Z; axis++) {
        int from = neighbour(i % OCTANTS, axis, -1);
        if (from == MPI_PROC_NULL) { /* the edge of the box: nothing comes in */
            memset(items[i].face[axis], 0, (size_t)face_count(axis) * sizeof(double));
            items[i].arrived++;
        } else {
            MPI_Irecv(items[i].face[axis], face_count(axis), MPI_DOUBLE, from, i * 2 + axis, grid,
                      &receives[2 * i + axis]);
        }
    }
}

/* A chunk can be computed when its faces are here and those of the last one have left. */
static int ready(int i)
{
    MPI_Status status[2];
    int left = 0;
    if (items[i].chunk == chunks || items[i].arrived < 2)
        return 0;
    MPI_Testall(2, items[i].sent, &left, status);
    return left;
}

/* One chunk of an item that is ready; posts the receives for the next. */
static void advance(int i)
{
    struct item *item = &items[i];
    compute_chunk(item, i / OCTANTS, i % OCTANTS);
    for (int axis = Y; axis <= Z; axis++) {
        int to = neighbour(i % OCTANTS, axis, 1);
        memcpy(item->out[axis], item->face[axis], (size_t)face_count(axis) * sizeof(double));
        MPI_Isend(item->out[axis], face_count(axis), MPI_DOUBLE, to, i * 2 + axis, grid,
                  &item->sent[axis]);
    }
    item->arrived = 0;
    if (++item->chunk < chunks)
        post(i);
}

/* All octants of all sets, as their faces arrive. */
static void sweep(void)
{
    int left = ITEMS * chunks;
    for (int i = 0; i < 2 * ITEMS; i++)
        receives[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < ITEMS; i++) {
        items[i].chunk = items[i].arrived = 0;
        memset(items[i].x_face, 0, (size_t)(cells[Y] * cells[Z] * WIDE) * sizeof(double));
        post(i);
    }
    while (left) {
        int which, here;
        for (int i = 0; i < ITEMS; i++)
            while (ready(i)) {
                advance(i);
                left--;
            }
        MPI_Testany(2 * ITEMS, receives, &which, &here, MPI_STATUS_IGNORE);
        if (here && which != MPI_UNDEFINED)
            items[which / 2].arrived++;
    }
    for (int i = 0; i < ITEMS; i++) {
        MPI_Status status[2];
        MPI_Waitall(2, items[i].sent, status);
    }
}

/* What is scattered next is a share of the flux; the largest change of all cells. */
static double scatter(void)
{
    double largest = 0, all;
#pragma omp parallel for reduction(max : largest)
    for (size_t at = 0; at < cell_at(n, 0, 0); at++)
        for (int g = 0; g < SETS * GROUPS; g++) {
            double flux = 0;
            for (int o = 0; o < OCTANTS; o++)
                flux += items[g / GROUPS * OCTANTS + o].flux[at * GROUPS + (size_t)(g % GROUPS)];
            double *old = &scattered[at * SETS * GROUPS + (size_t)g];
            largest = fmax(largest, fabs(0.5 * flux - *old));
            *old = 0.5 * flux;
        }
    MPI_Allreduce(&largest, &all, 1, MPI_DOUBLE, MPI_MAX, grid);
    return all;
}

static uint64_t checksum(void)
{
    uint64_t sum = 0, all;
    for (int x = 0; x < n; x++)
        for (int z = 0; z < cells[Z]; z++)
            for (int y = 0; y < cells[Y]; y++)
                for (size_t g = 0; g < SETS * GROUPS; g++)
                    sum += hash_value(
                        scattered[cell_at(x, y, z) * SETS * GROUPS + g],
                        (uint64_t)((x * n + first[Z] + z) * n + first[Y] + y) * SETS * GROUPS + g);
    MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, grid);
    return all;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int iterations = number_argument(argc, argv, 1, 110);
    n = number_argument(argc, argv, 2, 24);
    chunks = n / CHUNK;
    if (n % CHUNK || n < ranks || n > 400) {
        fprintf(stderr, "sweep: cells are a multiple of %d, from the ranks to 400\n", CHUNK);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    set_up();
    double change = 0, start = MPI_Wtime();
    for (int k = 0; k < iterations; k++) {
        sweep();
        change = scatter();
    }
    double seconds = MPI_Wtime() - start;
    uint64_t sum = checksum();
    if (rank == 0)
        printf("sweep: %d x %d ranks, %d threads, %d cells\nchange %.6e\nseconds %.6f\n"
               "checksum %016llx\n",
               dims[Y], dims[Z], omp_get_max_threads(), n * n * n, change, seconds,
               (unsigned long long)sum);
    MPI_Finalize();
    return 0;
}
