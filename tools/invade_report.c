/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_report.c - what every process did with its cores, and the job's POP metrics
 * (pop-coe.eu): parallel efficiency and load balance.  The formulas are in invade(1).
 */
#include "invade.h"
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(uint64_t ns) { return (double)ns * 1e-9; }

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t end_of(const struct inv_report *r) { return r->end_ns ? r->end_ns : now_ns(); }

/* Main thread's time outside MPI; a process whose waits nobody measured was never waiting. */
static uint64_t useful_of(const struct inv_report *r)
{
    return r->useful_ns + r->wait_ns ? r->useful_ns : end_of(r) - r->start_ns;
}

/* Core time in use: its own cores while it did not wait, and others'. */
static double useful_core_seconds(const struct inv_report *r)
{
    uint64_t useful = useful_of(r), all = useful + r->wait_ns;
    double share = all ? (double)useful / (double)all : 0;
    return seconds(r->owned_ns) * share + seconds(r->borrowed_ns);
}

static int by_rank(const void *a, const void *b)
{
    const struct inv_report *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static void print_process(FILE *to, const struct inv_report *r)
{
    char rank[16] = "-";
    if (r->rank >= 0)
        snprintf(rank, sizeof rank, "%d", (int)r->rank);
    double mean = r->reclaims ? (double)r->reclaim_wait_ns / (double)r->reclaims * 1e-3 : 0;
    fprintf(to, "%5s %8d %-16.16s %10.3f %10.3f %10.3f %10.3f %8llu %8llu %8llu %7.0f\n", rank,
            (int)r->pid, r->program, seconds(useful_of(r)), seconds(r->wait_ns),
            seconds(r->lent_used_ns), seconds(r->borrowed_ns), (unsigned long long)r->lends,
            (unsigned long long)r->borrows, (unsigned long long)r->reclaims, mean);
}

struct job {
    uint64_t start, end;
    double useful, most, core_seconds; /* sum, maximum; of useful core time */
    uint64_t owned_ns;
};

static struct job add_up(const struct inv_report *all, unsigned count)
{
    struct job j = {.start = UINT64_MAX};
    for (unsigned i = 0; i < count; i++) {
        double useful = seconds(useful_of(&all[i]));
        j.start = all[i].start_ns < j.start ? all[i].start_ns : j.start;
        j.end = end_of(&all[i]) > j.end ? end_of(&all[i]) : j.end;
        j.useful += useful;
        j.most = useful > j.most ? useful : j.most;
        j.owned_ns += all[i].owned_ns;
        j.core_seconds += useful_core_seconds(&all[i]);
    }
    return j;
}

void invade_report(FILE *to, const struct invade_manager *m, char **command)
{
    unsigned count;
    int error;
    struct inv_report *all = rmd_client_reports(m->socket, &count, &error);
    if (!count) {
        fprintf(to, "invade: %s: %s\n", command[0],
                error ? "rmd is gone, and what it knew with it"
                      : "no process used OpenMP or MPI under invade: nothing to report");
        free(all);
        return;
    }
    qsort(all, count, sizeof *all, by_rank);
    struct job j = add_up(all, count);
    double elapsed = seconds(j.end - j.start), capacity = m->ncores * elapsed;
    double efficiency = capacity > 0 ? j.core_seconds / capacity : 0;
    fprintf(to, "invade: %s: %.3f s, %u core%s, %u process%s\n", command[0], elapsed, m->ncores,
            m->ncores == 1 ? "" : "s", count, count == 1 ? "" : "es");
    fprintf(to, "%5s %8s %-16s %10s %10s %10s %10s %8s %8s %8s %7s\n", "rank", "pid", "program",
            "useful s", "waiting s", "lent c*s", "borrow c*s", "lends", "borrows", "reclaims",
            "mean us");
    for (unsigned i = 0; i < count; i++)
        print_process(to, &all[i]);
    if (j.owned_ns)
        fprintf(to, "parallel efficiency %5.1f %%   ", 100 * (efficiency > 1 ? 1 : efficiency));
    else /* anonymous tokens: useful time is shared with whoever else ran on the core */
        fprintf(to, "parallel efficiency unknown   ");
    fprintf(to, "load balance %5.1f %%\n", j.most > 0 ? 100 * j.useful / count / j.most : 100);
    free(all);
}
