# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenMP tasks that wait for MPI messages: how soon they begin, and what pending requests cost."""

from __future__ import annotations

import statistics

from common import TOP, Context, Figure
from mpi_programs import Library, Programs, libraries

LEVELS = {"funneled": "1", "multiple": "3"}
SAMPLES, PENDING, QUIET_S = 1000, 10000, 3
GOAL_US, GOAL_NS, GOAL_PERCENT = 3, 50, 2


def of_library(ctx: Context, library: Library, level: str) -> list[Figure]:
    """Figures of a library at a thread level, under invade; the message's way alone is stock's."""
    words = [f"-I{TOP / 'include'}", "-fopenmp",
             str(ctx.build / f"lib/libinvasive-tasks-{library.name}.so"),
             f"-Wl,-rpath,{ctx.build / 'lib'}"]
    program = Programs(ctx, library, "trigger.c", *words)
    number = LEVELS[level]
    turns = ctx.turns(lambda: program.ours(2, "idle", str(SAMPLES), number),
                      lambda: program.stock(2, "polled", str(SAMPLES), number),
                      lambda: program.ours(2, "busy", str(SAMPLES // 4), number),
                      lambda: program.ours(2, "pending", str(PENDING), number),
                      lambda: program.ours(2, "quiet", str(QUIET_S), number))

    def median(index: int, key: str) -> float:
        return statistics.median(turn[index].values[key] for turn in turns)

    name = f"trigger-{library.name}-{level}"
    return [Figure(f"{name}-idle", median(0, "idle"), "us", "<=", GOAL_US,
                   f"nine of ten within {median(0, 'idle_nine_tenths'):.2f} us; "
                   f"a loop of MPI_Test {median(1, 'polled'):.2f} us"),
            Figure(f"{name}-busy", median(2, "busy"), "tasks before", "<=", 0,
                   f"nine of ten at most {median(2, 'busy_nine_tenths'):g}"),
            Figure(f"{name}-pending", median(3, "request_ns"), "ns a request", "<=", GOAL_NS,
                   f"a look {median(3, 'look_ns'):.0f} ns"),
            Figure(f"{name}-quiet", median(4, "quiet_percent"), "% of a core", "<=", GOAL_PERCENT,
                   f"a wait of {QUIET_S} s")]


def trigger(ctx: Context) -> list[Figure]:
    figures = [figure for library in libraries(ctx) for level in LEVELS
               if not ctx.only or level in ctx.only for figure in of_library(ctx, library, level)]
    worst = max(figure.value for figure in figures if figure.name.endswith("-idle"))
    return [*figures, Figure("trigger", worst, "us from message to task, the worst", "<=", GOAL_US)]
