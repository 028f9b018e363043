/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * protocol.h - what goes over rmd's socket (AF_UNIX, SOCK_SEQPACKET): one request, one answer, then
 * the client closes.  A managed process keeps no descriptor of ours.  rmd watches the process
 * through a pidfd, and the process's mapping of the table: a process that unmaps the table is no
 * member any more.  The peer's pid and uid come from the kernel (SO_PEERCRED), never from a
 * message.
 *
 * Every message is one struct inv_request or struct inv_reply, of exactly that size, or
 * a struct inv_remote_report, in the byte order of the machine.
 */
#ifndef INV_PROTOCOL_H
#define INV_PROTOCOL_H

#include "libinvasive/table/table.h"

#define INV_PROTOCOL_MAGIC UINT32_C(0x44564e49) /* "INVD" */
enum { INV_PROTOCOL_VERSION = 10 };

enum inv_request_kind {
    INV_JOIN = 1,    /* become a member; the answer carries the table, writable */
    INV_OBSERVE = 2, /* look only (rmctl); the answer carries the table, read-only */
    INV_LEAVE = 3,   /* this process goes on unmanaged */
    INV_REPORT = 4,  /* the answer is followed by `count` messages, one for each process that
                        the domain has had, dead ones included: a struct inv_report, and after it
                        the first record_bytes bytes of its struct inv_record */
    /* a struct inv_remote_report, from a member: rmd adds it to the reports of the domain */
    INV_SUBMIT_REPORT = 5,
    INV_POLICY = 6,  /* `program` names the policy that is to decide from now on, "" none; the
                        answer's message is the name of the one that decides */
    INV_SAY = 7,    /* may this process print the message for which the number `launch` stands?  The
                       answer's count is 1 for the first process that asks, else 0 */
    /* of rmctl (rmd/config/control_protocol.h) */
    INV_CONTROL = 16,
    INV_EVENTS = 17,
    INV_METRICS = 18,
    INV_ADMIN_SNAPSHOT = 19,
    INV_TRACE = 32, /* `program` says "start", with the descriptor of a regular file, or "stop",
                       whose answer comes when the file is complete: the message says why it is
                       not, and `count` how many events were lost */
};

struct inv_request {
    uint32_t magic, version, kind;
    /* Of MPI, -1: unknown.  The local ones count the ranks on this node only */
    int32_t rank, size, local_size, local_rank;
    uint32_t confined; /* INV_JOIN: not 0: the process may use its own CPUs and those of other confined
                          processes, but not all that rmd has */
    uint32_t priority; /* INV_JOIN: the launch's priority plus 1; 0: none is given */
    uint32_t unused;
    uint64_t launch; /* INV_JOIN: the inv_launch_mark, 0: unknown.  INV_SAY: the message's number */
    char program[INV_NAME_BYTES]; /* NUL-terminated; untrusted */
};

/* A request that says nothing of MPI. */
static inline struct inv_request inv_request_of(enum inv_request_kind kind)
{
    return (struct inv_request){.magic = INV_PROTOCOL_MAGIC,
                                .version = INV_PROTOCOL_VERSION,
                                .kind = kind,
                                .rank = -1,
                                .size = -1,
                                .local_size = -1,
                                .local_rank = -1};
}

enum inv_status {
    INV_OK = 0,
    INV_E_PROTOCOL = 1, /* malformed or other version */
    INV_E_UID = 2,      /* peer is not of the domain's user */
    INV_E_FULL = 3,     /* no slot left */
    INV_E_STATE = 4,    /* INV_TRACE: a trace is being taken already, or none is */
    INV_E_USER = 5,     /* what is asked for is another user's, or that user has nothing */
};

struct inv_reply {
    uint32_t magic, version;
    uint32_t status; /* enum inv_status */
    uint32_t slot;   /* INV_JOIN: the new member's */
    uint32_t count;  /* INV_REPORT: messages to come; INV_OBSERVE: cores of the domain,
                      of which an rmd for one user counts those that its processes may use now */
    char message[128]; /* why, when status != INV_OK; INV_POLICY: a name */
};

enum { INV_HOST_BYTES = 64 };

/* Does rmd count the energy of its processes?  Not if the machine has no counters, or the process
 * is on another node (NONE); if rmd may not read them (FORBIDDEN); or if they have vanished while
 * the process ran (GONE). */
enum inv_energy { INV_ENERGY_NONE, INV_ENERGY_COUNTED, INV_ENERGY_FORBIDDEN, INV_ENERGY_GONE };

/* What `invade --report` prints of a process. */
struct inv_report {
    int32_t pid, rank, size;
    uint32_t alive;
    uint32_t left;         /* not 0: it has left the domain and runs on; its numbers end there */
    uint32_t record_bytes; /* 0: it kept no record */
    uint32_t owned_cores;  /* at the end, or now */
    uint32_t energy;       /* enum inv_energy */
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end 0 when alive */
    uint64_t owned_ns;         /* core time that it owned: the sum over its cores */
    uint64_t energy_uj;        /* microjoules of the CPU packages, if they are counted */
    uint64_t lends, borrows, reclaims, evictions, reclaim_wait_ns, reclaim_wait_max_ns;
    uint64_t borrowed_ns, lent_used_ns, useful_ns, wait_ns, waits;
    char program[INV_NAME_BYTES];
    /* of a process on another node; node 0 and no name: of this one */
    uint64_t node;       /* the same in processes that share a core table */
    uint32_t node_cores; /* cores of its domain */
    char host[INV_HOST_BYTES];
};

/* What a process has counted, as it is now.  Relaxed: statistics. */
static inline void inv_report_count(struct inv_report *r, const struct inv_counters *c)
{
#define INV_COUNTED(number) r->number = atomic_load_explicit(&c->number, memory_order_relaxed)
    INV_COUNTED(lends);
    INV_COUNTED(borrows);
    INV_COUNTED(reclaims);
    INV_COUNTED(evictions);
    INV_COUNTED(reclaim_wait_ns);
    INV_COUNTED(reclaim_wait_max_ns);
    INV_COUNTED(borrowed_ns);
    INV_COUNTED(lent_used_ns);
    INV_COUNTED(useful_ns);
    INV_COUNTED(wait_ns);
    INV_COUNTED(waits);
#undef INV_COUNTED
}

/* Bytes of the part of a record that is in use, with this number of sites. */
#define INV_RECORD_BYTES(sites)                                                                    \
    (offsetof(struct inv_record, site) + (sites) * sizeof(struct inv_site))
/* The same for this record, at most its size.  Its owner may be adding sites meanwhile. */
static inline uint32_t inv_record_bytes(const struct inv_record *r)
{
    uint32_t sites = atomic_load_explicit(&r->sites, memory_order_relaxed);
    return (uint32_t)INV_RECORD_BYTES(sites < INV_SITES ? sites : INV_SITES);
}

/* The report of a process on another node: it goes over MPI, and then to the rmd of this node. */
struct inv_remote_report {
    struct inv_request request; /* INV_SUBMIT_REPORT */
    struct inv_report report;   /* times by the clock of the node where this is */
    /* report.record_bytes bytes of struct inv_record, which has another alignment elsewhere */
    unsigned char record[INV_RECORD_BYTES(INV_SITES)];
};
#define INV_REMOTE_REPORT_BYTES(record_bytes)                                                      \
    (offsetof(struct inv_remote_report, record) + (record_bytes))

#endif
