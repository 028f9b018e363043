/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * invasive-tool.h - what a tool is told of a program: parallel regions and their implicit tasks,
 * idle threads, and cores that come and go.  In the manner of OpenMP's OMPT, but small, and with
 * the one thing that OMPT does not know: cores change hands.
 *
 * A tool is a set of functions, one for each kind of event.  It is either registered by the
 * program, or is a shared object that the environment variable INVASIVE_TOOL names: that is
 * loaded at program start, before main, and its function inv_tool_start is called.
 *
 * Where and when.  An event is told to the thread that it happens on, at that moment: any thread of
 * the program or of the runtime, several at the same time.  No event is told twice.
 *
 * Order, as long as the tool is registered:
 *  - region_begin comes before every other event of its region, region_end after all of them.
 *    Both come on the thread that met the region, and nest.
 *  - For each thread number there is one task_begin and one task_end, on the same kernel thread.
 *    They nest with the events of the regions that the implicit task itself opens.  One kernel
 *    thread may run several implicit tasks of a region, one after the other.
 *  - idle_begin and idle_end alternate on a thread of the runtime, outside implicit tasks.
 *  - For each core, core_arrived and core_left alternate, and are told in this order also when
 *    they happen on different threads.
 * Begins without ends are left when the process ends (exit in the middle of a region), after
 * inv_tool_unregister, and for the cores in the child of a fork; ends without begins, where the
 * tool was registered in the middle of things.
 *
 * What a function may do: compute, take time stamps, allocate, write to files, use locks of its own
 * that it holds for short.  What it must not: call OpenMP, MPI or anything of libinvasive but
 * inv_tool_unregister; wait for another thread; leave by longjmp or an exception; fork.
 * The thread that is told holds a core, mostly, and time spent here is the program's.
 *
 * Without a tool an event costs a load and a branch that is not taken.
 */
#ifndef INVASIVE_TOOL_H
#define INVASIVE_TOOL_H

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface.  A later one only appends functions. */
#define INV_TOOL_VERSION 1u

/* More processes than cores: they hold anonymous tokens, not cores with a number. */
#define INV_TOOL_ANY_CORE (-1)

enum inv_tool_arrival {
    INV_TOOL_OWN = 0,     /* a core that the resource manager has given to this process */
    INV_TOOL_BORROWED = 1 /* another process's, or without an owner */
};

enum inv_tool_departure {
    INV_TOOL_LENT = 0,      /* an own core: a process that has work for it may take it */
    INV_TOOL_RETURNED = 1,  /* a borrowed core, given up for lack of work */
    INV_TOOL_RECLAIMED = 2, /* a borrowed core that its owner has asked for */
    INV_TOOL_EVICTED = 3    /* it was taken away, some time before this is told */
};

/* A NULL is a function that does nothing. */
struct inv_tool {
    /*
     * The calling thread has met a parallel region and becomes its thread number 0.
     * region    a handle, the same in all events of the region, and not that of another region
     *           that is open at the same time.  Not to be looked into.
     * function  the outlined body, in the program's text
     * threads   N, the number of implicit tasks; 1 for a region that is not parallel
     * level     how deep it is nested; 1 is outermost
     */
    void (*region_begin)(const void *region, void (*function)(void *), unsigned threads,
                         unsigned level);
    void (*region_end)(const void *region);

    /* The calling thread executes the implicit task of this thread number, 0 <= number < N.
     * Explicit tasks that it executes meanwhile are part of it; those that are left when all
     * implicit tasks have ended are executed before region_end. */
    void (*task_begin)(const void *region, unsigned number);
    void (*task_end)(const void *region, unsigned number);

    /* The calling thread, one of the runtime's, has no work: until idle_end it spins or sleeps, on
     * a core or without one.  Waiting inside an implicit task, at a barrier for instance, is
     * not idling; nor is the wait for the other implicit tasks at the end of a region. */
    void (*idle_begin)(void);
    void (*idle_end)(void);

    /* This process may compute on the core from now on, and no longer.  core is its number in the
     * domain, or INV_TOOL_ANY_CORE.  Only in a process that has a resource manager. */
    void (*core_arrived)(int core, enum inv_tool_arrival how);
    void (*core_left)(int core, enum inv_tool_departure how);
};

/*
 * inv_tool_register - tell these functions from now on.
 *
 * tool     in; copied.  The functions must stay where they are until the process ends.
 * version  INV_TOOL_VERSION
 *
 * A process that holds cores already hears of each by a core_arrived, before the return.
 * Returns 0; or -1 with errno set, nothing being changed:
 *   EINVAL  tool is NULL, or version is 0 or one that this library does not know yet
 *   EBUSY   another tool is registered
 *   ENOMEM
 * Callable from any thread at any time but from a tool's function or a signal handler.
 */
int inv_tool_register(const struct inv_tool *tool, unsigned version);

/*
 * inv_tool_unregister - tell nothing any more.  Does nothing when no tool is registered.  Functions
 * that other threads are in when this returns may still be running for a moment.
 */
void inv_tool_unregister(void);

/*
 * inv_tool_start - what the shared object named by INVASIVE_TOOL defines.  It is called once, by
 * the thread that starts the program, before the constructors of the program; it registers a tool,
 * or not.  Returns 0; anything else is reported in one line on stderr, and the program goes on
 * without the tool.  The object is never unloaded; at exit its destructors run.  INVASIVE_TOOL is
 * ignored in programs that run with more rights than their user.
 */
int inv_tool_start(void);

#ifdef __cplusplus
}
#endif
#endif
