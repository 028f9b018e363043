/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * md.cpp - molecular dynamics of a Lennard-Jones liquid in a periodic box, with a list of the pairs
 * that are near each other.  The list is made from cells every 20 steps.  Each pair is computed
 * once: a thread adds both forces to an array of its own, and the arrays of all threads that
 * omp_get_max_threads() promises are summed at the end.  OpenMP only.
 *
 * Usage: md [STEPS [CELLS]]: cells of the crystal at the start, of four atoms each, in each
 * direction.  The checksum is the total energy: the order of sums depends on the threads.
 * Method: S. Plimpton, "Fast Parallel Algorithms for Short-Range Molecular Dynamics",
 * doi:10.1006/jcph.1995.1039.
 */
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "program.h"

namespace
{

constexpr double DENSITY = 0.8442, TEMPERATURE = 1.44, CUT = 2.5, SKIN = 0.3, DT = 0.005;
constexpr int REBUILD = 20;

struct Point {
    double x, y, z;
};

struct Box {
    double side;
    int cells; /* in each direction */
};

struct Atoms {
    std::vector<Point> at, speed, force;
    std::vector<Point> scratch;           /* [thread][atom]: forces */
    std::vector<int> cell_start, in_cell; /* atoms by cells */
    std::vector<int> pair_start, pair;    /* atom -> its neighbours */
};

double near(double d, double side)
{
    return d > 0.5 * side ? d - side : d < -0.5 * side ? d + side : d;
}

double square_distance(const Point &a, const Point &b, double side)
{
    const double dx = near(a.x - b.x, side), dy = near(a.y - b.y, side), dz = near(a.z - b.z, side);
    return dx * dx + dy * dy + dz * dz;
}

int cell_of(const Point &p, const Box &box)
{
    const auto index = [&](double x) {
        return std::min(box.cells - 1, int(x / box.side * box.cells));
    };
    return (index(p.z) * box.cells + index(p.y)) * box.cells + index(p.x);
}

/* A crystal, and velocities from a hash, without motion of the whole. */
Atoms start_atoms(int n, Box &box)
{
    Atoms a;
    const double lattice = std::cbrt(4 / DENSITY),
                 corner[4][3] = {{0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}};
    box.side = n * lattice;
    box.cells = std::max(3, int(box.side / (CUT + SKIN)));
    for (int c = 0; c < n * n * n; c++)
        for (const double *o : corner)
            a.at.push_back({(c % n + o[0]) * lattice, (c / n % n + o[1]) * lattice,
                            (c / n / n + o[2]) * lattice});
    Point sum = {0, 0, 0};
    double energy = 0;
    for (size_t i = 0; i < a.at.size(); i++) {
        const auto draw = [&](uint64_t axis) {
            return double(mix_bits(3 * i + axis) >> 11) * 0x1p-53 - 0.5;
        };
        a.speed.push_back({draw(0), draw(1), draw(2)});
        sum = {sum.x + a.speed[i].x, sum.y + a.speed[i].y, sum.z + a.speed[i].z};
    }
    for (Point &v : a.speed) {
        const double count = double(a.at.size());
        v = {v.x - sum.x / count, v.y - sum.y / count, v.z - sum.z / count};
        energy += v.x * v.x + v.y * v.y + v.z * v.z;
    }
    const double scale = std::sqrt(3 * TEMPERATURE * double(a.at.size()) / energy);
    for (Point &v : a.speed)
        v = {v.x * scale, v.y * scale, v.z * scale};
    a.force.resize(a.at.size());
    return a;
}

/* Atoms that have left the box come back on its other side; then they are counted into cells. */
void sort_into_cells(Atoms &a, const Box &box)
{
    const int n = int(a.at.size()), cells = box.cells * box.cells * box.cells;
    std::vector<int> cell(a.at.size());
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        Point &p = a.at[size_t(i)];
        for (double *x : {&p.x, &p.y, &p.z})
            *x -= std::floor(*x / box.side) * box.side;
        cell[size_t(i)] = cell_of(p, box);
    }
    a.cell_start.assign(size_t(cells) + 1, 0);
    a.in_cell.resize(a.at.size());
    for (int c : cell)
        a.cell_start[size_t(c) + 1]++;
    for (size_t c = 0; c < size_t(cells); c++)
        a.cell_start[c + 1] += a.cell_start[c];
    std::vector<int> next(a.cell_start);
    for (int i = 0; i < n; i++)
        a.in_cell[size_t(next[size_t(cell[size_t(i)])]++)] = i;
}

/* Calls `found` for the atoms behind atom i that are near it. */
template <typename Found> void for_near(const Atoms &a, const Box &box, int i, Found found)
{
    const Point &p = a.at[size_t(i)];
    const int n = box.cells, c = cell_of(p, box), x = c % n, y = c / n % n, z = c / n / n;
    for (int k = 0; k < 27; k++) {
        const int nx = (x + k % 3 + n - 1) % n, ny = (y + k / 3 % 3 + n - 1) % n,
                  nz = (z + k / 9 + n - 1) % n, other = (nz * n + ny) * n + nx;
        for (int s = a.cell_start[size_t(other)]; s < a.cell_start[size_t(other) + 1]; s++) {
            const int j = a.in_cell[size_t(s)];
            const double near2 = (CUT + SKIN) * (CUT + SKIN);
            if (j > i && square_distance(p, a.at[size_t(j)], box.side) < near2)
                found(j);
        }
    }
}

