/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hydro.cpp - a blast wave in a gas, by Lagrangian hydrodynamics on an unstructured mesh of
 * hexahedra, which moves with the gas.  Elements find their nodes, neighbours and materials through
 * index lists.  Ranks have boxes of elements; nodes between them exist on both, and their forces
 * are summed through the faces.  A step is some eighty short parallel loops: forces gathered at
 * nodes, motion, artificial viscosity, an equation of state for each material, limits of the step.
 *
 * Usage: hydro [STEPS [ELEMENTS]]: in each direction.  The checksum is an energy: the order of sums
 * depends on ranks, not on threads.  Method: E. J. Caramana et al., doi:10.1006/jcph.1998.5989.
 */
#include <mpi.h>
#include <omp.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "program.h"

namespace
{

constexpr int MATERIALS = 6, FACES = 6, CORNERS = 8;
constexpr double GAMMA = 1.4, FLOOR = 1e-9, SIDE = 1.2, BLAST = 0.5;
/* The corners (4z + 2y + x) of each face of an element, counterclockwise from outside.  Faces 2d
 * and 2d + 1 are the lower and the upper one in direction d. */
constexpr int FACE[FACES][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4},
                                {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};

using Vector = std::vector<double>;
using Index = std::vector<int>;
using Triple = std::array<int, 3>;
using Lists = std::array<Index, FACES>;

struct Mesh {
    MPI_Comm comm;
    int rank, beside[FACES]; /* beside: ranks, or MPI_PROC_NULL */
    Triple n, first, nodes;  /* elements of mine, the first of them, nodes of mine */
    size_t elements, points, ghosts;
    Index corner;                  /* [element][8]: nodes */
    std::vector<Index> used;       /* of each node: its entries in `corner` */
    Index neighbour;               /* [element][6]: elements, or ghosts behind them */
    std::vector<Index> material;   /* elements of each */
    Lists nodes_at, inside, ghost; /* of each face: its nodes, elements, and ghosts outside */
};

template <typename Body> void for_box(const Triple &n, Body body)
{
    int index = 0;
    for (int k = 0; k < n[2]; k++)
        for (int j = 0; j < n[1]; j++)
            for (int i = 0; i < n[0]; i++)
                body(Triple{i, j, k}, index++);
}

/* Elements or nodes (of a box of n) at each face. */
Lists faces_of(const Triple &n)
{
    Lists result;
    for_box(n, [&](const Triple &where, int index) {
        for (size_t f = 0; f < FACES; f++)
            if (where[f / 2] == (f % 2 ? n[f / 2] - 1 : 0))
                result[f].push_back(index);
    });
    return result;
}

void connect(Mesh &m)
{
    m.nodes_at = faces_of(m.nodes);
    m.inside = faces_of(m.n);
    const int row = m.n[0], layer = row * m.n[1], line = m.nodes[0], plane = line * m.nodes[1];
    for_box(m.n, [&](const Triple &w, int e) {
        const int node = w[2] * plane + w[1] * line + w[0];
        for (int c = 0; c < CORNERS; c++)
            m.corner.push_back(node + (c >> 2) * plane + (c >> 1 & 1) * line + (c & 1));
        for (int step : {1, row, layer})
            m.neighbour.insert(m.neighbour.end(), {e - step, e + step});
    });
    m.elements = m.neighbour.size() / FACES;
    m.ghosts = 0;
    for (size_t f = 0; f < FACES; f++)
        for (int e : m.inside[f]) {
            const int ghost = int(m.elements + m.ghosts++);
            m.ghost[f].push_back(ghost);
            m.neighbour[size_t(e) * FACES + f] = m.beside[f] == MPI_PROC_NULL ? e : ghost;
        }
    m.points = size_t(plane * m.nodes[2]);
    m.used.resize(m.points);
    for (size_t i = 0; i < m.corner.size(); i++)
        m.used[size_t(m.corner[i])].push_back(int(i));
}

Mesh make_mesh(int n)
{
    Mesh m;
    int ranks, dims[3] = {0, 0, 0}, periods[3] = {0, 0, 0}, coords[3];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 3, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &m.comm);
    MPI_Comm_rank(m.comm, &m.rank);
    MPI_Cart_coords(m.comm, m.rank, 3, coords);
    for (size_t d = 0; d < 3; d++) {
        MPI_Cart_shift(m.comm, int(d), 1, &m.beside[2 * d], &m.beside[2 * d + 1]);
        m.first[d] = n * coords[d] / dims[d];
        m.n[d] = n * (coords[d] + 1) / dims[d] - m.first[d];
        m.nodes[d] = m.n[d] + 1;
    }
    connect(m);
    m.material.resize(MATERIALS); /* 2 i + 1 of 36 patches of eight elements have material i */
    for_box(m.n, [&](const Triple &w, int e) {
        uint64_t patch = 0;
        for (size_t d = 0; d < 3; d++)
            patch = patch * 64 + uint64_t(m.first[d] + w[d]) / 2;
        m.material[size_t(std::sqrt(double(mix_bits(patch) % 36)))].push_back(e);
    });
    return m;
}

