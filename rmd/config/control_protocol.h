/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * control_protocol.h - messages between rmctl and rmd, beyond those of protocol.h: commands of an
 * operator or user, events, metrics.  As there, a request is one message of exactly the size of its
 * struct, and the kernel tells the user of the client.
 */
#ifndef RMD_CONTROL_PROTOCOL_H
#define RMD_CONTROL_PROTOCOL_H

#include "libinvasive/table/protocol.h"

enum { INV_CORE_WORDS = INV_MAX_CORES / 64 };

/* A set of cores of the table. */
static inline bool inv_set_has(const uint64_t *set, unsigned core)
{
    return set[core / 64] >> core % 64 & 1;
}
static inline void inv_set_remove(uint64_t *set, unsigned core)
{
    set[core / 64] &= ~(UINT64_C(1) << core % 64);
}

static inline void inv_set_add(uint64_t *set, unsigned core)
{
    set[core / 64] |= UINT64_C(1) << core % 64;
}

enum inv_verb {
    INV_SHRINK = 1, /* the process owns `cores` at most */
    INV_EXPAND = 2, /* the process owns `cores` at least */
    INV_PIN = 3,    /* the process owns the cores of `set` and no other */
    INV_LIMIT = 4,  /* the user has `cores` at most, each of its launches `job_cores` */
    INV_DRAIN = 5,  /* no user may use the cores of `set` */
    INV_SUSPEND = 6, /* the job of the process has no core */
    INV_RESUME = 7,  /* it has cores again */
    INV_PRIORITY = 8, /* the job of the process has the priority `cores` */
    INV_POWER = 9,    /* the CPUs stay below `cores` degrees; 0: no limit, INV_UNSAID: as it is */
};

enum { INV_WAIT_MAX_MS = 600000 };
#define INV_UNSAID UINT32_MAX /* value of a field that is not given */

/* INV_CONTROL.  Answered when the command has taken effect, or wait_ms have passed: a struct
 * inv_reply, and after it a struct inv_outcome. */
struct inv_control {
    struct inv_request request;
    uint32_t verb;
    uint32_t reset;            /* not 0: takes an earlier command back; INV_DRAIN: for `set` */
    int32_t pid;               /* the process */
    uint32_t uid;              /* INV_LIMIT: the user; INV_UNSAID: the client's */
    uint32_t cores, job_cores; /* INV_LIMIT: 0: all cores, INV_UNSAID: no change */
    uint32_t wait_ms;          /* at most INV_WAIT_MAX_MS */
    uint32_t unused;
    uint64_t set[INV_CORE_WORDS];
};

/* INV_POWER: a chip of the machine. */
struct inv_chip {
    uint32_t package;       /* the kernel's number */
    uint16_t speed_percent; /* of its highest speed, or of its cores */
    int16_t temperature;    /* degrees Celsius; INV_NO_TEMPERATURE: no sensor tells it */
};
enum { INV_CHIPS = 64, INV_NO_TEMPERATURE = INT16_MIN };

enum inv_outcome_status {
    INV_DONE = 0,
    INV_NOT_YET = 1, /* the command is in force, and will have its effect later */
    INV_REFUSED = 2, /* nothing has changed */
};

struct inv_outcome {
    uint32_t status;
    uint32_t owned;            /* cores that the process owns, or that are drained */
    uint64_t took_ns;          /* from the request to the effect */
    uint32_t cores, job_cores; /* INV_LIMIT: the limits in force; 0: all.  INV_POWER: the threshold,
                                  0: none, and the highest temperature, in degrees; `owned` is per
                                  cent of the highest speed then, of the slowest chip */
    uint32_t uid;
    int32_t pid;
    uint32_t processes; /* of the job that is suspended or resumed */
    uint32_t sensors;   /* INV_POWER: of temperatures; 0: none is known */
    char text[256]; /* what has happened, or why not and what to do */
    uint32_t nchips, unused; /* INV_POWER; 0: chips are not told apart */
    struct inv_chip chip[INV_CHIPS];
};

/* INV_EVENTS: answered by a struct inv_reply and then one struct inv_event for each event from
 * number `since` on that rmd still has.  An INV_EVENT_END is last; with `follow` it comes when rmd
 * ends, or hangs up. */
