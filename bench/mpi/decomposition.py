# SPDX-License-Identifier: GPL-3.0-or-later
"""A stencil cut into more blocks than there are cores: 2 to 16 ranks of two threads each.

The limit is the best that stock does with the same grid in any shape of ranks x threads.  All
shapes run in the first turn; those that are far from the best one are left out afterwards.
"""

from __future__ import annotations

import statistics

from common import Context, Figure, Run, same_checksum

SHAPES = ((1, 2), (2, 1), (2, 2), (4, 1), (4, 2))
RANKS = (2, 4, 8, 16)
THREADS = 2
GOALS = {2: 1.00, 4: 1.00, 8: 1.05, 16: 1.05}
SIZE, STEPS = 4096, 40
NEAR = 1.3


def command(ctx: Context, ranks: int) -> list[str]:
    return ctx.mpi(ranks, ctx.app("stencil"), f"--size={SIZE}", f"--steps={STEPS}")


def stock_turn(ctx: Context, shapes) -> dict[tuple[int, int], Run]:
    return {(ranks, threads): ctx.stock(command(ctx, ranks), threads, f"stock-{ranks}x{threads}")
            for ranks, threads in shapes}


def seconds(run: Run) -> float:
    return run.values["seconds"]


def decomposition(ctx: Context) -> list[Figure]:
    wanted = [n for n in RANKS if not ctx.only or str(n) in ctx.only]
    shapes, ratios, all_runs, best_of = list(SHAPES), {n: [] for n in wanted}, [], []
    for _ in range(ctx.pairs):
        stock = stock_turn(ctx, shapes)
        ours = {n: ctx.invade(command(ctx, n), THREADS, f"invade-{n}x{THREADS}") for n in wanted}
        all_runs += [*stock.values(), *ours.values()]
        best = min(seconds(run) for run in stock.values())
        best_of.append(best)
        shapes = [shape for shape in shapes if seconds(stock[shape]) <= NEAR * best]
        for n in wanted:
            ratios[n].append(seconds(ours[n]) / best)
        if ctx.verbose:
            print("    " + "   ".join(f"{run.variant} {seconds(run):.3f} s"
                                      for run in [*stock.values(), *ours.values()]), flush=True)
    same_checksum(all_runs)
    note = (f"limit {statistics.median(best_of):.3f} s: the best stock shape of "
            + ", ".join(f"{r}x{t}" for r, t in SHAPES) + f"; {SIZE} x {SIZE} points")
    return [Figure(f"decomposition-{n}", statistics.median(ratios[n]), "x the best stock shape",
                   "<=", GOALS[n], note) for n in wanted]
