# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of nested regions, of which each thread of a region begins one, with and without
barriers in them and work between those: above the work, against the stock runtime at its best,
managed and unmanaged.

The limit is the work itself, divided by the cores: 0 above it.  The clock of the work loop is part
of what is measured.
"""

from __future__ import annotations

import statistics

from common import Context, Figure, median_ratio

SHAPES = ((2, 2), (2, 8), (8, 8))  # threads of the outer region, of each nested one
BARRIERS = (0, 4)
WORK_US = (0, 20)


def name_of(outer: int, inner: int, barriers: int, work: int) -> str:
    return f"{outer}x{inner}x{barriers}x{work}"


def nested(ctx: Context) -> list[Figure]:
    rows = {name_of(*shape, barriers, work): (*shape, barriers, work)
            for shape in SHAPES for barriers in BARRIERS for work in WORK_US}
    ctx.check_only(*rows)
    figures = [figure for name, row in rows.items() if not ctx.only or name in ctx.only
               for figure in measure(ctx, name, *row)]
    worst = max(figures, key=lambda f: f.value)
    return [*figures, Figure("nested", worst.value, "x stock at its best, the worst", "<=", 1.0,
                             worst.name)]


def measure(ctx: Context, name: str, outer: int, inner: int, barriers: int,
            work: int) -> list[Figure]:
    command = [ctx.app("regions"), f"--nested={inner}", f"--barriers={barriers}",
               f"--work-us={work}", "--batch-ms=5"]
    ways = ("stock", "stock, passive", "managed", "unmanaged")
    turns = ctx.turns(
        lambda: ctx.stock(command, threads=outer),
        lambda: ctx.stock(command, threads=outer, variant="passive", OMP_WAIT_POLICY="passive"),
        lambda: ctx.invade(command, threads=outer),
        lambda: ctx.unmanaged(command, threads=outer))
    above = [statistics.median(turn[i].values["us_above"] for turn in turns)
             for i in range(len(ways))]
    ctx.say(f"{outer} x {inner} threads, {barriers} barriers, {work} us: us above the ideal: " +
            ", ".join(f"{way} {us:.2f}" for way, us in zip(ways, above)))
    best = 0 if above[0] <= above[1] else 1
    return [Figure(f"nested-{way}-{name}", median_ratio(turns, i, best, "us_per_region"), "x stock",
                   "<=", 1.0)
            for i, way in enumerate(ways) if i > 1]
