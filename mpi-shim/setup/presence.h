/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* presence.h - presence check, before any agreement (presence.c). */
#ifndef SHIM_PRESENCE_H
#define SHIM_PRESENCE_H

#include "mpi-shim/setup/agreement.h"

#pragma GCC visibility push(hidden)

enum {
    SHIM_PRESENCE_REFUSED, /* not managed */
    SHIM_PRESENCE_MANAGED,
    SHIM_PRESENCE_GROUP /* one managed group has all of these ranks already */
};
enum { SHIM_PRESENCE_BYTES = 96 };
/* Called by all ranks.  *least is the state of this rank, and becomes the least state of all.
 * Returns NULL if all ranks are managed.  Else returns why no rank is, "" if another rank reports
 * the reason: a constant, or `text`, a buffer of SHIM_PRESENCE_BYTES bytes. */
const char *shim_presence_check(const struct shim_agreement *a, int *least, char *text);

#pragma GCC visibility pop
#endif
