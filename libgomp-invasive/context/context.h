/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * context.h - contexts: implicit tasks that can be suspended.
 *
 * A context has a stack and a struct gomp_thread of its own.  When its implicit task waits inside
 * the region, the kernel thread switches to another context, without a system call.  The context
 * may continue on another kernel thread.  So contexts are for elastic regions only (region.h),
 * whose implicit tasks may run on any thread.  carrier.h says which context runs next; this file
 * has the stacks and the switch.
 *
 * A switch saves and restores what belongs to the implicit task: registers, the control words of
 * the floating point units, errno, and the C++ exceptions that are being handled.
 *
 * A stack has the size that OMP_STACKSIZE gives, and a guard below.  Its memory is reserved, but
 * not touched before it is needed, and another context uses it later.
 */
#ifndef GOMP_CONTEXT_H
#define GOMP_CONTEXT_H 1

#include "libgomp.h"
#include "current.h"
#include "overflow.h"
#include "parking.h"
#include "spinlock.h"

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

struct gomp_region;

struct gomp_context {
    void *sp; /* stack pointer while it does not run */
    void (*body) (struct gomp_context *); /* the function that its stack begins with */
    /* The context runs, or the kernel thread that ran it has not left its stack yet.  Set by the
     * thread that resumes it.  Cleared by that thread after its next switch (release; partner: the
     * acquire load of a thief, a carrier that takes contexts from another one's list). */
    _Atomic bool running;
    bool owns_stack; /* false: a carrier's loop, on the kernel thread's stack */
    int error;       /* errno while it does not run */
    struct {
        void *caught;
        unsigned uncaught;
    } exceptions; /* of the C++ runtime, likewise (struct gomp_exceptions) */
    struct gomp_region *region;
    /* While it is in a carrier's list: it waits until *addr is not val.  addr NULL: it can run. */
    int *addr;
    int val;
    struct gomp_context *next;
    /* Contexts in sequence in the list that wait for the same change are a series.  In the first
     * of a series: the last one. */
    struct gomp_context *series_last;
    struct gomp_waiter waiter; /* while it is in the parking lot */
    struct gomp_thread thread;
    struct gomp_guard guard; /* below its stack */
};

extern struct gomp_contexts {
    /* The process is the child of a fork in a context.  Its only thread has the stack of that
     * context, but no carrier's loop to switch to, so it waits like a thread without contexts.
     * Written in the child, before it has further threads. */
    bool forked_in_context;
    /* The answer of gomp_contexts_usable: 0 not known yet, 1 yes, 2 no.  Written by any thread that
     * reads 0.  relaxed, without a partner: every thread finds the same. */
    _Atomic int usable;
    /* Is the initial thread's stack large enough for any implicit task (run.c)?  Values as above.
     * Writers: masters, relaxed: likewise. */
    _Atomic int stack_suffices;
    /* The C++ runtime's function __cxa_get_globals; NULL: no C++ runtime is loaded.  Written by
     * masters before a region, when objects have been loaded since the last one; relaxed: threads
     * of the region see what its master wrote, by the release of its tickets. */
    struct gomp_exceptions *(*_Atomic get_exceptions) (void);
    struct gomp_spinlock lock __attribute__((aligned(64))); /* of `unused` */
    struct gomp_context *unused; /* a list of contexts without an implicit task, to be used again */
    /* Contexts made so far.  Raised and read by any thread that makes one (make_context).  relaxed,
     * without a partner: gives each context a number of its own, by which its stack is placed. */
    _Atomic unsigned made;
} gomp_contexts;

/* Does the calling thread execute a context, which it can leave for other contexts? */
static inline bool gomp_in_context (void)
{
    return gomp_current != 0 && !gomp_contexts.forked_in_context;
}

/* May implicit tasks run in contexts in this process?  Not under valgrind or a sanitizer, which do
 * not know the stacks, and not with shadow stacks. */
extern bool gomp_contexts_usable (void);
/* What keeps implicit tasks from running in contexts, as invade(1) names it; NULL: nothing. */
extern const char *gomp_contexts_hindrance (void);
/* To be called when objects have been loaded: looks whether the C++ runtime is among them. */
extern void gomp_contexts_find_exceptions (void);
/* A context that runs `body` (carrier.c) when it is first switched to; NULL: there is no memory for
 * a stack. */
extern struct gomp_context *gomp_context_new (void (*body) (struct gomp_context *));
/* Keep the context for gomp_context_new.  Its body has run up to a switch, and continues there when
 * the context is used again. */
extern void gomp_context_keep (struct gomp_context *);
/* Find where the calling kernel thread has its errno and C++ exceptions.  To be called before the
 * thread's first switch, and again when objects have been loaded. */
extern void gomp_contexts_find_state (void);
/* Run `to` in place of the caller, `from`.  Returns when a kernel thread, maybe another one,
 * switches to `from`. */
extern void gomp_context_switch (struct gomp_context *from, struct gomp_context *to);
/* For the child of a fork. */
extern void gomp_contexts_forget (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
