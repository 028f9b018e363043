// SPDX-License-Identifier: GPL-3.0-or-later
// orders.h - from an order, known when the program runs, to the kernels compiled for it.
#ifndef EULER_ORDERS_H
#define EULER_ORDERS_H

#include <memory>
#include "kernels.h"

namespace euler {

template <int D, int ORDER = LOWEST_ORDER> std::unique_ptr<Element> make_of_order(int order)
{
    if (order == ORDER)
        return std::make_unique<Kernels<D, ORDER + 1>>();
    if constexpr (ORDER < HIGHEST_ORDER)
        return make_of_order<D, ORDER + 1>(order);
    return nullptr;
}

std::unique_ptr<Element> make_element_2(int order);
std::unique_ptr<Element> make_element_3(int order);

} // namespace euler
#endif