struct inv_watch {
    struct inv_request request;
    uint64_t since;
    uint32_t follow, unused;
};

enum inv_event_kind {
    INV_EVENT_END = 0,    /* text: why rmd hangs up; "": there is no more */
    INV_EVENT_LOST = 1,   /* `after` events that this client has not read in time */
    INV_EVENT_JOIN = 2,   /* a process; text: its program */
    INV_EVENT_LEAVE = 3,  /* it goes on unmanaged */
    INV_EVENT_DEATH = 4,  /* it has ended */
    INV_EVENT_OWNER = 5,  /* it owns `after` cores and not `before` any more; text: which */
    INV_EVENT_POLICY = 6, /* text: by which policy the user's cores are divided from now on */
    INV_EVENT_SHARE = 7,  /* the user has `after` cores of the machine and not `before` */
    INV_EVENT_SHRINK = 8, /* commands; text: the order */
    INV_EVENT_EXPAND = 9,
    INV_EVENT_PIN = 10,
    INV_EVENT_LIMIT = 11,
    INV_EVENT_DRAIN = 12,
    INV_EVENT_EFFECT = 13, /* of the command of process pid, or of a drain; `after`: microseconds */
    INV_EVENT_CONFIG = 14, /* the configuration has been read again */
    INV_EVENT_SUSPEND = 15, /* commands; `after`: processes of the job */
    INV_EVENT_RESUME = 16,
    INV_EVENT_PRIORITY = 17, /* command; `after`: the priority */
    INV_EVENT_KINDS
};

struct inv_event {
    uint64_t number;  /* from 1 on */
    uint64_t time_ns; /* CLOCK_REALTIME */
    uint32_t kind;    /* enum inv_event_kind */
    uint32_t uid;     /* INV_UNSAID: of no user */
    int32_t pid, rank; /* 0 and -1: of none */
    uint32_t before, after;
    char text[64];
};

/* INV_OBSERVE, INV_ADMIN_SNAPSHOT, INV_POLICY and INV_TRACE may be this instead of a struct
 * inv_request.  It names the user of a domain; only an operator may name another user (else
 * INV_E_USER). */
struct inv_about {
    struct inv_request request;
    uint32_t uid; /* INV_UNSAID: of the client */
    uint32_t unused;
};

/* INV_METRICS, INV_ADMIN_SNAPSHOT: answered by a struct inv_reply, and then `count` messages of at
 * most INV_CHUNK bytes: a text, or a struct inv_admin_snapshot, its users, its processes, and what is
 * unmanaged. */
enum { INV_CHUNK = 32768 };

/* Orders, and why cores are away.  The last two sets are from the view of the client's domain. */
struct inv_admin_snapshot {
    uint32_t ncores, nusers, nprocs, nunmanaged;
    uint64_t drained[INV_CORE_WORDS], offline[INV_CORE_WORDS];
    uint64_t resting[INV_CORE_WORDS]; /* without an owner while the domain has an order (order.h) */
    uint64_t others[INV_CORE_WORDS];  /* another user has it */
};

/* The first one is the user of the domain.  For an operator the other users with processes, limits
 * or a policy follow, unless the operator has asked about another user. */
struct inv_admin_user {
    uint32_t uid, nprocs;
    uint32_t cores, job_cores; /* at most; 0 all */
    uint32_t quota_millicores; /* of its control groups, in thousandths of a core; 0 none */
    uint32_t quota_cores;      /* that may compute now by that quota; 0 all */
    char policy[INV_NAME_BYTES];
    uint64_t has[INV_CORE_WORDS];
};

/* A process with an order, or of a job that is suspended or has another priority than usual. */
struct inv_admin_process {
    uint32_t uid, slot;
    int32_t pid, rank;
    uint32_t least, most, pinned; /* cores by order, 0: none; 1: it is pinned to `cores` */
    uint32_t suspended;           /* 1: its job is */
    uint32_t priority, unused;    /* of its job */
    uint64_t cores[INV_CORE_WORDS];
};

/* A process that has not joined and computes on CPUs of the machine's domains, by the last look. */
struct inv_admin_unmanaged {
    uint32_t uid;
    int32_t pid;
    uint32_t millicores; /* that it has used, in thousandths of a core */
    uint32_t running;    /* threads that ran or were ready */
    char program[INV_NAME_BYTES];
};

#endif
