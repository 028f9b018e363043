/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tasks.c - explicit tasks: for each kernel the time per task in nanoseconds, the median of
 * some runs, and the time of that run in milliseconds.  The kernels are of our own making, in the
 * manner of the Barcelona suite (Duran et al. 2009) and of the unbalanced tree search (Olivier
 * et al. 2006).
 *
 *   fib            a task for each call, no cut-off
 *   queens         a task for each placing of a queen
 *   tree           a tree whose shape comes from a hash: the size of a branch is not known
 *   taskloop       taskloop with 16 iterations a task
 *   chain          every task depends on the one before
 *   wavefront      a grid; each task depends on those above and to the left
 *   grains         tasks of about 1 us, all made by one thread
 *   grains_shared  the same, made by all threads
 *
 * tasks [--size=PERCENT] [--budget-ms=T] [--warm-up-ms=T] [kernel ...]
 */
#include "measure.h"

enum { GRAIN_STEPS = 930, CELL_STEPS = 350, ITERATION_STEPS = 30 };

/* How much of everything: 100 is the measurement, less is a test. */
static double size_percent = 100;

static int scaled(int full)
{
    int n = (int)(full * size_percent / 100);
    return n > 1 ? n : 1;
}

/* --- fib */

static long fib(int n)
{
    long x, y;
    if (n < 2)
        return n;
#pragma omp task shared(x)
    x = fib(n - 1);
#pragma omp task shared(y)
    y = fib(n - 2);
#pragma omp taskwait
    return x + y;
}

static long fib_plain(int n)
{
    return n < 2 ? n : fib_plain(n - 1) + fib_plain(n - 2);
}

/* Returns the number of tasks, as all kernels do. */
static long run_fib(void)
{
    int n = size_percent >= 100 ? 25 : 12;
    long result = 0;
#pragma omp parallel
#pragma omp single
    result = fib(n);
    demand(result == fib_plain(n), "fib");
    return 2 * (fib_plain(n + 1) - 1);
}

/* --- queens */

enum { MAX_QUEENS = 10 };

struct board {
    unsigned columns, left, right; /* attacked squares of the next row */
};

static bool attacked(const struct board *b, unsigned bit)
{
    return (b->columns | b->left | b->right) & bit;
}

static struct board with_queen(const struct board *b, unsigned bit)
{
    return (struct board){b->columns | bit, (b->left | bit) << 1, (b->right | bit) >> 1};
}

static long queens(struct board b, int size, int row)
{
    long found[MAX_QUEENS] = {0}, sum = 0;
    if (row == size)
        return 1;
    for (int c = 0; c < size; c++) {
        if (attacked(&b, 1u << c))
            continue;
#pragma omp task shared(found) firstprivate(b, c)
        found[c] = queens(with_queen(&b, 1u << c), size, row + 1);
    }
#pragma omp taskwait
    for (int c = 0; c < size; c++)
        sum += found[c];
    return sum;
}

/* The same without tasks; counts those that there would be. */
static long queens_plain(struct board b, int size, int row, long *tasks)
{
    long sum = 0;
    if (row == size)
        return 1;
    for (int c = 0; c < size; c++)
        if (!attacked(&b, 1u << c)) {
            ++*tasks;
            sum += queens_plain(with_queen(&b, 1u << c), size, row + 1, tasks);
        }
    return sum;
}

static long run_queens(void)
{
    static long expected, tasks;
    int size = size_percent >= 100 ? 10 : 6;
    long solutions = 0;
    if (!expected)
        expected = queens_plain((struct board){0}, size, 0, &tasks);
#pragma omp parallel
#pragma omp single
    solutions = queens((struct board){0}, size, 0);
    demand(solutions == expected && expected == (size == 10 ? 724 : 4), "queens");
    return tasks;
}

/* --- tree */

/* Geometric with mean 0.98 below the root, which has many; the same tree every time. */
static int children_of(uint64_t node, int depth)
{
    if (depth == 0)
        return scaled(3000);
    double u = (double)(work(node, 8) >> 11) * 0x1p-53;
    int n = 0;
    for (double p = 0.495; n < 8 && u < p; p *= 0.495)
        n++;
    return n;
}

static long tree(uint64_t node, int depth)
{
    int n = children_of(node, depth);
    long nodes = 0;
    for (int i = 0; i < n; i++) {
#pragma omp task shared(nodes) firstprivate(node, depth, i)
        {
            long below = tree(work(node + (uint64_t)i * 2654435761u, 8) ^ (node >> 17), depth + 1);
#pragma omp atomic
            nodes += below;
        }
    }
#pragma omp taskwait
    return nodes + 1;
}

