# SPDX-License-Identifier: GPL-3.0-or-later
"""A solver whose rank 0 writes a checkpoint every tenth step, beside another program.

bench/mpi/checkpoint.c counts the core time that the other program has during the checkpoints, of
what is idle then.  A file on the disk of the build is one kind of storage, a reader of 100 MB a
second the other.  The solver is one rank beside a program, each of which owns one of two cores, or
two ranks beside a third rank, which share tokens.  `plain` is a program that knows nothing of us;
`lend` one that calls inv_lend and inv_reclaim around the checkpoint.
"""

from __future__ import annotations

import statistics
import tempfile

import mpi_programs
from common import Context, Figure, Run

KINDS = ("program", "rank")
STORAGE = ("file", "slow")
WAYS = ("plain", "lend")
GOAL = 0.9


class Row:
    """A solver beside another of this kind, whose checkpoints go there and lend in this way."""

    def __init__(self, ctx: Context, program: str, kind: str, how: str, way: str, steps: int):
        self.ctx, self.program, self.way, self.kind = ctx, program, way, kind
        self.ranks, self.how, self.steps = 1 if kind == "program" else 3, how, steps
        self.name = f"{kind} {how} {way}"

    def run(self, variant: str) -> Run:
        with tempfile.TemporaryDirectory(dir=self.ctx.work) as place:
            command = [self.program, "beside", self.kind, place,
                       *self.ctx.mpi(self.ranks, self.program, "solver", place, self.how, self.way,
                                     str(self.steps))]
            if variant == "invade":
                return self.ctx.invade(command, variant=variant)
            return self.ctx.stock(command, threads=2, variant=f"{self.name}: {variant}",
                                  OMP_WAIT_POLICY="passive")

    def measure(self) -> tuple[float, str]:
        """The part of the idle core time that the other had; the same in words."""
        turns = self.ctx.turns(lambda: self.run("stock"), lambda: self.run("invade"))
        part, stock, ms = (statistics.median(turn[i].values[key] for turn in turns)
                           for i, key in ((1, "part"), (0, "part"), (1, "write_ms")))
        return part, f"{part:.3f} of what was idle (stock {stock:.3f}), in {ms:.0f} ms"


def checkpoint(ctx: Context) -> list[Figure]:
    ctx.check_only(*KINDS, *STORAGE, *WAYS)

    def chosen(names) -> list[str]:
        return [name for name in names if name in ctx.only] or list(names)

    program = str(mpi_programs.compiled(ctx, mpi_programs.LIBRARIES[0], "checkpoint.c",
                                        "-fopenmp"))
    steps = int(ctx.stock([program, "rate"], variant="rate").values["steps_per_ms"])
    rows = [Row(ctx, program, kind, how, way, steps) for kind in chosen(KINDS)
            for how in chosen(STORAGE) for way in reversed(chosen(WAYS))]
    found = {row: row.measure() for row in rows}
    figures = []
    for way, name in (("lend", "checkpoint lend"), ("plain", "checkpoint")):
        parts = {row: part for row, (part, _) in found.items() if row.way == way}
        if not parts:
            continue
        worst = min(parts, key=parts.get)
        text = "\n    ".join(f"{row.name}: {found[row][1]}" for row in parts)
        figures.append(Figure(name, parts[worst], "of the idle core time", ">=", GOAL, text))
    return figures
