/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * events.h - what has happened of late, for `rmctl events`: a ring of so many; what is older has
 * gone, and who reads is told how many it has missed.  Only who holds the loop's turn (loop.h)
 * calls these.
 */
#ifndef RMD_EVENTS_H
#define RMD_EVENTS_H

#include "control_protocol.h"

#include <sys/types.h>

enum { RMD_EVENTS = 4096 };

/* Remember one.  Number and time are filled in.  text may be NULL. */
void rmd_event(struct inv_event event, const char *text);

/* The first event from number *next on that this user may see (an operator: all), and *next is
 * behind it.  Where some have gone it is INV_EVENT_LOST.  False: there is none yet. */
bool rmd_events_next(uint64_t *next, uid_t uid, bool operator, struct inv_event *event);

/* Calls `news` from the event loop when there have been some.  0, or -1 with errno. */
int rmd_events_watch(void (*news)(void));

/* How many there have been. */
uint64_t rmd_events_count(void);

#endif
