# SPDX-License-Identifier: GPL-3.0-or-later
"""Nearest neighbours with faiss: search.py flat|ivf VECTORS SEARCHES"""

import sys

import faiss
import numpy as np


def main() -> None:
    kind, vectors, searches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    data = np.random.default_rng(1).random((vectors, 64), dtype=np.float32)
    index = flat = faiss.IndexFlatL2(64)
    if kind == "ivf":
        index = faiss.IndexIVFFlat(flat, 64, 100)
        index.train(data)
        index.nprobe = 10
    index.add(data)
    total = sum(int(index.search(data[:500], 5)[1].sum()) for _ in range(searches))
    print(f"checksum {total}")


main()
