/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd_config_fuzz.c - COUNT SEED: the parser of rmd.conf gets COUNT texts, random ones and good
 * ones with bytes changed, each in memory of exactly its size.  It must say where each error is,
 * and what it takes for good must be within what rmd.conf(5) allows.  Prints how many texts were
 * good; 1 when a promise is broken.
 */
#include "rmd/config/settings.h"
#include "libinvasive/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char good[] = "# a comment\n"
                           "cores = 0-3,8\n"
                           "policy = interference\nsmt = core\nenergy-loss = 99\n"
                           "move-cost-us = 0\npay-within-ms = 3600000\npower-cap = 62.5%\n"
                           "  reclaim-bound-us=500\t\nlend-blocked = no\n"
                           "max-cores = all\nmax-job-cores = 7\n"
                           "socket = /run/x.sock\nsocket-group = *\n"
                           "enforce = cpuset\nenforce-on = user\ncgroup = /sys/fs/cgroup/x\n"
                           "check-interval-ms = 10\nlog-level = debug\n\n"
                           "[user 0]\nmax-cores = 3\npolicy = workload\n"
                           "[user 4000000000]\nmax-job-cores = 1024";

static uint64_t state;

static unsigned chance(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static const char *broken;

static void complaint(void *context, const char *line)
{
    unsigned *count = context;
    unsigned where;
    char sign;
    ++*count;
    if (strlen(line) >= RMD_CONFIG_MESSAGE || sscanf(line, "f:%u%c", &where, &sign) != 2 ||
        sign != ':')
        broken = "an error does not say where";
}

static size_t random_text(char *text, size_t room)
{
    static const char likely[] = "=[]#\n \t0123456789-,*user@/\0\r";
    size_t n = chance((unsigned)room);
    for (size_t i = 0; i < n; i++)
        text[i] = chance(2) ? likely[chance(sizeof likely)] : (char)chance(256);
    return n;
}

/* Bytes changed, put in, taken out, or a part of it twice. */
static size_t changed_text(char *text, size_t room)
{
    size_t n = sizeof good - 1;
    memcpy(text, good, n);
    for (unsigned k = chance(5); k > 0 && n > 1; k--) {
        size_t at = chance((unsigned)n), many = 1 + chance(20);
        switch (chance(4)) {
        case 0:
            text[at] = (char)chance(256);
            break;
        case 1:
            many = many < n - at ? many : n - at;
            memmove(text + at, text + at + many, n - at - many);
            n -= many;
            break;
        case 2:
            if (n + many < room) {
                memmove(text + at + many, text + at, n - at);
                n += many;
            }
            break;
        default:
            if (2 * n < room && !chance(20)) {
                memcpy(text + n, text, n);
                n *= 2;
            }
        }
    }
    return n;
}

static bool user_within(const struct rmd_user_settings *u)
{
    return u->max_cores <= INV_MAX_CORES && u->max_job_cores <= INV_MAX_CORES;
}

static void judge(const struct rmd_settings *s)
{
    bool within = user_within(&s->all) && s->all.policy && s->nusers <= RMD_CONFIG_USERS &&
                  s->smt <= RMD_SMT_FIRST && s->reclaim_bound_us >= 1 &&
                  s->reclaim_bound_us <= 60000000 && s->check_interval_ms >= 10 &&
                  s->check_interval_ms <= 60000 && s->log_level < RMD_LOG_LEVELS &&
                  s->tuning.energy_loss >= 0 && s->tuning.energy_loss < 1 &&
                  s->tuning.move_cost_s >= 0 && s->tuning.within_s > 0 &&
                  s->power_cap.amount >= 0 && s->power_cap.amount <= 1e6;
    for (unsigned i = 0; i < s->nusers; i++)
        within &= user_within(&s->user[i]);
    if (!within)
        broken = "a value out of range was taken";
}

int main(int argc, char **argv)
{
    static struct rmd_settings s;
    static char text[4096];
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, taken = 0;
    state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    for (unsigned long i = 0; i < count && !broken; i++) {
        size_t n = i % 3 ? changed_text(text, sizeof text) : random_text(text, sizeof text);
        unsigned told = 0;
        char *exact = malloc(n + !n);
        memcpy(exact, text, n);
        rmd_config_defaults(&s);
        unsigned errors = rmd_config_parse(&s, "f", exact, n, complaint, &told);
        free(exact);
        if (told != (errors < RMD_CONFIG_ERRORS ? errors : RMD_CONFIG_ERRORS))
            broken = "errors are not told";
        taken += errors == 0;
        if (!errors)
            judge(&s);
    }
    printf("%lu good of %lu%s%s\n", taken, count, broken ? ": " : "", broken ? broken : "");
    return broken != NULL;
}
