// SPDX-License-Identifier: GPL-3.0-or-later
// frames.h - the gas as VTK's XML files, for ParaView (lib/output/vtk.h).
//
// A cell is shown as as many boxes along each axis as it has points, each with the gas at its
// point.  Whenever the run is killed, the files that NAME.pvd names are there as a whole.
#ifndef EULER_FRAMES_H
#define EULER_FRAMES_H

#include <string>
#include <vector>
#include "../../lib/output/vtk.h"
#include "../simulation.h"

namespace euler {

template <int D> class Frames {
public:
    // In output.directory, which is made if it is not there; each a file's worth of NAME.
    Frames(const Config &config, std::string name);

    // Adds a frame if output.vtu_every has passed since the one before, or the run ends.
    // Collective; throws CommonError, the same on all ranks, where a file cannot be written.
    void look(const Simulation<D> &simulation);

private:
    const Config &config_;
    const std::string base_; // directory and name
    const std::string name_;
    double next_ = 0; // time of the next frame
    std::vector<apps::VtkFrame> frames_;

    void add(const Simulation<D> &simulation);
};

} // namespace euler
#endif
