# SPDX-License-Identifier: GPL-3.0-or-later
"""What barriers inside a parallel region cost, above the work between them: with as many threads as
cores, against the stock runtime, and with more, managed and unmanaged.

The limit is the work itself, divided by the cores: 0 above it.  The clock of the work loop is part
of what is measured.
"""

from __future__ import annotations

import statistics

from common import Context, Figure, median_ratio

BARRIERS = (0, 1, 4, 20)
WORK_US = (0, 2, 20, 100)
THREADS = (2, 8, 32)
GOALS_US = {(8, 0): 1.2, (32, 0): 2.5, (8, 20): 3, (32, 20): 6}  # (threads, us of work): 4 barriers


def barriers(ctx: Context) -> list[Figure]:
    ctx.check_only(*(f"{b}x{w}" for b in BARRIERS for w in WORK_US))
    figures: dict[str, Figure] = {}
    for count in BARRIERS:
        for work in WORK_US:
            if not ctx.only or f"{count}x{work}" in ctx.only:
                figures.update(row(ctx, count, work))
    worst = max((f for name, f in figures.items() if "-two-" in name), key=lambda f: f.value)
    return [*figures.values(), Figure("barriers", worst.value, "x stock, the worst with 2 threads",
                                      "<=", 1.0, worst.name)]


def row(ctx: Context, count: int, work: int) -> dict[str, Figure]:
    """A number of barriers and the work between them, with all team sizes: under invade, and
    preloaded without a resource manager."""
    command = [ctx.app("regions"), f"--barriers={count}", f"--work-us={work}", "--batch-ms=5"]
    ways = {"two": ctx.invade, "unmanaged-two": ctx.unmanaged}
    turns = ctx.turns(
        lambda: ctx.stock(command, threads=2, variant="stock-2"),
        *(lambda run=run, n=n: run(command, threads=n, variant=f"{run.__name__}-{n}")
          for run in ways.values() for n in THREADS))
    above = [statistics.median(turn[i].values["us_above"] for turn in turns)
             for i in range(1 + len(ways) * len(THREADS))]
    ctx.say(f"{count} barriers, {work} us: stock {above[0]:.2f}; " +
            ", ".join(f"{n} threads {us:.2f} and {other:.2f} unmanaged" for n, us, other in
                      zip(THREADS, above[1:], above[1 + len(THREADS):])))
    name = f"{count}x{work}"
    found = {}
    for way, at in zip(ways, (1, 1 + len(THREADS))):
        figure = f"barriers-{way}-{name}"
        found[figure] = Figure(figure, median_ratio(turns, at, 0, "us_per_region"), "x stock",
                               "<=", 1.0)
        for i, n in enumerate(THREADS):
            if count == 4 and (n, work) in GOALS_US:
                figure = f"barriers-{way.replace('two', str(n))}-{name}"
                found[figure] = Figure(figure, above[at + i], "us above the ideal", "<=",
                                       GOALS_US[n, work])
    return found
