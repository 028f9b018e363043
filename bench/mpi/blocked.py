# SPDX-License-Identifier: GPL-3.0-or-later
"""One process is blocked in the kernel, another one computes (bench/mpi/blocked.c).

blocked-seen: how soon the other one uses the core of the blocked thread, and how long it goes on
with that when the thread runs again.

blocked: the other's time in its loops over that of the better of two stock runs, with threads that
spin after a region and threads that sleep; and how long the blocked thread does not run after its
block.  A child that ends reads the clock before it exits, and the kernel lets a poll end late by a
thousandth of its time: there the delay is what comes on top of stock's.
"""

from __future__ import annotations

import statistics

import mpi_programs
from common import Context, Figure, Run, nine_tenths

WAYS = ("sleep", "poll", "read", "epoll", "waitpid", "system", "join", "condition", "semaphore",
        "futex", "fault")
KINDS = ("ranks", "programs")
ON_TOP = ("waitpid", "system", "poll", "epoll")
TIMES = {20: 20, 400: 3}  # ms of a block: how many
GOAL = 1.05
GOAL_DELAY_MS = 0.3
SEEN_WAYS = ("sleep", "poll", "read", "futex")
SEEN_MS = 20
# The first is rmd's default reclaim bound.
GOALS_SEEN_MS = {"twice": (5, nine_tenths, "nine of ten"), "seen": (2, statistics.median, "median")}


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


def chosen(ctx: Context, names) -> list[str]:
    return [name for name in names if name in ctx.only] or list(names)


def compiled(ctx: Context) -> str:
    return str(mpi_programs.compiled(ctx, mpi_programs.LIBRARIES[0], "blocked.c", "-fopenmp"))


def blocked_seen(ctx: Context) -> list[Figure]:
    ctx.check_only(*SEEN_WAYS, *KINDS)
    program, found = compiled(ctx), {"seen": {}, "twice": {}}
    for kind in chosen(ctx, KINDS):
        for way in chosen(ctx, SEEN_WAYS):
            command = [program, kind, way, str(SEEN_MS), str(TIMES[SEEN_MS]), "seen"]
            command = ctx.mpi(2, *command) if kind == "ranks" else command
            # More threads than cores would compute beside the thread that borrows, without a hold.
            runs = [ctx.invade(command, threads=2, variant=f"{kind} {way}")
                    for _ in range(ctx.pairs)]
            for what, rows in found.items():
                rows[f"{kind} {way}"] = [ms for run in runs for name, ms in run.values.items()
                                         if name.startswith(what)]
    figures = []
    for what, (goal, measure, words) in GOALS_SEEN_MS.items():
        rows, name = found[what], f"blocked-{what}"
        worst = max(rows, key=lambda row, rows=rows, measure=measure: measure(rows[row]))
        text = "\n    ".join(f"{row}: median {statistics.median(times):.3f} ms, nine of ten "
                             f"{nine_tenths(times):.3f}, longest {max(times):.3f}, "
                             f"{len(times)} times" for row, times in rows.items())
        figures.append(Figure(name, measure(rows[worst]), f"ms, {words}", "<=", goal,
                              f"{name}, the worst: {worst}\n    {text}"))
    return figures


def blocked(ctx: Context) -> list[Figure]:
    lengths = {f"{ms}ms": ms for ms in TIMES}
    ctx.check_only(*WAYS, *KINDS, *lengths)
    program = compiled(ctx)
    steps = steps_per_ms(ctx, program)
    pairs = [Pair(ctx, program, kind, way, lengths[length], steps) for kind in chosen(ctx, KINDS)
             for length in chosen(ctx, lengths) for way in chosen(ctx, WAYS)]
    found = {pair.name: pair.measure() for pair in pairs}
    worst, slowest = (max(found, key=lambda name, i=i: found[name][i]) for i in (0, 1))
    rows = "\n    ".join(f"{name}: {text}" for name, (_, _, text) in found.items())
    return [Figure("blocked delay", found[slowest][1], "ms", "<=", GOAL_DELAY_MS, rows),
            Figure("blocked", found[worst][0], "of stock's time", "<=", GOAL,
                   f"the slowest to run again: {slowest}; the slowest beside one: {worst}")]
