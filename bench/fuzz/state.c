/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * state.c - takeover of a former rmd's table and state.  The input says what is written where in
 * both, while the domain has two members.  rmd refuses them, or takes them over, and then its own
 * data must be consistent.
 */
#define _GNU_SOURCE
#include "libinvasive/table/core.h"
#include "rmd/loop/log.h"
#include "members.h"
#include "rmd/domain/state.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define nanosleep(time, left) ((void)(time)) /* no process takes or returns a token meanwhile */
#include "../../rmd/domain/takeover.c"
#undef nanosleep

static void open_domain(struct rmd_domain *d)
{
    memset(d, 0, sizeof *d);
    d->saves_state = true;
    fuzz_domain_open(d);
}

static void begin(struct rmd_domain *d, bool anonymous)
{
    open_domain(d);
    fuzz_domain_admit(d);
    for (unsigned i = 0; i < MEMBERS; i++)
        fuzz_member_join(d, i, anonymous ? CORES + 1 : MEMBERS);
}

static void write_process(struct fuzz_input *in, struct rmd_state_copy *copy)
{
    struct rmd_state_process *p = &copy->process[fuzz_number(in, 1) % INV_MAX_SLOTS];
    if (fuzz_number(in, 1) & 1)
        *p = copy->process[fuzz_number(in, 1) % MEMBERS];
    fuzz_take(in, (char *)p + fuzz_number(in, 1) % sizeof *p / 2, fuzz_number(in, 1) % 16);
}

static void write_state(struct fuzz_input *in, struct rmd_state *s)
{
    struct rmd_state_copy *copy = &s->copy[atomic_load(&s->valid) % 2];
    size_t offset = fuzz_number(in, 2), bytes = fuzz_number(in, 1) % 64;
    switch (fuzz_number(in, 1) % 7) {
    case 0:
        write_process(in, copy);
        break;
    case 1:
        copy->owner[offset % (2 * CORES)] = (int32_t)fuzz_number(in, 1) - 1;
        break;
    case 2:
        atomic_store(&s->grant[offset % (2 * CORES)],
                     (unsigned char)(fuzz_number(in, 1) % (RMD_GRANTED + 1)));
        break;
    case 3:
        fuzz_take(in, &copy->joined, bytes % offsetof(struct rmd_state_copy, owner));
        break;
    case 4:
        atomic_store(&s->valid, fuzz_number(in, 1) % 3);
        break;
    case 5:
        offset %= sizeof s->group;
        if (bytes > sizeof s->group - offset)
            bytes = sizeof s->group - offset;
        fuzz_take(in, (char *)s->group + offset, bytes);
        atomic_store(&s->grouped[offset / RMD_STATE_GROUP], (unsigned char)bytes);
        break;
    default:
        if (offset + bytes <= sizeof *s)
            fuzz_take(in, (char *)s + offset, bytes);
    }
}

/* rmd builds a path from each saved group, so it must be a string. */
static void check_groups(const struct rmd_domain *d)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        const char *group = rmd_state_saved_group(d, s);
        if (group && strnlen(group, RMD_STATE_GROUP) == RMD_STATE_GROUP)
            abort();
    }
}

static void check(const struct rmd_domain *d)
{
    unsigned owned = 0, counted = 0, live = 0;
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        owned += d->owner[c] >= 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        counted += d->procs[s].owned;
        live += d->procs[s].used;
    }
    if (owned > CORES || owned != counted || live != d->live || d->table->ncores != CORES ||
        d->table->magic != INV_TABLE_MAGIC)
        abort();
    for (unsigned c = 0; d->table->mode == INV_MODE_PINNED && c < CORES; c++) {
        inv_word w = atomic_load(&inv_core_at(d->table, c)->word);
        unsigned holder = inv_word_holder(w);
        if (holder != INV_NOBODY && (holder > INV_MAX_SLOTS || !d->procs[holder - 1].used))
            abort();
    }
}

static void live_on(struct rmd_domain *d)
{
    check(d);
    check_groups(d);
    rmd_domain_reconsider(d);
    rmd_domain_check(d);
    check(d);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            rmd_domain_leave(d, d->procs[s].pid);
    if (d->live)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct rmd_domain before, after;
    struct fuzz_input in = {data, bytes};
    rmd_log_set_level(RMD_ERROR);
    begin(&before, fuzz_number(&in, 1) & 1);
    for (unsigned i = 0; i < 16 && in.left > 0; i++)
        if (fuzz_number(&in, 1) & 1)
            write_state(&in, before.state);
        else
            fuzz_write_table(&in, before.table);
    int table = fcntl(before.table_fd, F_DUPFD_CLOEXEC, 0);
    int state = fcntl(before.state_fd, F_DUPFD_CLOEXEC, 0);
    rmd_domain_close(&before);
    open_domain(&after);
    int n = rmd_domain_take_over(&after, table, state);
    if (n > 0) {
        live_on(&after);
    } else {
        close(table);
        close(state);
    }
    rmd_domain_close(&after);
    return 0;
}
