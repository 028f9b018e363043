/* SPDX-License-Identifier: GPL-3.0-or-later */
/* events.c - the ring, and an eventfd that wakes the event loop for new events.  So clients that
 * follow them are not served in the middle of a decision. */
#define _GNU_SOURCE
#include "rmd/journal/events.h"
#include "rmd/loop/loop.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/now.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Only the holder of the loop's turn reads and writes it. */
static struct {
    struct inv_event ring[RMD_EVENTS];
    uint64_t newest; /* number of the last one */
    void (*on_news)(void);
    struct rmd_source news;
} events = {.news.fd = -1};

void rmd_event(struct inv_event event, const char *text)
{
    event.number = ++events.newest;
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
    inv_assert(events.ring[events.newest % RMD_EVENTS].number < events.newest);
    events.ring[events.newest % RMD_EVENTS] = event;
    if (events.news.fd >= 0)
        eventfd_write(events.news.fd, 1);
}

static bool is_visible(const struct inv_event *e, uid_t uid, bool operator)
{
    return operator || e->uid == uid || e->uid == INV_UNSAID;
}

bool rmd_events_next(uint64_t *next, uid_t uid, bool operator, struct inv_event *event)
{
    uint64_t oldest = events.newest > RMD_EVENTS ? events.newest - RMD_EVENTS + 1 : 1;
    if (*next == 0 || *next > events.newest + 1) /* a former rmd's number: all events are new */
        *next = 1;
    if (*next < oldest) {
        uint64_t lost = oldest - *next;
        *event = (struct inv_event){.number = oldest - 1,
                                    .time_ns = events.ring[oldest % RMD_EVENTS].time_ns,
                                    .kind = INV_EVENT_LOST,
                                    .uid = INV_UNSAID,
                                    .rank = -1,
                                    .after = lost < UINT32_MAX ? (uint32_t)lost : UINT32_MAX};
        *next = oldest;
        return true;
    }
    while (*next <= events.newest) {
        inv_assert(events.ring[*next % RMD_EVENTS].number == *next);
        const struct inv_event *e = &events.ring[(*next)++ % RMD_EVENTS];
        if (is_visible(e, uid, operator)) {
            *event = *e;
            return true;
        }
    }
    return false;
}

uint64_t rmd_events_count(void) { return events.newest; }

static void handle_news(struct rmd_source *source, uint32_t what)
{
    eventfd_t count;
    (void)what;
    if (!eventfd_read(source->fd, &count) && events.on_news)
        events.on_news();
}

int rmd_events_watch(void (*callback)(void))
{
    events.on_news = callback;
    events.news = (struct rmd_source){eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), handle_news};
    return events.news.fd < 0 ? -1 : rmd_watch(&events.news, EPOLLIN);
}
