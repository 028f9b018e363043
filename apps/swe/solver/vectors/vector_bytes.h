// SPDX-License-Identifier: GPL-3.0-or-later
// vector_bytes.h - how wide the vectors of the kernels are: 64, 32 or 16 bytes.
#ifndef SWE_SOLVER_VECTOR_BYTES_H
#define SWE_SOLVER_VECTOR_BYTES_H

#include <cstdlib>

namespace swe {

// The widest that this processor has; SWE_VECTOR_BYTES in the environment asks for shorter ones, to
// see that results are the same.
inline int vector_bytes()
{
    static const int bytes = [] {
#ifdef __x86_64__
        const char *asked = std::getenv("SWE_VECTOR_BYTES");
        const int most = asked ? std::atoi(asked) : 64;
        if (most >= 64 && __builtin_cpu_supports("x86-64-v4"))
            return 64;
        if (most >= 32 && __builtin_cpu_supports("x86-64-v3"))
            return 32;
#endif
        return 16;
    }();
    return bytes;
}

} // namespace swe
#endif
