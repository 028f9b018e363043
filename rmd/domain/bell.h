/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bell.h - processes ring rmd's doorbell in the core table; here it becomes an event. */
#ifndef RMD_BELL_H
#define RMD_BELL_H

#include "rmd/loop/loop.h"
#include "libinvasive/table/table.h"

#include <pthread.h>

struct rmd_bell {
    struct rmd_source source; /* an eventfd; the owner sets `ready` and watches it */
    /* Called by the bell's own thread, which holds the loop's turn then.  Must not stop the bell.
     * True: the loop must call `ready`, too. */
    bool (*at_once)(struct rmd_bell *);
    struct inv_table *table;
    pthread_t thread;
    _Atomic uint32_t stop, ended; /* futexes, of rmd's own memory */
    bool running;
    uint64_t taken_ns;              /* processor time of the loop's thread at rmd_bell_take */
    _Atomic uint64_t elsewhere_ns;  /* processor time that the loop's thread has spent for this
                                       bell */
};

/* Starts to listen to the table's bell.  Returns 0 or -1 with errno. */
int rmd_bell_start(struct rmd_bell *bell, struct inv_table *table);
/* Takes the event.  `ready` calls it first. */
void rmd_bell_take(struct rmd_bell *bell);
/* The event has been handled.  Called in the thread that took it. */
void rmd_bell_done(struct rmd_bell *bell);
/* Stops listening, before the table is unmapped. */
void rmd_bell_stop(struct rmd_bell *bell);

#endif
