# SPDX-License-Identifier: GPL-3.0-or-later
"""A stencil in a parallel loop of Numba's, on OpenMP: stencil.py SIZE STEPS"""

import sys

import numba
import numpy as np


@numba.njit(parallel=True)
def step(old, new):
    for i in numba.prange(1, old.shape[0] - 1):
        for j in range(1, old.shape[1] - 1):
            new[i, j] = 0.25 * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1])


def main() -> None:
    size, steps = int(sys.argv[1]), int(sys.argv[2])
    old = np.random.default_rng(1).random((size, size))
    new = old.copy()
    for _ in range(steps):
        step(old, new)
        old, new = new, old
    print(f"checksum {old.sum():.12g}")


main()
