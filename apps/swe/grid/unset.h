// SPDX-License-Identifier: GPL-3.0-or-later
// unset.h - vectors whose numbers are not set where no value is given: all of them will be, and to
// set them twice costs as much again.
#ifndef SWE_GRID_UNSET_H
#define SWE_GRID_UNSET_H

#include <memory>
#include <utility>
#include <vector>

namespace swe {

template <class T> struct UnsetAllocator : std::allocator<T> {
    template <class U> struct rebind {
        using other = UnsetAllocator<U>;
    };
    UnsetAllocator() = default;
    template <class U> UnsetAllocator(const UnsetAllocator<U> &) {}
    template <class U> void construct(U *p) { ::new (static_cast<void *>(p)) U; }
    template <class U, class... Values> void construct(U *p, Values &&...values)
    {
        ::new (static_cast<void *>(p)) U(std::forward<Values>(values)...);
    }
};

template <class T> using UnsetVector = std::vector<T, UnsetAllocator<T>>;

} // namespace swe
#endif
