/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * events.h - recent events for `rmctl events`: a ring of RMD_EVENTS.  A reader is told how many
 * older ones it has missed.  The caller holds the loop's turn (loop.h).
 */
#ifndef RMD_EVENTS_H
#define RMD_EVENTS_H

#include "rmd/config/control_protocol.h"
#include "rmd/loop/loop.h"

#include <sys/types.h>

enum { RMD_EVENTS = 4096 };

/* Zeros at first. */
struct rmd_events {
    struct inv_event ring[RMD_EVENTS];
    uint64_t newest; /* number of the last event, and so how many there have been */
    void (*on_news)(void);
    struct rmd_source news; /* open while there is on_news */
};

/* Adds an event; sets its number and time.  text may be NULL. */
void rmd_event(struct rmd_events *events, struct inv_event event, const char *text);

/* Returns the first event from number *next on that this user may see (an operator: any), and sets
 * *next to the number after it.  Where older ones are missing it is INV_EVENT_LOST.  False: none
 * yet. */
bool rmd_events_next(const struct rmd_events *events, uint64_t *next, uid_t uid, bool operator,
                     struct inv_event *event);

/* The event loop calls `news` after new events.  0, or -1 with errno. */
int rmd_events_watch(struct rmd_events *events, void (*news)(void));

#endif
