/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * table.c - a core table that its processes have written into: rmd decides, checks, and reaps dead
 * processes in it, and tools map it.
 *
 * The domain has two members and eight emulated cores.  The input says what is written where, as if
 * by a member, and what rmd does between: a constraint, another policy, a report, a core that goes
 * away and comes back, a death.  What rmd knows itself must stay right: the number of cores
 * that each process owns, and the head of the table.
 */
#define _GNU_SOURCE
#include "libinvasive/table/core.h"
#include "rmd/loop/log.h"
#include "members.h"
#include "rmd/journal/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rmd_domain d;


static void begin(void)
{
    rmd_log_set_level(RMD_ERROR);
    fuzz_domain_open(&d);
    fuzz_domain_admit(&d);
}

static void announce(struct fuzz_input *in)
{
    struct inv_slot *s = inv_slot_at(d.table, fuzz_number(in, 1) % MEMBERS);
    uint32_t words[20];
    fuzz_take(in, words, sizeof words);
    atomic_store(&s->min_cores, words[0]);
    atomic_store(&s->max_cores, words[1]);
    memcpy((void *)&s->workload_bits, words + 2, sizeof(uint64_t));
    memcpy((void *)&s->scalability, words + 4, sizeof s->scalability);
    atomic_fetch_add(&s->constraint_seq, 1);
}

static void choose_policy(struct fuzz_input *in)
{
    static const char *const names[] = {"workload", "throughput", "makespan", "jobs",
                                        "fair",     "energy",     "interference"};
    rmd_domain_set_policy(&d, rmd_policy_named(names[fuzz_number(in, 1) % 7]));
}

static void read_reports_and_table(void)
{
    struct rmd_report_cursor telling;
    struct rmd_report report;
    rmd_domain_begin_reports(&d, &telling);
    for (; rmd_domain_next_report(&d, &telling, &report); rmd_report_cursor_advance(&telling))
        free(report.record);
    rmd_report_cursor_free(&telling);
    int fd = rmd_domain_observe(&d);
    struct inv_table *t = fd < 0 ? NULL : inv_table_map(fd, false);
    if (t)
        inv_table_unmap(t);
    if (fd >= 0)
        close(fd);
}

static void die_and_return(struct fuzz_input *in)
{
    unsigned who = fuzz_number(in, 1) % MEMBERS;
    rmd_domain_leave(&d, fuzz_member_pid(who));
    fuzz_member_join(&d, who, MEMBERS);
}

static void take_core_away(struct fuzz_input *in)
{
    unsigned core = fuzz_number(in, 1) % CORES;
    if (!rmd_domain_withdraw(&d, core))
        rmd_domain_expel(&d, core);
    rmd_domain_share(&d);
    rmd_domain_admit(&d, core);
    rmd_domain_share(&d);
}

static void check(void)
{
    unsigned owned = 0, counted = 0;
    for (unsigned c = 0; c < CORES; c++)
        owned += d.owner[c] >= 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        counted += d.procs[s].owned;
    if (owned > CORES || owned != counted || d.table->ncores != CORES ||
        d.table->magic != INV_TABLE_MAGIC)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static bool begun;
    struct fuzz_input in = {data, bytes};
    if (!begun)
        begin();
    begun = true;
    for (unsigned i = 0; i < MEMBERS; i++)
        fuzz_member_join(&d, i, MEMBERS);
    for (unsigned i = 0; i < 16 && in.left > 0; i++) {
        switch (fuzz_number(&in, 1) % 8) {
        case 0:
            choose_policy(&in);
            break;
        case 1:
            read_reports_and_table();
            break;
        case 2:
            die_and_return(&in);
            break;
        case 3:
            take_core_away(&in);
            break;
        case 4:
            announce(&in);
            break;
        default:
            fuzz_write_table(&in, d.table);
        }
        rmd_domain_reconsider(&d);
        check();
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        rmd_domain_leave(&d, fuzz_member_pid(i));
    rmd_reports_free(&d.shared->reports, &d.dead);
    return 0;
}
