/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * holdings.h - what this process holds and owns, by the core table, which is only read: other
 * processes may change it meanwhile.  Any thread of a managed process.
 */
#ifndef INV_HOLDINGS_H
#define INV_HOLDINGS_H

#include "libinvasive/process/state.h"

#include <stdint.h>

/* Does this process hold the core? */
bool inv_core_is_held(int core);
/* The first core from `k` modulo the number of cores on, and then from 0 on, that this process
 * holds; INV_NO_CORE: it holds none. */
int inv_some_held_core(unsigned k);
/* The lowest core that this process owns; INV_NO_CORE when it owns none. */
int inv_first_owned_core(void);
/* The id of the thread that holds the core; 0: not this process's, or not known now. */
int32_t inv_holder_of(int core);
/* Is `hold` a core of this process, and `tid` the thread that holds it? */
bool inv_hold_is_of(int hold, int tid);
/* Is the caller's hold a core of our own? */
bool inv_hold_is_owned(void);
/* Tokens that this process has.  In anonymous mode every process may run one thread at any time,
 * and the kernel shares the cores out: a process's last token is never asked back, and a process
 * that has work and no token takes one although none is free. */
int inv_tokens_held(void);
/* Core time in ns for which this process has held cores until `now` (inv_now_ns).  In anonymous
 * mode the processor time that it has used, or 0 where cores are emulated.  Other processes change
 * the table meanwhile, so an interval may be missed or counted twice; a later call is right
 * again. */
uint64_t inv_held_ns(uint64_t now);

#endif
