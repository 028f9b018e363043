# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process costs to start under `invade`, and what `invade` itself costs.

Commands that start many short processes pay the first: the preloaded libraries are mapped, bound
and initialised in each, also if it uses neither OpenMP nor MPI.  Bare processes take turns with
ours.  The limit is 0 above a bare one.
"""

from __future__ import annotations

import statistics

from common import Context, Figure

PROCESSES, LAUNCHES = 1000, 100  # in a turn
GOAL_PROCESS_MS, GOAL_LAUNCH_MS = 0.3, 10


def start(ctx: Context) -> list[Figure]:
    program = str(ctx.build / "bench" / "start")
    launch = [str(ctx.build / "bin" / "invade"), "/bin/true"]
    turns = ctx.turns(
        lambda: ctx.invade([program, str(PROCESSES)], variant="processes"),
        lambda: ctx.stock([program, str(LAUNCHES), *launch], threads=None, variant="launches"))

    def above_ms(which: int, key: str) -> float:
        values = [turn[which].values for turn in turns]
        return statistics.median(v[f"ours_{key}"] - v[f"bare_{key}"] for v in values) / 1000

    def bare_ms(which: int) -> float:
        return statistics.median(turn[which].values["bare_us"] for turn in turns) / 1000

    return [
        Figure("start-launch", above_ms(1, "us"), "ms", "<=", GOAL_LAUNCH_MS,
               f"invade /bin/true above /bin/true ({bare_ms(1):.2f} ms)"),
        Figure("start", above_ms(0, "us"), "ms", "<=", GOAL_PROCESS_MS,
               f"/bin/true under invade above a bare one ({bare_ms(0):.2f} ms); processor time "
               f"{above_ms(0, 'cpu_us'):.3f} ms"),
    ]
