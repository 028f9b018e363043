/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * first_use.c - the first use of OpenMP by this process, and by each of its threads (use.h).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* for dl_iterate_phdr */
#endif
#include "libgomp.h"
#include "messages.h"
#include "objects.h"
#include "parallel.h"
#include "places.h"
#include "process.h"
#include "tls.h"
#include "use.h"
#include <libinvasive/base/uncancelled.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct gomp_task_icv *gomp_thread_icv;

static struct {
    pthread_mutex_t lock;
    enum { UNSEEN, AT_ONCE, LATER } begins; /* written while the library is loaded */
    /* Has the process begun to use OpenMP?  Written by first_use, under the lock (release); read by each
     * thread that begins (acquire). */
    _Atomic bool begun;
} use = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- the first use */

bool gomp_use_at_once (void)
{
    if (use.begins == UNSEEN)
        use.begins = gomp_program_needs_libgomp() ? AT_ONCE : LATER;
    return use.begins == AT_ONCE;
}

/* If another copy of libgomp is loaded, which a package has brought, it has printed the messages
 * already. */
static void begin_use (void)
{
    gomp_settle_default_team(); /* which the messages may show */
    gomp_messages_end(!gomp_other_copy_loaded());
    gomp_settle_teams();
    /* With a resource manager threads are pinned to the cores that they hold instead. */
    if (gomp_global_icv.bind_var != omp_proc_bind_false && gomp_places_list && !inv_wanted())
        gomp_take_first_place();
}

static void first_use (void)
{
    INV_UNDISTURBED;
    pthread_mutex_lock(&use.lock);
    if (!atomic_load_explicit(&use.begun, memory_order_relaxed)) { /* under the lock */
        begin_use();
        /* release: partner is the acquire load of gomp_find_thread_icv in another thread, which then
         * sees all that begin_use has written */
        atomic_store_explicit(&use.begun, true, memory_order_release);
    }
    pthread_mutex_unlock(&use.lock);
}

struct gomp_task_icv *gomp_find_thread_icv (void)
{
    /* acquire: partner is the release store of first_use */
    if (!atomic_load_explicit(&use.begun, memory_order_acquire))
        first_use();
    bool initial = syscall(SYS_gettid) == getpid();
    gomp_thread_icv = &gomp_global_icv;
    if (!initial) {
        gomp_use_add_further_threads();
        gomp_decide_default_team(GOMP_TEAM_SMALL); /* which may change gomp_thread_icv */
    }
    return gomp_thread_icv;
}

void gomp_use_loaded (void)
{
    gomp_use_is_loaded();
    gomp_messages_loaded();
    gomp_tls_loaded();
    if (gomp_use_at_once())
        gomp_find_thread_icv();
}

/* Another thread may have been in the middle of the first use. */
void gomp_use_forget (void)
{
    use.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* --- the first place */

void gomp_take_first_place (void)
{
    struct gomp_thread *thr = gomp_thread();
    bool will_have_core = inv_wanted() && !inv_managed();
    if (inv_hold < 0 && !will_have_core)
        gomp_bind_self(1);
    thr->place = 1;
    thr->ts.place_partition_off = 0;
    thr->ts.place_partition_len = gomp_places_list_len;
}
