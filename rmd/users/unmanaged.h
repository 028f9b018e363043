/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * unmanaged.h - processes of users with a domain that have not joined it and compute on its CPUs: programs
 * of std::thread, Java or Go, and OpenMP programs before their first region.  rmctl status shows
 * them.
 *
 * While there are members, /proc/stat is read at each check.  If the machine was busy for longer than its
 * members have run, a scan of /proc finds these programs, in slices, and takes at most a hundredth of a
 * processor's time.  The caller holds the loop's turn (loop.h).
 */
#ifndef RMD_UNMANAGED_H
#define RMD_UNMANAGED_H

#include "libinvasive/base/cpus.h"
#include "libinvasive/table/table.h"
#include "rmd/domain/domain.h"
#include "rmd/loop/loop.h"

#include <dirent.h>

struct rmd_unmanaged_process {
    pid_t pid; /* first: rmd_find_pid */
    uid_t uid;
    uint64_t start_ticks, ran_ticks; /* procstat.h */
    uint64_t seen_ns;                /* CLOCK_MONOTONIC */
    double cores;                    /* that it has used since the scan before; 0: unknown, or a
                                        member */
    unsigned running;                /* threads that ran or were ready at the last scan */
    bool member;
    char program[INV_NAME_BYTES];
};

/* Sorted by pid. */
struct rmd_unmanaged_list {
    struct rmd_unmanaged_process *items;
    unsigned count, capacity;
};

/* Access to the domains: calls `visit` for each; the domain of a user, or NULL. */
struct rmd_unmanaged_domains {
    void (*each)(void (*visit)(struct rmd_domain *, void *context), void *context);
    struct rmd_domain *(*of)(uid_t uid);
};

/* Written by unmanaged.c only. */
struct rmd_unmanaged {
    struct rmd_unmanaged_list known, found; /* by the last scan; so far by the one under way */
    struct inv_cpus cpus;                   /* of all domains; empty: no scan is made */
    struct rmd_unmanaged_domains domains;
    DIR *processes;                         /* NULL: no scan is under way */
    struct rmd_source timer;
    /* At the last look (looked_ns 0: there was none): its time, and the processor time of the
     * machine and of the members until then. */
    uint64_t looked_ns, busy_ns, members_ns;
    uint64_t took_ns, not_before_ns; /* processor time of this scan so far; earliest time of the
                                        next */
};

/* rmd_unmanaged_begin - called before the others.  cpus: of the domains' cores.  0, or -1 with
 * errno. rmd_unmanaged_sample - called at each check while there are members.
 * rmd_unmanaged_forget - called when there is no member any more, and at the end of rmd. */
int rmd_unmanaged_begin(struct rmd_unmanaged *unmanaged, const struct inv_cpus *cpus,
                        const struct rmd_unmanaged_domains *domains);
void rmd_unmanaged_sample(struct rmd_unmanaged *unmanaged);
void rmd_unmanaged_forget(struct rmd_unmanaged *unmanaged);

/* Is this process shown?  It must use at least a twentieth of a core. */
static inline bool rmd_unmanaged_counts(const struct rmd_unmanaged_process *p)
{
    return !p->member && p->cores >= 0.05;
}

#endif
