# SPDX-License-Identifier: GPL-3.0-or-later
"""What a limit of temperature costs in time, on simulated chips (bench/thermal.c).

rmd's loop (rmd/power/thermal.c) runs on two chips, one of which warms up more, for each threshold,
time constant of the chips and resolution of the sensors.  Time is that of work that is divided by
the speeds of the chips, over that of the best constant speed of each chip below the threshold.
Nothing in it depends on the machine, so one turn is enough.
"""

from __future__ import annotations

from common import Context, Figure

THRESHOLDS = (60, 75, 90)  # degrees; they ask for 0.69 to 0.94 of the speed of the hotter chip
SECONDS = (4, 8, 30)       # in which a chip warms up, its time constant
STEPS = {"fine": 0.001, "whole-degrees": 1}  # of the sensors
GOAL_TIME, GOAL_ABOVE = 1.05, 0


def thermal(ctx: Context) -> list[Figure]:
    ctx.check_only(*STEPS)
    program, found = str(ctx.build / "bench" / "thermal"), {}
    for name, step in STEPS.items():
        for threshold in THRESHOLDS if not ctx.only or name in ctx.only else ():
            for seconds in SECONDS:
                run = ctx.stock([program, str(threshold), str(seconds), str(step)],
                                variant=f"{name}, {threshold} degrees, {seconds} s")
                found[run.variant] = run.values
    slowest = max(found, key=lambda name: found[name]["time"])
    warmest = max(found, key=lambda name: found[name]["above"])
    together = max(values["together"] for values in found.values())
    rows = "\n    ".join(f"{name}: {values['time']:.3f}, with one speed for all chips "
                         f"{values['together']:.3f}; above for {values['above']:.2f} %, by "
                         f"{values['excess']:.2f} degrees" for name, values in found.items())
    return [Figure("thermal", found[slowest]["time"], "x the best constant speeds, emulated", "<=",
                   GOAL_TIME, f"the worst: {slowest}; one speed for all chips at worst "
                   f"{together:.3f}\n    {rows}"),
            Figure("thermal-above", found[warmest]["above"], "% of the time, emulated", "<=",
                   GOAL_ABOVE, f"the worst: {warmest}, by {found[warmest]['excess']:.2f} degrees")]
