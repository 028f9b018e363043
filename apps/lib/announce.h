// SPDX-License-Identifier: GPL-3.0-or-later
// announce.h - the one thing that this program may tell a resource manager, if there is one.
#ifndef APPS_LIB_ANNOUNCE_H
#define APPS_LIB_ANNOUNCE_H

#include "../../include/invasive.h"

#pragma weak inv_announce_workload
#pragma weak inv_reinvade

namespace apps {

// Any unit, the same on all ranks.  Nothing where the program runs stock.
inline void announce_workload(double work)
{
    if (inv_announce_workload)
        inv_announce_workload(work);
}

// The same, and wait for the answer.  One that comes too late is no reason to stop.
inline void announce_and_wait(double work)
{
    inv_constraint need = {};
    need.workload = work;
    if (inv_reinvade)
        inv_reinvade(&need, INV_BLOCKING, nullptr);
}

} // namespace apps
#endif
