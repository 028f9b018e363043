/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * record.c - this process's record for `invade --report`: its beginning, its CPU time, its end.
 * The MPI shim (mpi-shim/measure/site_stats.c) and the OpenMP runtime (region/costs.c) write the rest.
 */
#define _GNU_SOURCE
#include "libinvasive/record/record.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/base/now.h"
#include "libinvasive/launch/launch.h"
#include "libinvasive/process/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct inv_recording inv_recording;

static uint64_t cpu_ns(void) { return inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

/* INVASIVE_REPORT=LAUNCH[:NODE]: the number of the launch whose `invade` wants a report, and
 * the node where it runs (inv_node_id).  Launch 0: none does, but a trace is to have the names of
 * call sites.  False: nor that. */
static bool is_asked(uint64_t *launch, uint64_t *node)
{
    const char *text = inv_getenv("INVASIVE_REPORT");
    if (!text || !*text)
        return false;
    char *end;
    errno = 0;
    *launch = strtoull(text, &end, 16);
    *node = *end == ':' ? strtoull(end + 1, &end, 16) : inv_node_id();
    return !errno && !*end;
}

bool inv_report_is_here(void)
{
    uint64_t launch, node;
    return is_asked(&launch, &node) && launch && node == inv_node_id();
}

/* Regions before the beginning are not reported.  One that runs at this moment may be counted. */
static void forget_functions(struct inv_record *r)
{
    for (unsigned i = 0; i < INV_FUNCTIONS; i++) {
        struct inv_function *f = &r->function[i];
        _Atomic uint64_t *const sums[] = {&f->regions, &f->threads, &f->barriers, &f->sleeps,
                                          &f->elapsed_ns, &f->cores, &f->switches, &f->code_ns};
        for (unsigned k = 0; k < sizeof sums / sizeof *sums; k++)
            atomic_store_explicit(sums[k], 0, memory_order_relaxed);
        atomic_store_explicit(&f->tasks, 0, memory_order_relaxed);
    }
}

void inv_record_restart(void)
{
    struct inv_record *r = inv_own_record();
    if (!r)
        return;
    if (atomic_exchange_explicit(&r->until_ns, 0, memory_order_relaxed))
        return; /* the record had been stopped, and now goes on */
    if (atomic_load_explicit(&r->functions, memory_order_relaxed))
        forget_functions(r);
    atomic_store_explicit(&r->cpu_start_ns, cpu_ns(), memory_order_relaxed);
    atomic_store_explicit(&r->from_ns, inv_now_ns(), memory_order_relaxed);
}

void inv_record_stop(void)
{
    struct inv_record *r = inv_own_record();
    if (!r || atomic_load_explicit(&r->until_ns, memory_order_relaxed))
        return;
    atomic_store_explicit(&r->until_ns, inv_now_ns(), memory_order_relaxed);
    inv_record_publish();
}

void inv_record_begin(void)
{
    uint64_t launch, node;
    if (!is_asked(&launch, &node))
        return;
    struct inv_record *r = inv_record_at(inv_process.table, inv_process.slot);
    inv_recording.owner = getpid();
    atomic_store_explicit(&inv_recording.sites, r, memory_order_release);
    if (!launch)
        return;
    atomic_store_explicit(&r->cpu_start_ns, cpu_ns(), memory_order_relaxed);
    atomic_store_explicit(&r->launch, launch, memory_order_relaxed);
    atomic_store_explicit(&inv_recording.record, r, memory_order_release);
}

void inv_record_end(void)
{
    atomic_store(&inv_recording.record, NULL);
    atomic_store(&inv_recording.sites, NULL);
}

void inv_record_publish(void)
{
    struct inv_record *r = inv_own_record();
    if (!r)
        return;
    atomic_store_explicit(&r->cpu_ns, cpu_ns(), memory_order_relaxed);
    atomic_store_explicit(&r->published_ns, inv_now_ns(), memory_order_relaxed);
}

void inv_record_name_module(char *to, const char *name)
{
    char program[4096];
    if (!name || !*name) { /* the main program's has no name there */
        ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
        program[n > 0 ? n : 0] = '\0';
        name = program;
    }
    size_t length = strlen(name), most = INV_MODULE_BYTES - 1;
    if (length > most) {
        name += length - most;
        length = most;
    }
    memcpy(to, name, length + 1);
}

/* Runs at exit: the process was not killed.  A child that was made without the handlers of fork
 * (_Fork, the system call) has a copy of our memory, and must not close its parent's record. */
static void __attribute__((destructor)) close_record(void)
{
    struct inv_record *r = inv_own_record();
    if (!r || getpid() != inv_recording.owner)
        return;
    inv_record_stop();
    atomic_store_explicit(&r->exited, 1, memory_order_relaxed);
}