/* Adds what the other side of each face from `first` to `last` has of `field` at `from` to that at
 * `to`.  There are `width` numbers in a place. */
void exchange(const Mesh &m, size_t first, size_t last, Vector &field, size_t width,
              const Lists &from, const Lists &to)
{
    std::array<Vector, FACES> in, out;
    MPI_Request request[2 * FACES];
    int count = 0;
    for (size_t f = first; f <= last; f++) {
        if (m.beside[f] == MPI_PROC_NULL)
            continue;
        for (int i : from[f])
            for (size_t k = 0; k < width; k++)
                out[f].push_back(field[width * size_t(i) + k]);
        in[f].resize(out[f].size());
        const int n = int(in[f].size()), at = m.beside[f];
        MPI_Irecv(in[f].data(), n, MPI_DOUBLE, at, int(f ^ 1), m.comm, &request[count++]);
        MPI_Isend(out[f].data(), n, MPI_DOUBLE, at, int(f), m.comm, &request[count++]);
    }
    MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
    for (size_t f = first; f <= last; f++)
        for (size_t i = 0; i < in[f].size(); i++)
            field[width * size_t(to[f][i / width]) + i % width] += in[f][i];
}

/* Adds what other ranks have for nodes between us; edges and corners by the order of directions. */
void sum_nodes(const Mesh &m, Vector &field, size_t width)
{
    for (size_t d = 0; d < 3; d++)
        exchange(m, 2 * d, 2 * d + 1, field, width, m.nodes_at, m.nodes_at);
}

struct State {
    Vector x, v, f, mass;                     /* of nodes; x, v and f: [node][3] */
    Vector e, p, q, volume, volume_new, c, m; /* of elements; the density was 1 at the start */
    Vector length, rate, spread;              /* spread has ghosts */
    Vector corner_force;                      /* [element][8][3] */
    Vector e_new, half, dv, dw, q_old;        /* scratch of the equation of state */
};

struct Shape {
    double area[FACES][3], volume; /* area: outward normals */
};

Shape shape_of(const Mesh &m, const State &s, size_t e)
{
    Shape is;
    double x[CORNERS][3];
    for (size_t c = 0; c < CORNERS; c++)
        std::copy_n(&s.x[3 * size_t(m.corner[e * CORNERS + c])], 3, x[c]);
    is.volume = 0;
    for (size_t f = 0; f < FACES; f++) {
        const int *at = FACE[f];
        const double *a = x[at[0]], *b = x[at[1]], *c = x[at[2]], *d = x[at[3]];
        for (size_t i = 0; i < 3; i++) {
            const size_t j = (i + 1) % 3, k = (i + 2) % 3;
            is.area[f][i] = 0.5 * ((c[j] - a[j]) * (d[k] - b[k]) - (c[k] - a[k]) * (d[j] - b[j]));
            is.volume += is.area[f][i] * (a[i] + b[i] + c[i] + d[i]) / 12;
        }
    }
    return is;
}

/* A parallel loop over 0 to count - 1, or over the elements of a list with their places in it. */
template <typename Body> void for_each(size_t count, Body body)
{
#pragma omp parallel for
    for (size_t i = 0; i < count; i++)
        body(i);
}

template <typename Body> void each(const Index &list, Body body)
{
    for_each(list.size(), [&](size_t i) { body(i, size_t(list[i])); });
}

/* Pressure on the faces, and drag against motions that change no volume (hourglass modes). */
void corner_forces(const Mesh &m, State &s)
{
    for_each(m.elements, [&](size_t e) {
        const Shape shape = shape_of(m, s, e);
        double force[CORNERS][3] = {};
        for (size_t f = 0; f < FACES; f++)
            for (int c : FACE[f])
                for (size_t d = 0; d < 3; d++)
                    force[c][d] += 0.25 * (s.p[e] + s.q[e]) * shape.area[f][d];
        std::copy_n(force[0], CORNERS * 3, &s.corner_force[e * CORNERS * 3]);
    });
    for_each(m.elements, [&](size_t e) {
        const double drag = 0.02 * s.m[e] * s.c[e] / s.length[e];
        for (size_t d = 0; d < 3; d++)
            for (int mode : {0x96, 0x3c, 0x5a, 0x66}) { /* bits: corners where a mode is negative */
                const auto sign = [&](size_t corner) { return mode >> corner & 1 ? -1 : 1; };
                double share = 0;
                for (size_t c = 0; c < CORNERS; c++)
                    share += sign(c) * s.v[3 * size_t(m.corner[e * CORNERS + c]) + d];
                for (size_t c = 0; c < CORNERS; c++)
                    s.corner_force[3 * (e * CORNERS + c) + d] -= sign(c) * drag * share / CORNERS;
            }
    });
}

