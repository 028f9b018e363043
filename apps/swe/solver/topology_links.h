// SPDX-License-Identifier: GPL-3.0-or-later
// topology_links.h - the links of a cluster's cells (finite_volumes.h) from its topology.
#ifndef SWE_SOLVER_TOPOLOGY_LINKS_H
#define SWE_SOLVER_TOPOLOGY_LINKS_H

#include "../grid/topology.h"
#include "finite_volumes.h"

namespace swe {

// Finds what fv_link finds from the edges, which need not be known here.
// Throws std::logic_error if two cells in succession have no common edge.
void link_cells(const Topology &topology, FvLinks &links);

} // namespace swe
#endif
