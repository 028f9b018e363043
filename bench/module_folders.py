# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders from which bench/run, apps/swe/studies/run and the tests import modules."""

import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
FOLDERS = ("bench", "bench/whole", "bench/mpi", "bench/openmp", "bench/manager", "apps/swe")


def add() -> None:
    sys.path[:0] = [str(TOP / folder) for folder in FOLDERS]
