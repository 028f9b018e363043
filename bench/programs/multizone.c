/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * multizone.c - flow in a channel that is cut into zones of unequal size, as in solvers with
 * overlapping or abutting grids: the widths of the zones grow geometrically, the largest has some
 * twenty times the points of the smallest.  Ranks get whole zones at the start, the largest first,
 * each to the rank with the fewest points so far.  A step exchanges the faces of all zones (copies
 * inside a rank, messages between ranks), and in each zone computes right-hand sides, solves along
 * lines of three directions (alternating directions, implicit), and adds: five parallel regions a
 * zone.  MPI and OpenMP.
 *
 * Usage: multizone [STEPS [POINTS]]: of the channel in x and y; it is POINTS / 8 high.
 * Each point is computed by the same operations in the same order for any number of ranks and
 * threads, and the checksum is a sum of integers.
 */
#include <math.h>
#include <mpi.h>
#include <omp.h>

#include "program.h"

enum { ZONES_X = 4, ZONES_Y = 4, ZONES = ZONES_X * ZONES_Y, VARIABLES = 5, SIDES = 4 };
enum { WEST, EAST, SOUTH, NORTH };
static const double GROWTH = 1.65; /* from the width of a zone to that of the next */
static const double DT = 0.02;

/* A zone with a border of one point in x and y.  Points are [z][y][x][variable]. */
struct zone {
    int owner, x0, y0, nx, ny, nz;
    int beside[SIDES];                        /* zones; the channel is periodic in x and y */
    double *u, *rhs, *out[SIDES], *in[SIDES]; /* NULL where another rank is the owner */
};

static struct zone zones[ZONES];
static int rank, ranks;

