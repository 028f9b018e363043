/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hydro.cpp - a blast wave in a gas, by Lagrangian hydrodynamics on an unstructured mesh of
 * hexahedra, which moves with the gas.  Elements find their nodes, neighbours and materials through
 * index lists.  Ranks have boxes of elements; nodes between them exist on both, and their forces
 * are summed through the faces, one direction after the other.  A step is some eighty short
 * parallel loops: forces gathered from and scattered to nodes, motion, artificial viscosity, and
 * for each material an equation of state of eight loops and two limits of the time step.
 *
 * Usage: hydro [STEPS [ELEMENTS]]: of the whole mesh, in each direction.
 * The checksum is an energy.  The order in which forces of nodes are summed depends on the ranks,
 * but not on the threads.
 * Method: E. J. Caramana et al., "Formulations of Artificial Viscosity for Multi-dimensional Shock
 * Wave Computations", doi:10.1006/jcph.1998.5989.
 */
#include <mpi.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "hydro_mesh.h"

namespace
{

constexpr double GAMMA = 1.4, FLOOR = 1e-9, SIDE = 1.2, BLAST = 0.5;

/* The corners (4z + 2y + x) of each face of an element, counterclockwise from outside.  Faces 2d
 * and 2d + 1 are the lower and the upper one in direction d. */
constexpr int FACE[FACES][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4},
                                {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};

struct State {
    Vector x[3], v[3], f[3], mass;            /* of nodes */
    Vector e, p, q, volume, volume_new, c, m; /* of elements; the density was 1 at the start */
    Vector length, rate, spread;              /* spread has ghosts */
    Vector corner_force[3];                   /* [element][8] */
    Vector e_new, p_half, dv, work, q_old;    /* scratch of the equation of state */
};

struct Shape {
    double x[CORNERS][3], area[FACES][3], volume; /* area: outward normals */
};

/* Gathers the corners of an element. */
inline void gather(const Mesh &m, const State &s, size_t e, Shape &shape)
{
    for (size_t c = 0; c < CORNERS; c++)
        for (size_t d = 0; d < 3; d++)
            shape.x[c][d] = s.x[d][size_t(m.corner[e * CORNERS + c])];
    shape.volume = 0;
    for (size_t f = 0; f < FACES; f++) {
        const double *a = shape.x[FACE[f][0]], *b = shape.x[FACE[f][1]], *c = shape.x[FACE[f][2]],
                     *d = shape.x[FACE[f][3]];
        for (size_t i = 0; i < 3; i++) {
            const size_t j = (i + 1) % 3, k = (i + 2) % 3;
            shape.area[f][i] =
                0.5 * ((c[j] - a[j]) * (d[k] - b[k]) - (c[k] - a[k]) * (d[j] - b[j]));
            shape.volume += shape.area[f][i] * (a[i] + b[i] + c[i] + d[i]) / 12;
        }
    }
}

/* A parallel loop over 0 to count - 1, or over the elements of a list with their places in it. */
template <typename Body> void for_each(int count, Body body)
{
#pragma omp parallel for
    for (int i = 0; i < count; i++)
        body(size_t(i));
}

template <typename Body> void for_list(const Index &list, Body body)
{
#pragma omp parallel for
    for (size_t i = 0; i < list.size(); i++)
        body(i, size_t(list[i]));
}

/* Pressure on the faces, and drag against motions that change no volume (hourglass modes). */
void corner_forces(const Mesh &m, State &s)
{
    for_each(m.elements, [&](size_t e) {
        Shape shape;
        gather(m, s, e, shape);
        for (size_t d = 0; d < 3; d++) {
            double force[CORNERS] = {0};
            for (size_t f = 0; f < FACES; f++)
                for (int c : FACE[f])
                    force[c] += 0.25 * (s.p[e] + s.q[e]) * shape.area[f][d];
            for (size_t c = 0; c < CORNERS; c++)
                s.corner_force[d][e * CORNERS + c] = force[c];
        }
    });
    for_each(m.elements, [&](size_t e) {
        const double drag = 0.02 * s.m[e] * s.c[e] / s.length[e];
        for (size_t d = 0; d < 3; d++)
            for (int mode : {0x96, 0x3c, 0x5a, 0x66}) { /* bits: corners where a mode is negative */
                const auto sign = [&](size_t corner) { return mode >> corner & 1 ? -1 : 1; };
                double share = 0;
                for (size_t c = 0; c < CORNERS; c++)
                    share += sign(c) * s.v[d][size_t(m.corner[e * CORNERS + c])];
                for (size_t c = 0; c < CORNERS; c++)
                    s.corner_force[d][e * CORNERS + c] -= sign(c) * drag * share / CORNERS;
            }
    });
}

void move_nodes(const Mesh &m, State &s, double dt)
{
    corner_forces(m, s);
    for_each(m.points, [&](size_t i) {
        for (size_t d = 0; d < 3; d++) {
            double sum = 0;
            for (int u = m.used_start[i]; u < m.used_start[i + 1]; u++)
                sum += s.corner_force[d][size_t(m.used[size_t(u)])];
            s.f[d][i] = sum;
        }
    });
    sum_nodes(m, {&s.f[0], &s.f[1], &s.f[2]});
    for_each(m.points, [&](size_t i) {
        for (Vector &f : s.f)
            f[i] /= s.mass[i];
    });
#pragma omp parallel
    for (size_t d = 0; d < 3; d++) /* planes of symmetry through the centre of the blast */
        if (m.first[d] == 0) {
            const Index &list = m.face_nodes[2 * d];
#pragma omp for nowait
            for (size_t i = 0; i < list.size(); i++)
                s.f[d][size_t(list[i])] = 0;
        }
    for_each(m.points, [&](size_t i) {
        for (size_t d = 0; d < 3; d++) {
            const double v = s.v[d][i] + dt * s.f[d][i];
            s.v[d][i] = std::fabs(v) < 1e-12 ? 0 : v;
        }
    });
    for_each(m.points, [&](size_t i) {
        for (size_t d = 0; d < 3; d++)
            s.x[d][i] += dt * s.v[d][i];
    });
}

void element_shapes(const Mesh &m, State &s, double dt)
{
    int turned = 0;
#pragma omp parallel for reduction(+ : turned)
    for (int i = 0; i < m.elements; i++) {
        Shape shape;
        gather(m, s, size_t(i), shape);
        s.volume_new[size_t(i)] = shape.volume;
        turned += !(shape.volume > 0);
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
    exchange(m, m.face_elements, 0, FACES - 1, {&s.spread}, [&](size_t f, const Vector &in) {
        std::copy(in.begin(), in.end(), s.spread.begin() + m.ghost[f]);
    });
}

/* Viscosity where gas is compressed, less where the neighbours are compressed as much. */
void viscosity(const Mesh &m, State &s, const Index &list)
{
    for_list(list, [&](size_t, size_t e) {
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
    const auto new_energy = [&](size_t i, size_t e) {
        s.e_new[i] = std::max(FLOOR, s.e[e] - s.work[i]);
    };
    for_list(list, [&](size_t i, size_t e) { s.dv[i] = s.volume_new[e] - s.volume[e]; });
    for_list(list, [&](size_t i, size_t e) {
        s.work[i] = 0.5 * (s.p[e] + s.q_old[e] + s.q[e]) * s.dv[i];
    });
    for_list(list, new_energy);
    for_list(list, [&](size_t i, size_t e) {
        s.p_half[i] = (GAMMA - 1) * s.e_new[i] / (s.volume[e] + 0.5 * s.dv[i]);
    });
    for_list(list, [&](size_t i, size_t e) {
        s.work[i] = (0.5 * (s.p[e] + s.p_half[i]) + s.q[e]) * s.dv[i];
    });
    for_list(list, new_energy);
    for_list(list, [&](size_t i, size_t e) {
        s.e[e] = s.e_new[i];
        s.p[e] = (GAMMA - 1) * s.e_new[i] / s.volume_new[e];
    });
    for_list(list, [&](size_t, size_t e) {
        s.c[e] = std::sqrt(GAMMA * s.p[e] * s.volume_new[e] / s.m[e]);
    });
}

/* The smallest limit of `limit_of` in a list, by a slot for each thread. */
template <typename Limit> double smallest(const Index &list, Vector &slots, Limit limit_of)
{
    slots.assign(size_t(omp_get_max_threads()), 1e20);
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

double time_limit(const Mesh &m, const State &s, Vector &slots)
{
    double least = 1e20, all;
    for (const Index &list : m.material) {
        const double sound = smallest(list, slots, [&](size_t e) {
            const double du = std::min(0.0, s.spread[e]);
            return 0.05 * s.length[e] / std::sqrt(s.c[e] * s.c[e] + 16 * du * du);
        });
        const double change =
            smallest(list, slots, [&](size_t e) { return 0.02 / (std::fabs(s.rate[e]) + 1e-20); });
        least = std::min({least, sound, change});
    }
    MPI_Allreduce(&least, &all, 1, MPI_DOUBLE, MPI_MIN, m.comm);
    return all;
}

State start_state(const Mesh &m, int n)
{
    State s;
    const size_t elements = size_t(m.elements), points = size_t(m.points);
    for (Vector *v : {&s.e, &s.p, &s.q, &s.volume, &s.volume_new, &s.c, &s.m, &s.length, &s.rate,
                      &s.e_new, &s.p_half, &s.dv, &s.work, &s.q_old})
        v->assign(elements, 0);
    s.spread.assign(size_t(m.ghost[FACES - 1]) + m.face_elements[FACES - 1].size(), 0);
    s.mass.assign(points, 0);
    for (size_t d = 0; d < 3; d++) {
        for (Vector *v : {&s.x[d], &s.v[d], &s.f[d]})
            v->assign(points, 0);
        s.corner_force[d].assign(elements * CORNERS, 0);
    }
    for_box(m.nodes, [&](const std::array<int, 3> &where, int node) {
        for (size_t d = 0; d < 3; d++)
            s.x[d][size_t(node)] = SIDE * (m.first[d] + where[d]) / n;
    });
    for (size_t e = 0; e < elements; e++) {
        Shape shape;
        gather(m, s, e, shape);
        s.volume[e] = s.m[e] = shape.volume;
        s.length[e] = std::cbrt(shape.volume);
        s.e[e] = 1e-4 * shape.volume;
        if (e == 0 && m.first == std::array<int, 3>{0, 0, 0})
            s.e[e] = BLAST;
        s.p[e] = (GAMMA - 1) * s.e[e] / shape.volume;
        s.c[e] = std::sqrt(GAMMA * s.p[e]);
        for (size_t c = 0; c < CORNERS; c++)
            s.mass[size_t(m.corner[e * CORNERS + c])] += shape.volume / CORNERS;
    }
    sum_nodes(m, {&s.mass});
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
    Vector slots;
    double time = 0, dt = 1e-6;
    const double start = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        move_nodes(m, s, dt);
        element_shapes(m, s, dt);
        for (const Index &list : m.material)
            viscosity(m, s, list);
        for (const Index &list : m.material)
            equation_of_state(s, list);
        std::swap(s.volume, s.volume_new);
        time += dt;
        dt = std::min(1.1 * dt, time_limit(m, s, slots));
    }
    const double seconds = MPI_Wtime() - start;
    double energy[2] = {0, 0}, all[2]; /* also with a weight that shows where it is */
    for (size_t e = 0; e < size_t(m.elements); e++) {
        energy[0] += s.e[e];
        energy[1] += s.e[e] * s.volume[e] / s.m[e];
    }
    MPI_Allreduce(energy, all, 2, MPI_DOUBLE, MPI_SUM, m.comm);
    if (m.rank == 0)
        printf("hydro: %d ranks, %d threads, %d elements\ntime %.9e\nenergy %.9e\nseconds %.6f\n"
               "checksum %.12e\n",
               ranks, omp_get_max_threads(), n * n * n, time, all[0], seconds, all[1]);
    MPI_Finalize();
    return 0;
}
