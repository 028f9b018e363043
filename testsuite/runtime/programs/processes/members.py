# SPDX-License-Identifier: GPL-3.0-or-later
"""members.py HOW [before] - two workers use OpenMP, print their pids, and stay until stdin ends.

HOW: `pool`, of multiprocessing with fork, by the OpenMP library ./libpool.so; or `loader`, the
DataLoader of PyTorch.  before: the parent has used OpenMP in the same way.
"""

import ctypes
import multiprocessing
import os
import sys

WORKERS = 2


def use_library():
    ctypes.CDLL("./libpool.so").pool_sum(1)


def use_torch():
    import torch
    torch.set_num_threads(2)  # a DataLoader sets 1 in its workers
    assert (torch.ones(1 << 21) * 2).sum().item() == 1 << 22


def tell(use):
    use()
    os.write(1, f"{os.getpid()}\n".encode())


def stay_as_pool():
    with multiprocessing.get_context("fork").Pool(WORKERS, tell, (use_library,)):
        sys.stdin.read()


def stay_as_loader():
    from torch.utils.data import DataLoader
    loader = DataLoader(range(8), num_workers=WORKERS, persistent_workers=True,
                        worker_init_fn=lambda _: tell(use_torch))
    assert len(list(loader)) == 8
    sys.stdin.read()


def main():
    use, stay = {"pool": (use_library, stay_as_pool),
                 "loader": (use_torch, stay_as_loader)}[sys.argv[1]]
    if sys.argv[2:] == ["before"]:
        use()
    stay()


if __name__ == "__main__":
    main()
