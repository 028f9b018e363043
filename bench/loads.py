# SPDX-License-Identifier: GPL-3.0-or-later
"""Two ranks with unequal loads on two cores: how near moving the cores comes to balanced work.

The limit of the constant imbalance is measured: the same work shared out equally, stock, with one
rank on each core.  The limit of the artificial benchmark is arithmetic: 4/7 of the stock time.
"""

from __future__ import annotations

import re

from common import BenchError, Context, Figure, median_ratio, median_value, same_checksum

RANKS = 2


def units_per_ms(ctx: Context) -> str:
    """Calibrated once, so that all variants do the same work."""
    run = ctx.stock(ctx.mpi(1, ctx.app("imbalance"), "--calibrate"), variant="calibrate")
    return f"{run.values['units_per_ms']:.3f}"


def imbalance_command(ctx: Context, loads: str, units: str, work_ms: float, regions: int,
                      iterations: int, wait: str) -> list[str]:
    return ctx.mpi(RANKS, ctx.app("imbalance"), f"--loads={loads}", f"--units-per-ms={units}",
                   f"--work-ms={work_ms}", f"--regions={regions}", f"--iterations={iterations}",
                   f"--wait={wait}")


def over_limit(ctx: Context, name: str, goal: float, **shape) -> list[Figure]:
    """Loads 1:9 under invade against the balanced run; stock 1:9 beside it, for the reader."""
    units = units_per_ms(ctx)
    unequal = imbalance_command(ctx, "1:9", units, **shape)
    equal = imbalance_command(ctx, "5:5", units, **shape)
    turns = ctx.turns(lambda: ctx.stock(equal, variant="limit"),
                      lambda: ctx.stock(unequal),
                      lambda: ctx.invade(unequal))
    same_checksum([run for turn in turns for run in turn[1:]])
    stock = median_ratio(turns, 1, 0)
    return [Figure(name, median_ratio(turns, 2, 0), "x the limit", "<=", goal,
                   f"stock {stock:.2f}; limit {median_value(turns, 0):.3f} s, the balanced run")]


def imbalance(ctx: Context) -> list[Figure]:
    return over_limit(ctx, "imbalance", 1.10, work_ms=60, regions=1, iterations=50, wait="blocking")


def imbalance_fine(ctx: Context) -> list[Figure]:
    return over_limit(ctx, "imbalance-fine", 1.25, work_ms=2, regions=8, iterations=1000,
                      wait="blocking")


def imbalance_polled(ctx: Context) -> list[Figure]:
    return over_limit(ctx, "imbalance-polled", 1.15, work_ms=60, regions=1, iterations=50,
                      wait="polled")


def balanced(ctx: Context) -> list[Figure]:
    units = units_per_ms(ctx)
    command = imbalance_command(ctx, "5:5", units, 60, 1, 50, "blocking")
    turns = ctx.turns(lambda: ctx.stock(command), lambda: ctx.invade(command))
    same_checksum([run for turn in turns for run in turn])
    return [Figure("balanced", median_ratio(turns, 1, 0), "x stock", "<=", 1.01, "limit 1.0")]


def artificial(ctx: Context) -> list[Figure]:
    command = ctx.mpi(RANKS, ctx.app("artificial"), "-T", "1280")
    turns = ctx.turns(lambda: ctx.stock(command), lambda: ctx.invade(command))
    same_checksum([run for turn in turns for run in turn])
    steps = re.search(r"T = (\d+)", turns[0][0].output)
    if not steps:
        raise BenchError("artificial did not say how many steps it took")
    return [Figure("artificial", median_ratio(turns, 1, 0), "x stock", "<=", 0.62, "limit 0.571")]
