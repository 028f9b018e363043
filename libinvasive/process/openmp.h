/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * openmp.h - functions of the OpenMP runtime that libinvasive and the MPI shim call by pointers,
 * since neither knows the runtime.  The runtime sets each pointer once, before its first region; a
 * thread that does not see it yet has no region.
 */
#ifndef INV_OPENMP_H
#define INV_OPENMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* --- work for another core */

/* work_waiting: is there work for another core?  If there is none when a thread begins to wait, the
 * process stops wanting cores. */
void inv_set_work_probe(bool (*work_waiting)(void));
/* What that function returns; false without a runtime. */
bool inv_work_waiting(void);

/* --- task points: a wait in MPI during which ready OpenMP tasks may run (invade --mpi-tasks) */

struct inv_task_point {
    bool (*ready)(void); /* is there a task that the calling thread may run?  A hint; some loads */
    bool (*run)(void);   /* run one; false: there was none.  The caller holds a core */
};
/* *point must stay valid to the end of the process. */
void inv_set_task_point(const struct inv_task_point *point);
/* What was set, or NULL: the process has no OpenMP runtime that offers task points. */
const struct inv_task_point *inv_task_point(void);

/* --- giving way: another thread or implicit task gets the caller's hold */

struct inv_give_way {
    bool (*wanted)(void); /* does a thread or an implicit task lack a core, or does the caller hold
                           * none? */
    /* Lets one of them have the caller's hold, for at most limit_ns.  True: the caller holds a core
     * again.  False: the time is over, and the caller goes on as an unheld thread. */
    bool (*give)(uint64_t limit_ns);
    void (*go_on)(void); /* the caller goes on as an unheld thread, and gets the next core that is
                          * free */
    /* Number of the runtime's kernel threads: all of them idle, if no other thread of the program
     * is in a region.  -1: the caller is in one */
    int (*idle_threads)(void);
    /* The program calls sched_yield.  True: another thread or implicit task of the process had the caller's core
     * meanwhile.  False: there was none, and the kernel is to be asked. */
    bool (*yield)(void);
};
/* *way must stay valid to the end of the process. */
void inv_set_give_way(const struct inv_give_way *way);
/* These call the functions above, in this order.  Without a runtime they return: */
bool inv_way_wanted(void);             /* false */
bool inv_give_way(uint64_t limit_ns);  /* true, at once */
bool inv_go_on_unheld(void);           /* false */
int inv_idle_openmp_threads(void);     /* 0 */
bool inv_yield_to_own(void);           /* false */

/* --- the runtime's service thread (the watchdog), for which no thread of the program waits */

/* The calling thread, which has just started, is the service thread. */
void inv_service_thread(void);
/* The service thread's CPU clock; 0: there is no such thread.  Any thread. */
clockid_t inv_service_clock(void);

#endif
