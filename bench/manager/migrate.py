# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a core goes from one process to another, and back to its owner.

bench/migrate.c moves the cores.  This module runs it in turns and judges.  A lend to a sleeping
worker has two limits: a bare futex wake of another process on the same core, since the lender
leaves that core, and a wake across cores, the least that a resource manager in a process of its
own costs.  The limit of a reclaim is what is left of the implicit task that runs.  A reclaim by
force is counted from the reclaim bound on, which is an option.
"""

from __future__ import annotations

import statistics

from common import Context, Figure

BOUND_US = 5000  # rmd's default


def migrate(ctx: Context) -> list[Figure]:
    program = str(ctx.build / "bench" / "migrate")
    turns = ctx.turns(lambda: ctx.invade([program], variant="lend"),
                      lambda: ctx.invade([program, "--forced"], variant="forced"))

    def median(index: int, value) -> float:
        return statistics.median(value(turn[index].values) for turn in turns)

    def of(key: str, index: int = 0) -> float:
        return median(index, lambda v: v[key])

    same_ratio = median(0, lambda v: v["sleeping_us"] / v["futex_same_core_us"])
    return [
        Figure("migrate-spinning", of("spinning_us"), "us", "<=", 2.0,
               f"95 % within {of('spinning_p95_us'):.2f} us; limit: a cache line's way to the "
               "other core"),
        Figure("migrate-cooperative", median(0, lambda v: v["reclaim_p95_us"] / v["task_us"]),
               "implicit tasks", "<=", 1.0,
               f"95 % of all; median {of('reclaim_median_us'):.0f} us, longest of a run "
               f"{of('reclaim_most_us'):.0f} us, tasks of {of('task_us'):.0f} us; limit 0.95, what "
               "is left of the task that runs"),
        Figure("migrate-forced", of("reclaim_p95_us", 1) - BOUND_US, "us", "<=", 200,
               f"95 % of all, after the bound of {BOUND_US} us; median "
               f"{of('reclaim_median_us', 1) - BOUND_US:.0f} us, longest of a run "
               f"{of('reclaim_most_us', 1) - BOUND_US:.0f} us"),
        Figure("migrate-one-core", same_ratio, "x a futex wake on one core", "<=", 1.2,
               f"lend to a sleeping worker {of('sleeping_us'):.1f} us, 95 % within "
               f"{of('sleeping_p95_us'):.1f}; futex wake {of('futex_us'):.1f} us across cores, "
               f"{of('futex_same_core_us'):.1f} on one core, which is the limit"),
        Figure("migrate", median(0, lambda v: v["sleeping_us"] / v["futex_us"]),
               "x a futex wake across cores", "<=", 1.2),
    ]
