# SPDX-License-Identifier: GPL-3.0-or-later
"""What looks for blocked threads cost programs that do not block: lend-blocked = yes over no.

The programs have a rank for each core: rmd does not look at a process that is alone.  Pairs of
runs, yes first in every second one.  A ratio of the wall clock of whole programs cannot tell 0.2 %
on a machine that changes from second to second, so the cost is counted, too: the processor time
that rmd takes more, with all its threads, as if the program's slowest rank lost it all.  What a
look throws out of the caches is in the ratio alone.
"""

from __future__ import annotations

import math
import os
import statistics
import time

import loads
import own_programs
from common import Context, Figure, Programs, Run, wait_for_answer
from whole_programs import CORES

PAIRS = 2  # in a turn
GOAL, GOAL_WALL = 1.002, 1.01
ROWS = tuple(program.name for program in own_programs.PROGRAMS if program.ranks)


def commands(ctx: Context) -> dict[str, list[str]]:
    """By the row's name."""
    found = {"balanced": loads.imbalance_command(ctx, "5:5", loads.units_per_ms(ctx), 60, 1, 50,
                                                 "blocking")}
    for program in own_programs.PROGRAMS:
        if program.name in ROWS:
            program.install(ctx)
            found[program.name] = next(shape.command for shape in program.shapes_stock
                                       if shape.name == f"{CORES}x1")
    return found


def ran_s(pid: int) -> float:
    """Processor time of a process, with threads that have ended: clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def run(ctx: Context, command: list[str], lend: str) -> Run:
    socket = f"@invasive-bench-{os.getpid()}"
    with Programs() as programs:
        rmd = programs.start([str(ctx.build / "bin" / "rmd"), f"--socket={socket}",
                              "--log-level=error", f"--lend-blocked={lend}"], {})
        wait_for_answer(ctx, rmd, socket)
        before = ran_s(rmd.pid)
        done = ctx.run(lend, [str(ctx.build / "invade"), f"--socket={socket}", "--", *command], {})
        done.values["rmd_s"] = ran_s(rmd.pid) - before
    return done


def measure(ctx: Context, command: list[str]) -> tuple[list[float], float]:
    """Ratios of times, by pairs; time with what rmd took more, over time."""
    ratios, yes_s, no_s, wall_s = [], 0.0, 0.0, 0.0
    for number in range(ctx.pairs * PAIRS):
        order = ("yes", "no") if number % 2 else ("no", "yes")
        runs = dict(zip(order, ctx.turn(*(lambda lend=lend: run(ctx, command, lend)
                                          for lend in order))))
        ratios.append(runs["yes"].wall_s / runs["no"].wall_s)
        yes_s += runs["yes"].values["rmd_s"]
        no_s += runs["no"].values["rmd_s"]
        wall_s += runs["yes"].wall_s
    return ratios, 1 + max(0.0, yes_s - no_s) / wall_s


def blocked_cost(ctx: Context) -> list[Figure]:
    ctx.check_only("balanced", *ROWS)
    found = {name: measure(ctx, command) for name, command in commands(ctx).items()
             if not ctx.only or name in ctx.only}
    rows = "\n    ".join(f"{name}: {statistics.median(ratios):.4f} by the clock ({min(ratios):.3f} "
                        f"to {max(ratios):.3f}), {counted:.4f} counted"
                        for name, (ratios, counted) in found.items())
    ratios = [ratio for some, _ in found.values() for ratio in some]
    low, _, high = statistics.quantiles(ratios, n=4)
    error = (high - low) / 1.35 * 1.25 / math.sqrt(len(ratios))  # of a median, if it were normal
    worst = max(found, key=lambda name: found[name][1])
    return [Figure("blocked-cost-wall", statistics.median(ratios), "x without looks", "<=",
                   GOAL_WALL,
                   f"{len(ratios)} pairs of runs of all programs, +- {error:.3f}\n    {rows}"),
            Figure("blocked-cost", found[worst][1], "x without looks", "<=", GOAL,
                   f"counted; the worst: {worst}")]
