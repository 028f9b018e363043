/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * list.c - the requests whose completion fulfils OpenMP events, and the probes for late receives
 * (Charrier et al., doi:10.1137/19M1276194, sections 4.2 and 4.3).
 *
 * One array under one lock.  A thread that tests only tries the lock, so no thread waits for
 * another one's tests.  It looks at a bounded batch, in turn, so that its time does not depend on
 * how many are pending.  MPI_Test of each request and not MPI_Testsome: an error then goes to the
 * communicator's error handler.  Events are fulfilled, and the program's functions called, after the
 * lock is released.  Not so MPI's error handlers and the functions of generalized requests: these
 * may give requests to the list, too, since the lock is recursive, and the entry that is looked at
 * stays where it is.
 */
#define _GNU_SOURCE
#include "mpi-shim/triggers/list.h"
#include "libinvasive/base/now.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* BATCH: requests a look, about a microsecond.  BUSY_NS: the least time between two looks of
 * threads that have other work. */
enum { BATCH = 32, BUSY_NS = 2000 };

/* Under the lock, but for tested_ns, which is a hint (relaxed), and what begin() sets before
 * anything is pending. */
static struct {
    pthread_mutex_t lock;
    struct trigger_entry *entry;
    unsigned count, room, next;
    bool begun, ended, testing;
    int level;
    pthread_t main;
    int (*test)(MPI_Request *, int *, MPI_Status *);
    int (*improbe)(int, int, MPI_Comm, int *, MPI_Message *, MPI_Status *);
    _Atomic uint64_t tested_ns;
    struct inv_triggers own; /* where the process has no other */
} list = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

/* What a batch has found. */
struct found {
    unsigned events, messages;
    omp_event_handle_t event[BATCH];
    struct {
        struct trigger_probe *probe;
        MPI_Message message;
        MPI_Status status;
    } message[BATCH];
};

__attribute__((weak)) extern struct inv_triggers inv_triggers;

struct inv_triggers *triggers_shared(void)
{
    return &inv_triggers ? &inv_triggers : &list.own;
}

uint64_t triggers_tested_ns(void)
{
    return atomic_load_explicit(&list.tested_ns, memory_order_relaxed);
}

/* --- beginning and end */

/* The library's own functions: a test here is no wait of the program. */
static void find_functions(void)
{
    void *(*function)(const char *) =
        atomic_load_explicit(&triggers_shared()->mpi_function, memory_order_acquire);
    list.test = function ? (int (*)(MPI_Request *, int *, MPI_Status *))function("PMPI_Test") : NULL;
    list.improbe = function ? (int (*)(int, int, MPI_Comm, int *, MPI_Message *, MPI_Status *))function(
                                  "PMPI_Improbe")
                            : NULL;
    if (!list.test || !list.improbe) {
        list.test = PMPI_Test;
        list.improbe = PMPI_Improbe;
    }
}

bool triggers_main_tests(void)
{
    struct inv_triggers *shared = triggers_shared();
    return atomic_load_explicit(&shared->mpi_function, memory_order_acquire) &&
           atomic_load_explicit(&shared->in_openmp, memory_order_relaxed);
}

/* Would any thread test? */
static bool is_level_enough(void)
{
    return list.level == MPI_THREAD_MULTIPLE ||
           (list.level < MPI_THREAD_SERIALIZED && triggers_main_tests());
}

static bool begin(void)
{
    int initialised = 0, finalised = 0, is_main = 0;
    PMPI_Initialized(&initialised);
    PMPI_Finalized(&finalised);
    if (!initialised || finalised)
        return false;
    PMPI_Query_thread(&list.level);
    if (!is_level_enough())
        return false;
    find_functions();
    PMPI_Is_thread_main(&is_main);
    list.main = pthread_self();
    if (list.level < MPI_THREAD_SERIALIZED && is_main)
        atomic_store_explicit(&triggers_shared()->only_tid, gettid(), memory_order_relaxed);
    atomic_store_explicit(&triggers_shared()->test, triggers_test, memory_order_release);
    return list.begun = true;
}

static void set_pending(void)
{
    atomic_store_explicit(&triggers_shared()->pending, list.count, memory_order_relaxed);
}

void triggers_end(void)
{
    pthread_mutex_lock(&list.lock);
    list.ended = true;
    list.count = 0;
    set_pending();
    pthread_mutex_unlock(&list.lock);
}

/* --- tests */

