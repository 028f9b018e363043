/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.c - the report of a process is copied from its slot before the slot is reused. */
#define _GNU_SOURCE
#include "rmd/journal/report.h"
#include "libinvasive/base/assertion.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#ifdef INV_SMALL
enum { REPORTS_MAX = 64, RECORDS_BYTES_MAX = 1 << 13, ALL_BYTES_MAX = 1 << 14 };
#else
enum { REPORTS_MAX = 4096, RECORDS_BYTES_MAX = 1 << 26, ALL_BYTES_MAX = 1 << 28 };
#endif

/* Copies the used part of the process's record.  rmd does not interpret it. */
static struct inv_record *copy_record(struct inv_record *r, uint32_t *bytes)
{
    *bytes = 0;
    if (!atomic_load_explicit(&r->launch, memory_order_relaxed))
        return NULL;
    uint32_t size = inv_record_bytes(r);
    void *copy = malloc(size);
    if (!copy)
        return NULL;
    memcpy(copy, (void *)r, size);
    *bytes = size;
    return copy;
}

struct rmd_report rmd_report_of(struct inv_table *table, unsigned slot,
                                const struct inv_report *known)
{
    struct inv_slot *s = inv_slot_at(table, slot);
    struct inv_report r = *known;
    r.rank = s->rank;
    r.size = s->size;
    inv_report_count(&r, &s->counters);
    memcpy(r.program, s->program, sizeof r.program);
    r.program[sizeof r.program - 1] = '\0';
    struct inv_record *record = copy_record(inv_record_at(table, slot), &r.record_bytes);
    return (struct rmd_report){r, record};
}

/* Names go to terminals. */
static void make_printable(char *name, size_t size)
{
    size_t i = 0;
    for (; i < size - 1 && name[i]; i++)
        if (name[i] <= ' ' || name[i] > '~')
            name[i] = '?';
    memset(name + i, 0, size - i);
}

bool rmd_report_from_remote(struct rmd_report *to, const struct inv_remote_report *remote,
                            size_t bytes, uint64_t now_ns)
{
    if (bytes < INV_REMOTE_REPORT_BYTES(0))
        return false;
    size_t record = bytes - INV_REMOTE_REPORT_BYTES(0);
    struct inv_report r = remote->report;
    if (r.record_bytes != record || record < INV_RECORD_BYTES(0) ||
        record > INV_RECORD_BYTES(INV_SITES) || !r.node ||
        r.node_cores < 1 || r.node_cores > INV_MAX_CORES)
        return false;
    r.end_ns = r.end_ns && r.end_ns < now_ns ? r.end_ns : now_ns;
    r.start_ns = r.start_ns < r.end_ns ? r.start_ns : r.end_ns;
    make_printable(r.program, sizeof r.program);
    make_printable(r.host, sizeof r.host);
    *to = (struct rmd_report){r, malloc(record)};
    if (to->record)
        memcpy((void *)to->record, remote->record, record);
    return to->record != NULL;
}

struct rmd_report rmd_report_copy(const struct rmd_report *from)
{
    struct rmd_report to = {from->report, NULL};
    if (from->record)
        to.record = malloc(from->report.record_bytes);
    if (to.record)
        memcpy((void *)to.record, (void *)from->record, from->report.record_bytes);
    else
        to.report.record_bytes = 0;
    return to;
}

static void drop_record(struct rmd_reports_kept *kept, struct rmd_reports *all,
                        struct rmd_report *r)
{
    inv_assert(all->record_bytes >= r->report.record_bytes);
    inv_assert(kept->bytes >= r->report.record_bytes);
    all->record_bytes -= r->report.record_bytes;
    kept->bytes -= r->report.record_bytes;
    r->report.record_bytes = 0;
    free(r->record);
    r->record = NULL;
}

static bool reserve_report(struct rmd_reports_kept *kept, struct rmd_reports *all)
{
    if (all->count == REPORTS_MAX) {
        drop_record(kept, all, &all->items[0]);
        memmove(all->items, all->items + 1, (REPORTS_MAX - 1) * sizeof *all->items);
        all->count--;
        all->forgotten++;
    }
    if (all->count < all->capacity)
        return true;
    unsigned capacity = all->capacity ? all->capacity * 2 : 16;
    struct rmd_report *more = realloc(all->items, capacity * sizeof *more);
    if (!more)
        return false;
    all->items = more;
    all->capacity = capacity;
    return true;
}

static void drop_oldest_records(struct rmd_reports_kept *kept, struct rmd_reports *all,
                                uint64_t most)
{
    for (unsigned i = 0; i < all->count && all->record_bytes > most; i++)
        drop_record(kept, all, &all->items[i]);
}

static struct rmd_reports *largest_reports(const struct rmd_reports_kept *kept)
{
    struct rmd_reports *found = kept->holders;
    for (struct rmd_reports *one = kept->holders; one; one = one->next)
        if (one->record_bytes > found->record_bytes)
            found = one;
    return found;
}

static void list_holder(struct rmd_reports_kept *kept, struct rmd_reports *all)
{
    if (all->holds)
        return;
    all->holds = true;
    all->next = kept->holders;
    kept->holders = all;
}

void rmd_reports_add(struct rmd_reports_kept *kept, struct rmd_reports *all,
                     struct rmd_report *report)
{
    if (!reserve_report(kept, all)) { /* a report less */
        free(report->record);
        return;
    }
    inv_assert(all->count < all->capacity && all->count < REPORTS_MAX);
    list_holder(kept, all);
    all->items[all->count++] = *report;
    all->record_bytes += report->report.record_bytes;
    kept->bytes += report->report.record_bytes;
    drop_oldest_records(kept, all, RECORDS_BYTES_MAX);
    while (kept->bytes > ALL_BYTES_MAX) {
        struct rmd_reports *most = largest_reports(kept);
        inv_assert(most && most->record_bytes > 0);
        drop_oldest_records(kept, most, most->record_bytes - 1);
    }
}

void rmd_reports_free(struct rmd_reports_kept *kept, struct rmd_reports *all)
{
    struct rmd_reports **link = &kept->holders;
    while (*link && *link != all)
        link = &(*link)->next;
    if (*link)
        *link = all->next;
    inv_assert(kept->bytes >= all->record_bytes);
    kept->bytes -= all->record_bytes;
    for (unsigned i = 0; i < all->count; i++)
        free(all->items[i].record);
    free(all->items);
    *all = (struct rmd_reports){0};
}

void rmd_record_clear(struct inv_table *table, int table_fd, unsigned slot)
{
    struct inv_record *r = inv_record_at(table, slot);
    off_t offset = (char *)r - (char *)table;
    /* Gives the memory back too. */
    if (fallocate(table_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, sizeof *r))
        memset((void *)r, 0, sizeof *r);
}
