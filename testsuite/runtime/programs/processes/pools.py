# SPDX-License-Identifier: GPL-3.0-or-later
"""pools.py HOW [before] - sums by the OpenMP library ./libpool.so, from processes of a pool: of
multiprocessing, concurrent.futures or joblib.  before: the parent has used the library, too.
"""

import concurrent.futures
import ctypes
import multiprocessing
import sys


def work(times):
    return ctypes.CDLL("./libpool.so").pool_sum(times)


def sums(how, numbers):
    if how in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(how).Pool(4) as pool:
            return pool.map(work, numbers, 1)
    if how == "futures":
        with concurrent.futures.ProcessPoolExecutor(4) as pool:
            return list(pool.map(work, numbers))
    import joblib
    return joblib.Parallel(4, backend=how)(joblib.delayed(work)(n) for n in numbers)


def main():
    if sys.argv[2:] == ["before"]:
        work(1)
    print(*sums(sys.argv[1], range(1, 9)), sep="\n")


if __name__ == "__main__":
    main()
