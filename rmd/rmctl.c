/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl.c - looks into a running rmd.  It asks for the core table, maps it read-only and
 * prints what is there at that instant; nobody is stopped or disturbed by it.
 */
#define _GNU_SOURCE
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "client.h"
#include "policy.h"
#include "scalability.h"
#include "simulate.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "(version unknown)"
#endif

#define SERVICE "/run/invasive/rmd.sock"

static const struct argp_option options[] = {
    {"socket", 's', "S", 0,
     "the rmd at S (a path, or @NAME); default: $INVASIVE_SOCKET, else the service and every "
     "private one of yours",
     0},
    {0}};

struct settings {
    const char *socket, *verb, *policy;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct settings *s = state->input;
    switch (key) {
    case 's':
        s->socket = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (s->verb && !strcmp(s->verb, "policy") && !s->policy) {
            if (!rmd_policy_named(arg))
                argp_error(state, "'%s' is no policy: use %s", arg, rmd_policy_names());
            s->policy = arg;
            return 0;
        }
        if (s->verb)
            argp_error(state, "one thing at a time: %s or %s?", s->verb, arg);
        s->verb = arg;
        return 0;
    case ARGP_KEY_END:
        if (s->verb && !strcmp(s->verb, "help"))
            argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        if (s->verb && strcmp(s->verb, "status") && strcmp(s->verb, "policy"))
            argp_error(state, "cannot '%s'; try status, policy, simulate or help", s->verb);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --- the table; statistics and snapshots: relaxed loads, no partner */

#define LOOK(member) atomic_load_explicit(&(member), memory_order_relaxed)

static const char *who(unsigned slot_plus_1, char text[16])
{
    if (slot_plus_1 == INV_NOBODY)
        return "-";
    if (slot_plus_1 == INV_ELSEWHERE)
        return "away";
    snprintf(text, 16, "%u", slot_plus_1 - 1);
    return text;
}

static void print_cores(struct inv_table *t)
{
    printf("%5s %5s %6s %7s %8s %s\n", "core", "cpu", "owner", "holder", "thread", "reclaim");
    for (unsigned c = 0; c < t->ncores; c++) {
        struct inv_core *core = inv_core_at(t, c);
        inv_word w = LOOK(core->word);
        char owner[16], holder[16], cpu[16] = "-", thread[16] = "-";
        if (core->os_cpu >= 0)
            snprintf(cpu, sizeof cpu, "%d", (int)core->os_cpu);
        if (inv_word_holder(w) != INV_NOBODY && LOOK(core->holder_tid) > 0)
            snprintf(thread, sizeof thread, "%d", (int)LOOK(core->holder_tid));
        printf("%5u %5s %6s %7s %8s %s\n", c, cpu, who(inv_word_owner(w), owner),
               who(inv_word_holder(w), holder), thread, inv_word_reclaim(w) ? "asked" : "-");
    }
}

static void count_cores(struct inv_table *t, unsigned slot, unsigned *owned, unsigned *held)
{
    *owned = *held = 0;
    for (unsigned c = 0; c < t->ncores; c++) {
        inv_word w = LOOK(inv_core_at(t, c)->word);
        *owned += inv_word_owner(w) == slot + 1;
        *held += inv_word_holder(w) == slot + 1;
    }
}

static void print_process(struct inv_table *t, unsigned slot)
{
    struct inv_slot *s = inv_slot_at(t, slot);
    unsigned owned, held;
    double workload;
    uint64_t bits = LOOK(s->workload_bits);
    char rank[16] = "-", program[INV_NAME_BYTES];
    memcpy(&workload, &bits, sizeof workload);
    memcpy(program, s->program, sizeof program);
    program[sizeof program - 1] = '\0';
    count_cores(t, slot, &owned, &held);
    if (s->rank >= 0)
        snprintf(rank, sizeof rank, "%d", (int)s->rank);
    if (t->mode == INV_MODE_ANONYMOUS)
        held = LOOK(s->tokens) > 0 ? (unsigned)LOOK(s->tokens) : 0;
    bool wants = LOOK(t->wanting[slot / 64]) >> slot % 64 & 1;
    printf("%5u %8d %5s %-20.20s %5u %5u %6s %10.4g\n", slot, (int)s->pid, rank, program, owned,
           held, wants ? "yes" : "no", workload);
}

static void print_counters(struct inv_table *t, unsigned slot)
{
    struct inv_counters *c = &inv_slot_at(t, slot)->counters;
    uint64_t reclaims = LOOK(c->reclaims);
    double mean = reclaims ? (double)LOOK(c->reclaim_wait_ns) / (double)reclaims * 1e-3 : 0;
    printf("%5u %10llu %10llu %10llu %10llu %10.1f %10.1f\n", slot,
           (unsigned long long)LOOK(c->lends), (unsigned long long)LOOK(c->borrows),
           (unsigned long long)reclaims, (unsigned long long)LOOK(c->evictions), mean,
           (double)LOOK(c->reclaim_wait_max_ns) * 1e-3);
}

/* "1:1 2:1.9 4:3.2": the points of S(c); "-" when it is unknown. */
static void print_scalability(struct inv_table *t, unsigned slot)
{
    struct inv_scalability s;
    bool valid = inv_scalability_read(inv_slot_at(t, slot), &s);
    unsigned n = inv_scalability_points(&s);
    printf("%5u ", slot);
    for (unsigned i = 0; i < n; i++)
        printf(" %u:%.3g", s.point[i].cores, (double)s.point[i].speedup);
    printf("%s\n", !valid ? " not valid" : n ? "" : " -");
}

static bool lives(struct inv_table *t, unsigned slot)
{
    /* acquire: partner is rmd's release, after it filled the slot */
    return atomic_load_explicit(&inv_slot_at(t, slot)->state, memory_order_acquire) ==
           INV_SLOT_LIVE;
}

static void print_processes(struct inv_table *t)
{
    unsigned live = 0;
    for (unsigned s = 0; s < t->nslots; s++)
        live += lives(t, s);
    if (!live) {
        printf("no process\n");
        return;
    }
    printf("%5s %8s %5s %-20s %5s %5s %6s %10s\n", "slot", "pid", "rank", "program", "owned",
           "held", "wants", "workload");
    for (unsigned s = 0; s < t->nslots; s++)
        if (lives(t, s))
            print_process(t, s);
    printf("%5s %10s %10s %10s %10s %10s %10s\n", "slot", "lends", "borrows", "reclaims",
           "evictions", "mean us", "max us");
    for (unsigned s = 0; s < t->nslots; s++)
        if (lives(t, s))
            print_counters(t, s);
    printf("%5s  %s\n", "slot", "scalability, cores:speed-up");
    for (unsigned s = 0; s < t->nslots; s++)
        if (lives(t, s))
            print_scalability(t, s);
}

static bool print_status(const char *name)
{
    struct inv_table *t = rmd_client_observe(name);
    if (!t)
        return false;
    printf("domain %s: ", name);
    if (LOOK(t->rmd_pid))
        printf("rmd %u, ", (unsigned)LOOK(t->rmd_pid));
    printf("%u %scores, %s, reclaim bound %u us", t->ncores, t->emulated ? "emulated " : "",
           t->mode == INV_MODE_PINNED ? "pinned" : "anonymous tokens", t->reclaim_bound_us);
    if (t->mode == INV_MODE_ANONYMOUS)
        printf(", %d free", (int)LOOK(t->free_tokens));
    else
        printf(", owners changed %llu times", (unsigned long long)LOOK(t->owner_moves));
    printf("\n");
    if (t->mode == INV_MODE_PINNED)
        print_cores(t);
    print_processes(t);
    inv_table_unmap(t);
    return true;
}

/* --- policies */

/* Of this rmd: which one decides, and after `chosen` has been chosen unless it is NULL. */
static const char *chosen;

static bool print_policy(const char *name)
{
    char now[INV_NAME_BYTES];
    if (!rmd_client_policy(name, chosen, now))
        return false;
    printf("domain %s: policy %s\n", name, now);
    for (const struct rmd_policy *p = rmd_policies; p->name && !chosen; p++)
        printf("%c %-13s %s\n", strcmp(p->name, now) ? ' ' : '*', p->name, p->about);
    return true;
}

/* --- which rmd */

static bool complain(const char *name)
{
    fprintf(stderr, "rmctl: cannot %s rmd at %s: %s%s\n", chosen ? "tell" : "look into", name,
            errno == EPERM ? "it serves another user" : strerror(errno),
            errno == ENOENT || errno == ECONNREFUSED ? ": is it running?" : "");
    return false;
}

typedef bool asking(const char *name);

/* Every private rmd of ours has an abstract socket whose name begins like this. */
static unsigned ask_private_ones(asking *ask)
{
    char line[512], prefix[32];
    unsigned found = 0;
    FILE *f = fopen("/proc/net/unix", "re");
    snprintf(prefix, sizeof prefix, "@invasive-%u-", (unsigned)getuid());
    while (f && fgets(line, sizeof line, f)) {
        unsigned flags = 0;
        char *name = strchr(line, '@');
        line[strcspn(line, "\n")] = '\0';
        /* listening ones only (flag 0x10000): each connection has a line of its own */
        if (name && !strncmp(name, prefix, strlen(prefix)) &&
            sscanf(line, "%*s %*s %*s %x", &flags) == 1 && flags & 0x10000)
            found += ask(name);
    }
    if (f)
        fclose(f);
    return found;
}

static bool ask_all(asking *ask, const char *socket)
{
    const char *told = socket ? socket : getenv("INVASIVE_SOCKET");
    if (told && *told)
        return ask(told) || complain(told);
    unsigned found = !access(SERVICE, F_OK) && ask(SERVICE);
    found += ask_private_ones(ask);
    if (!found)
        fprintf(stderr, "rmctl: no rmd of yours is running; start a program under invade\n");
    return found;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        options, parse, "status\npolicy [NAME]\nsimulate [OPTION...]\nhelp",
        "rmctl - shows what a resource manager manages, and says by which policy", NULL,
        NULL,    NULL};
    struct settings s = {0};
    argp_program_version = "rmctl " PACKAGE_VERSION;
    if (argc > 1 && !strcmp(argv[1], "simulate"))
        return rmd_simulate(argc - 1, argv + 1);
    argp_parse(&argp, argc, argv, 0, NULL, &s);
    chosen = s.policy;
    bool policies = s.verb && !strcmp(s.verb, "policy");
    return ask_all(policies ? print_policy : print_status, s.socket) ? 0 : 1;
}
