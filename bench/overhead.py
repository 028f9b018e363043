# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program pays for invading in every step: the paper's micro benchmark (6.1).

A single process with 128 cells, always the same, in 25 runs each: threads only (stock), and with a
non-blocking or a blocking invade of the number of cells before every step.  The paper had up to 5 %
and 15 %.  The goals are for that program.  Beside them, what it costs to announce another number in
every step, which is a message to rmd each time; a blocking one waits for rmd's answer.
"""

from __future__ import annotations

import statistics

from common import Context, Figure, median_ratio, same_checksum

RUNS = 25
STEPS = 12000
FORMS = ("off", "nonblocking", "blocking", "nonblocking-changing", "blocking-changing")


def overhead(ctx: Context) -> list[Figure]:
    program = ctx.app("cells")
    runs, ctx.pairs = ctx.pairs, RUNS if ctx.pairs == 5 else ctx.pairs  # 25 by default

    def form(name: str):
        # The same team as stock's: what is compared is the invading.
        steps = STEPS // 10 if name == "blocking-changing" else STEPS
        return lambda: ctx.invade([program, f"steps={steps}", f"invade={name}"], threads=2,
                                  variant=name)

    turns = ctx.turns(lambda: ctx.stock([program, f"steps={STEPS}"], threads=2),
                      *(form(name) for name in FORMS))
    ctx.pairs = runs
    same_checksum([run for turn in turns for run in turn[:-1]])
    step_us = statistics.median(t[0].values["seconds"] for t in turns) / STEPS * 1e6

    def percent(index: int, under: int) -> float:
        return 100 * (median_ratio(turns, index, under) - 1)

    def spread(index: int) -> str:
        ratios = sorted(100 * (t[index].values["seconds"] / t[0].values["seconds"] - 1)
                        for t in turns)
        return f"{ratios[len(ratios) // 4]:+.2f} to {ratios[-1 - len(ratios) // 4]:+.2f} %"

    late_us = statistics.median(t[5].values["seconds"] for t in turns) / (STEPS // 10) * 1e6
    changing = (f"another workload in each step: non-blocking {percent(4, 1):+.2f} % of the same "
                f"without, blocking {late_us - step_us:.1f} us more for each step")
    return [
        Figure("overhead-nonblocking", percent(2, 0), "% of threads only", "<=", 0.5,
               f"{len(turns)} runs, {step_us:.1f} us a step; half of the runs {spread(2)}; managed "
               f"without invading {percent(1, 0):+.2f} %, {spread(1)}; paper 5 %"),
        Figure("overhead", percent(3, 0), "% of threads only", "<=", 1.0,
               f"blocking; half of the runs {spread(3)}; paper 15 %; {changing}"),
    ]
