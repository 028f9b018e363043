/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * members.h - a process as a member of a domain, for programs that are linked with parts of the
 * OpenMP runtime alone: a core table in memory, and what libinvasive says of it.
 */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "libgomp.h"
#include "process.h"
#include <string.h>

struct inv_process inv_process;
#undef inv_hold
__thread int inv_hold;

static int tokens;
static unsigned domain_cores;

int inv_tokens_held (void)
{
    return tokens;
}

unsigned inv_domain_cores (void)
{
    return domain_cores;
}

enum { OTHER_NAME = 7 };

/* The next `count` cores of the table. */
static void add_cores (unsigned count, unsigned holder, unsigned owner)
{
    for (unsigned i = 0; i < count; i++, inv_process.ncores++)
        inv_core_at(inv_process.table, inv_process.ncores)->word =
            inv_word_next(0, holder, owner, false);
}

/* Makes the process a member of a domain, whose table has no cores yet. */
static void become_member (void)
{
    static _Alignas(struct inv_core) char table[INV_SLOTS_OFFSET];
    memset(table, 0, sizeof table);
    inv_process.table = (struct inv_table *)table;
    inv_process.slot = 2;
    inv_process.ncores = 0;
    inv_process.anonymous = false;
    inv_process.managed = true;
}

#endif
