/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * openmp.h - what the OpenMP runtime tells libinvasive to call: libinvasive and the MPI shim do not know
 * the runtime.  Each is set once, by the runtime before its first region; a thread that does not see it
 * yet has no region.
 */
#ifndef INV_OPENMP_H
#define INV_OPENMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* --- work for another core */

/* Tell libinvasive how to find out whether there is work for another core: a process whose
 * thread begins to wait, and has none, does not want any.  Set once, by the runtime. */
void inv_set_work_probe(bool (*work_waiting)(void));
/* Does it say so?  False without a runtime. */
bool inv_work_waiting(void);

/* --- task points: a wait in MPI during which ready OpenMP tasks may run (invade --mpi-tasks) */

struct inv_task_point {
    bool (*ready)(void); /* is there a task that the calling thread may run?  A hint; some loads */
    bool (*run)(void);   /* run one; false: there was none.  The caller holds a core */
};
/* Tell libinvasive how.  Set once, by the OpenMP runtime before its first region; *point stays. */
void inv_set_task_point(const struct inv_task_point *point);
/* What was set, or NULL: this process has no OpenMP runtime that offers it. */
const struct inv_task_point *inv_task_point(void);

/* --- giving way: another thread or implicit task gets the caller's hold */

struct inv_give_way {
    bool (*wanted)(void); /* does a thread or an implicit task lack a core, or does the caller hold
                           * none? */
    /* Lets one of them have the caller's hold.  True: the caller holds a core again.  False: the time
     * is over, and the caller goes on as an unheld thread. */
    bool (*give)(uint64_t limit_ns);
    void (*go_on)(void); /* the caller goes on as an unheld thread, and gets the next core that is
                          * free */
    int (*idle_threads)(void); /* kernel threads of the runtime, all of which idle, if the caller is in no region
                                * and no other thread of the program is; -1: it is in one */
    /* The program calls sched_yield.  True: another thread or implicit task of the process had the caller's core
     * meanwhile.  False: there was none, and the kernel is to be asked. */
    bool (*yield)(void);
};
/* Tell libinvasive how.  Set once, by the OpenMP runtime before its first region; *way stays. */
void inv_set_give_way(const struct inv_give_way *way);
/* The same for callers that do not know the runtime.  What they return without a runtime: */
bool inv_way_wanted(void);             /* false */
bool inv_give_way(uint64_t limit_ns);  /* true, at once */
bool inv_go_on_unheld(void);           /* false */
int inv_idle_openmp_threads(void);     /* 0 */
bool inv_yield_to_own(void);           /* false */

/* --- the runtime's service thread (the watchdog), for which no thread of the program waits */

/* The calling thread is it.  At its start. */
void inv_service_thread(void);
/* Its CPU clock; 0: there is none. */
clockid_t inv_service_clock(void);

#endif
