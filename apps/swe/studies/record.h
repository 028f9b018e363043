// SPDX-License-Identifier: GPL-3.0-or-later
// record.h - writes what work a simulation has while it runs (run.record = "PREFIX").
#ifndef SWE_STUDIES_RECORD_H
#define SWE_STUDIES_RECORD_H

#include <string>
#include "../simulation.h"

namespace swe {

// Collective.  A file PREFIX.RANK for each rank, see recording.h.
// Throws std::runtime_error: it cannot be written.  Not with local time stepping.
template <class Real> void add_record(Simulation<Real> &simulation, const std::string &prefix);

} // namespace swe
#endif
