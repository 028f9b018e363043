/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * table.h - the core table: the shared memory that the processes of one domain and
 * their resource manager have in common.
 *
 * It holds one word per core (its owner, its holder, whether the owner wants
 * it back) and one slot per process.  Owning is policy: only rmd writes it, in
 * milliseconds.  Holding is protocol: the processes move it among themselves with
 * compare-and-swap on the core's word, in nanoseconds (core.h).  See doc/design.md,
 * mechanism 1; the protocol is model-checked in libinvasive/model/core.pml.
 *
 * All fields that more than one process accesses are _Atomic.  Every list of writers below
 * is complete.  Every process of the user can write to the table, so indices read from it
 * are checked before use (inv_core_valid, inv_slot_valid).
 */
#ifndef INV_TABLE_H
#define INV_TABLE_H

#include "libinvasive/base/assertion.h"
#include "libinvasive/table/record.h"
#include "libinvasive/table/trace_ring.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    INV_TABLE_VERSION = 12,
#ifndef INV_SMALL
    INV_MAX_CORES = 1024,
    INV_MAX_SLOTS = 256,   /* processes in one domain */
#else /* for fuzzing: bench/fuzz.py */
    INV_MAX_CORES = 64,
    INV_MAX_SLOTS = 16,
#endif
    INV_SLOT_WORDS = (INV_MAX_SLOTS + 63) / 64, /* of a set of them */
    INV_PARKED_MAX = 64,    /* parked workers that one process can offer for wake-up */
    INV_ARRIVAL_LINES = 4096, /* cache lines for arrival boards (arrival_board.h) */
    INV_NAME_BYTES = 64,
    INV_GRAPH_WORDS = 8, /* points of a scalability graph */
    INV_WHOLE_SPEED = 1000, /* speed of a core: thousandths of the fastest one's */
};
#define INV_TABLE_MAGIC UINT64_C(0x31656c6261766e69) /* "invable1" */

/* A process is named by its slot number; in a core word by slot number + 1, so that
 * 0 can mean no process. */
#define INV_NOBODY 0u
#define INV_NO_CORE (-1)
/* Owner, in a core word, of a core that is or will be another domain's.  No slot has this name, and
 * the core is reserved for it, so no process of this domain takes the core. */
#define INV_ELSEWHERE 0xffffu

/* How holding is counted in this domain; written once by rmd, before any process. */
enum inv_mode {
    INV_MODE_PINNED = 0,   /* no more processes than cores were expected: each core has one
                              holder, whose thread is pinned to it.  One thread of a process
                              that owns no core holds a token, and the kernel places it */
    INV_MODE_ANONYMOUS = 1 /* more processes than cores: a domain-wide count of cores
                              not in use; the kernel places the threads */
};

/*
 * The word of a core.  One 64-bit value, so that every transition is one CAS.
 *
 *   bits  0..15  holder   slot + 1 of the process that computes on it now, 0 none
 *   bits 16..31  owner    slot + 1 of the process that has it by policy, 0 none
 *   bit  32      reclaim  the owner wants it back: the holder gives it up at its next
 *                         scheduling point; while it has no holder, it is reserved for
 *                         the owner
 *   bit  33      handed   taken on behalf of a thread of the holder that sleeps in MPI and
 *                         has not begun to hold it yet
 *   bit  34      returned rmd has made the thread in absent_tid the holder again, and the
 *                         thread may not know yet (inv_core_return_to)
 *   bits 40..63  epoch    changes with every transition (no ABA)
 */
typedef uint64_t inv_word;

static inline unsigned inv_word_holder(inv_word w) { return (unsigned)(w & 0xffff); }
static inline unsigned inv_word_owner(inv_word w) { return (unsigned)(w >> 16 & 0xffff); }
static inline bool inv_word_reclaim(inv_word w) { return w >> 32 & 1; }
static inline uint32_t inv_word_epoch(inv_word w) { return (uint32_t)(w >> 40); }
#define INV_WORD_HANDED (UINT64_C(1) << 33)
static inline bool inv_word_handed(inv_word w) { return w & INV_WORD_HANDED; }
#define INV_WORD_RETURNED (UINT64_C(1) << 34)
static inline bool inv_word_returned(inv_word w) { return w & INV_WORD_RETURNED; }
/* The successor of w with these fields and the next epoch.  It stays handed, and returned, if the
 * holder stays. */
