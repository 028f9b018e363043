/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * metrics.c - the text of the metrics.  In this format the lines of all processes for one metric
 * follow each other, so a loop over metrics contains one over domains.  A process may have written
 * anything into a table: names are escaped, and numbers are checked.
 */
#define _GNU_SOURCE
#include "rmd/serve/metrics.h"
#include "rmd/serve/control.h"
#include "rmd/users/users.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct output {
    FILE *out;
    uid_t uid;
    bool all;
    unsigned which; /* metric */
};

/* Relaxed: statistics. */
#define LOAD(member) atomic_load_explicit(&(member), memory_order_relaxed)

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP invasive_%s %s\n# TYPE invasive_%s %s\n", name, help, name, type);
}

/* --- of a domain */

static double granted_cores(const struct rmd_domain_counts *n) { return n->granted; }
static double live_processes(const struct rmd_domain_counts *n) { return n->live; }
static double count_joins(const struct rmd_domain_counts *n) { return (double)n->joins; }
static double count_leaves(const struct rmd_domain_counts *n) { return (double)n->leaves; }
static double count_deaths(const struct rmd_domain_counts *n) { return (double)n->deaths; }
static double count_moves(const struct rmd_domain_counts *n) { return (double)n->moves; }
static double count_decisions(const struct rmd_domain_counts *n) { return (double)n->decisions; }
static double decision_time_s(const struct rmd_domain_counts *n)
{
    return (double)n->decision_ns * 1e-9;
}

static const struct {
    const char *name, *type, *help;
    double (*value)(const struct rmd_domain_counts *);
} of_domain[] = {
    {"user_cores", "gauge", "Cores that the user's processes may have now.", granted_cores},
    {"user_processes", "gauge", "Managed processes.", live_processes},
    {"joins_total", "counter", "Processes that have become managed.", count_joins},
    {"leaves_total", "counter", "Processes that have gone on unmanaged.", count_leaves},
    {"deaths_total", "counter", "Managed processes that have ended.", count_deaths},
    {"owner_moves_total", "counter", "Cores that have gone from one process to another by policy.",
     count_moves},
    {"decisions_total", "counter", "How often owners were decided.", count_decisions},
    {"decision_seconds_total", "counter", "Time that this took.", decision_time_s},
};

static bool is_shown(const struct output *o, const struct rmd_domain *d)
{
    return o->all || rmd_domain_uid(d) == o->uid;
}

static void print_domain_line(struct rmd_domain *d, void *context)
{
    const struct output *o = context;
    struct rmd_domain_counts counts = rmd_domain_counts(d);
    if (is_shown(o, d))
        fprintf(o->out, "invasive_%s{user=\"%u\",policy=\"%s\"} %.15g\n", of_domain[o->which].name,
                (unsigned)rmd_domain_uid(d), rmd_domain_rules(d)->policy->name,
                of_domain[o->which].value(&counts));
}

/* --- of a process */

enum { OWNED, HELD, WANTS, WORKLOAD, RECLAIM_MAX, COUNTERS };

#define COUNTER(member, scale)                                                                     \
    offsetof(struct inv_counters, member), scale
static const struct {
    const char *name, *type, *help;
    size_t offset;
    double scale;
} of_process[] = {
    [OWNED] = {"process_owned_cores", "gauge", "Cores that it owns.", 0, 0},
    [HELD] = {"process_held_cores", "gauge", "Cores that it computes on.", 0, 0},
    [WANTS] = {"process_wants_cores", "gauge", "1 when it has work for another core.", 0, 0},
    [WORKLOAD] = {"process_workload", "gauge", "Workload that it has announced; 0 unknown.", 0, 0},
    [RECLAIM_MAX] = {"process_reclaim_wait_max_seconds", "gauge",
                     "The longest time from asking for an own core to having it.", 0, 0},
    [COUNTERS] = {"process_lends_total", "counter", "Cores given away while it waited.",
                  COUNTER(lends, 1)},
    {"process_borrows_total", "counter", "Cores of others taken.", COUNTER(borrows, 1)},
    {"process_reclaims_total", "counter", "Own cores asked back.", COUNTER(reclaims, 1)},
    {"process_evictions_total", "counter", "Own cores taken back by force.",
     COUNTER(evictions, 1)},
    {"process_reclaim_wait_seconds_total", "counter", "Time from asking for own cores to having "
     "them.", COUNTER(reclaim_wait_ns, 1e-9)},
    {"process_held_core_seconds_total", "counter", "Core time held, up to the last changes.",
     COUNTER(held_ns, 1e-9)},
    {"process_borrowed_core_seconds_total", "counter", "Core time used of others' cores.",
     COUNTER(borrowed_ns, 1e-9)},
    {"process_lent_core_seconds_total", "counter", "Core time that others used of its cores.",
     COUNTER(lent_used_ns, 1e-9)},
    {"process_useful_seconds_total", "counter", "Main thread's time outside MPI waits.",
     COUNTER(useful_ns, 1e-9)},
    {"process_wait_seconds_total", "counter", "Main thread's time in MPI waits.",
     COUNTER(wait_ns, 1e-9)},
    {"process_waits_total", "counter", "Waits that have slept.", COUNTER(waits, 1)},
};

