// SPDX-License-Identifier: GPL-3.0-or-later
// element.cc - see element.h.
#include "element.h"

#include "orders.h"

namespace euler {

std::unique_ptr<Element> make_element(int dimensions, int order)
{
    if (dimensions == 2)
        return make_element_2(order);
    return dimensions == 3 ? make_element_3(order) : nullptr;
}

} // namespace euler