static inline inv_word inv_word_next(inv_word w, unsigned holder, unsigned owner, bool reclaim)
{
    inv_assert(holder <= 0xffff && owner <= 0xffff);
    bool stays = holder == inv_word_holder(w) && holder != INV_NOBODY;
    return (inv_word)(holder & 0xffff) | (inv_word)(owner & 0xffff) << 16 |
           (inv_word)reclaim << 32 | (stays ? w & (INV_WORD_HANDED | INV_WORD_RETURNED) : 0) |
           (inv_word)((inv_word_epoch(w) + 1) & 0xffffff) << 40;
}

/* How far two cores of the table are apart: the innermost thing that they share is ... */
enum inv_apart {
    INV_SAME_CORE = 0, /* a physical core: they are two of its hardware threads */
    INV_SAME_CACHE = 1,
    INV_SAME_NODE = 2, /* NUMA */
    INV_SAME_PACKAGE = 3,
    INV_SAME_MACHINE = 4
};

struct inv_core {
    _Atomic inv_word word; /* writers: any process of the domain and rmd, by the
                              transitions of core.h only */
    _Atomic int32_t holder_tid; /* kernel thread that computes on it, 0 unknown; writer: the
                                   holder.  Read by an owner that evicts, and by rmctl.  A
                                   stale value is harmless: it is only ever re-pinned within
                                   its own process's mask */
    _Atomic int32_t absent_tid; /* the owner's thread that was asleep in the kernel when rmd lent the
                                   core for it, and that does not know, also when rmd has returned the
                                   core; 0 none.  Writers: rmd, and that thread, which makes it 0
                                   (core.h, inv_core_lend_for) */
    int32_t os_cpu;             /* Linux CPU number, -1 when emulated; rmd, at creation */
    _Atomic uint64_t since_ns;  /* CLOCK_MONOTONIC of the last change of holder; writer: the
                                   process that makes it.  Statistics only */
    uint8_t apart;              /* enum inv_apart, from the core before: two cores are as far
                                   apart as the farthest step between them; rmd, at creation.
                                   A hint: where to look for a free core first */
    _Atomic uint16_t speed;     /* in 1/INV_WHOLE_SPEED of the fastest core's; writer: rmd, at creation
                                   and when heat slows chips.  A hint, for the size of teams, the
                                   length of emulated work and what a process tells of its cores */
} __attribute__((aligned(128)));

enum inv_slot_state { INV_SLOT_FREE = 0, INV_SLOT_LIVE = 1, INV_SLOT_DEAD = 2 };

/* A parked worker that a lender may wake on a core that it gives up. */
struct inv_parked {
    _Atomic uint32_t bell; /* futex word; counted up by the thread that took the worker's bit */
    _Atomic int32_t tid;   /* kernel thread; writer: the process, before it sets the bit */
    _Atomic int32_t core;  /* core that the waker offers, INV_NO_CORE none; writer: waker */
};

/* Statistics of a process; writers: its own threads, and for lent_used_ns the borrower. */
struct inv_counters {
    _Atomic uint64_t lends, borrows, reclaims, evictions;
    _Atomic uint64_t reclaim_wait_ns, reclaim_wait_max_ns; /* from asking for a core to having it */
    _Atomic uint64_t borrowed_ns;  /* core time that it used of other owners' cores */
    _Atomic uint64_t lent_used_ns; /* core time that other processes used of its cores */
    _Atomic uint64_t held_ns;      /* core time that it held cores, up to their last change */
    _Atomic uint64_t useful_ns;    /* main thread's time outside MPI waits (mpi-shim) */
    _Atomic uint64_t wait_ns;      /* main thread's time inside MPI waits (mpi-shim) */
    _Atomic uint64_t waits;        /* completed waits that slept at least once */
};

struct inv_slot {
    /* --- identity: written by rmd before state becomes LIVE */
    _Atomic uint32_t state; /* enum inv_slot_state; writer: rmd */
    int32_t pid;
    int32_t rank; /* MPI rank, -1 unknown */
    int32_t size; /* MPI world size, -1 unknown */
    uint64_t start_ns; /* CLOCK_MONOTONIC: it has joined */
    char program[INV_NAME_BYTES];

