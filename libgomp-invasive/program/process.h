/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * process.h - libinvasive's process.h, with its thread-local variables read by GOMP_OWN (own.h).
 */
#ifndef GOMP_PROCESS_H
#define GOMP_PROCESS_H 1

#include "own.h"
#include <libinvasive/process.h>

#define inv_hold GOMP_OWN(inv_hold)
#define inv_hold_is_lent GOMP_OWN(inv_hold_is_lent)
#define inv_tid GOMP_OWN(inv_tid)
#define inv_polls_until GOMP_OWN(inv_polls_until)

#endif
