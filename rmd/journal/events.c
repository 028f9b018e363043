/* SPDX-License-Identifier: GPL-3.0-or-later */
/* events.c - the ring, and an eventfd that wakes the event loop for new events.  So clients that
 * follow them are not served in the middle of a decision. */
#define _GNU_SOURCE
#include "rmd/journal/events.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/now.h"

#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

void rmd_event(struct rmd_events *e, struct inv_event event, const char *text)
{
    event.number = ++e->newest;
    event.time_ns = inv_clock_ns(CLOCK_REALTIME);
    memset(event.text, 0, sizeof event.text);
    /* the text may come from a table, which processes write to, and goes to terminals */
    for (size_t i = 0; text && i < sizeof event.text - 1; i++) {
        char c = *(const volatile char *)&text[i]; /* read once: it may change */
        if (!c)
            break;
        event.text[i] = c >= ' ' && c <= '~' ? c : '?';
    }
    /* the oldest goes */
    inv_assert(e->ring[e->newest % RMD_EVENTS].number < e->newest);
    e->ring[e->newest % RMD_EVENTS] = event;
    if (e->on_news)
        eventfd_write(e->news.fd, 1);
}

static bool is_visible(const struct inv_event *e, uid_t uid, bool operator)
{
    return operator || e->uid == uid || e->uid == INV_UNSAID;
}

bool rmd_events_next(const struct rmd_events *e, uint64_t *next, uid_t uid, bool operator,
                     struct inv_event *event)
{
    uint64_t oldest = e->newest > RMD_EVENTS ? e->newest - RMD_EVENTS + 1 : 1;
    if (*next == 0 || *next > e->newest + 1) /* a former rmd's number: all events are new */
        *next = 1;
    if (*next < oldest) {
        uint64_t lost = oldest - *next;
        *event = (struct inv_event){.number = oldest - 1,
                                    .time_ns = e->ring[oldest % RMD_EVENTS].time_ns,
                                    .kind = INV_EVENT_LOST,
                                    .uid = INV_UNSAID,
                                    .rank = -1,
                                    .after = lost < UINT32_MAX ? (uint32_t)lost : UINT32_MAX};
        *next = oldest;
        return true;
    }
    while (*next <= e->newest) {
        inv_assert(e->ring[*next % RMD_EVENTS].number == *next);
        const struct inv_event *found = &e->ring[(*next)++ % RMD_EVENTS];
        if (is_visible(found, uid, operator)) {
            *event = *found;
            return true;
        }
    }
    return false;
}

static void handle_news(struct rmd_source *source, uint32_t what)
{
    const struct rmd_events *e = (void *)((char *)source - offsetof(struct rmd_events, news));
    eventfd_t count;
    (void)what;
    if (!eventfd_read(source->fd, &count))
        e->on_news();
}

int rmd_events_watch(struct rmd_events *e, void (*callback)(void))
{
    e->news = (struct rmd_source){eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), handle_news};
    if (e->news.fd < 0)
        return -1;
    e->on_news = callback;
    return rmd_watch(&e->news, EPOLLIN);
}
