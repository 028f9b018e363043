# SPDX-License-Identifier: GPL-3.0-or-later
"""One process is blocked in the kernel, another one computes (bench/mpi/blocked.c).

The other's time in its loops over that of the better of two stock runs, with threads that spin
after a region and threads that sleep; and how long the blocked thread does not run after its block.
A child that ends reads the clock before it exits, and the kernel lets a poll end late by a
thousandth of its time: there the delay is what comes on top of stock's.
"""

from __future__ import annotations

import statistics

import mpi_programs
from common import Context, Figure, Run

WAYS = ("sleep", "poll", "read", "epoll", "waitpid", "system", "join", "condition", "semaphore",
        "futex", "fault")
KINDS = ("ranks", "programs")
ON_TOP = ("waitpid", "system", "poll", "epoll")
TIMES = {20: 20, 400: 3}  # ms of a block: how many
GOAL = 1.05
GOAL_DELAY_MS = 0.3


class Pair:
    """A process that blocks in one way for so long, and one that computes."""

    def __init__(self, ctx: Context, program: str, kind: str, way: str, ms: int, steps: int):
        self.ctx, self.name, self.on_top = ctx, f"{kind} {way} {ms} ms", way in ON_TOP
        command = [program, kind, way, str(ms), str(TIMES[ms]), str(steps)]
        self.command = ctx.mpi(2, *command) if kind == "ranks" else command

    def stock(self, policy: str) -> Run:
        return self.ctx.stock(self.command, threads=2, variant=f"{self.name}: stock {policy}",
                              OMP_WAIT_POLICY=policy)

    def invade(self) -> Run:
        return self.ctx.invade(self.command, variant="invade")

    def measure(self) -> tuple[float, float, str]:
        """Time over stock's; delay in ms that is judged; both in words."""
        turns = self.ctx.turns(lambda: self.stock("active"), lambda: self.stock("passive"),
                               self.invade)
        ratios = [ours.values["seconds"] / min(run.values["seconds"] for run in stock)
                  for *stock, ours in turns]
        delays = [ours.values["delay_ms"] for *_, ours in turns]
        stock_delays = [min(run.values["delay_ms"] for run in stock) for *stock, _ in turns]
        ratio, delay, stock = map(statistics.median, (ratios, delays, stock_delays))
        text = f"{ratio:.3f} of stock's time, runs after {delay:.3f} ms (stock {stock:.3f})"
        return ratio, delay - stock if self.on_top else delay, text


def steps_per_ms(ctx: Context, program: str) -> int:
    return int(ctx.stock([program, "rate"], variant="rate").values["steps_per_ms"])


def blocked(ctx: Context) -> list[Figure]:
    lengths = {f"{ms}ms": ms for ms in TIMES}
    ctx.check_only(*WAYS, *KINDS, *lengths)

    def chosen(names) -> list[str]:
        return [name for name in names if name in ctx.only] or list(names)

    program = str(mpi_programs.compiled(ctx, mpi_programs.LIBRARIES[0], "blocked.c", "-fopenmp"))
    steps = steps_per_ms(ctx, program)
    pairs = [Pair(ctx, program, kind, way, lengths[length], steps) for kind in chosen(KINDS)
             for length in chosen(lengths) for way in chosen(WAYS)]
    found = {pair.name: pair.measure() for pair in pairs}
    worst, slowest = (max(found, key=lambda name, i=i: found[name][i]) for i in (0, 1))
    rows = "\n    ".join(f"{name}: {text}" for name, (_, _, text) in found.items())
    return [Figure("blocked delay", found[slowest][1], "ms", "<=", GOAL_DELAY_MS, rows),
            Figure("blocked", found[worst][0], "of stock's time", "<=", GOAL,
                   f"the slowest to run again: {slowest}; the slowest beside one: {worst}")]