void move_nodes(const Mesh &m, State &s, double dt)
{
    corner_forces(m, s);
    for_each(3 * m.points, [&](size_t i) {
        s.f[i] = 0;
        for (int corner : m.used[i / 3])
            s.f[i] += s.corner_force[3 * size_t(corner) + i % 3];
    });
    sum_nodes(m, s.f, 3);
    for_each(3 * m.points, [&](size_t i) { s.f[i] /= s.mass[i / 3]; });
#pragma omp parallel
    for (size_t d = 0; d < 3; d++) /* planes of symmetry through the centre of the blast */
        if (m.first[d] == 0) {
            const Index &list = m.nodes_at[2 * d];
#pragma omp for nowait
            for (size_t i = 0; i < list.size(); i++)
                s.f[3 * size_t(list[i]) + d] = 0;
        }
    for_each(3 * m.points, [&](size_t i) {
        const double v = s.v[i] + dt * s.f[i];
        s.v[i] = std::fabs(v) < 1e-12 ? 0 : v;
    });
    for_each(3 * m.points, [&](size_t i) { s.x[i] += dt * s.v[i]; });
}

void element_shapes(const Mesh &m, State &s, double dt)
{
    int turned = 0;
#pragma omp parallel for reduction(+ : turned)
    for (size_t e = 0; e < m.elements; e++) {
        s.volume_new[e] = shape_of(m, s, e).volume;
        turned += !(s.volume_new[e] > 0);
    }
    if (turned) {
        fprintf(stderr, "hydro: %d elements have turned inside out\n", turned);
        MPI_Abort(m.comm, 1);
    }
    for_each(m.elements, [&](size_t e) {
        s.length[e] = std::cbrt(s.volume_new[e]);
        s.rate[e] = (s.volume_new[e] - s.volume[e]) / (0.5 * (s.volume_new[e] + s.volume[e]) * dt);
    });
    for_each(m.elements, [&](size_t e) { s.spread[e] = s.rate[e] * s.length[e]; });
    std::fill(s.spread.begin() + int(m.elements), s.spread.end(), 0);
    exchange(m, 0, FACES - 1, s.spread, 1, m.inside, m.ghost);
}

/* Viscosity where gas is compressed, less where the neighbours are compressed as much. */
void viscosity(const Mesh &m, State &s, const Index &list)
{
    each(list, [&](size_t, size_t e) {
        const double du = s.spread[e], rho = s.m[e] / s.volume_new[e];
        double limit = 1;
        for (size_t d = 0; d < 3 && du < 0; d++) {
            const double low = s.spread[size_t(m.neighbour[e * FACES + 2 * d])] / du;
            const double high = s.spread[size_t(m.neighbour[e * FACES + 2 * d + 1])] / du;
            limit = std::min({limit, 0.5 * (low + high), 2 * low, 2 * high});
        }
        const double part = 1 - 0.7 * std::max(0.0, limit);
        s.q_old[e] = s.q[e];
        s.q[e] = du < 0 ? rho * part * (2 * du * du - 0.5 * s.c[e] * du) : 0;
    });
}

/* Predictor and corrector of the energy of one material; each loop gathers by the list. */
void equation_of_state(State &s, const Index &list)
{
    const auto new_energy = [&](auto i, auto e) { s.e_new[i] = std::max(FLOOR, s.e[e] - s.dw[i]); };
    each(list, [&](auto i, auto e) { s.dv[i] = s.volume_new[e] - s.volume[e]; });
    each(list, [&](auto i, auto e) { s.dw[i] = 0.5 * (s.p[e] + s.q_old[e] + s.q[e]) * s.dv[i]; });
    each(list, new_energy);
    each(list, [&](auto i, auto e) {
        s.half[i] = (GAMMA - 1) * s.e_new[i] / (s.volume[e] + 0.5 * s.dv[i]);
    });
    each(list, [&](auto i, auto e) { s.dw[i] = (0.5 * (s.p[e] + s.half[i]) + s.q[e]) * s.dv[i]; });
    each(list, new_energy);
    each(list, [&](auto i, auto e) {
        s.e[e] = s.e_new[i];
        s.p[e] = (GAMMA - 1) * s.e_new[i] / s.volume_new[e];
    });
    each(list,
         [&](auto, auto e) { s.c[e] = std::sqrt(GAMMA * s.p[e] * s.volume_new[e] / s.m[e]); });
}

