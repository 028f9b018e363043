/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * context.h - light implicit tasks: a stack, and the few words that OpenMP knows of a thread.
 *
 * An implicit task that waits inside its region is suspended and leaves its kernel thread to another
 * one, without the kernel.  It may go on on another kernel thread, so contexts are for regions only
 * whose implicit tasks may run on any (elastic ones, region.h).  carrier.h says which context runs
 * next; this file has the stacks and the switch.
 *
 * A switch keeps what belongs to the implicit task: registers, the control words of the floating
 * point units, errno, and which C++ exceptions are being handled.
 *
 * Stacks have the size that OMP_STACKSIZE says for threads, with a guard below.  They are
 * reserved, not touched, and used again.
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
    void *sp; /* while it does not run */
    void (*body) (struct gomp_context *); /* what it runs first */
    /* It runs, or the kernel thread that ran it has not left its stack yet.  Set by the thread that
     * resumes it, cleared by what that thread runs next (release; partner: a thief's acquire load). */
    _Atomic bool running;
    bool owns_stack; /* no: the kernel thread's own stack */
    int error;       /* errno, and */
    struct {
        void *caught;
        unsigned uncaught;
    } exceptions; /* the C++ runtime's words, while it does not run */
    struct gomp_region *region;
    /* While it is in a carrier's list: it waits until *addr is not val; NULL: for its turn only. */
    int *addr;
    int val;
    struct gomp_context *next;
    /* The first of a run of contexts in the list that wait for the same: its last one. */
    struct gomp_context *run_last;
    struct gomp_waiter waiter; /* while it is in the parking lot */
    struct gomp_thread thread;
    struct gomp_guard guard; /* below its stack */
};

extern struct gomp_contexts {
    /* The process is the child of a fork in a context.  Its one thread has the stack of that context, but
     * no loop to go back to, so it waits like any thread.  Written in the child. */
    bool forked_in_context;
    /* Of gomp_contexts_usable, which looks once: 0 not yet, 1 yes, 2 no.  relaxed: all threads find the same. */
    _Atomic int usable;
    /* The same of the question whether the initial thread's stack is large enough for any implicit task (run.c).
     * Writers: masters. */
    _Atomic int stack_suffices;
    /* Of the C++ runtime; NULL: that is not loaded.  Written before a region begins, when objects have been loaded;
     * relaxed: a region that begins later is after it. */
    struct gomp_exceptions *(*_Atomic get_exceptions) (void);
    /* Contexts that have ended their implicit tasks.  Written by threads that begin and end contexts. */
    struct gomp_spinlock lock __attribute__((aligned(64))); /* of the list */
    struct gomp_context *unused;
    _Atomic unsigned made; /* contexts that there are; a number for each */
} gomp_contexts;

/* Does the calling thread execute a context, which it can leave for other contexts? */
static inline bool gomp_in_context (void)
{
    return gomp_current != 0 && !gomp_contexts.forked_in_context;
}

/* May implicit tasks run in contexts in this process?  Not under valgrind or a sanitizer, which are
 * not told of the stacks, and not with shadow stacks. */
extern bool gomp_contexts_usable (void);
/* Why not: the name of a variable, or a word of INVASIVE_CONTEXTS in invade(1); NULL: they may. */
extern const char *gomp_contexts_hindrance (void);
/* Objects have been loaded: is the C++ runtime there? */
extern void gomp_contexts_find_exceptions (void);
/* A context that runs `body` (carrier.c) when it is first switched to; NULL: the system gives us no
 * memory for it. */
extern struct gomp_context *gomp_context_new (void (*body) (struct gomp_context *));
/* Keep it for gomp_context_new.  It has run its body up to a switch; when it is used again it goes
 * on from there. */
extern void gomp_context_keep (struct gomp_context *);
/* Find what a switch keeps of the calling kernel thread; again after objects have been loaded.  Comes
 * before the thread's first switch. */
extern void gomp_contexts_find_state (void);
/* Run `to` in place of `from`, which the caller is.  Returns when something switches to `from`, maybe
 * on another kernel thread. */
extern void gomp_context_switch (struct gomp_context *from, struct gomp_context *to);
extern void gomp_contexts_forget (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
