# SPDX-License-Identifier: GPL-3.0-or-later
"""How long rmd takes for one decision: policy, whether it is worthwhile, and placement.

Pure functions, measured in a process of their own by bench/decide.c, in processor time: a hundred
processes on 256 cores, and ten thousand on a hundred thousand.  The goals are for the slowest of
the policies.
"""

from __future__ import annotations

import statistics

from common import BenchError, Context, Figure

POLICIES = ("workload", "equal", "throughput", "makespan", "jobs", "fair", "energy", "interference")
SIZES = (("decide", 100, 256, 0.2, 50), ("decide-large", 10_000, 100_000, 0.4, 20_000))


def decide(ctx: Context) -> list[Figure]:
    program = str(ctx.build / "bench" / "decide")
    figures = []
    for name, processes, cores, seconds, goal_us in SIZES:
        policies = [p for p in POLICIES if not ctx.only or p in ctx.only]
        if not policies:
            raise BenchError(f"--only: policies are {', '.join(POLICIES)}")

        def variant(policy, processes=processes, cores=cores, seconds=seconds):
            return lambda: ctx.stock([program, policy, str(processes), str(cores), str(seconds)],
                                     variant=f"{policy}-{processes}")

        turns = ctx.turns(*(variant(policy) for policy in policies))
        us = {p: statistics.median(t[i].values["us_per_decision"] for t in turns)
              for i, p in enumerate(policies)}
        policy_us = {p: statistics.median(t[i].values["us_policy"] for t in turns)
                     for i, p in enumerate(policies)}
        note = (f"{processes} processes on {cores} cores, us (policy alone): "
                + ", ".join(f"{p} {us[p]:.3g} ({policy_us[p]:.3g})" for p in policies))
        scale, unit = (1, "us") if goal_us < 1000 else (1000, "ms")
        figures.append(Figure(name, max(us.values()) / scale, unit, "<=", goal_us / scale, note))
    return figures
