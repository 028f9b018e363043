/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_node.c - resource managers that do not belong to one invade: those of the other nodes of
 * the launch, and the one that the ranks of a node share if each of them has an invade of its own.
 *
 * The first process that needs such a manager starts it (libinvasive/launch/launch.h).  For the
 * other nodes invade only puts the command line of rmd into INVASIVE_LAUNCH.
 */
#define _GNU_SOURCE
#include "invade.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 1000 };

static void __attribute__((format(printf, 2, 3))) append(char *text, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, INV_LAUNCH_BYTES - length, format, args);
    va_end(args);
}

/* Appends the options for each rmd of this launch, without '=', which Open MPI would not pass on.
 * A list that is too long is left out. */
static void append_options(char *text, const struct invade_options *o)
{
    append(text, "/--policy/%s", o->policy ? o->policy : "workload");
    if (o->emulate && strlen(text) + strlen(o->emulate) + 24 < INV_LAUNCH_BYTES)
        append(text, "/--emulate-cores/%s", o->emulate);
    if (o->smt)
        append(text, "/--smt/%s", o->smt);
    if (o->reclaim_bound_us)
        append(text, "/--reclaim-bound-us/%u", o->reclaim_bound_us);
    if (o->cores && strlen(text) + strlen(o->cores) + 16 < INV_LAUNCH_BYTES)
        append(text, "/--cores/%s", o->cores);
}

void invade_name_launch(struct invade_manager *m, const struct invade_options *o)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint64_t)time(NULL) << 32 | (uint64_t)getpid();
    snprintf(m->launch, sizeof m->launch, "invasive-%u-node-%016llx/%016llx", (unsigned)getuid(),
             (unsigned long long)random, (unsigned long long)inv_node_id());
    append_options(m->launch, o);
}

bool invade_name_job(struct invade_manager *m, const struct invade_options *o)
{
    char job[32], options[INV_LAUNCH_BYTES] = "";
    uint64_t hash = 0;
    if (!inv_job_name(job, sizeof job))
        return false;
    append_options(options, o);
    for (const char *c = options; *c; c++) /* other options, another domain */
        hash = hash * 31 + (unsigned char)*c;
    snprintf(m->launch, sizeof m->launch, "invasive-%u-job-%s-%08x/0", (unsigned)getuid(), job,
             (unsigned)(hash ^ hash >> 32));
    append_options(m->launch, o);
    return true;
}

bool invade_launched_elsewhere(struct invade_manager *m)
{
    struct inv_launch launch;
    const char *text = getenv("INVASIVE_LAUNCH");
    if (!text || !inv_launch_parse(&launch, text) || launch.node == inv_node_id())
        return false;
    snprintf(m->launch, sizeof m->launch, "%s", text);
    return true;
}

bool invade_use_node(struct invade_manager *m, const char *rmd)
{
    struct inv_launch launch;
    const struct timespec pause = {.tv_nsec = 2000000};
    char why[256] = "it has many clients";
    if (!inv_launch_parse(&launch, m->launch))
        return false;
    for (int tries = 0; tries < TRIES; tries++) {
        m->of_job = invade_use(m, launch.socket);
        if (m->of_job)
            return true;
        enum inv_started started = inv_launch_start(&launch, rmd, why, sizeof why);
        if (started == INV_START_FAILED)
            break;
        if (started == INV_START_RACED)
            nanosleep(&pause, NULL);
    }
    invade_say("cannot start %s (%s). Running unmanaged.", rmd, why);
    return false;
}

int invade_rank(void)
{
    static const char *const names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
    for (int i = 0; i < 3; i++) {
        const char *text = getenv(names[i]);
        if (text && *text)
            return atoi(text);
    }
    return 0;
}
