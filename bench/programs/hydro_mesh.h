/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hydro_mesh.h - the unstructured mesh of hydro.cpp: a box of hexahedra for each rank, with
 * index lists of corners, neighbours and materials, and the messages through its faces.
 */
#ifndef BENCH_HYDRO_MESH_H
#define BENCH_HYDRO_MESH_H

#include <mpi.h>

#include <array>
#include <cmath>
#include <vector>

#include "program.h"

constexpr int MATERIALS = 6, FACES = 6, CORNERS = 8;
using Vector = std::vector<double>;
using Index = std::vector<int>;

struct Mesh {
    MPI_Comm comm;
    int rank, beside[FACES];            /* beside: ranks, or MPI_PROC_NULL */
    std::array<int, 3> n, first, nodes; /* elements of mine, the first of them, nodes of mine */
    int elements, points;
    Index corner;                 /* [element][8]: nodes */
    Index used_start, used;       /* node -> its entries in `corner` */
    Index neighbour;              /* [element][6]: elements, or ghosts behind them */
    std::array<int, FACES> ghost; /* the first ghost element of each face */
    std::vector<Index> material;  /* elements of each */
    std::array<Index, FACES> face_nodes, face_elements;
};

inline int at(const std::array<int, 3> &n, int i, int j, int k)
{
    return (k * n[1] + j) * n[0] + i;
}

template <typename Body> void for_box(const std::array<int, 3> &n, Body body)
{
    for (int k = 0; k < n[2]; k++)
        for (int j = 0; j < n[1]; j++)
            for (int i = 0; i < n[0]; i++)
                body(std::array<int, 3>{i, j, k}, at(n, i, j, k));
}

/* Elements or nodes (of a box of n) at each face. */
inline std::array<Index, FACES> faces_of(const std::array<int, 3> &n)
{
    std::array<Index, FACES> result;
    for_box(n, [&](const std::array<int, 3> &where, int index) {
        for (size_t d = 0; d < 3; d++) {
            if (where[d] == 0)
                result[2 * d].push_back(index);
            if (where[d] == n[d] - 1)
                result[2 * d + 1].push_back(index);
        }
    });
    return result;
}

inline void connect(Mesh &m)
{
    m.face_nodes = faces_of(m.nodes);
    m.face_elements = faces_of(m.n);
    int ghosts = m.elements;
    for (size_t f = 0; f < FACES; f++) {
        m.ghost[f] = ghosts;
        ghosts += int(m.face_elements[f].size());
    }
    for_box(m.n, [&](const std::array<int, 3> &w, int e) {
        const int row = m.n[0], layer = row * m.n[1];
        for (int c = 0; c < CORNERS; c++)
            m.corner.push_back(at(m.nodes, w[0] + (c & 1), w[1] + (c >> 1 & 1), w[2] + (c >> 2)));
        m.neighbour.insert(m.neighbour.end(),
                           {e - 1, e + 1, e - row, e + row, e - layer, e + layer});
    });
    for (size_t f = 0; f < FACES; f++)
        for (size_t i = 0; i < m.face_elements[f].size(); i++) {
            const int e = m.face_elements[f][i];
            m.neighbour[size_t(e) * FACES + f] =
                m.beside[f] == MPI_PROC_NULL ? e : m.ghost[f] + int(i);
        }
    m.used_start.assign(size_t(m.points) + 1, 0);
    for (int node : m.corner)
        m.used_start[size_t(node) + 1]++;
    for (size_t i = 0; i < size_t(m.points); i++)
        m.used_start[i + 1] += m.used_start[i];
    Index next(m.used_start);
    m.used.resize(m.corner.size());
    for (size_t i = 0; i < m.corner.size(); i++)
        m.used[size_t(next[size_t(m.corner[i])]++)] = int(i);
}

inline Mesh make_mesh(int n)
{
    Mesh m;
    int ranks, dims[3] = {0, 0, 0}, periods[3] = {0, 0, 0}, coords[3];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 3, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &m.comm);
    MPI_Comm_rank(m.comm, &m.rank);
    MPI_Cart_coords(m.comm, m.rank, 3, coords);
    for (int d = 0; d < 3; d++) {
        const size_t s = size_t(d);
        MPI_Cart_shift(m.comm, d, 1, &m.beside[2 * d], &m.beside[2 * d + 1]);
        m.first[s] = n * coords[d] / dims[d];
        m.n[s] = n * (coords[d] + 1) / dims[d] - m.first[s];
        m.nodes[s] = m.n[s] + 1;
    }
    m.elements = m.n[0] * m.n[1] * m.n[2];
    m.points = m.nodes[0] * m.nodes[1] * m.nodes[2];
    connect(m);
    m.material.resize(MATERIALS); /* 2 i + 1 of 36 patches of eight elements have material i */
    for_box(m.n, [&](const std::array<int, 3> &w, int e) {
        uint64_t patch = 0;
        for (size_t d = 0; d < 3; d++)
            patch = patch * 64 + uint64_t(m.first[d] + w[d]) / 2;
        m.material[size_t(std::sqrt(double(mix_bits(patch) % 36)))].push_back(e);
    });
    return m;
}

/* What a face has of `field` is sent, and `receive` is called with what the other side has. */
template <typename Receive>
void exchange(const Mesh &m, const std::array<Index, FACES> &lists, size_t first, size_t last,
              const std::vector<const Vector *> &fields, Receive receive)
{
    std::array<Vector, FACES> in, out;
    MPI_Request request[2 * FACES];
    MPI_Status status[2 * FACES];
    int count = 0;
    for (size_t f = first; f <= last; f++) {
        if (m.beside[f] == MPI_PROC_NULL)
            continue;
        in[f].resize(lists[f].size() * fields.size());
        for (const Vector *field : fields)
            for (int i : lists[f])
                out[f].push_back((*field)[size_t(i)]);
        MPI_Irecv(in[f].data(), int(in[f].size()), MPI_DOUBLE, m.beside[f], int(f ^ 1), m.comm,
                  &request[count++]);
        MPI_Isend(out[f].data(), int(out[f].size()), MPI_DOUBLE, m.beside[f], int(f), m.comm,
                  &request[count++]);
    }
    MPI_Waitall(count, request, status);
    for (size_t f = first; f <= last; f++)
        if (m.beside[f] != MPI_PROC_NULL)
            receive(f, in[f]);
}

/* Adds what other ranks have for nodes between us; edges and corners by the order of directions. */
inline void sum_nodes(const Mesh &m, const std::vector<Vector *> &fields)
{
    for (size_t d = 0; d < 3; d++)
        exchange(m, m.face_nodes, 2 * d, 2 * d + 1, {fields.begin(), fields.end()},
                 [&](size_t f, const Vector &in) {
                     size_t next = 0;
                     for (Vector *field : fields)
                         for (int i : m.face_nodes[f])
                             (*field)[size_t(i)] += in[next++];
                 });
}

#endif
