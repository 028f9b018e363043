/* SPDX-License-Identifier: GPL-3.0-or-later */
/* events.c - the ring, and an eventfd that tells the event loop of news, so that nobody who
 * follows them is served in the middle of a decision. */
#define _GNU_SOURCE
#include "events.h"
#include "loop.h"
#include "now.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* All of this is of who holds the loop's turn. */
static struct inv_event ring[RMD_EVENTS];
static uint64_t newest; /* number of the last one */
static void (*tell)(void);
static struct rmd_source news = {.fd = -1};

void rmd_event(struct inv_event event, const char *text)
{
    event.number = ++newest;
    event.time_ns = inv_clock_ns(CLOCK_REALTIME);
    memset(event.text, 0, sizeof event.text);
    /* it may come from a table that somebody scribbles over, and goes to terminals */
    for (size_t i = 0; text && i < sizeof event.text - 1; i++) {
        char c = *(const volatile char *)&text[i]; /* once: it may be another a moment later */
        if (!c)
            break;
        event.text[i] = c >= ' ' && c <= '~' ? c : '?';
    }
    ring[newest % RMD_EVENTS] = event;
    if (news.fd >= 0)
        eventfd_write(news.fd, 1);
}

static bool visible(const struct inv_event *e, uid_t uid, bool operator)
{
    return operator || e->uid == uid || e->uid == INV_UNSAID;
}

bool rmd_events_next(uint64_t *next, uid_t uid, bool operator, struct inv_event *event)
{
    uint64_t oldest = newest > RMD_EVENTS ? newest - RMD_EVENTS + 1 : 1;
    if (*next == 0 || *next > newest + 1) /* a former rmd has counted further: ours are all news */
        *next = 1;
    if (*next < oldest) {
        uint64_t lost = oldest - *next;
        *event = (struct inv_event){.number = oldest - 1,
                                    .time_ns = ring[oldest % RMD_EVENTS].time_ns,
                                    .kind = INV_EVENT_LOST,
                                    .uid = INV_UNSAID,
                                    .rank = -1,
                                    .after = lost < UINT32_MAX ? (uint32_t)lost : UINT32_MAX};
        *next = oldest;
        return true;
    }
    while (*next <= newest) {
        const struct inv_event *e = &ring[(*next)++ % RMD_EVENTS];
        if (visible(e, uid, operator)) {
            *event = *e;
            return true;
        }
    }
    return false;
}

uint64_t rmd_events_count(void) { return newest; }

static void rung(struct rmd_source *source, uint32_t events)
{
    eventfd_t count;
    (void)events;
    if (!eventfd_read(source->fd, &count) && tell)
        tell();
}

int rmd_events_watch(void (*told)(void))
{
    tell = told;
    news = (struct rmd_source){eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), rung};
    return news.fd < 0 ? -1 : rmd_watch(&news, EPOLLIN);
}
