/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * random.h - a random MPI program, correct by construction.
 *
 * A program is a number of steps.  Every rank derives the same step from the seed: what is called
 * on which communicator, which rank sends what to which, which error is made.  What the program's
 * result must not depend on, each rank draws for itself: how long it computes before the step, and
 * how it completes its requests.  What can be seen of each call goes to the rank's log; the test
 * compares the logs of two runs of one seed.
 *
 *   main.c    arguments, threads, one program after the other
 *   world.c   the communicators that there are now, made and freed by random steps
 *   data.c    buffers and data types
 *   finish.c  all the ways to complete a set of requests
 *   p2p.c     messages        coll.c  collectives       rma.c  one-sided epochs
 *   file.c    MPI-IO          error.c errors            misc.c what is left
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* gcc takes MPI_STATUSES_IGNORE and MPI_UNWEIGHTED for arrays that are too short. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"

#define MPI4 (MPI_VERSION >= 4)
/* MPICH 4.0's hang at times, release their data types once a start, and can be completed by
 * MPI_Wait and MPI_Test only. */
#if MPI4 && (!defined MPICH_NUMVERSION || MPICH_NUMVERSION >= 40100000)
#define PERSISTENT_COLLECTIVES 1
#else
#define PERSISTENT_COLLECTIVES 0
#endif

enum { RANKS = 16, COMMS = 8, PENDING = 8 };

/* --- random numbers */

struct rng {
    uint64_t state;
};
static inline uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
static inline uint64_t draw(struct rng *r) { return mix(r->state += UINT64_C(0x9e3779b97f4a7c15)); }
/* 0 .. n-1 */
static inline int below(struct rng *r, int n) { return (int)(draw(r) % (uint64_t)n); }
static inline bool chance(struct rng *r, int percent) { return below(r, 100) < percent; }

/* --- communicators; every rank knows the members of all, its own or not */

struct ranks {
    int n, world[RANKS];
};

enum shape { PLAIN, INTER, CART, GRAPH };

struct comm {
    bool used;
    enum shape shape;
    MPI_Comm handle;       /* MPI_COMM_NULL: I am not in it */
    struct ranks group[2]; /* the second one of an intercommunicator only */
    int side, rank;        /* mine: group and rank in it; side -1 where I am not in it */
    int dims, extent[2];   /* of a cartesian one */
    struct ranks in, out;  /* my neighbours in a graph: ranks in the communicator */
};

/* A non-blocking operation that later steps will finish. */
struct pending {
    bool used, mine;
    int finish; /* step */
    MPI_Request request;
    struct comm *comm;
    struct coll_call *call;
};

/* What one thread of one rank knows. */
struct world {
    uint64_t seed;
    int thread, threads, step;
    int rank, size;
    struct rng shared; /* the same in all ranks; drawn from in all or in none */
    struct rng mine;
    struct comm comm[COMMS]; /* [0] is as large as MPI_COMM_WORLD */
    struct pending pending[PENDING];
    FILE *log; /* NULL: only the hash */
    uint64_t hash;
    long lines;
    const char *directory; /* for files */
    int handler_calls;     /* of error handlers, since last asked */
    int handler_class, handler_name;
};
/* For callbacks that MPI makes. */
extern __thread struct world *this_world;

void note(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Wrong whatever stock says: ends the job. */
void require(struct world *w, bool good, const char *what);

/* --- world.c */

void world_start(struct world *w, MPI_Comm base);
void world_end(struct world *w);
void step_make_comm(struct world *w);
void step_free_comm(struct world *w);
/* A random one that suits; every rank gets the same.  NULL: there is none.  The caller returns
 * when it is not in it (side < 0), after drawing all it wants from w->shared. */
struct comm *pick_comm(struct world *w, bool inter_too);
struct comm *pick_shape(struct world *w, enum shape shape);
static inline int comm_size(const struct comm *c) { return c->group[0].n + c->group[1].n; }
static inline int remote_size(const struct comm *c)
{
    return c->group[c->shape == INTER ? 1 - c->side : c->side].n;
}

/* --- data.c */

/* A data type of the program's, by number. */
enum { VECTOR = 4, RECORD, INDEXED, TYPE_KINDS };
MPI_Datatype make_type(int kind);
void drop_type(int kind, MPI_Datatype *type);
/* Bytes between one element's start and the next one's. */
size_t type_extent(int kind);

/* Open MPI may write to the gaps of a type: before its bytes are looked at. */
void clean_gaps(int kind, char *buffer, size_t count);

enum { GUARD = 64 };
/* For `bytes` and a guard, all of it 0xa5; free() it. */
char *blank(size_t bytes);
/* The same, filled from key. */
char *filled(size_t bytes, uint64_t key);
uint64_t hash_of(const void *bytes, size_t count);
/* Elements: mostly few, sometimes none, seldom so many that they are `most_bytes`. */
int some_count(struct rng *r, size_t extent, size_t most_bytes);

/* --- finish.c */

/* Complete n active or null requests in a random way; statuses[i] is request i's.  NULL: none
 * is wanted. */
void finish(struct world *w, int n, MPI_Request *requests, MPI_Status *statuses);
void note_status(struct world *w, const char *what, const MPI_Status *status, MPI_Datatype type);

/* --- steps */

void step_messages(struct world *w);
void step_wild(struct world *w);
void step_exchange(struct world *w);
void step_null(struct world *w);
void step_partitioned(struct world *w);
void step_cancel(struct world *w);

void step_collective(struct world *w);
void step_neighbour(struct world *w);
void finish_pending(struct world *w, int step);

void step_fence(struct world *w);
void step_lock(struct world *w);
void step_pscw(struct world *w);

void step_file(struct world *w);
void step_error(struct world *w);
void step_truncate(struct world *w);
void step_common_error(struct world *w);

void step_grequest(struct world *w);
void step_attribute(struct world *w);
/* Compute, sleep, or enter a parallel region, for up to some milliseconds. */
void dawdle(struct world *w);

#endif
