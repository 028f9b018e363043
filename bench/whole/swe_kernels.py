# SPDX-License-Identifier: GPL-3.0-or-later
"""apps/swe against its machine: kernels against the memory's bandwidth; what adaptivity costs.

swe-roofline: a step of order 0 has to move the state in and out, bed, depth and links; a triad in
the same run says how many bytes a second a core gets when all cores ask.  The share of that is the
figure, for Rusanov's flux in double precision; the others are in the note.
The same share of the whole program is told beside: the dam break on a uniform grid of a million
cells, a thread a core, with time steps agreed on and interfaces.
swe-adapting: of the dam break's run time, what goes into refining, coarsening, splitting and
joining, with a thread a core; as the scenario is, and with cells of half the size (depth 18).
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from common import TOP, BenchError, Context, Figure

DAM = str(TOP / "apps" / "swe" / "scenarios" / "dam_break.toml")
UNIFORM = ["grid.min_depth=18", "grid.max_depth=18", "time.steps=100"]
KINDS = [f"{flux}-{precision}" for flux in ("rusanov", "augmented")
         for precision in ("double", "float")]


def roofline(ctx: Context) -> list[Figure]:
    ctx.check_only()
    cores = len(os.sched_getaffinity(0))
    command = [str(ctx.build / "apps" / "swe" / "swe_roofline"), str(cores)]
    if not Path(command[0]).exists():
        raise BenchError("swe_roofline is not built: make extra-programs")
    program = [str(ctx.build / "apps" / "swe" / "swe"), "-q", DAM, *UNIFORM]
    turns = ctx.turns(lambda: ctx.stock(command, threads=None, variant="kernels"),
                      lambda: ctx.stock(program, threads=cores, variant="uniform grid"))

    def median(name: str) -> float:
        return statistics.median(turn[0].values[name] for turn in turns)

    whole = statistics.median(
        uniform.values["cell-steps-s"] / cores * kernels.values["rusanov-double-bytes-cell"]
        / kernels.values["triad-bytes-s"] for kernels, uniform in turns)

    text = ", ".join(f"{k} {median(f'{k}-cells-s') / 1e6:.0f} million cells/s "
                     f"({median(f'{k}-roofline'):.2f})" for k in KINDS)
    note = (f"a core of {cores}, triad {median('triad-bytes-s') / 1e9:.1f} GB/s: {text}; "
            f"uniform squares {median('rusanov-double-cartesian-cells-s') / 1e6:.0f}")
    return [Figure("swe-roofline-program", whole, "of the memory's limit", ">=", 0.5,
                   "swe on a uniform grid, all but start and end"),
            Figure("swe-roofline", median("rusanov-double-roofline"), "of the memory's limit",
                   ">=", 0.5, note)]


def adapting(ctx: Context) -> list[Figure]:
    ctx.check_only()
    cores = len(os.sched_getaffinity(0))
    program = [str(ctx.build / "apps" / "swe" / "swe"), "-q", DAM]
    if (scale := getattr(ctx, "scale", 1)) != 1:
        program.append(f"time.end={40 * scale:g}")
    runs = {"swe-adapting-18": ["grid.max_depth=18"], "swe-adapting": []}
    turns = ctx.turns(*(lambda words=words, name=name: ctx.stock(
        [*program, *words], threads=cores, variant=name) for name, words in runs.items()))
    figures = []
    for number, name in enumerate(runs):
        values = [turn[number].values for turn in turns]
        share = statistics.median(v["adapting-seconds"] / v["seconds"] for v in values)
        rate = statistics.median(v["cell-steps-s"] for v in values)
        figures.append(Figure(name, share, "of the time", "<=", 0.15,
                              f"{cores} threads, {rate / 1e6:.0f} million cell steps/s"))
    return figures
