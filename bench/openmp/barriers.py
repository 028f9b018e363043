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
    ctx.say("us a region above the ideal; unmanaged: " + unmanaged(ctx))
    worst = max((f for name, f in figures.items() if "-two-" in name), key=lambda f: f.value)
    return [*figures.values(), Figure("barriers", worst.value, "x stock, the worst with 2 threads",
                                      "<=", 1.0, worst.name)]


def row(ctx: Context, count: int, work: int) -> dict[str, Figure]:
    """A number of barriers and the work between them, with all team sizes."""
    command = [ctx.app("regions"), f"--barriers={count}", f"--work-us={work}", "--batch-ms=5"]
    turns = ctx.turns(
        lambda: ctx.stock(command, threads=2, variant="stock-2"),
        *(lambda n=n: ctx.invade(command, threads=n, variant=f"invade-{n}") for n in THREADS))
    above = [statistics.median(turn[i].values["us_above"] for turn in turns)
             for i in range(len(THREADS) + 1)]
    ctx.say(f"{count} barriers, {work} us: stock {above[0]:.2f}; " +
            ", ".join(f"{n} threads {us:.2f}" for n, us in zip(THREADS, above[1:])))
    name = f"{count}x{work}"
    found = {f"barriers-two-{name}": Figure(
        f"barriers-two-{name}", median_ratio(turns, 1, 0, "us_per_region"), "x stock", "<=", 1.0)}
    for n, us in zip(THREADS, above[1:]):
        if count == 4 and (n, work) in GOALS_US:
            found[f"barriers-{n}-{name}"] = Figure(
                f"barriers-{n}-{name}", us, "us above the ideal", "<=", GOALS_US[n, work])
    return found


def unmanaged(ctx: Context) -> str:
    """4 barriers without work, preloaded and without a resource manager."""
    command = [ctx.app("regions"), "--barriers=4", "--batch-ms=5"]
    turns = ctx.turns(*(lambda n=n: ctx.unmanaged(command, threads=n, variant=f"unmanaged-{n}")
                        for n in THREADS))
    return ", ".join(f"{n} threads {statistics.median(t[i].values['us_above'] for t in turns):.2f}"
                     for i, n in enumerate(THREADS))
