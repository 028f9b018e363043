# SPDX-License-Identifier: GPL-3.0-or-later
"""apps/swe against its machine: kernels against the memory's bandwidth; what adaptivity costs.

swe-roofline: a step of order 0 has to move the state in and out, bed, depth and links; a triad in
the same run says how many bytes a second a core gets when all cores ask.  The share of that is the
figure, for Rusanov's flux in double precision; the others are in the note.
swe-adapting: of the dam break's run time, what goes into refining, coarsening, splitting and
joining, with a thread a core.
"""

from __future__ import annotations

import os
import statistics

from common import TOP, Context, Figure

KINDS = [f"{flux}-{precision}" for flux in ("rusanov", "augmented")
         for precision in ("double", "float")]


def roofline(ctx: Context) -> list[Figure]:
    cores = len(os.sched_getaffinity(0))
    command = [str(ctx.build / "apps" / "swe" / "swe_roofline"), str(cores)]
    turns = ctx.turns(lambda: ctx.stock(command, threads=None, variant="kernels"))

    def median(name: str) -> float:
        return statistics.median(turn[0].values[name] for turn in turns)

    text = ", ".join(f"{k} {median(f'{k}-cells-s') / 1e6:.0f} million cells/s "
                     f"({median(f'{k}-roofline'):.2f})" for k in KINDS)
    note = (f"a core of {cores}, triad {median('triad-bytes-s') / 1e9:.1f} GB/s: {text}; "
            f"uniform squares {median('rusanov-double-cartesian-cells-s') / 1e6:.0f}")
    return [Figure("swe-roofline", median("rusanov-double-roofline"), "of the memory's limit",
                   ">=", 0.5, note)]


def adapting(ctx: Context) -> list[Figure]:
    cores = len(os.sched_getaffinity(0))
    scenario = TOP / "apps" / "swe" / "scenarios" / "dam_break.toml"
    command = [str(ctx.build / "apps" / "swe" / "swe"), "-q", str(scenario), "grid.max_depth=18"]
    turns = ctx.turns(lambda: ctx.stock(command, threads=cores, variant="dam break"))
    share = statistics.median(t[0].values["adapting-seconds"] / t[0].values["seconds"]
                              for t in turns)
    rate = statistics.median(t[0].values["cell-steps-s"] for t in turns)
    return [Figure("swe-adapting", share, "of the time", "<=", 0.15,
                   f"{cores} threads, {rate / 1e6:.0f} million cell steps/s")]
