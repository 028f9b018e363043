// SPDX-License-Identifier: GPL-3.0-or-later
// criterion.h - which cells are cut or joined: where the gas varies, or where a sphere wanders.
#ifndef EULER_CRITERION_H
#define EULER_CRITERION_H

#include "../config.h"
#include "../element/element.h"
#include "../mesh/tree.h"

namespace euler {

// What the cell is marked for after so many steps.
template <int D>
Mark mark_of(const Config &config, const Place<D> &place, const Look &look, long step);

} // namespace euler
#endif
