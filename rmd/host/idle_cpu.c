/* SPDX-License-Identifier: GPL-3.0-or-later */
/* idle_cpu.c - see idle_cpu.h. */
#define _GNU_SOURCE
#include "rmd/host/idle_cpu.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/slice.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

enum {
    PAUSE_NS = 1500000, /* the shortest pause; the timer of blocked.c has the same, so both find a core as soon */
    AGAIN_NS = 300000, /* the pause until the CPU is seen again; a thread that sleeps for less lends no core */
    LATE_NS = 100000,  /* a thread that wakes so much later had to wait for a CPU */
    BUSY_NS = 20000000, /* so late: all CPUs were busy, and that has changed */
    TIMES = 2, /* wake-ups in time, in sequence, after which a CPU counts as idle */
    DOUBLE_AFTER = 4, DOUBLINGS = 4, /* after DOUBLE_AFTER pauses in vain the pause doubles, DOUBLINGS times at most */
    LONG_SLICE_NS = 100000000, /* the longest that the kernel allows: the thread runs least often on a busy CPU */
    STACK_BYTES = 1 << 16,
};

/* The owner pauses, watches and closes; the thread changes WATCH and ANEW to PAUSED. */
enum { PAUSED, WATCH, ANEW, CLOSED };

struct rmd_idle_cpu {
    int fd; /* the thread's own */
    struct inv_cpus cpus;
    _Atomic uint32_t asked; /* futex; seq_cst */
    _Atomic uint32_t users; /* owner and thread: the last one frees it */
};

static void drop(struct rmd_idle_cpu *w)
{
    if (atomic_fetch_sub(&w->users, 1) > 1)
        return;
    close(w->fd);
    free(w);
}

/* False: the kernel refuses.  The thread must not watch then, since it would preempt threads that compute. */
static bool become_idle(const struct rmd_idle_cpu *w)
{
    static const struct sched_param none = {0};
    pthread_setname_np(pthread_self(), "rmd-idle");
    prctl(PR_SET_TIMERSLACK, 1UL);
    inv_cpus_set(0, &w->cpus); /* an idle CPU that is none of these would be found in vain */
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

/* Runs until another request than WATCH comes. */
static void find_idle_cpu(struct rmd_idle_cpu *w, unsigned *vain)
{
    unsigned idle = 0; /* wake-ups in sequence on an idle CPU */
    int64_t late;
    while ((late = sleep_for(w, idle ? AGAIN_NS : (uint64_t)PAUSE_NS << *vain / DOUBLE_AFTER)) >= 0) {
        *vain = late >= BUSY_NS ? 0 : *vain + (*vain < DOUBLE_AFTER * DOUBLINGS);
        /* However late it is, a thread that runs has found a CPU that others have left.  If it is late after
         * AGAIN_NS, others leave and come, or the kernel has given it its small part of a busy CPU. */
        idle = !idle || late >= BUSY_NS ? 1 : late < LATE_NS ? idle + 1 : 0;
        if (idle > TIMES) {
            report_idle_cpu(w);
            idle = 0;
        }
    }
}

static void *watch(void *arg)
{
    struct rmd_idle_cpu *w = arg;
    unsigned vain = 0;
    uint32_t asked, anew = ANEW;
    if (!become_idle(w))
        atomic_store(&w->asked, CLOSED);
    while ((asked = atomic_load(&w->asked)) != CLOSED) {
        if (asked == ANEW) {
            vain = 0;
            atomic_compare_exchange_strong(&w->asked, &anew, WATCH);
            anew = ANEW;
        }
        if (asked == PAUSED)
            inv_futex_wait(&w->asked, PAUSED, -1, false);
        else
            find_idle_cpu(w, &vain);
    }
    drop(w);
    return NULL;
}

/* The thread may be asking itself to pause, or have closed the watch. */
static void set_request(struct rmd_idle_cpu *w, uint32_t what)
{
    uint32_t asked = atomic_load(&w->asked);
    while (asked != CLOSED && !atomic_compare_exchange_weak(&w->asked, &asked, what))
        ;
    if (asked != CLOSED)
        inv_futex_wake(&w->asked, 1, false);
}

void rmd_idle_cpu_watch(struct rmd_idle_cpu *w, bool anew) { set_request(w, anew ? ANEW : WATCH); }
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
    error = pthread_create(&thread, &attributes, watch, w);
    pthread_attr_destroy(&attributes);
    return error;
}

struct rmd_idle_cpu *rmd_idle_cpu_open(const struct inv_cpus *cpus, int *fd)
{
    struct rmd_idle_cpu *w = malloc(sizeof *w);
    int error = w ? 0 : ENOMEM;
    *fd = error ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*fd < 0)
        error = errno;
    else {
        *w = (struct rmd_idle_cpu){.fd = fcntl(*fd, F_DUPFD_CLOEXEC, 0), .cpus = *cpus, .asked = PAUSED, .users = 2};
        error = w->fd < 0 ? errno : start_thread(w);
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