/* The smallest limit of `limit_of` in a list, by an element of `slots` for each thread. */
template <typename Limit> double smallest(const Index &list, Limit limit_of)
{
    Vector slots(size_t(omp_get_max_threads()), 1e20);
#pragma omp parallel
    {
        double least = 1e20;
#pragma omp for nowait
        for (size_t i = 0; i < list.size(); i++)
            least = std::min(least, limit_of(size_t(list[i])));
        slots[size_t(omp_get_thread_num())] = least;
    }
    return *std::min_element(slots.begin(), slots.end());
}

double time_limit(const Mesh &m, const State &s)
{
    double least = 1e20, all;
    const auto sound = [&](size_t e) {
        const double du = std::min(0.0, s.spread[e]);
        return 0.05 * s.length[e] / std::sqrt(s.c[e] * s.c[e] + 16 * du * du);
    };
    const auto change = [&](size_t e) { return 0.02 / (std::fabs(s.rate[e]) + 1e-20); };
    for (const Index &list : m.material)
        least = std::min({least, smallest(list, sound), smallest(list, change)});
    MPI_Allreduce(&least, &all, 1, MPI_DOUBLE, MPI_MIN, m.comm);
    return all;
}

State start_state(const Mesh &m, int n)
{
    State s;
    for (Vector *of_nodes : {&s.x, &s.v, &s.f})
        of_nodes->resize(3 * m.points);
    s.mass.resize(m.points);
    for (Vector *of_elements : {&s.e, &s.p, &s.q, &s.volume, &s.volume_new, &s.c, &s.m, &s.length,
                                &s.rate, &s.e_new, &s.half, &s.dv, &s.dw, &s.q_old})
        of_elements->resize(m.elements);
    s.corner_force.resize(m.elements * CORNERS * 3);
    s.spread.resize(m.elements + m.ghosts);
    for_box(m.nodes, [&](const Triple &where, int node) {
        for (size_t d = 0; d < 3; d++)
            s.x[3 * size_t(node) + d] = SIDE * (m.first[d] + where[d]) / n;
    });
    for (size_t e = 0; e < m.elements; e++) {
        const double volume = s.volume[e] = s.m[e] = shape_of(m, s, e).volume;
        s.length[e] = std::cbrt(volume);
        s.e[e] = e == 0 && m.first == Triple{0, 0, 0} ? BLAST : 1e-4 * volume;
        s.p[e] = (GAMMA - 1) * s.e[e] / volume;
        s.c[e] = std::sqrt(GAMMA * s.p[e]);
        for (size_t c = 0; c < CORNERS; c++)
            s.mass[size_t(m.corner[e * CORNERS + c])] += volume / CORNERS;
    }
    sum_nodes(m, s.mass, 1);
    return s;
}

} // namespace

int main(int argc, char **argv)
{
    int provided, ranks;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int steps = number_argument(argc, argv, 1, 2000);
    const int n = number_argument(argc, argv, 2, 20);
    if (n < ranks || n > 128) {
        fprintf(stderr, "hydro: elements are from the ranks to 128\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const Mesh m = make_mesh(n);
    State s = start_state(m, n);
    double dt = 1e-6, energy = 0, all, start = MPI_Wtime(); /* energy: weighted by place */
    for (int step = 0; step < steps; step++) {
        move_nodes(m, s, dt);
        element_shapes(m, s, dt);
        for (const Index &list : m.material)
            viscosity(m, s, list);
        for (const Index &list : m.material)
            equation_of_state(s, list);
        std::swap(s.volume, s.volume_new);
        dt = std::min(1.1 * dt, time_limit(m, s));
    }
    const double seconds = MPI_Wtime() - start;
    for (size_t e = 0; e < m.elements; e++)
        energy += s.e[e] * s.volume[e] / s.m[e];
    MPI_Allreduce(&energy, &all, 1, MPI_DOUBLE, MPI_SUM, m.comm);
    if (m.rank == 0)
        printf("hydro: %d ranks, %d threads, %d elements\nseconds %.6f\nchecksum %.12e\n", ranks,
               omp_get_max_threads(), n * n * n, seconds, all);
    MPI_Finalize();
    return 0;
}