    /* --- wants: read by lenders */
    _Atomic uint64_t parked __attribute__((aligned(64)));
    /* bit a: worker a is parked and may be woken.  Set by the process; cleared by the thread that
     * takes the worker, with fetch_and: the thread that cleared the bit wakes the worker */
    _Atomic uint32_t bell;     /* futex word of threads that wait in MPI (wait.h) */
    _Atomic uint32_t sleepers; /* how many of them sleep; writer: the process */
    _Atomic int32_t home_tid; /* thread that sleeps and needs `home`: the process that hands it the
                                 core pins it there meanwhile; writer: the process, before home */
    _Atomic int32_t home;      /* core that the sleeping main thread needs back, or
                                  INV_NO_CORE; writer: the process */
    _Atomic int32_t tokens;    /* how many the process has taken, in pinned mode 0 or 1; writers:
                                  its threads.  rmd returns them when the process dies */
    _Atomic int32_t assigned;  /* anonymous mode: the core that the thread which joined runs on,
                                  INV_NO_CORE: any.  Writer: rmd, relaxed: one word */
    _Atomic uint32_t pins;     /* 1: the process pins its threads to their cores, 0: not yet.
                                  Writer: the process, when it joins or at its first OpenMP region;
                                  read, relaxed, by a process that evicts one of its threads */
    _Atomic uint32_t suspended; /* futex: 0: not; else the process's threads wait
                                   (hold/suspended.h), and rmd changes the number at each look.
                                   Writers: rmd; the process, to 0, when rmd has been silent for
                                   long */
    _Atomic uint32_t waits_on_signal; /* 1: the process has the signal handler in which its threads
                                         wait then.  Writer: the process, before it is managed */

    /* --- constraint: written by the process, which then counts seq up and rings rmd's bell */
    _Atomic uint32_t constraint_seq __attribute__((aligned(64)));
    _Atomic uint32_t decided_seq; /* writer: rmd, the last constraint_seq it decided on; futex */
    _Atomic uint32_t min_cores, max_cores; /* 0: not set */
    _Atomic uint64_t workload_bits;        /* a double; 0.0: unknown */
    _Atomic uint64_t iteration_bits;       /* a double, seconds; 0.0: unknown */
    _Atomic uint64_t scalability[INV_GRAPH_WORDS]; /* points (scalability.h); 0: no more */

    /* --- for the other ranks of the job: cores that its work has taken of late (mpi-shim), a
     * double; 0.0 not known.  Writer: the process */
    _Atomic uint64_t rate_bits;

    /* --- for rmd: what part of a whole core a core of this process has delivered of late: its
     * processor time over the time for which it held cores (mpi-shim); a double, 0.1 to 1; 0.0: not
     * known.  Writer: the process; relaxed: a figure by itself */
    _Atomic uint64_t delivered_bits;

    /* --- statistics, writer: rmd.  Core time that the process had owned at settled_ns, and how
     * many cores it has owned since then */
    _Atomic uint64_t owned_ns, settled_ns;
    _Atomic uint32_t owned_cores;

    /* --- for the other ranks of the job: are cores held in short waits (short_waits.h of
     * mpi-shim)? 0: they are lent.  Writer: the process, if it is the job's first rank on this
     * node */
    _Atomic uint32_t short_waits;

    /* --- part of the constraint.  1: the workload was measured, in time of cores that deliver what
     * delivered_bits says; 0: it is the program's own, in units of the program.  Writer: the
     * process; relaxed, since constraint_seq orders it.  In bytes that are unused, and 0, in
     * the layout without it, so that both layouts have one version */
    _Atomic uint32_t workload_measured;

    /* --- for the other ranks of the job: what the process has of tuning.c's values; 0: the usual ones.
     * Writer: the process; relaxed: one word.  In bytes that are unused, and 0, in the layout without it */
    _Atomic uint32_t tuned;

    struct inv_counters counters __attribute__((aligned(64)));
    struct inv_parked parked_workers[INV_PARKED_MAX] __attribute__((aligned(64)));
};

/* A line of an arrival board (arrival_board.h). */
struct inv_arrival_line {
    _Atomic uint64_t count; /* of a rank: collectives that it has come to; of a board's head: ranks
                               that have left */
    _Atomic uint32_t slot; /* slot + 1 of the writer, 0 none */
    _Atomic uint32_t sleeping;
} __attribute__((aligned(64)));

