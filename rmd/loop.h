/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * loop.h - rmd's event loop: descriptors and what to call when they are ready.  One event
 * at a time, so a handler may take away any source without another event of it pending.
 *
 * What handlers change is changed by who holds the loop's turn: the main thread while it handles an
 * event, else a thread that has been let in by rmd_loop_enter (bell.c).  While the loop does not run
 * nobody is let in, and the turn is the main thread's.
 */
#ifndef RMD_LOOP_H
#define RMD_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct rmd_source {
    int fd;
    void (*ready)(struct rmd_source *self, uint32_t epoll_events);
};

/* Watch source->fd for these epoll events; the source must stay where it is until
 * rmd_unwatch.  Again for a watched source: changes the events.  Returns 0 or -1, errno. */
int rmd_watch(struct rmd_source *source, uint32_t epoll_events);
void rmd_unwatch(struct rmd_source *source);

/* A timer of CLOCK_MONOTONIC: ring once at that time, at once if it is past; 0: not at all. */
void rmd_ring_at(const struct rmd_source *timer, uint64_t at_ns);

/* For another thread, which is to do what a handler may: false when one runs now, or the loop does not.
 * Else it holds the loop's turn until rmd_loop_leave.  It must not take away any source. */
bool rmd_loop_enter(void);
void rmd_loop_leave(void);

/* Runs until rmd_stop(status); returns that status. */
int rmd_loop(void);
void rmd_stop(int status);

#endif
