// SPDX-License-Identifier: GPL-3.0-or-later
// element_2.cc - the elements of 2 dimensions, each order compiled by itself.
#include "kernels.h"
#include "orders.h"

namespace euler {

std::unique_ptr<Element> make_element_2(int order) { return make_of_order<2>(order); }

} // namespace euler