static unsigned held_cores(const struct rmd_domain *d, unsigned slot)
{
    struct inv_table *table = rmd_domain_table(d);
    struct inv_slot *s = inv_slot_at(table, slot);
    pid_t tid;
    unsigned n = LOAD(s->tokens) > 0 ? (unsigned)LOAD(s->tokens) : 0;
    for (unsigned c = 0; c < rmd_domain_topology(d)->ncores; c++)
        n += rmd_domain_holder(d, c, &tid) == (int)slot;
    return n;
}

static double workload_of(struct inv_slot *s)
{
    double w;
    uint64_t bits = LOAD(s->workload_bits);
    memcpy(&w, &bits, sizeof w);
    return w >= 0 && w <= 1e300 ? w : 0; /* it could be anything */
}

static double metric_value(const struct rmd_domain *d, unsigned slot,
                           const struct rmd_member *member, unsigned which)
{
    struct inv_table *table = rmd_domain_table(d);
    struct inv_slot *s = inv_slot_at(table, slot);
    switch (which) {
    case OWNED:
        return member->owned;
    case HELD:
        return held_cores(d, slot);
    case WANTS:
        return LOAD(table->wanting[slot / 64]) >> slot % 64 & 1;
    case WORKLOAD:
        return workload_of(s);
    case RECLAIM_MAX:
        return (double)LOAD(s->counters.reclaim_wait_max_ns) * 1e-9;
    default:;
        const _Atomic uint64_t *counter =
            (const void *)((const char *)&s->counters + of_process[which].offset);
        return (double)LOAD(*counter) * of_process[which].scale;
    }
}

/* Of a table, where each letter may be another a moment later. */
static void print_name(FILE *out, const volatile char *name)
{
    for (size_t i = 0; i < INV_NAME_BYTES - 1; i++) {
        char c = name[i];
        if (!c)
            break;
        if (c == '"' || c == '\\')
            putc('\\', out);
        putc(c >= ' ' && c <= '~' ? c : '?', out);
    }
}

static void print_process_lines(struct rmd_domain *d, void *context)
{
    const struct output *o = context;
    struct inv_table *table = rmd_domain_table(d);
    struct rmd_member member;
    for (unsigned s = 0; table && is_shown(o, d) && s < INV_MAX_SLOTS; s++) {
        if (!rmd_domain_member(d, s, &member))
            continue;
        fprintf(o->out, "invasive_%s{user=\"%u\",pid=\"%d\",rank=\"%d\",program=\"",
                of_process[o->which].name, (unsigned)rmd_domain_uid(d), (int)member.pid,
                member.rank);
        print_name(o->out, inv_slot_at(table, s)->program);
        fprintf(o->out, "\"} %.15g\n", metric_value(d, s, &member, o->which));
    }
}

/* --- of the machine */

static void print_machine_lines(FILE *out, bool all, uint64_t commands)
{
    uint64_t drained[INV_CORE_WORDS];
    print_head(out, "cores", "gauge", "Cores that rmd divides, drained ones too.");
    fprintf(out, "invasive_cores %u\n", rmd_users_units()->ncores);
    print_head(out, "drained_cores", "gauge", "Cores that an operator has taken away.");
    fprintf(out, "invasive_drained_cores %u\n", rmd_users_drained(drained));
    if (!all)
        return;
    print_head(out, "commands_total", "counter", "Commands of rmctl that were obeyed.");
    fprintf(out, "invasive_commands_total %" PRIu64 "\n", commands);
    print_head(out, "events_total", "counter", "Events that there have been for rmctl events.");
    fprintf(out, "invasive_events_total %" PRIu64 "\n", rmd_users_shared()->events.newest);
}

char *rmd_metrics_text(uid_t uid, bool all, uint64_t commands, size_t *bytes)
{
    char *text = NULL;
    struct output o = {open_memstream(&text, bytes), uid, all, 0};
    if (!o.out)
        return NULL;
    print_machine_lines(o.out, all, commands);
    for (o.which = 0; o.which < sizeof of_domain / sizeof *of_domain; o.which++) {
        print_head(o.out, of_domain[o.which].name, of_domain[o.which].type,
                   of_domain[o.which].help);
        rmd_users_each(print_domain_line, &o);
    }
    for (o.which = 0; o.which < sizeof of_process / sizeof *of_process; o.which++) {
        print_head(o.out, of_process[o.which].name, of_process[o.which].type,
                   of_process[o.which].help);
        rmd_users_each(print_process_lines, &o);
    }
    if (ferror(o.out) | fclose(o.out)) {
        free(text);
        return NULL;
    }
    return text;
}