static double *allocate(size_t count)
{
    double *memory = calloc(count, sizeof *memory);
    if (!memory) {
        fprintf(stderr, "multizone: no memory for %zu numbers\n", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static size_t at(const struct zone *z, int i, int j, int k)
{
    return (((size_t)k * (size_t)(z->ny + 2) + (size_t)(j + 1)) * (size_t)(z->nx + 2) +
            (size_t)(i + 1)) *
           VARIABLES;
}

/* First point of each of `parts` zones, and the end. */
static void cut(int points, int parts, int *first)
{
    double whole = (pow(GROWTH, parts) - 1) / (GROWTH - 1), sum = 0;
    for (int i = 0; i <= parts; i++) {
        first[i] = (int)lround(points * sum / whole);
        sum += pow(GROWTH, i);
    }
}

/* The largest zone that has none yet goes to the rank with the fewest points. */
static void assign_owners(void)
{
    long *load = calloc((size_t)ranks, sizeof *load);
    for (int i = 0; i < ZONES; i++)
        zones[i].owner = -1;
    for (int round = 0; load && round < ZONES; round++) {
        int largest = -1, least = 0;
        for (int i = 0; i < ZONES; i++)
            if (zones[i].owner < 0 &&
                (largest < 0 || zones[i].nx * zones[i].ny > zones[largest].nx * zones[largest].ny))
                largest = i;
        for (int r = 1; r < ranks; r++)
            least = load[r] < load[least] ? r : least;
        zones[largest].owner = least;
        load[least] += (long)zones[largest].nx * zones[largest].ny;
    }
    free(load);
}

static int face_count(const struct zone *z, int side)
{
    return (side <= EAST ? z->ny : z->nx) * z->nz * VARIABLES;
}

static void fill(struct zone *z, int points)
{
    size_t count = at(z, -1, -1, z->nz);
    z->u = allocate(count);
    z->rhs = allocate(count);
    for (int s = 0; s < SIDES; s++) {
        z->out[s] = allocate((size_t)face_count(z, s));
        z->in[s] = allocate((size_t)face_count(z, s));
    }
#pragma omp parallel for
    for (int k = 0; k < z->nz; k++)
        for (int j = 0; j < z->ny; j++)
            for (int i = 0; i < z->nx; i++)
                for (int m = 0; m < VARIABLES; m++)
                    z->u[at(z, i, j, k) + (size_t)m] = 1 + 0.1 * m +
                                                       0.2 * sin(6.28 * (z->x0 + i) / points) *
                                                           cos(6.28 * (z->y0 + j) / points) *
                                                           (1 + 0.1 * k);
}

static void make_zones(int points)
{
    int x[ZONES_X + 1], y[ZONES_Y + 1];
    cut(points, ZONES_X, x);
    cut(points, ZONES_Y, y);
    for (int i = 0; i < ZONES; i++) {
        int zx = i % ZONES_X, zy = i / ZONES_X;
        zones[i] = (struct zone){.x0 = x[zx],
                                 .y0 = y[zy],
                                 .nx = x[zx + 1] - x[zx],
                                 .ny = y[zy + 1] - y[zy],
                                 .nz = points / 8,
                                 .beside = {[WEST] = zy * ZONES_X + (zx + ZONES_X - 1) % ZONES_X,
                                            [EAST] = zy * ZONES_X + (zx + 1) % ZONES_X,
                                            [SOUTH] = (zy + ZONES_Y - 1) % ZONES_Y * ZONES_X + zx,
                                            [NORTH] = (zy + 1) % ZONES_Y * ZONES_X + zx}};
    }
    assign_owners();
    for (int i = 0; i < ZONES; i++)
        if (zones[i].owner == rank)
            fill(&zones[i], points);
}

/* The outermost points at a side go to its buffer, or from the buffer into the border. */
static void copy_face(struct zone *z, int side, double *buffer, int out)
{
    int along = side <= EAST ? z->ny : z->nx;
    int last = side <= EAST ? z->nx : z->ny;
    int fixed = side % 2 ? last - out : out - 1;
    for (int k = 0; k < z->nz; k++)
        for (int a = 0; a < along; a++, buffer += VARIABLES) {
            double *point = z->u + (side <= EAST ? at(z, fixed, a, k) : at(z, a, fixed, k));
            if (out)
                memcpy(buffer, point, VARIABLES * sizeof *point);
            else
                memcpy(point, buffer, VARIABLES * sizeof *point);
        }
}

static void exchange(void)
{
    MPI_Request request[2 * ZONES * SIDES];
    MPI_Status status[2 * ZONES * SIDES];
    int count = 0;
    for (int i = 0; i < ZONES; i++)
        for (int s = 0; zones[i].owner == rank && s < SIDES; s++) {
            struct zone *from = &zones[zones[i].beside[s]];
            if (from->owner != rank)
                MPI_Irecv(zones[i].in[s], face_count(&zones[i], s), MPI_DOUBLE, from->owner,
                          i * SIDES + s, MPI_COMM_WORLD, &request[count++]);
        }
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < ZONES; i++)
        for (int s = 0; zones[i].owner == rank && s < SIDES; s++)
            copy_face(&zones[i], s, zones[i].out[s], 1);
    for (int i = 0; i < ZONES; i++)
        for (int s = 0; zones[i].owner == rank && s < SIDES; s++) {
            struct zone *to = &zones[zones[i].beside[s]];
            int n = face_count(&zones[i], s);
            if (to->owner == rank)
                memcpy(to->in[s ^ 1], zones[i].out[s], (size_t)n * sizeof(double));
            else
                MPI_Isend(zones[i].out[s], n, MPI_DOUBLE, to->owner,
                          zones[i].beside[s] * SIDES + (s ^ 1), MPI_COMM_WORLD, &request[count++]);
        }
    MPI_Waitall(count, request, status);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < ZONES; i++)
        for (int s = 0; zones[i].owner == rank && s < SIDES; s++)
            copy_face(&zones[i], s, zones[i].in[s], 0);
}

/* Central fluxes and diffusion; the lowest and highest layers are walls. */
static void right_hand_side(struct zone *z)
{
    size_t dx = VARIABLES, dy = (size_t)(z->nx + 2) * dx, dz = (size_t)(z->ny + 2) * dy;
#pragma omp parallel for collapse(2)
    for (int k = 0; k < z->nz; k++)
        for (int j = 0; j < z->ny; j++)
            for (int i = 0; i < z->nx; i++) {
                size_t p = at(z, i, j, k);
                size_t down = k ? p - dz : p, up = k < z->nz - 1 ? p + dz : p;
                double speed_x = z->u[p + 1] / z->u[p], speed_y = z->u[p + 2] / z->u[p];
                for (size_t m = 0; m < VARIABLES; m++) {
                    const double *u = z->u + m;
                    double flux = speed_x * (u[p + dx] - u[p - dx]) +
                                  speed_y * (u[p + dy] - u[p - dy]) + 0.1 * (u[up] - u[down]);
                    double spread =
                        u[p + dx] + u[p - dx] + u[p + dy] + u[p - dy] + u[up] + u[down] - 6 * u[p];
                    z->rhs[p + m] = DT * (0.4 * spread - 0.5 * flux);
                }
            }
}

/* One line of `count` points, `stride` apart: (1 - DT * second difference) x = rhs, by elimination
 * with coefficients that depend on the flow at each point. */
static void solve_line(const double *u, double *rhs, int count, size_t stride)
{
    double upper[4096], last = 0;
    for (int i = 0; i < count; i++) {
        size_t p = (size_t)i * stride;
        double lower = -DT * (0.4 + 0.1 * u[p + 1] / u[p]);
        double pivot = 1 / (1 + 0.8 * DT - lower * last);
        upper[i] = last = -DT * (0.4 - 0.1 * u[p + 1] / u[p]) * pivot;
        for (size_t m = 0; m < VARIABLES; m++)
            rhs[p + m] = (rhs[p + m] - (i ? lower * rhs[p - stride + m] : 0)) * pivot;
    }
    for (int i = count - 2; i >= 0; i--) {
        size_t p = (size_t)i * stride;
        for (size_t m = 0; m < VARIABLES; m++)
            rhs[p + m] -= upper[i] * rhs[p + stride + m];
    }
}

static void solve_lines(struct zone *z)
{
    size_t dx = VARIABLES, dy = (size_t)(z->nx + 2) * dx, dz = (size_t)(z->ny + 2) * dy;
#pragma omp parallel for collapse(2)
    for (int k = 0; k < z->nz; k++)
        for (int j = 0; j < z->ny; j++)
            solve_line(z->u + at(z, 0, j, k), z->rhs + at(z, 0, j, k), z->nx, dx);
#pragma omp parallel for collapse(2)
    for (int k = 0; k < z->nz; k++)
        for (int i = 0; i < z->nx; i++)
            solve_line(z->u + at(z, i, 0, k), z->rhs + at(z, i, 0, k), z->ny, dy);
#pragma omp parallel for collapse(2)
    for (int j = 0; j < z->ny; j++)
        for (int i = 0; i < z->nx; i++)
            solve_line(z->u + at(z, i, j, 0), z->rhs + at(z, i, j, 0), z->nz, dz);
}

static void add(struct zone *z)
{
#pragma omp parallel for collapse(2)
    for (int k = 0; k < z->nz; k++)
        for (int j = 0; j < z->ny; j++)
            for (size_t p = at(z, 0, j, k); p < at(z, z->nx, j, k); p++)
                z->u[p] += z->rhs[p];
}

static uint64_t checksum(int points)
{
    uint64_t sum = 0, all;
    for (int n = 0; n < ZONES; n++) {
        const struct zone *z = &zones[n];
        for (int k = 0; z->owner == rank && k < z->nz; k++)
            for (int j = 0; j < z->ny; j++)
                for (int i = 0; i < z->nx; i++)
                    for (size_t m = 0; m < VARIABLES; m++) {
                        int place = (k * points + z->y0 + j) * points + z->x0 + i;
                        sum +=
                            hash_value(z->u[at(z, i, j, k) + m], (uint64_t)place * VARIABLES + m);
                    }
    }
    MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int steps = number_argument(argc, argv, 1, 700), points = number_argument(argc, argv, 2, 96);
    if (points < 64 || points > 4096) {
        fprintf(stderr, "multizone: 64 to 4096 points\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    make_zones(points);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        exchange();
        for (int i = 0; i < ZONES; i++)
            if (zones[i].owner == rank) {
                right_hand_side(&zones[i]);
                solve_lines(&zones[i]);
                add(&zones[i]);
            }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    uint64_t sum = checksum(points);
    if (rank == 0)
        printf("multizone: %d ranks, %d threads, %d zones\nseconds %.6f\nchecksum %016llx\n", ranks,
               omp_get_max_threads(), ZONES, seconds, (unsigned long long)sum);
    MPI_Finalize();
    return 0;
}
