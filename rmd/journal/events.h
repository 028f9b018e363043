/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * events.h - recent events for `rmctl events`: a ring of RMD_EVENTS.  A reader is told how many
 * older ones it has missed.  The caller holds the loop's turn (loop.h).
 */
#ifndef RMD_EVENTS_H
#define RMD_EVENTS_H

#include "rmd/config/control_protocol.h"

#include <sys/types.h>

enum { RMD_EVENTS = 4096 };

/* Adds an event; sets its number and time.  text may be NULL. */
void rmd_event(struct inv_event event, const char *text);

/* Returns the first event from number *next on that this user may see (an operator: any), and sets
 * *next to the number after it.  Where older ones are missing it is INV_EVENT_LOST.  False: none
 * yet. */
bool rmd_events_next(uint64_t *next, uid_t uid, bool operator, struct inv_event *event);

/* The event loop calls `news` after new events.  0, or -1 with errno. */
int rmd_events_watch(void (*news)(void));

/* The number of events so far. */
uint64_t rmd_events_count(void);

#endif
