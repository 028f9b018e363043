/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * holdings.h - what this process holds and owns, as the core table says.  Only looks; others may change
 * the table meanwhile.
 */
#ifndef INV_HOLDINGS_H
#define INV_HOLDINGS_H

#include "libinvasive/process/state.h"

#include <stdint.h>

/* Does this process hold the core?  Some core that it does hold, the k-th or later, round
 * about; INV_NO_CORE: none. */
bool inv_core_is_held(int core);
int inv_some_held_core(unsigned k);
/* The lowest core that this process owns; INV_NO_CORE when it owns none. */
int inv_first_owned_core(void);
/* Is `hold` a core of this process, and `tid` the thread that holds it? */
bool inv_hold_is_of(int hold, int tid);
/* Is the caller's hold a core of our own? */
bool inv_hold_is_owned(void);
/* Tokens that this process has.  In anonymous mode the last one is never asked back, and a
 * process without one that has work takes one although none is free: every process may
 * run one thread at any time, and the kernel shares the cores out. */
int inv_tokens_held(void);
/* Core time that this process has held cores until `now` (inv_now_ns); with more processes than
 * cores the processor time that it has used, or 0 where cores are emulated.  Others change the
 * table meanwhile; an interval may be missed or counted twice, and is put right by the next
 * look. */
uint64_t inv_held_ns(uint64_t now);

#endif