static long tree_plain(uint64_t node, int depth)
{
    int n = children_of(node, depth);
    long nodes = 1;
    for (int i = 0; i < n; i++)
        nodes += tree_plain(work(node + (uint64_t)i * 2654435761u, 8) ^ (node >> 17), depth + 1);
    return nodes;
}

static long run_tree(void)
{
    static long expected;
    long nodes = 0;
    if (!expected)
        expected = tree_plain(42, 0);
#pragma omp parallel
#pragma omp single
    nodes = tree(42, 0);
    demand(nodes == expected, "tree");
    return nodes - 1;
}

/* --- loops and dependences */

static long run_taskloop(void)
{
    enum { PER_TASK = 16 };
    int n = PER_TASK * scaled(10000);
    static unsigned char seen[PER_TASK * 10000];
    memset(seen, 0, sizeof seen);
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(PER_TASK)
    for (int i = 0; i < n; i++) {
        delay(ITERATION_STEPS);
        seen[i]++;
    }
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += seen[i] != 1;
    demand(wrong == 0, "taskloop");
    return n / PER_TASK;
}

static long run_chain(void)
{
    int n = scaled(20000);
    uint64_t x = 1;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < n; i++) {
#pragma omp task depend(inout : x) shared(x)
        x = work(x, 4);
    }
    uint64_t y = 1;
    for (int i = 0; i < n; i++)
        y = work(y, 4);
    demand(x == y, "chain");
    return n;
}

enum { SIDE = 100 };
static uint64_t grid[SIDE + 1][SIDE + 1];

static void cell(int i, int j)
{
    grid[i][j] = work(grid[i - 1][j] ^ (grid[i][j - 1] << 1), CELL_STEPS);
}

static long run_wavefront(void)
{
    static uint64_t expected;
    int side = scaled(SIDE);
    if (!expected) {
        for (int i = 1; i <= side; i++)
            for (int j = 1; j <= side; j++)
                cell(i, j);
        expected = grid[side][side];
    }
    memset(grid, 0, sizeof grid);
#pragma omp parallel
#pragma omp single
    for (int i = 1; i <= side; i++)
        for (int j = 1; j <= side; j++) {
#pragma omp task depend(in : grid[i - 1][j], grid[i][j - 1]) depend(out : grid[i][j])              \
    firstprivate(i, j)
            cell(i, j);
        }
    demand(grid[side][side] == expected, "wavefront");
    return (long)side * side;
}

/* --- tasks of 1 us */

static _Atomic long grains_done;

static void grain(void)
{
    delay(GRAIN_STEPS);
    grains_done++;
}

static long run_grains(void)
{
    int n = scaled(20000);
    grains_done = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < n; i++) {
#pragma omp task
        grain();
    }
    demand(grains_done == n, "grains");
    return n;
}

static long run_grains_shared(void)
{
    int n = scaled(20000);
    grains_done = 0;
#pragma omp parallel
    {
#pragma omp for nowait
        for (int i = 0; i < n; i++) {
#pragma omp task
            grain();
        }
    }
    demand(grains_done == n, "grains_shared");
    return n;
}

static const struct kernel {
    const char *name;
    long (*run)(void);
} kernels[] = {
    {"fib", run_fib},
    {"queens", run_queens},
    {"tree", run_tree},
    {"taskloop", run_taskloop},
    {"chain", run_chain},
    {"wavefront", run_wavefront},
    {"grains", run_grains},
    {"grains_shared", run_grains_shared},
};

/* The median of at least three runs. */
static void measure(const struct kernel *k, double budget_ns)
{
    enum { FEW = 3, MOST = 15 };
    double before_ns = handover_ns(2), times[MOST], start = now_ns();
    long tasks = k->run(); /* makes the threads, and fills the caches of free memory */
    int n = 0;
    while (n < MOST && (n < FEW || now_ns() - start < budget_ns)) {
        double begin = now_ns();
        k->run();
        times[n++] = now_ns() - begin;
    }
    double ns = median_of(times, n);
    print_row(k->name, ns / (double)tasks, before_ns, handover_ns(2));
    printf("%s_ms %.3f\n", k->name, ns * 1e-6);
}

int main(int argc, char **argv)
{
    double budget_ns = 1e6 * option(argc, argv, "--budget-ms", 200);
    size_percent = option(argc, argv, "--size", 100);
    warm_up(option(argc, argv, "--warm-up-ms", 100));
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (chosen(argc, argv, kernels[i].name))
            measure(&kernels[i], budget_ns);
    return 0;
}
