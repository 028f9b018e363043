/* SPDX-License-Identifier: GPL-3.0-or-later */
/* idle_cpu.c - see idle_cpu.h. */
#define _GNU_SOURCE
#include "rmd/host/idle_cpu.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/slice.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

enum {
    PAUSE_NS = 1000000, /* the shortest pause */
    AGAIN_NS = 300000, /* the pause until the CPU is seen again; a thread that sleeps for less lends no core */
    LATE_NS = 100000,  /* a thread that wakes up later than this had to wait for a CPU */
    BUSY_NS = 20000000, /* later than this: all CPUs were busy until now */
    TIMES = 2, /* wake-ups in time, in sequence, after which a CPU counts as idle; the first one may be late */
    DOUBLE_AFTER = 4, DOUBLINGS = 5, /* the pause doubles after so many useless ones, or a report */
    USELESS_MOST = DOUBLE_AFTER * DOUBLINGS,
    SHORT_PAUSES = 400, /* short pauses after a loan that was worth it: about a second */
    REPORT_COST = 16,   /* short pauses that each report costs: 25 looks cost less than such a loan
                          gives */
    MOST_THREADS = 16,
    LONG_SLICE_NS = 100000000, /* the longest that the kernel allows: the thread runs least often on a busy CPU */
    STACK_BYTES = 1 << 16,
};

/* The owner pauses, watches and closes; threads change WATCH to PAUSED. */
enum { PAUSED, WATCH, CLOSED };

struct rmd_idle_cpu {
    int fd; /* a copy of the owner's, for the threads */
    _Atomic uint32_t asked; /* the latest request: WATCH, PAUSED or CLOSED; futex, seq_cst */
    _Atomic uint32_t anew;  /* how often the shortest pauses were asked for; published by `asked` */
    _Atomic uint32_t users; /* owner and threads: the last one frees the struct */
    _Atomic uint32_t begun; /* threads so far, each of which takes a number */
    struct inv_cpus cpus[MOST_THREADS]; /* of each thread one CPU; on large machines several */
};

static void drop(struct rmd_idle_cpu *w)
{
    if (atomic_fetch_sub(&w->users, 1) > 1)
        return;
    close(w->fd);
    free(w);
}

/* False: the kernel refuses.  The thread must not watch then, since it would preempt threads that compute. */
static bool become_idle(const struct inv_cpus *cpus)
{
    static const struct sched_param none = {0};
    pthread_setname_np(pthread_self(), "rmd-idle");
    prctl(PR_SET_TIMERSLACK, 1UL);
    inv_cpus_set(0, cpus);
    bool idle = !sched_setscheduler(0, SCHED_IDLE, &none);
    inv_slice_set(0, LONG_SLICE_NS);
    return idle;
}

/* Sleeps for pause_ns.  Returns how much later the thread woke, in ns; -1: another request has come. */
static int64_t sleep_for(struct rmd_idle_cpu *w, uint64_t pause_ns)
{
    uint64_t due = inv_now_ns() + pause_ns;
    if (inv_futex_wait(&w->asked, WATCH, (int64_t)pause_ns, false) != -ETIMEDOUT)
        return -1;
    uint64_t now = inv_now_ns();
    return now > due ? (int64_t)(now - due) : 0;
}

