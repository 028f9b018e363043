/* SPDX-License-Identifier: GPL-3.0-or-later */
/* loop.c - epoll. */
#define _GNU_SOURCE
#include "rmd/loop/loop.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/assertion.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static struct {
    /* Made by the first rmd_watch, while rmd has one thread, and the same from then on. */
    int epoll_fd;
    /* Written (rmd_stop) and read by the main thread alone. */
    bool stopping;
    int stop_status;
    /* The loop's turn (loop.h).  Held while an event is handled; by the loop nearly always, else by
     * a bell's thread (bell.c). */
    pthread_mutex_t turn;
    bool running; /* protected by it */
} loop = {.epoll_fd = -1, .turn = PTHREAD_MUTEX_INITIALIZER};

bool rmd_loop_enter(void)
{
    if (pthread_mutex_trylock(&loop.turn))
        return false;
    if (loop.running)
        return true;
    pthread_mutex_unlock(&loop.turn);
    return false;
}

static void set_running(bool runs)
{
    pthread_mutex_lock(&loop.turn);
    loop.running = runs;
    pthread_mutex_unlock(&loop.turn);
}

void rmd_loop_leave(void)
{
    pthread_mutex_unlock(&loop.turn);
}

int rmd_watch(struct rmd_source *source, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = source};
    if (loop.epoll_fd < 0 && (loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return -1;
    if (!epoll_ctl(loop.epoll_fd, EPOLL_CTL_ADD, source->fd, &e))
        return 0;
    return errno == EEXIST ? epoll_ctl(loop.epoll_fd, EPOLL_CTL_MOD, source->fd, &e) : -1;
}

void rmd_unwatch(struct rmd_source *source)
{
    epoll_ctl(loop.epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

int rmd_timer_open(struct rmd_source *timer, void (*ready)(struct rmd_source *, uint32_t))
{
    *timer =
        (struct rmd_source){timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), ready};
    return timer->fd < 0 ? -1 : rmd_watch(timer, EPOLLIN);
}

void rmd_timer_close(struct rmd_source *timer)
{
    if (timer->fd < 0)
        return;
    rmd_unwatch(timer);
    close(timer->fd);
    timer->fd = -1;
}

bool rmd_timer_rang(const struct rmd_source *timer)
{
    uint64_t expirations;
    return read(timer->fd, &expirations, sizeof expirations) == sizeof expirations;
}

void rmd_ring_at(const struct rmd_source *timer, uint64_t at_ns)
{
    const struct itimerspec t = {
        .it_value = {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)}};
    timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &t, NULL);
}

void rmd_ring_every(const struct rmd_source *timer, unsigned period_ms)
{
    const struct timespec period = {period_ms / 1000, (long)(period_ms % 1000) * 1000000};
    const struct itimerspec t = {.it_interval = period, .it_value = period};
    timerfd_settime(timer->fd, 0, &t, NULL);
}

int rmd_loop(void)
{
    set_running(true);
    while (!loop.stopping) {
        struct epoll_event e;
        int n = epoll_wait(loop.epoll_fd, &e, 1, -1);
        if (n == 1) {
            struct rmd_source *source = e.data.ptr;
            pthread_mutex_lock(&loop.turn);
            inv_assert(loop.running && source->ready);
            source->ready(source, e.events);
            pthread_mutex_unlock(&loop.turn);
        } else if (n < 0 && errno != EINTR) {
            rmd_error("cannot wait for events: %s", strerror(errno));
            rmd_stop(1);
        }
    }
    set_running(false);
    return loop.stop_status;
}

void rmd_stop(int status)
{
    loop.stopping = true;
    loop.stop_status = status;
}
