/* SPDX-License-Identifier: GPL-3.0-or-later */
/* core_list.h - a set of cores as rmd and rmctl write it. */
#ifndef RMD_CORE_LIST_H
#define RMD_CORE_LIST_H

#include <stddef.h>
#include <stdint.h>

/* "0-3,8" of a set of INV_MAX_CORES bits into text, cut off with "..." where it does not fit.
 * Thread safe. */
void rmd_list_cores(const uint64_t *set, char *text, size_t bytes);

#endif
