/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hook.c - the MPI library calls the shim from its progress engine, each time that it polls.
 *
 * With Open MPI a function can be registered for that.  MPICH over UCX calls ucp_worker_progress of
 * libucp at each poll, and finds the dispatcher's function of that name, since the dispatcher is
 * preloaded.  Elsewhere, and in versions that poll in another way, there is no hook, and the wait
 * engine polls itself.  Set-up finds out whether the hook is really called.
 */
#define _GNU_SOURCE
#include "mpi-shim/dispatch/hook.h"
#include "libinvasive/base/assertion.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { OPAL_LOW_PRIORITY = 8 }; /* what Open MPI does by itself */

/* Written by hook_set, so in set-up only; `ucp_progress` by threads that poll. */
static struct {
    hook_polled *_Atomic polled;
    /* Polls from one call of the hook to the next.  relaxed: any value that it has had will do. */
    _Atomic unsigned every;
    /* Open MPI's own switch; NULL: there is none.  relaxed: all threads find the same */
    const bool *_Atomic opal_yields;
    bool opal_entered;
    /* ucp_worker_progress of libucp.  Written by threads that poll; relaxed: all find the same */
    void *_Atomic ucp_progress;
} hook = {.every = 1};

static inline unsigned call_hook(unsigned polls, unsigned how)
{
    /* acquire: partner is the store in hook_set */
    hook_polled *polled = atomic_load_explicit(&hook.polled, memory_order_acquire);
    unsigned next = polled ? polled(polls, how) : 0;
    return next ? next : atomic_load_explicit(&hook.every, memory_order_relaxed);
}

/* The function `name` of a library that may have been loaded privately, so that dlsym by default
 * does not find it. */
static void *find_symbol(const char *const *libraries, const char *name)
{
    void *found = NULL;
    for (; *libraries && !found; libraries++) {
        void *library = dlopen(*libraries, RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            found = dlsym(library, name);
            dlclose(library);
        }
    }
    return found;
}

__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker);
__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker)
{
    static const char *const libraries[] = {"libucp.so.0", NULL};
    void *function = atomic_load_explicit(&hook.ucp_progress, memory_order_relaxed);
    if (__builtin_expect(!function, 0)) {
        function = dlsym(RTLD_NEXT, "ucp_worker_progress");
        if (!function)
            function = find_symbol(libraries, "ucp_worker_progress");
        if (!function)
            return 0;
        inv_assert(function != (void *)ucp_worker_progress); /* it would call itself for ever */
        atomic_store_explicit(&hook.ucp_progress, function, memory_order_relaxed);
    }
    static __thread struct {
        unsigned polls, due;
    } row __attribute__((tls_model("initial-exec")));
    if (__builtin_expect(++row.polls < row.due, 1))
        return ((unsigned (*)(void *))function)(worker);
    unsigned count = ((unsigned (*)(void *))function)(worker);
    if (count == 0) {
        unsigned polls = row.polls;
        row.polls = 0; /* first: the hook may be called from within */
        row.due = call_hook(polls, 0);
    } else
        call_hook(0, HOOK_ARRIVED);
    return count;
}

static int opal_polled(void)
{
    const bool *yields = atomic_load_explicit(&hook.opal_yields, memory_order_relaxed);
    call_hook(OPAL_LOW_PRIORITY, yields && *yields ? HOOK_YIELDS : 0);
    return 0;
}

/* Only once, since the dynamic linker takes some tenths of a millisecond to find no library.  MPI
 * has begun, so the library is loaded if it is used at all. */
static void enter_opal(void)
{
    static const char *const libraries[] = {"libopen-pal.so.40", "libopen-pal.so.80", NULL};
    if (hook.opal_entered)
        return;
    hook.opal_entered = true;
    int (*opal_progress_register)(int (*)(void)) =
        (int (*)(int (*)(void)))find_symbol(libraries, "opal_progress_register_lp");
    const bool *yields = find_symbol(libraries, "opal_progress_yield_when_idle");
    atomic_store_explicit(&hook.opal_yields, yields, memory_order_relaxed);
    if (opal_progress_register)
        opal_progress_register(opal_polled);
}

void hook_set(hook_polled *polled, unsigned every_polls)
{
    inv_assert(every_polls > 0);
    atomic_store_explicit(&hook.every, every_polls, memory_order_relaxed);
    /* release: what polled() reads was written before */
    atomic_store_explicit(&hook.polled, polled, memory_order_release);
    enter_opal();
}
