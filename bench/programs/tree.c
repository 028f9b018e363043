/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tree.c - unbalanced tree search: each node of a tree has a 64-bit state from which its number of
 * children and their states follow, so that the size of a subtree is unknown until it is searched.
 * A task for each node, a taskwait for its children.  The root has many children; all other nodes
 * have CHILDREN with a probability a little below 1 / CHILDREN, or none: subtrees of a binomial
 * branching process, most of them tiny and a few enormous.  OpenMP only.
 *
 * Usage: tree [CHILDREN OF THE ROOT [ROUNDS]]: so many rounds of hashing compute a child's state.
 * Method: S. Olivier et al., "UTS: An Unbalanced Tree Search Benchmark",
 * doi:10.1007/978-3-540-72521-3_18.
 */
#include <omp.h>

#include "program.h"

enum { CHILDREN = 8 };
static const double PROBABILITY = 0.12475; /* times CHILDREN: below 1, or the tree has no end */

struct result {
    uint64_t nodes, leaves, depth, hash;
};

static int rounds;

static uint64_t child_state(uint64_t state, int child)
{
    uint64_t x = state + (uint64_t)child;
    for (int i = 0; i < rounds; i++)
        x = mix_bits(x + UINT64_C(0x9e3779b97f4a7c15));
    return x;
}

static int child_count(uint64_t state)
{
    return (double)(state >> 11) * 0x1p-53 < PROBABILITY ? CHILDREN : 0;
}

static void add(struct result *sum, const struct result *part)
{
    sum->nodes += part->nodes;
    sum->leaves += part->leaves;
    sum->depth = part->depth > sum->depth ? part->depth : sum->depth;
    sum->hash += part->hash;
}

static void search(uint64_t state, int count, uint64_t depth, struct result *found)
{
    struct result part[CHILDREN];
    *found = (struct result){.nodes = 1, .leaves = !count, .depth = depth, .hash = state};
    for (int i = 0; i < count; i++) {
        struct result *child = &part[i];
#pragma omp task untied firstprivate(i, child) shared(state)
        {
            uint64_t next = child_state(state, i);
            search(next, child_count(next), depth + 1, child);
        }
    }
#pragma omp taskwait
    for (int i = 0; i < count; i++)
        add(found, &part[i]);
}

int main(int argc, char **argv)
{
    int wide = number_argument(argc, argv, 1, 12000);
    rounds = number_argument(argc, argv, 2, 150);
    struct result *part = calloc((size_t)wide, sizeof *part), all = {.nodes = 1};
    if (!part) {
        fprintf(stderr, "tree: no memory for %d results\n", wide);
        return 1;
    }
    double start = omp_get_wtime();
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < wide; i++) {
#pragma omp task untied firstprivate(i)
        {
            uint64_t state = child_state(42, i);
            search(state, child_count(state), 1, &part[i]);
        }
    }
    for (int i = 0; i < wide; i++)
        add(&all, &part[i]);
    printf("tree: %d threads\nnodes %llu\nleaves %llu\ndepth %llu\nseconds %.6f\n"
           "checksum %016llx\n",
           omp_get_max_threads(), (unsigned long long)all.nodes, (unsigned long long)all.leaves,
           (unsigned long long)all.depth, omp_get_wtime() - start,
           (unsigned long long)mix_bits(all.hash + all.nodes));
    free(part);
    return 0;
}
