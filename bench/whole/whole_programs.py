# SPDX-License-Identifier: GPL-3.0-or-later
"""What a whole program is to `bench/run never-slower`: its commands, and how results are compared.

A Program has shapes: ways to run the same problem, each with a number of ranks and threads.  The
stock shapes compete; the managed ones run under `invade` in its default settings, and each is
compared with the stock shape that takes least.  All shapes of a program solve the same problem, and
take at least a second on two cores.

never_slower.py measures the programs of own_programs.py and those of packages.PROGRAMS.  A module
adds programs by a list of Programs, or of a subclass that installs what the commands name:

    class Solver(Program):
        def install(self, ctx):
            ...
            self.shapes_stock = [Shape("1x2", [solver, "input"], threads(2)), ...]
            self.managed = [Shape("1", [solver, "input"])]
    PROGRAMS = [Solver("solver", tolerance=1e-9)]
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from common import BenchError, Context, Run

CORES = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Shape:
    """A way to run a program.  The command has no `invade`; env is added to an environment without
    what steers either runtime."""

    name: str  # RANKSxTHREADS, or RANKS where invade says how many threads
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)


class Program:
    """A program, or a package with one input.  The shapes are complete after install()."""

    def __init__(self, name: str, shapes_stock: list[Shape] | None = None,
                 managed: list[Shape] | None = None, tolerance: float = 0):
        self.name = name  # a word of --only: letters, digits, hyphens
        self.shapes_stock = shapes_stock or []
        self.managed = managed or []
        self.tolerance = tolerance  # relative, of the checksum; 0: equal as text

    def install(self, ctx: Context) -> None:
        """Makes the commands possible: once, before all else.  BenchError when that fails: the
        program is left out then, and the output says so."""

    def values(self, run: Run) -> dict:
        """What the program says of itself: `checksum` or other results; `seconds`, its own time
        without start and end, is printed where it is there.  Ratios are of the whole command."""
        return run.values

    def same(self, one: Run, other: Run) -> None:
        """BenchError when the results differ by more than the order of sums explains."""
        a, b = (self.values(run).get("checksum") for run in (one, other))
        for value, run in ((a, one), (b, other)):
            if value is None:
                raise BenchError(f"{self.name}: {run.variant} has no checksum")
        if a != b and not (self.tolerance and close(a, b, self.tolerance)):
            raise BenchError(f"{self.name}: the checksum of {one.variant} is {a}, "
                             f"that of {other.variant} {b}")


def close(one: str, other: str, tolerance: float) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=tolerance)
    except ValueError:
        return False  # no numbers


def threads(count: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(count)}
