/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * control_point.c - inv_control_point of the public interface, and the runtime's own control points
 * (control_point.h): the clock and the names around the search (base/tune.h), and what of it stands in
 * the record for `invade --report`.
 *
 * One thread at a time is in here.  Another one that comes meanwhile changes nothing, and neither does
 * the child of a fork that another thread has made: no call waits.
 */
#include "libinvasive/record/control_point.h"
#include "invasive.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/complain.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/tune.h"
#include "libinvasive/record/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct point {
    char name[INV_CONTROL_BYTES];
    int low, high;
    bool runtime;       /* the runtime's own, not the program's */
    uint64_t called_ns; /* the latest call; of the program's */
    struct inv_tune tune;
};

/* Only the thread that has set `busy` reads and writes it. */
struct inv_controls {
    atomic_flag busy; /* acquire; release where it is cleared; partner: the next thread */
    unsigned count;
    struct point point[INV_CONTROLS];
};

/* NULL: no memory, or INVASIVE=off. */
static struct inv_controls *find_controls(void)
{
    struct inv_controls *known = atomic_load_explicit(&inv_recording.controls, memory_order_acquire);
    if (known || inv_switched_off())
        return known;
    struct inv_controls *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return NULL;
    atomic_flag_clear(&fresh->busy);
    if (atomic_compare_exchange_strong(&inv_recording.controls, &known, fresh))
        return fresh;
    free(fresh);
    return known;
}

/* --- the record */

static void write_value(struct inv_control_point *to, const struct inv_tune *t, unsigned i)
{
    atomic_store_explicit(&to->value[i], t->value[i], memory_order_relaxed);
    atomic_store_explicit(&to->median_ns[i], (uint64_t)t->median_ns[i], memory_order_relaxed);
    atomic_store_explicit(&to->iterations[i], t->iterations[i], memory_order_relaxed);
}

static void write_point(struct inv_record *r, const struct point *p, unsigned index)
{
    struct inv_control_point *to = &r->control[index];
    const struct inv_tune *t = &p->tune;
    const int32_t numbers[] = {p->low, p->high, t->value[t->first], inv_tune_value(t)};
    _Atomic int32_t *const fields[] = {&to->low, &to->high, &to->first, &to->now};
    memcpy(to->name, p->name, sizeof to->name);
    for (unsigned i = 0; i < 4; i++)
        atomic_store_explicit(fields[i], numbers[i], memory_order_relaxed);
    atomic_store_explicit(&to->settled, t->settled, memory_order_relaxed);
    atomic_store_explicit(&to->searches, t->searches, memory_order_relaxed);
    atomic_store_explicit(&to->values, t->count, memory_order_relaxed);
    for (unsigned i = 0; i < t->count; i++)
        write_value(to, t, i);
    if (atomic_load_explicit(&r->controls, memory_order_relaxed) <= index)
        atomic_store_explicit(&r->controls, index + 1, memory_order_release);
}

/* Between two changes only the iterations of the value in use grow. */
static void record_point(const struct inv_controls *all, const struct point *p, bool changed)
{
    struct inv_record *r = inv_own_record();
    unsigned index = (unsigned)(p - all->point);
    if (!r)
        return;
    unsigned there = atomic_load_explicit(&r->controls, memory_order_relaxed);
    if (index < there && !changed)
        write_value(&r->control[index], &p->tune, p->tune.at);
    else /* also those before it, if the record is new */
        for (unsigned i = there < index ? there : index; i <= index; i++)
            write_point(r, &all->point[i], i);
}

/* --- calls */

static struct point *find_point(struct inv_controls *all, const char *name, bool runtime)
{
    for (unsigned i = 0; i < all->count; i++)
        if (all->point[i].runtime == runtime && !strcmp(all->point[i].name, name))
            return &all->point[i];
    if (all->count == INV_CONTROLS)
        return NULL;
    struct point *p = &all->point[all->count++];
    strcpy(p->name, name);
    p->runtime = runtime;
    p->low = 1; /* no range: it begins with the first call */
    p->high = 0;
    return p;
}

static void pass(struct inv_controls *all, struct point *p, int low, int high, int *value)
{
    uint64_t now = inv_now_ns();
    bool changed = p->low != low || p->high != high;
    if (changed) {
        p->low = low;
        p->high = high;
        inv_tune_begin(&p->tune, low, high, *value);
    } else {
        changed = inv_tune_add(&p->tune, now - p->called_ns);
    }
    p->called_ns = now;
    *value = inv_tune_value(&p->tune);
    record_point(all, p, changed);
}

/* --- the runtime's own */

/* NULL: none, or another thread is in here.  Else the caller has set `busy`. */
static struct inv_controls *enter(void)
{
    struct inv_controls *all = find_controls();
    if (all && atomic_flag_test_and_set_explicit(&all->busy, memory_order_acquire))
        return NULL;
    return all;
}

bool inv_control_begin(const char *name, const int *values, unsigned count, int own)
{
    inv_assert(strlen(name) < INV_CONTROL_BYTES);
    struct inv_controls *all = enter();
    struct point *p = all ? find_point(all, name, true) : NULL;
    if (p) {
        p->low = values[0];
        p->high = values[count - 1];
        inv_tune_begin_list(&p->tune, values, count, own);
        record_point(all, p, true);
    }
    if (all)
        atomic_flag_clear_explicit(&all->busy, memory_order_release);
    return p != NULL;
}

bool inv_control_add(const char *name, uint64_t ns, int *value)
{
    struct inv_controls *all = enter();
    struct point *p = all ? find_point(all, name, true) : NULL;
    bool settled = false;
    if (p) {
        inv_assert(p->tune.count > 0 && !p->tune.settled); /* inv_control_begin has made it */
        record_point(all, p, inv_tune_add(&p->tune, ns));
        *value = inv_tune_value(&p->tune);
        settled = p->tune.settled;
    }
    if (all)
        atomic_flag_clear_explicit(&all->busy, memory_order_release);
    return settled;
}

/* --- the program's calls */

/* Sets errno and returns -1.  Prints one line for the first refusal only: the program calls in each
 * iteration. */
static int refuse(int error, const char *name, const char *why)
{
    if (!atomic_exchange(&inv_recording.refused, true))
        inv_say_on_stderr("libinvasive: inv_control_point(\"%.60s\"): %s; the value stays as it is\n",
                          name ? name : "", why);
    errno = error;
    return -1;
}

int inv_control_point(const char *name, int low, int high, int *value)
{
    if (!value || !name || !*name || strlen(name) >= INV_CONTROL_BYTES)
        return refuse(EINVAL, name, "a value and a name of 1 to 47 bytes are needed");
    if (low > high)
        return refuse(EINVAL, name, "low is larger than high");
    struct inv_controls *all = find_controls();
    if (!all && inv_switched_off())
        return 0;
    if (!all)
        return refuse(ENOMEM, name, "no memory");
    if (atomic_flag_test_and_set_explicit(&all->busy, memory_order_acquire))
        return 0;
    struct point *p = find_point(all, name, false);
    if (p)
        pass(all, p, low, high, value);
    atomic_flag_clear_explicit(&all->busy, memory_order_release);
    return p ? 0 : refuse(ENOSPC, name, "there are 8 control points already");
}
