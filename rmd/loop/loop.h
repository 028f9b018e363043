/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * loop.h - rmd's event loop: descriptors, and functions to call when they are ready.  It handles
 * one event at a time, so a handler may remove any source: no other event of it is pending.
 *
 * Only the holder of the loop's turn may change what handlers change.  That is the main thread
 * while it handles an event, else a thread between rmd_loop_enter and rmd_loop_leave (bell.c).
 * While the loop does not run, the turn is the main thread's and rmd_loop_enter fails.
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

/*
 * Timers of CLOCK_MONOTONIC.
 * rmd_timer_open - makes one, which is watched and does not run yet.  0, or -1 with errno.
 * rmd_timer_close - also one that is closed, or was never opened but has fd -1.
 * rmd_timer_rang - first of all in `ready`: takes the event.  False: it was none.
 * rmd_ring_at - rings once at that time, at once if it is past; 0: not at all.
 * rmd_ring_every - rings each time that so much time has passed; 0: no longer.
 */
int rmd_timer_open(struct rmd_source *timer,
                   void (*ready)(struct rmd_source *self, uint32_t epoll_events));
void rmd_timer_close(struct rmd_source *timer);
bool rmd_timer_rang(const struct rmd_source *timer);
void rmd_ring_at(const struct rmd_source *timer, uint64_t at_ns);
void rmd_ring_every(const struct rmd_source *timer, unsigned period_ms);

/* Lets another thread do what a handler may.  True: the thread holds the loop's turn until
 * rmd_loop_leave; it must not remove any source.  False: a handler runs now, or the loop does
 * not. */
bool rmd_loop_enter(void);
void rmd_loop_leave(void);

/* Runs until rmd_stop(status); returns that status. */
int rmd_loop(void);
void rmd_stop(int status);

#endif
