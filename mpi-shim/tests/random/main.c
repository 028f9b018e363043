/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * main.c - random [OPTION...]: run random programs, one after the other.
 *
 *   --seed=S --count=N    of the seeds S .. S+N-1
 *   --steps=K             each of K steps
 *   --threads=T           T of them at once, each in a thread with communicators of its own
 *   --only=NAME           with steps of this kind only, and those that make communicators
 *   --log=DIR             what each rank sees goes to DIR/log.SEED.RANK.THREAD
 *   --files=DIR           where MPI-IO may write; without it there is none
 *   --end=HOW:RANK:MS     that rank ends itself after so many milliseconds: abort or exit
 *
 * Each rank and thread prints a line "seed S rank R thread T: N lines, hash H".
 */
#include "random.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static struct {
    uint64_t seed;
    int count, steps, threads;
    const char *only, *log, *files, *end;
} options = {.seed = 1, .count = 1, .steps = 40};

static const struct kind {
    const char *name;
    void (*step)(struct world *w);
    int weight;
    bool only_alone; /* not in several threads at once; MPICH mixes up their null statuses */
} kinds[] = {
    {"make", step_make_comm, 14, false},
    {"free", step_free_comm, 5, false},
    {"messages", step_messages, 20, false},
    {"wild", step_wild, 6, false},
    {"exchange", step_exchange, 8, false},
    {"null", step_null, 2, true},
    {"cancel", step_cancel, 2, false},
    {"partitioned", step_partitioned, 3, false},
    {"collective", step_collective, 40, false},
    {"neighbour", step_neighbour, 8, false},
    {"fence", step_fence, 2, false},
    {"lock", step_lock, 3, false},
    {"pscw", step_pscw, 2, false},
    {"file", step_file, 3, true},
    {"error", step_error, 4, false},
    {"truncate", step_truncate, 4, true},
    {"common", step_common_error, 5, false},
    {"grequest", step_grequest, 1, false},
    {"attribute", step_attribute, 2, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

__thread struct world *this_world;

/* The program may be anywhere then. */
static void maybe_end(const struct world *w)
{
    static double start;
    char how[16];
    int rank, ms;
    if (!options.end || sscanf(options.end, "%15[a-z]:%d:%d", how, &rank, &ms) != 3)
        return;
    if (start == 0)
        start = MPI_Wtime();
    if (rank != w->rank || MPI_Wtime() - start < ms * 1e-3)
        return;
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 7);
    exit(3);
}

void note(struct world *w, const char *format, ...)
{
    maybe_end(w);
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    w->hash = mix(w->hash ^ hash_of(line, (size_t)n));
    w->lines++;
    if (w->log) {
        fprintf(w->log, "%s\n", line);
        fflush(w->log); /* if the program hangs, the last line says where */
    }
}

void require(struct world *w, bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "random: seed %lu rank %d thread %d step %d: %s\n", (unsigned long)w->seed,
            w->rank, w->thread, w->step, what);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

static bool may(const struct world *w, const struct kind *k)
{
    if (k->only_alone && w->threads > 0)
        return false;
    return !options.only || strcmp(k->name, options.only) == 0 || k == &kinds[0];
}

static const struct kind *draw_kind(struct world *w)
{
    int total = 0, at;
    for (int i = 0; i < KINDS; i++)
        total += may(w, &kinds[i]) ? kinds[i].weight : 0;
    at = below(&w->shared, total);
    for (int i = 0;; i++) {
        if (!may(w, &kinds[i]))
            continue;
        at -= kinds[i].weight;
        if (at < 0)
            return &kinds[i];
    }
}

static void open_log(struct world *w)
{
    char name[4096];
    if (!options.log)
        return;
    snprintf(name, sizeof name, "%s/log.%lu.%d.%d", options.log, (unsigned long)w->seed, w->rank,
             w->thread);
    w->log = fopen(name, "w");
    require(w, w->log != NULL, "cannot write the log");
}

/* One program, on a communicator of all ranks. */
static void play(struct world *w, MPI_Comm base)
{
    this_world = w;
    open_log(w);
    world_start(w, base);
    for (w->step = 0; w->step < options.steps; w->step++) {
        /* Each step's numbers depend on the seed and on its own only. */
        w->shared.state = mix(w->seed * 64 + (uint64_t)w->thread) + mix((uint64_t)w->step);
        w->mine.state = mix(w->shared.state + (uint64_t)w->rank + 1);
        const struct kind *kind = draw_kind(w);
        note(w, "step %d: %s", w->step, kind->name);
        if (chance(&w->mine, 15))
            dawdle(w);
        kind->step(w);
        finish_pending(w, w->step);
    }
    finish_pending(w, w->step + 1000);
    world_end(w);
    note(w, "end");
    if (w->log)
        fclose(w->log);
    w->log = NULL;
    printf("seed %lu rank %d thread %d: %ld lines, hash %016lx\n", (unsigned long)w->seed, w->rank,
           w->thread, w->lines, w->hash);
}

struct player {
    pthread_t thread;
    struct world world;
    MPI_Comm base;
};

static void *play_thread(void *arg)
{
    struct player *p = arg;
    play(&p->world, p->base);
    return NULL;
}

/* Open MPI 4.1 loads what it needs for grids at the first one, and crashes, at times, when two
 * threads are the first at once (mca_topo_base_lazy_init), without us too. */
static void make_first_grid(void)
{
    MPI_Comm grid;
    int size = 1, periodic = 0;
    MPI_Cart_create(MPI_COMM_SELF, 1, &size, &periodic, 0, &grid);
    MPI_Comm_free(&grid);
}

static void play_threads(const struct world *model)
{
    make_first_grid();
    struct player *player = calloc((size_t)options.threads, sizeof *player);
    for (int i = 0; i < options.threads; i++) {
        player[i].world = *model;
        player[i].world.thread = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &player[i].base);
    }
    for (int i = 0; i < options.threads; i++)
        pthread_create(&player[i].thread, NULL, play_thread, &player[i]);
    for (int i = 0; i < options.threads; i++)
        pthread_join(player[i].thread, NULL);
    for (int i = 0; i < options.threads; i++)
        MPI_Comm_free(&player[i].base);
    free(player);
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            continue;
        value++;
        if (strncmp(argv[i], "--seed=", 7) == 0)
            options.seed = strtoul(value, NULL, 10);
        else if (strncmp(argv[i], "--count=", 8) == 0)
            options.count = atoi(value);
        else if (strncmp(argv[i], "--steps=", 8) == 0)
            options.steps = atoi(value);
        else if (strncmp(argv[i], "--threads=", 10) == 0)
            options.threads = atoi(value);
        else if (strncmp(argv[i], "--only=", 7) == 0)
            options.only = value;
        else if (strncmp(argv[i], "--log=", 6) == 0)
            options.log = value;
        else if (strncmp(argv[i], "--files=", 8) == 0)
            options.files = value;
        else if (strncmp(argv[i], "--end=", 6) == 0)
            options.end = value;
    }
}

/* Which of the two, and which level, is the seed's to say. */
static void start_mpi(int *argc, char ***argv)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                 MPI_THREAD_MULTIPLE};
    int provided = 0, level = options.threads ? MPI_THREAD_MULTIPLE : levels[options.seed / 2 % 4];
    if (options.threads == 0 && options.seed % 2)
        MPI_Init(argc, argv);
    else
        MPI_Init_thread(argc, argv, level, &provided);
}

int main(int argc, char **argv)
{
    static struct world w;
    parse(argc, argv);
    start_mpi(&argc, &argv);
    for (int i = 0; i < options.count; i++) {
        w = (struct world){.seed = options.seed + (uint64_t)i,
                           .threads = options.threads,
                           .directory = options.files};
        MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
        MPI_Comm_size(MPI_COMM_WORLD, &w.size);
        require(&w, w.size <= RANKS, "too many ranks");
        if (options.threads)
            play_threads(&w);
        else
            play(&w, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
