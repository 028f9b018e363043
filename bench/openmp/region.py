# SPDX-License-Identifier: GPL-3.0-or-later
"""What entering and leaving a parallel region costs.

With two implicit tasks and both cores held, against the stock runtime with actively waiting
threads; with 40 implicit tasks on one core, where a stock team would need 40 threads; and a region
of 100 us after a pause in which the initial thread computes alone, against the stock runtime in its
default settings.
"""

from __future__ import annotations

import os
import statistics

from common import Context, Figure, median_ratio

PAUSES_US = (20, 200, 2000, 4000)
WORK_US = 100


def region(ctx: Context) -> list[Figure]:
    command = [ctx.app("regions")]
    core = str(min(os.sched_getaffinity(0)))
    turns = ctx.turns(
        lambda: ctx.stock(command, threads=2, variant="stock-2", OMP_WAIT_POLICY="active"),
        lambda: ctx.invade(command, threads=2, variant="invade-2"))
    single = ctx.turns(
        lambda: pinned(ctx, core, command))
    pauses = {pause: after_pause(ctx, pause) for pause in PAUSES_US}
    both = [statistics.median(t[i].values["us_per_region"] for t in turns) for i in (0, 1)]
    one = statistics.median(t[0].values["us_per_region"] for t in single)
    return [
        *(Figure(f"region-after-{pause}", ratio, "x stock", "<=", 1.05,
                 f"a region of {WORK_US} us after {pause} us without one: "
                 f"stock {stock:.1f} us, invade {ours:.1f} us")
          for pause, (ratio, stock, ours) in pauses.items()),
        Figure("region-40", one, "us", "<=", 2.0, "40 implicit tasks on one core"),
        Figure("region", median_ratio(turns, 1, 0, "us_per_region"), "x stock", "<=", 1.0,
               f"stock {both[0]:.3f} us, invade {both[1]:.3f} us, 2 threads on 2 cores"),
    ]


def after_pause(ctx: Context, pause: int) -> tuple[float, float, float]:
    command = [ctx.app("regions"), f"--pause-us={pause}", f"--work-us={WORK_US}", "--batch-ms=10"]
    turns = ctx.turns(lambda: ctx.stock(command, threads=2, variant=f"stock-after-{pause}"),
                      lambda: ctx.invade(command, threads=2, variant=f"invade-after-{pause}"))
    stock, ours = (statistics.median(t[i].values["us_per_region"] for t in turns) for i in (0, 1))
    return median_ratio(turns, 1, 0, "us_per_region"), stock, ours


def pinned(ctx: Context, core: str, command: list[str]):
    """A domain of one core: the affinity that invade starts with is the domain."""
    return ctx.run("invade-40", ["taskset", "-c", core, str(ctx.build / "invade"), "--", *command],
                   {"OMP_NUM_THREADS": "40"})
