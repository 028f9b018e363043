/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hook.c - how the MPI library calls us from its progress engine, each time that it polls.
 *
 * Open MPI lets anybody register a function for that.  MPICH over UCX calls one function of
 * another library at each poll, and since we are preloaded it finds ours.  Where neither is
 * the case, or the library's version does it otherwise, there is no hook, and the wait engine
 * polls itself: whether we are really called is found out, not assumed.
 */
#define _GNU_SOURCE
#include "hook.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static hook_polled *_Atomic on_poll;
/* So many polls are told of at once.  relaxed: any number that it has had will do. */
static _Atomic unsigned every = 1;
enum { OPAL_LOW_PRIORITY = 8 }; /* what Open MPI does by itself */
/* Open MPI's own switch, NULL: there is none.  relaxed: whoever looks for it finds the same */
static const bool *_Atomic opal_yields;

static inline unsigned call_hook(unsigned polls, unsigned how)
{
    /* acquire: partner is the store in hook_set */
    hook_polled *polled = atomic_load_explicit(&on_poll, memory_order_acquire);
    unsigned next = polled ? polled(polls, how) : 0;
    return next ? next : atomic_load_explicit(&every, memory_order_relaxed);
}

/* Of a library that may have been loaded privately, where its name does not show. */
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
    static void *_Atomic real; /* relaxed: every thread finds the same */
    void *function = atomic_load_explicit(&real, memory_order_relaxed);
    if (__builtin_expect(!function, 0)) {
        function = dlsym(RTLD_NEXT, "ucp_worker_progress");
        if (!function)
            function = find_symbol(libraries, "ucp_worker_progress");
        if (!function)
            return 0;
        atomic_store_explicit(&real, function, memory_order_relaxed);
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
    const bool *yields = atomic_load_explicit(&opal_yields, memory_order_relaxed);
    call_hook(OPAL_LOW_PRIORITY, yields && *yields ? HOOK_YIELDS : 0);
    return 0;
}

/* Once: MPI begins, so the library is there if it is used at all.  (To look for one that is not there takes the
 * dynamic linker some tenths of a millisecond.) */
static void enter_opal(void)
{
    static const char *const libraries[] = {"libopen-pal.so.40", "libopen-pal.so.80", NULL};
    static bool entered;
    if (entered)
        return;
    entered = true;
    int (*opal_progress_register)(int (*)(void)) =
        (int (*)(int (*)(void)))find_symbol(libraries, "opal_progress_register_lp");
    atomic_store_explicit(&opal_yields, find_symbol(libraries, "opal_progress_yield_when_idle"),
                          memory_order_relaxed);
    if (opal_progress_register)
        opal_progress_register(opal_polled);
}

void hook_set(hook_polled *polled, unsigned every_polls)
{
    atomic_store_explicit(&every, every_polls, memory_order_relaxed);
    /* release: what polled() reads was written before */
    atomic_store_explicit(&on_poll, polled, memory_order_release);
    enter_opal();
}
