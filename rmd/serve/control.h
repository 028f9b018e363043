/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * control.h - the commands of rmctl: shrink, expand, pin, limit, drain.  A command is refused, or
 * in force at once.  rmd answers when the command has had its effect, or when the client's time to
 * wait has passed.  Only rmd's main thread calls these.
 */
#ifndef RMD_CONTROL_H
#define RMD_CONTROL_H

#include "rmd/config/control_protocol.h"
#include "rmd/loop/loop.h"

#include <sys/types.h>

struct rmd_requester {
    uid_t uid;     /* from the kernel */
    bool operator; /* root, or the user that rmd runs as */
    void *client;  /* the first argument of `answer` */
    void (*answer)(void *client, const struct inv_outcome *outcome);
};

/* Commands that wait for their effect.  Zeros at first. */
struct rmd_control {
    struct rmd_pending *pending;  /* newest first */
    struct rmd_source poll_timer; /* NULL `ready`: not open */
    uint64_t executed;            /* number of commands that were not refused */
};

/* Checks and executes a command, whose bytes may be anything.  requester->answer is called once,
 * before this returns or later. */
void rmd_control(struct rmd_control *control, const struct inv_control *command,
                 const struct rmd_requester *requester);

/* The client has gone and gets no answer any more.  Its commands stay in force. */
void rmd_control_forget(struct rmd_control *control, const void *client);

#endif
