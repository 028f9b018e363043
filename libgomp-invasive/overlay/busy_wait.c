/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * busy_wait.c - finding loops that busy-wait (busy_wait.h).
 *
 * Each jump back over a short distance may be the end of a loop.  Its instructions are decoded from the jump's
 * target on, up to the first one that has no place in such a loop; in most loops that is among the first.
 */
#include "busy_wait.h"
#include "instruction.h"

#if defined __x86_64__ && defined __LP64__
#include "instruction_x86_64.h"
#elif defined __aarch64__
#include "instruction_aarch64.h"
#else
#include "instruction_none.h"
#endif

/* What is known of a loop up to an instruction of it. */
struct loop {
    const unsigned char *first, *last; /* last: the jump back */
    const unsigned char *sure;         /* what is before this address may be jumped over */
    uint64_t defined, exposed, written; /* places: surely written; read before that; written at all */
    uint64_t loaded;                    /* places whose value depends on what was loaded */
    unsigned conditions;
    bool ends; /* under one of these */
};

/* Can the loop go on so, and end?  Each condition has to depend on what was loaded, and something has to lead past
 * a jump out of the loop. */
static bool follow (struct loop *l, const unsigned char *at, const struct instruction *i)
{
    bool back = i->target == l->first && at == l->last;
    bool inside = i->target > at && i->target <= l->last;
    if (i->flow == FLOW_BRANCH && ((i->reads & l->loaded) == 0 || l->conditions++ == BUSY_WAIT_CONDITIONS))
        return false;
    if (i->flow == FLOW_ON || (back && i->flow == FLOW_JUMP))
        return true;
    if (inside && i->target > l->sure)
        l->sure = i->target;
    if (!inside && (i->flow == FLOW_BRANCH || l->conditions > 0))
        l->ends = true;
    if (i->flow == FLOW_JUMP)
        return inside || l->sure >= at + i->bytes;
    return inside || back || i->target < l->first || i->target > l->last;
}

static bool add (struct loop *l, const unsigned char *at, const struct instruction *i)
{
    bool depends = i->loads || (i->reads & l->loaded) != 0;
    l->exposed |= i->reads & ~l->defined;
    l->written |= i->writes;
    if (at >= l->sure) {
        l->defined |= i->writes;
        l->loaded &= ~i->writes;
    }
    if (depends)
        l->loaded |= i->writes;
    return follow(l, at, i);
}

/* Does the loop from `first` to the jump back at `last` busy-wait?  end: of the code. */
static bool busy_waits (const unsigned char *first, const unsigned char *last, const unsigned char *end)
{
    struct loop l = {.first = first, .last = last, .sure = first};
    const unsigned char *at = first;
    while (at <= last) {
        struct instruction i = {0};
        decode(at, end, &i);
        if (i.bytes == 0 || !add(&l, at, &i))
            return false;
        if (at == last)
            return l.ends && (l.exposed & l.written) == 0;
        at += i.bytes;
    }
    return false; /* no instruction begins where the jump was seemingly found */
}

bool gomp_code_busy_waits (const unsigned char *code, size_t bytes)
{
    const unsigned char *end = code + bytes;
    for (const unsigned char *at = code; at < end; at += INSTRUCTION_ALIGNMENT) {
        ptrdiff_t back = jump_back(at, end);
        if (back > 0 && back <= BUSY_WAIT_BYTES && back <= at - code && busy_waits(at - back, at, end))
            return true;
    }
    return false;
}
