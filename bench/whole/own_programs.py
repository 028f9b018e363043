# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of bench/programs as whole programs: their stock shapes, and those under `invade`.

A program with MPI competes stock as one rank with all cores, as one rank of one thread on each
core, and as it is usually run.  The tolerances are for sums whose order depends on ranks and
threads.
"""

from __future__ import annotations

from common import MPIEXEC, BenchError, Context
from whole_programs import CORES, Program, Shape, threads


class Own(Program):
    """A program of bench/programs.

    ranks: of the shapes under invade, with None or a number of threads; no MPI when empty.
    usual: (ranks, threads) of stock shapes beside one rank and one thread a rank.
    """

    def __init__(self, name: str, tolerance: float = 0,
                 ranks: tuple[tuple[int, int | None], ...] = (),
                 usual: tuple[tuple[int, int], ...] = ()):
        super().__init__(name, tolerance=tolerance)
        self.ranks = ranks
        self.usual = usual
        self.arguments: list[str] = []  # of shorter runs, in tests

    def install(self, ctx: Context) -> None:
        program = ctx.build / "bench" / "programs" / self.name
        if not program.exists():
            raise BenchError(f"{self.name} is not built: make bench/programs/{self.name}")
        command = [str(program), *self.arguments]
        if not self.ranks:
            self.shapes_stock = [Shape(f"1x{n}", command, threads(n)) for n in sorted({CORES, 1})]
            self.managed = [Shape("1", command)]
            return
        stock = dict.fromkeys([(1, CORES), (CORES, 1), *self.usual])
        self.shapes_stock = [Shape(f"{r}x{t}", mpi(r, command), threads(t)) for r, t in stock]
        self.managed = [Shape(f"{r}x{t}" if t else str(r), mpi(r, command), threads(t) if t else {})
                        for r, t in self.ranks]


def mpi(ranks: int, command: list[str]) -> list[str]:
    return [MPIEXEC, "-n", str(ranks), *command]


SWEEP = Own("sweep", ranks=((2, None), (8, 2)), usual=((8, 2),))

PROGRAMS = [
    Own("hydro", 1e-7, ranks=((1, None), (8, None)), usual=((8, 1),)),
    Own("structured", ranks=((1, None), (2, None))),
    Own("cg", 1e-7, ranks=((2, None),)),
    Own("multizone", ranks=((2, None), (4, None), (8, None)), usual=((4, 1), (8, 1))),
    SWEEP,
    Own("wavefront", ranks=((1, None), (2, None))),
    Own("tree"),
    Own("amr"),
    Own("md", 1e-6),
]