static bool may_test(enum inv_trigger_point where)
{
    if (where == INV_IN_MPI || list.level == MPI_THREAD_MULTIPLE)
        return true;
    return list.level < MPI_THREAD_SERIALIZED && pthread_equal(pthread_self(), list.main);
}

static void drop(unsigned i)
{
    list.entry[i] = list.entry[--list.count];
}

/* A request of the entry is complete. */
static void complete(struct trigger_entry *e, struct found *found)
{
    if (!e->group) {
        found->event[found->events++] = e->event;
    } else if (--e->group->left == 0) {
        found->event[found->events++] = e->group->event;
        free(e->group);
    }
}

static bool test_request(struct trigger_entry *e)
{
    MPI_Status own = {0}, *status = e->fortran_status ? &own : e->status;
    int flag = 0, code = list.test(&e->request, &flag, status);
    if (!flag && code == MPI_SUCCESS)
        return false;
    if (status != MPI_STATUS_IGNORE)
        status->MPI_ERROR = code;
    if (e->fortran_status)
        PMPI_Status_c2f(&own, e->fortran_status);
    return true;
}

/* Looks at one entry.  True: it is over, or for a probe: its message is to be received first. */
static bool look(struct trigger_entry *e, struct found *found)
{
    int flag = 0;
    if (!e->probe) {
        if (!test_request(e))
            return false;
        complete(e, found);
        return true;
    }
    struct trigger_probe *p = e->probe;
    unsigned n = found->messages;
    if (list.improbe(p->source, p->tag, p->comm, &flag, &found->message[n].message,
                     &found->message[n].status) != MPI_SUCCESS || !flag)
        return false;
    found->message[found->messages++].probe = p;
    return true;
}

static void look_at_batch(struct found *found)
{
    unsigned looks = list.count < BATCH ? list.count : BATCH;
    for (unsigned k = 0; k < looks && list.count > 0; k++) {
        if (list.next >= list.count)
            list.next = 0;
        struct trigger_entry e = list.entry[list.next]; /* a handler may move the array */
        if (look(&e, found))
            drop(list.next);
        else
            list.next++;
    }
    if (found->events + found->messages > 0)
        set_pending();
}

/* Outside of the lock: the program's functions give requests to the list, and fulfilling an event
 * may wait for a lock of the OpenMP runtime. */
static void deliver(struct found *found)
{
    for (unsigned i = 0; i < found->messages; i++) {
        struct trigger_probe *p = found->message[i].probe;
        if (!p->arrived(&found->message[i].message, &found->message[i].status, p->arg) ||
            triggers_append(&(struct trigger_entry){.probe = p}, 1, NULL) != MPI_SUCCESS)
            free(p);
    }
    for (unsigned i = 0; i < found->events; i++)
        omp_fulfill_event(found->event[i]);
}

bool triggers_test(enum inv_trigger_point where)
{
    struct found found;
    uint64_t now = inv_now_ns();
    if (!may_test(where) || (where == INV_AT_TASK && now - triggers_tested_ns() < BUSY_NS) ||
        pthread_mutex_trylock(&list.lock) != 0)
        return false;
    found.events = found.messages = 0;
    if (!list.testing) { /* else a handler has called */
        list.testing = true;
        look_at_batch(&found);
        list.testing = false;
    }
    atomic_store_explicit(&list.tested_ns, now, memory_order_relaxed);
    pthread_mutex_unlock(&list.lock);
    deliver(&found);
    return found.events + found.messages > 0;
}

/* --- more requests */

static bool has_room(unsigned more)
{
    unsigned room = list.room ? list.room : 64;
    while (room - list.count < more)
        room *= 2;
    if (room == list.room)
        return true;
    struct trigger_entry *entry = realloc(list.entry, room * sizeof *entry);
    if (!entry)
        return false;
    list.entry = entry;
    list.room = room;
    return true;
}

int triggers_append(const struct trigger_entry *e, unsigned count, bool *first)
{
    int result = MPI_SUCCESS;
    pthread_mutex_lock(&list.lock);
    bool begun = list.begun;
    if (list.ended || (!list.begun && !begin()))
        result = MPI_ERR_OTHER;
    else if (!has_room(count))
        result = MPI_ERR_NO_MEM;
    for (unsigned i = 0; i < count && result == MPI_SUCCESS; i++)
        list.entry[list.count++] = e[i];
    if (first)
        *first = list.begun && !begun;
    set_pending();
    pthread_mutex_unlock(&list.lock);
    return result;
}
