// SPDX-License-Identifier: GPL-3.0-or-later
// sleeping.h - an element that sleeps for as long as another one computes: for studies with more
// cores than there are.  It has no gas; its traces are as large as the other one's, since they are
// sent.
#ifndef EULER_SLEEPING_H
#define EULER_SLEEPING_H

#include <memory>
#include "../config.h"
#include "element.h"

namespace euler {

// As `emulate` in the configuration says; `like`: of the element that it stands for.
std::unique_ptr<Element> make_sleeping(const Config &config, const Sizes &like);

} // namespace euler
#endif