struct inv_table {
    uint64_t magic;
    uint32_t version;
    uint32_t ncores; /* 1..INV_MAX_CORES, also of emulated cores */
    uint32_t nslots; /* 1..INV_MAX_SLOTS */
    uint32_t mode;   /* enum inv_mode */
    uint32_t emulated; /* 1: synthetic topology, no thread is pinned */
    uint32_t reclaim_bound_us; /* after this long an owner evicts; rmd changes it at any time, by an
                                  atomic store: inv_reclaim_bound_ns */
    uint64_t bytes;            /* of the whole mapping: INV_TABLE_BYTES, a check of the layout */

    /* bit s: the process in slot s has work for another core.  Writer: that process; rmd
     * clears the bit of a dead one.  Partner: the lender, which frees a core and then reads this
     * (inv_core_offer).  The seq_cst fences on both sides make sure that not both miss. */
    _Atomic uint64_t wanting[INV_SLOT_WORDS] __attribute__((aligned(64)));
    /* anonymous mode: cores minus running threads; negative when more run than there
     * are cores.  Pinned mode: 0 minus the threads that hold a token beside those that hold cores.
     * Writers: all processes; rmd gives back what a dead one had taken. */
    _Atomic int32_t free_tokens __attribute__((aligned(64)));
    _Atomic uint32_t rmd_bell __attribute__((aligned(64))); /* futex: there is something for rmd,
                                                               such as a new constraint */
    _Atomic uint32_t rmd_pid;
    _Atomic uint64_t owner_moves; /* how often a core has gone from one process to another by
                                     policy; writer: rmd.  Statistics only */
    /* 1: rmd pauses, and looks at rmd_bell before it sleeps there again, so it need not be woken.
     * Writer: rmd.  seq_cst, as rmd_bell is; partner: ring_manager in claim.c */
    _Atomic uint32_t rmd_busy;
    _Atomic uint32_t rmd_hurry; /* futex: a process waits for a decision; ends rmd's pause */
    /* bit i: line i is part of an arrival board; see arrival_board.c */
    _Atomic uint64_t arrival_lines_used[INV_ARRIVAL_LINES / 64] __attribute__((aligned(64)));
    /* Counts how often rmd has moved threads to other cores: what a thread knows of its affinity
     * may be wrong when this has changed.  Writer: rmd, after it has moved them */
    _Atomic uint32_t confined_seq __attribute__((aligned(64)));
    /* 1: rmd does not look for holders that are asleep (rmd/domain/watch/blocked.c), and the
     * process that begins to want a core rings rmd's bell.  Writers: rmd, and that process.
     * seq_cst; partner: rmd, which looks at `wanting` after it has written 1 */
    _Atomic uint32_t unwatched;
    /* 1: a trace is being taken, and events are written (trace_ring.h).  Writer: rmd, seq_cst,
     * before it reads the cores' words; partner: the transitions of core.c, which read this after
     * they have changed a word */
    _Atomic uint32_t tracing;
    _Atomic uint32_t trace_bell __attribute__((aligned(64))); /* futex: there is much to read */
};

/*
 * All offsets are constants: a process that overwrites the head of the table cannot lead rmd
 * or its peers outside of their mapping.  The mapping always has room for the largest table;
 * untouched memory costs nothing.
 */
enum {
    INV_CORES_OFFSET = (sizeof(struct inv_table) + 127) & ~127,
    INV_SLOTS_OFFSET = INV_CORES_OFFSET + INV_MAX_CORES * (int)sizeof(struct inv_core),
    INV_ARRIVAL_OFFSET = INV_SLOTS_OFFSET + INV_MAX_SLOTS * (int)sizeof(struct inv_slot),
    INV_ARRIVAL_END = INV_ARRIVAL_OFFSET + INV_ARRIVAL_LINES * (int)sizeof(struct inv_arrival_line),
    INV_RECORDS_OFFSET = (INV_ARRIVAL_END + 4095) & ~4095,
    INV_TRACE_OFFSET = INV_RECORDS_OFFSET + INV_MAX_SLOTS * (int)sizeof(struct inv_record),
    INV_TABLE_BYTES = INV_TRACE_OFFSET + INV_TRACE_RINGS * (int)sizeof(struct inv_trace_ring),
};

