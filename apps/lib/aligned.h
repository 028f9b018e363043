// SPDX-License-Identifier: GPL-3.0-or-later
// aligned.h - vectors that begin at a multiple of a cache line and of the widest vector register.
#ifndef APPS_LIB_ALIGNED_H
#define APPS_LIB_ALIGNED_H

#include <cstddef>
#include <new>
#include <vector>

namespace apps {

constexpr std::size_t ALIGNMENT = 64;

template <class T> struct AlignedAllocator {
    using value_type = T;
    AlignedAllocator() = default;
    template <class U> AlignedAllocator(const AlignedAllocator<U> &) {}
    T *allocate(std::size_t n)
    {
        return static_cast<T *>(::operator new (n * sizeof(T), std::align_val_t{ALIGNMENT}));
    }
    void deallocate(T *p, std::size_t) { ::operator delete (p, std::align_val_t{ALIGNMENT}); }
    template <class U> bool operator==(const AlignedAllocator<U> &) const { return true; }
    template <class U> bool operator!=(const AlignedAllocator<U> &) const { return false; }
};

template <class T> using AlignedVector = std::vector<T, AlignedAllocator<T>>;

} // namespace apps
#endif