static void report_idle_cpu(struct rmd_idle_cpu *w)
{
    uint32_t asked = WATCH;
    if (atomic_compare_exchange_strong(&w->asked, &asked, PAUSED) &&
        write(w->fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        inv_assert(errno == EAGAIN); /* the counter is full, so the descriptor is readable */
}

/* By what a thread chooses the length of its next pause. */
struct pause_count {
    uint32_t anew; /* as it has seen it last */
    int useless;   /* pauses of no use, in sequence; below 0: so many short ones are left */
};

static uint64_t next_pause(struct rmd_idle_cpu *w, struct pause_count *count)
{
    uint32_t anew = atomic_load(&w->anew);
    if (anew != count->anew)
        *count = (struct pause_count){anew, -SHORT_PAUSES};
    return (uint64_t)PAUSE_NS << (count->useless > 0 ? count->useless : 0) / DOUBLE_AFTER;
}

static void count_pause(struct pause_count *count, int64_t late)
{
    if (late >= BUSY_NS && count->useless > 0)
        count->useless = 0;
    else if (count->useless < USELESS_MOST)
        count->useless++;
}

static void count_report(struct pause_count *count)
{
    count->useless += count->useless < 0 ? REPORT_COST : DOUBLE_AFTER;
    if (count->useless > USELESS_MOST)
        count->useless = USELESS_MOST;
}

/* Runs until another request than WATCH comes. */
static void find_idle_cpu(struct rmd_idle_cpu *w, struct pause_count *count)
{
    unsigned idle = 0; /* wake-ups in sequence on a CPU that may be idle */
    int64_t late;
    while ((late = sleep_for(w, idle ? AGAIN_NS : next_pause(w, count))) >= 0) {
        count_pause(count, late);
        /* A thread that is late has got its small part of a busy CPU, or others have left the CPU just now. */
        idle = !idle || late >= BUSY_NS ? 1 + (late < LATE_NS) : late < LATE_NS ? idle + 1 : 0;
        if (idle > TIMES) {
            report_idle_cpu(w);
            count_report(count);
            idle = 0;
        }
    }
}

static void *watch(void *arg)
{
    struct rmd_idle_cpu *w = arg;
    /* The shortest ones are for watches that have been of use. */
    struct pause_count count = {.useless = DOUBLE_AFTER};
    uint32_t asked;
    if (!become_idle(&w->cpus[atomic_fetch_add(&w->begun, 1)]))
        atomic_store(&w->asked, CLOSED);
    while ((asked = atomic_load(&w->asked)) != CLOSED) {
        if (asked == PAUSED)
            inv_futex_wait(&w->asked, PAUSED, -1, false);
        else
            find_idle_cpu(w, &count);
    }
    drop(w);
    return NULL;
}

/* Changes the request, unless the watch is closed.  A thread may be changing it to PAUSED. */
static void set_request(struct rmd_idle_cpu *w, uint32_t what)
{
    uint32_t asked = atomic_load(&w->asked);
    while (asked != CLOSED && !atomic_compare_exchange_weak(&w->asked, &asked, what))
        ;
    if (asked != CLOSED)
        inv_futex_wake(&w->asked, INT_MAX, false);
}

void rmd_idle_cpu_watch(struct rmd_idle_cpu *w, bool anew)
{
    if (anew)
        atomic_fetch_add(&w->anew, 1);
    set_request(w, WATCH);
}

void rmd_idle_cpu_pause(struct rmd_idle_cpu *w) { set_request(w, PAUSED); }

void rmd_idle_cpu_close(struct rmd_idle_cpu *w)
{
    if (!w)
        return;
    set_request(w, CLOSED);
    drop(w);
}

static int start_thread(struct rmd_idle_cpu *w)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    atomic_fetch_add(&w->users, 1);
    error = pthread_create(&thread, &attributes, watch, w);
    if (error)
        atomic_fetch_sub(&w->users, 1);
    pthread_attr_destroy(&attributes);
    return error;
}

/* Fewer threads than there should be leave some CPUs unwatched. */
static int start_threads(struct rmd_idle_cpu *w, const struct inv_cpus *cpus)
{
    unsigned found = 0, started = 0;
    int error = 0;
    for (int cpu = 0, last = inv_cpus_last(cpus); cpu <= last; cpu++)
        if (inv_cpus_has(cpus, (size_t)cpu))
            inv_cpus_add(&w->cpus[found++ % MOST_THREADS], (size_t)cpu);
    for (unsigned i = 0; i < found && i < MOST_THREADS && !error; i++) {
        error = start_thread(w);
        started += !error;
    }
    return started ? 0 : error ? error : EINVAL;
}

struct rmd_idle_cpu *rmd_idle_cpu_open(const struct inv_cpus *cpus, int *fd)
{
    struct rmd_idle_cpu *w = calloc(1, sizeof *w);
    int error = w ? 0 : ENOMEM;
    *fd = error ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*fd < 0)
        error = errno;
    else {
        w->fd = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
        w->users = 1;
        error = w->fd < 0 ? errno : start_threads(w, cpus);
    }
    if (!error)
        return w;
    if (*fd >= 0) {
        if (w->fd >= 0)
            close(w->fd);
        close(*fd);
        *fd = -1;
    }
    free(w);
    errno = error;
    return NULL;
}
