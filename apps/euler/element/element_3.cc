// SPDX-License-Identifier: GPL-3.0-or-later
// element_3.cc - the elements of 3 dimensions, each order compiled by itself.
#include "kernels.h"
#include "orders.h"

namespace euler {

std::unique_ptr<Element> make_element_3(int order) { return make_of_order<3>(order); }

} // namespace euler