/* core < INV_MAX_CORES, slot < INV_MAX_SLOTS, line < INV_ARRIVAL_LINES: callers check numbers that
 * they have read from the table (inv_core_valid, inv_slot_valid). */
static inline struct inv_core *inv_core_at(struct inv_table *t, unsigned core)
{
    inv_assert(core < INV_MAX_CORES);
    return (struct inv_core *)((char *)t + INV_CORES_OFFSET) + core;
}
static inline struct inv_slot *inv_slot_at(struct inv_table *t, unsigned slot)
{
    inv_assert(slot < INV_MAX_SLOTS);
    return (struct inv_slot *)((char *)t + INV_SLOTS_OFFSET) + slot;
}
static inline struct inv_arrival_line *inv_arrival_line_at(struct inv_table *t, unsigned line)
{
    inv_assert(line < INV_ARRIVAL_LINES);
    return (struct inv_arrival_line *)((char *)t + INV_ARRIVAL_OFFSET) + line;
}
/* The record of the process in the slot, for invade --report. */
static inline struct inv_record *inv_record_at(struct inv_table *t, unsigned slot)
{
    inv_assert(slot < INV_MAX_SLOTS);
    return (struct inv_record *)((char *)t + INV_RECORDS_OFFSET) + slot;
}
/* ring < INV_TRACE_RINGS. */
static inline struct inv_trace_ring *inv_trace_ring_at(struct inv_table *t, unsigned ring)
{
    inv_assert(ring < INV_TRACE_RINGS);
    return (struct inv_trace_ring *)((char *)t + INV_TRACE_OFFSET) + ring;
}
/* One load and a branch.  seq_cst, which costs nothing on x86: see `tracing`. */
static inline bool inv_tracing(struct inv_table *t)
{
    return __builtin_expect(atomic_load(&t->tracing) != 0, 0);
}

/* relaxed: a number */
static inline uint64_t inv_reclaim_bound_ns(const struct inv_table *t)
{
    return (uint64_t)__atomic_load_n(&t->reclaim_bound_us, __ATOMIC_RELAXED) * 1000;
}

/* Is this a core or a slot of this table?  Negative numbers are not. */
static inline bool inv_core_valid(const struct inv_table *t, long core)
{
    return core >= 0 && core < INV_MAX_CORES && core < (long)t->ncores;
}
static inline bool inv_slot_valid(const struct inv_table *t, long slot)
{
    return slot >= 0 && slot < INV_MAX_SLOTS && slot < (long)t->nslots;
}

/*
 * inv_memory_resize - ftruncate for a memfd.  Fails with EFBIG beyond RLIMIT_FSIZE (ulimit -f),
 * where ftruncate also sends SIGXFSZ, which ends the process.
 */
int inv_memory_resize(int fd, off_t bytes);

/*
 * inv_table_create - make a table in anonymous shared memory (memfd).
 *   ncores, os_cpus  the cores; os_cpus[i] is core i's Linux CPU, or NULL when emulated
 *   nslots, mode     as in struct inv_table
 * Returns a CLOEXEC file descriptor that the caller owns, and maps the table at *out;
 * or -1 with errno of memfd_create, inv_memory_resize or mmap, or EINVAL for counts out of range.
 */
int inv_table_create(unsigned ncores, const int *os_cpus, unsigned nslots, enum inv_mode mode,
                     struct inv_table **out);

/* The same in private memory of this process, of which the child of a fork has a copy.  NULL with
 * errno. */
struct inv_table *inv_table_private(unsigned ncores, const int *os_cpus, unsigned nslots,
                                    enum inv_mode mode);

/*
 * inv_table_map - map a table that rmd passed.  The descriptor stays the caller's.
 *   writable  false for observers (rmctl)
 * Returns NULL with errno; EPROTO when the memory is no table of this version.
 */
struct inv_table *inv_table_map(int fd, bool writable);
/* The same, writable, for a table of a former rmd, whose head rmd does not trust: checks only that
 * the memory is as large as a table and that its size is sealed. */
struct inv_table *inv_table_map_unread(int fd);
void inv_table_unmap(struct inv_table *t);

#endif
