/* SPDX-License-Identifier: GPL-3.0-or-later */
/* loop.c - epoll. */
#define _GNU_SOURCE
#include "loop.h"
#include "log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

static int epoll_fd = -1;
static bool stopping;
static int stop_status;

int rmd_watch(struct rmd_source *source, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = source};
    if (epoll_fd < 0 && (epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return -1;
    if (!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, source->fd, &e))
        return 0;
    return errno == EEXIST ? epoll_ctl(epoll_fd, EPOLL_CTL_MOD, source->fd, &e) : -1;
}

void rmd_unwatch(struct rmd_source *source)
{
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

int rmd_loop(void)
{
    while (!stopping) {
        struct epoll_event e;
        int n = epoll_wait(epoll_fd, &e, 1, -1);
        if (n == 1) {
            struct rmd_source *source = e.data.ptr;
            source->ready(source, e.events);
        } else if (n < 0 && errno != EINTR) {
            rmd_say("cannot wait for events: %s", strerror(errno));
            return 1;
        }
    }
    return stop_status;
}

void rmd_stop(int status)
{
    stopping = true;
    stop_status = status;
}
