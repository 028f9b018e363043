# SPDX-License-Identifier: GPL-3.0-or-later
"""Linear algebra with NumPy: numerics.py matmul|eigh|solve|svd SIZE REPETITIONS"""

import sys

import numpy as np


def main() -> None:
    kind, size, repetitions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    random = np.random.default_rng(1)
    a, b = random.random((size, size)), random.random((size, size))
    symmetric, regular = a + a.T, a + size * np.eye(size)
    operations = {
        "matmul": lambda: (a @ b)[0].sum(),
        "eigh": lambda: np.abs(np.linalg.eigh(symmetric)[0]).sum(),
        "solve": lambda: np.linalg.solve(regular, b[0]).sum(),
        "svd": lambda: np.linalg.svd(a, compute_uv=False).sum(),
    }
    total = sum(operations[kind]() for _ in range(repetitions))
    print(f"checksum {total:.9g}")


main()
