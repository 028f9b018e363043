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

struct rmd_asker {
    uid_t uid;     /* the kernel's word */
    bool operator; /* root, or the user that rmd runs as */
    void *client;  /* the server's, for `answer` */
    void (*answer)(void *client, const struct inv_outcome *outcome);
};

/* Commands that wait for their effect.  Zeros at first. */
struct rmd_control {
    struct rmd_pending *pending;  /* newest first */
    struct rmd_source poll_timer; /* NULL `ready`: not open */
    uint64_t executed;            /* how many commands have been obeyed */
};

/* Carry out what any bytes of this size ask for.  asker->answer is called once, before this
 * returns or later. */
void rmd_control(struct rmd_control *control, const struct inv_control *command,
                 const struct rmd_asker *asker);

/* The client has gone: it is not answered any more.  What it has said stays in force. */
void rmd_control_forget(struct rmd_control *control, const void *client);

#endif
