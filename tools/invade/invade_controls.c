/* SPDX-License-Identifier: GPL-3.0-or-later */
/* invade_controls.c - what a process has tried and chosen at its control points, from its record. */
#define _GNU_SOURCE
#include "invade_bounds.h"
#include "invade_model.h"

#include <math.h>
#include <stdlib.h>

static int load_value(const _Atomic int32_t *value)
{
    return atomic_load_explicit((_Atomic int32_t *)value, memory_order_relaxed); /* our copy */
}

static void fill_control(struct control *to, const struct inv_control_point *from)
{
    uint64_t values = limit_number(load_number32(&from->values), 0, INV_CONTROL_VALUES);
    copy_printable(to->name, sizeof to->name, from->name, sizeof from->name);
    to->low = load_value(&from->low);
    to->high = load_value(&from->high);
    to->first = load_value(&from->first);
    to->now = load_value(&from->now);
    to->settled = load_number32(&from->settled);
    to->searches = load_number32(&from->searches);
    for (unsigned i = 0; i < values; i++) {
        uint64_t median = load_number(&from->median_ns[i]);
        struct tried *t = &to->tried[to->count];
        *t = (struct tried){load_value(&from->value[i]), load_number(&from->iterations[i]),
                            median ? ns_to_seconds(median) : NAN};
        to->count += t->iterations > 0;
        to->iterations += t->iterations;
    }
}

bool controls_fill(struct process *p)
{
    p->ncontrols = (unsigned)limit_number(load_number32(&p->record->controls), 0, INV_CONTROLS);
    if (!p->ncontrols)
        return true;
    p->controls = calloc(p->ncontrols, sizeof *p->controls);
    for (unsigned i = 0; p->controls && i < p->ncontrols; i++)
        fill_control(&p->controls[i], &p->record->control[i]);
    return p->controls != NULL;
}
