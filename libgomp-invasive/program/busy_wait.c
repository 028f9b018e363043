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

/* What is known of a loop up to an instruction of it.  Addresses are bytes from its first instruction on. */
struct loop {
    ptrdiff_t last;                     /* the jump back */
    ptrdiff_t sure;                     /* a jump may lead past what is before this address */
    uint64_t defined, exposed, written; /* places: surely written; read before that; written at all */
    uint64_t loaded;                    /* places whose value depends on what was loaded */
    unsigned conditions;                /* conditional jumps so far */
    bool ends;                          /* one of them can end the loop */
};

/* Can the loop continue after this instruction as a busy-wait loop?  Each condition has to depend on what was loaded, and
 * what follows a jump out of the loop has to be reached by another jump. */
static bool may_continue (struct loop *l, ptrdiff_t at, const struct instruction *i)
{
    ptrdiff_t target = at + i->target;
    bool back = target == 0 && at == l->last, inside = target > at && target <= l->last;
    if (i->flow == FLOW_BRANCH && ((i->reads & l->loaded) == 0 || l->conditions++ == BUSY_WAIT_CONDITIONS))
        return false;
    if (i->flow == FLOW_ON || (back && i->flow == FLOW_JUMP))
        return true;
    if (inside && target > l->sure)
        l->sure = target;
    if (!inside && (i->flow == FLOW_BRANCH || l->conditions > 0))
        l->ends = true;
    if (i->flow == FLOW_JUMP)
        return inside || l->sure >= at + (ptrdiff_t)i->bytes;
    return inside || back || target < 0 || target > l->last;
}

static bool add_instruction (struct loop *l, ptrdiff_t at, const struct instruction *i)
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
    return may_continue(l, at, i);
}

/* Does the loop busy-wait whose jump back is `last` bytes after its beginning?  end: of the code. */
static bool busy_waits (const unsigned char *first, ptrdiff_t last, const unsigned char *end)
{
    struct loop l = {.last = last};
    ptrdiff_t at = 0;
    while (at <= last) {
        struct instruction i = {0};
        decode(first + at, end, &i);
        if (i.bytes == 0 || !add_instruction(&l, at, &i))
            return false;
        if (at == last)
            return l.ends && (l.exposed & l.written) == 0;
        at += i.bytes;
    }
    return false; /* no instruction begins where the jump was seemingly found */
}

bool gomp_code_busy_waits (const unsigned char *code, size_t bytes)
{
    for (size_t at = next_jump(code, 0, bytes); at < bytes; at = next_jump(code, at + INSTRUCTION_ALIGNMENT, bytes)) {
        ptrdiff_t back = jump_back(code + at, code + bytes);
        if (back > 0 && back <= BUSY_WAIT_BYTES && (size_t)back <= at &&
            busy_waits(code + at - back, back, code + bytes))
            return true;
    }
    return false;
}
