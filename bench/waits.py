# SPDX-License-Identifier: GPL-3.0-or-later
"""What waiting costs: MPI_Allreduce of one double, with a core for each rank and with too few."""

from __future__ import annotations

import statistics

from common import BenchError, Context, Figure, median_ratio


def allreduce(ctx: Context, ranks: int, seconds: float) -> list:
    command = ctx.mpi(ranks, ctx.app("allreduce"), f"--seconds={seconds}")
    turns = ctx.turns(lambda: ctx.stock(command), lambda: ctx.invade(command))
    if any(run.values["wrong"] for turn in turns for run in turn):
        raise BenchError("allreduce: wrong sums")
    return turns


def oversubscribed_ranks(ctx: Context) -> list[Figure]:
    """Eight ranks on two cores."""
    turns = allreduce(ctx, 8, 1.0)
    ours = statistics.median(t[1].values["us_per_call"] for t in turns)
    stock = statistics.median(t[0].values["us_per_call"] for t in turns)
    return [Figure("oversubscribed-ranks", median_ratio(turns, 0, 1, "us_per_call"),
                   "x faster than stock", ">=", 300,
                   f"stock {stock:.0f} us, invade {ours:.1f} us a call")]


def latency(ctx: Context) -> list[Figure]:
    """Two ranks on two cores: what interposition adds when nobody has anything to gain."""
    turns = allreduce(ctx, 2, 0.5)
    ours = statistics.median(t[1].values["us_per_call"] for t in turns)
    stock = statistics.median(t[0].values["us_per_call"] for t in turns)
    return [Figure("latency", median_ratio(turns, 1, 0, "us_per_call"), "x stock", "<=", 1.15,
                   f"stock {stock:.3f} us, invade {ours:.3f} us a call; limit 1.0")]
