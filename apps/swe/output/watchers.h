// SPDX-License-Identifier: GPL-3.0-or-later
// watchers.h - the watchers of a running simulation that the configuration asks for: files for
// ParaView, rasters, gauges, checkpoints, and the progress line.
#ifndef SWE_OUTPUT_WATCHERS_H
#define SWE_OUTPUT_WATCHERS_H

#include <optional>
#include <string>
#include <vector>
#include "../simulation.h"

namespace swe {

// Collective.  Throws CommonError where files cannot be written, or those that are there cannot be
// gone on with.  Changes nothing.  `gauges`: where they were, if the run goes on from a checkpoint
// in output.directory.
template <class Real>
void check_outputs(Simulation<Real> &simulation, const std::optional<std::string> &gauges);

// What runs before have left in output.directory beside checkpoints, and a run that begins anew
// takes away: the series, but not its frames, rasters, maxima and gauges.  Not what is not ours.
// Not collective; throws OutputError.
std::vector<std::string> outputs_of(const Config &config);

// Collective, as are the watchers.  `goes_on`: files of the run before are continued.  Returns
// what is to be said of them when the run starts.
template <class Real>
std::vector<std::string> add_watchers(Simulation<Real> &simulation, bool goes_on, bool quiet);

// Takes the state from a checkpoint, or from the last one in a directory.  Returns where gauges
// were (scenario/gauges.h).
// Throws std::runtime_error: none, broken, of another configuration.
template <class Real> std::string restart(Simulation<Real> &simulation, const std::string &from);

} // namespace swe
#endif