void build_pairs(Atoms &a, const Box &box)
{
    const int n = int(a.at.size());
    sort_into_cells(a, box);
    a.pair_start.assign(a.at.size() + 1, 0);
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < n; i++)
        for_near(a, box, i, [&](int) { a.pair_start[size_t(i) + 1]++; });
    for (size_t i = 0; i < a.at.size(); i++)
        a.pair_start[i + 1] += a.pair_start[i];
    a.pair.resize(size_t(a.pair_start.back()));
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < n; i++) {
        int next = a.pair_start[size_t(i)];
        for_near(a, box, i, [&](int j) { a.pair[size_t(next++)] = j; });
    }
}

/* Forces of all pairs; the potential energy. */
double compute_forces(Atoms &a, const Box &box)
{
    const int n = int(a.at.size()), most = omp_get_max_threads();
    double energy = 0;
    a.scratch.resize(a.at.size() * size_t(most));
#pragma omp parallel
    {
        Point *const mine = a.scratch.data() + a.at.size() * size_t(omp_get_thread_num());
        std::fill(mine, mine + n, Point{0, 0, 0});
#pragma omp for reduction(+ : energy)
        for (int i = 0; i < n; i++) {
            const Point p = a.at[size_t(i)];
            Point sum = {0, 0, 0};
            for (int s = a.pair_start[size_t(i)]; s < a.pair_start[size_t(i) + 1]; s++) {
                const int j = a.pair[size_t(s)];
                const Point &o = a.at[size_t(j)];
                const double dx = near(p.x - o.x, box.side), dy = near(p.y - o.y, box.side),
                             dz = near(p.z - o.z, box.side), r2 = dx * dx + dy * dy + dz * dz;
                if (r2 >= CUT * CUT)
                    continue;
                const double r6 = 1 / (r2 * r2 * r2), f = 48 * r6 * (r6 - 0.5) / r2;
                sum = {sum.x + f * dx, sum.y + f * dy, sum.z + f * dz};
                mine[j] = {mine[j].x - f * dx, mine[j].y - f * dy, mine[j].z - f * dz};
                energy += 4 * r6 * (r6 - 1);
            }
            mine[i] = {mine[i].x + sum.x, mine[i].y + sum.y, mine[i].z + sum.z};
        }
#pragma omp for
        for (int i = 0; i < n; i++) {
            Point sum = {0, 0, 0};
            for (int t = 0; t < most; t++) {
                const Point &part = a.scratch[a.at.size() * size_t(t) + size_t(i)];
                sum = {sum.x + part.x, sum.y + part.y, sum.z + part.z};
            }
            a.force[size_t(i)] = sum;
        }
    }
    return energy;
}

void push(Atoms &a, double dt)
{
#pragma omp parallel for
    for (size_t i = 0; i < a.at.size(); i++) {
        Point &v = a.speed[i];
        const Point &f = a.force[i];
        v = {v.x + dt * f.x, v.y + dt * f.y, v.z + dt * f.z};
    }
}

void move(Atoms &a, double dt)
{
#pragma omp parallel for
    for (size_t i = 0; i < a.at.size(); i++) {
        Point &p = a.at[i];
        const Point &v = a.speed[i];
        p = {p.x + dt * v.x, p.y + dt * v.y, p.z + dt * v.z};
    }
}

double kinetic_energy(const Atoms &a)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (size_t i = 0; i < a.speed.size(); i++) {
        const Point &v = a.speed[i];
        sum += 0.5 * (v.x * v.x + v.y * v.y + v.z * v.z);
    }
    return sum;
}

} // namespace

int main(int argc, char **argv)
{
    const int steps = number_argument(argc, argv, 1, 700);
    const int n = number_argument(argc, argv, 2, 14);
    if (n < 5 || n > 60) {
        fprintf(stderr, "md: 5 to 60 cells of the crystal\n");
        return 2;
    }
    Box box;
    Atoms atoms = start_atoms(n, box);
    const double start = omp_get_wtime();
    build_pairs(atoms, box);
    double potential = compute_forces(atoms, box), kinetic = kinetic_energy(atoms);
    for (int step = 1; step <= steps; step++) {
        push(atoms, 0.5 * DT);
        move(atoms, DT);
        if (step % REBUILD == 0)
            build_pairs(atoms, box);
        potential = compute_forces(atoms, box);
        push(atoms, 0.5 * DT);
        kinetic = kinetic_energy(atoms);
    }
    printf("md: %d threads, %zu atoms\ntemperature %.6f\nseconds %.6f\nchecksum %.9e\n",
           omp_get_max_threads(), atoms.at.size(), 2 * kinetic / double(3 * atoms.at.size()),
           omp_get_wtime() - start, potential + kinetic);
    return 0;
}
