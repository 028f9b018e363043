// SPDX-License-Identifier: GPL-3.0-or-later
// wait.h - waits for messages: in MPI, or by a look now and then.
#ifndef EULER_WAIT_H
#define EULER_WAIT_H

#include <vector>
#include "../../lib/output/failure.h"

namespace euler {

// Until all requests are done; they are null then.  look_us: where other ranks sleep instead of
// computing, a rank that waits by spinning would take the few real CPUs from them; with a number
// above 0 it sleeps so long, microseconds, between two looks.
void wait_all(std::vector<MPI_Request> &requests, double look_us);

} // namespace euler
#endif
