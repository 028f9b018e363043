# SPDX-License-Identifier: GPL-3.0-or-later
"""The parameter study as a table, figure 10's picture of cores and figure 11's of times."""

from __future__ import annotations

from pathlib import Path

from common import Context

from . import balance, parameters, table

TURNS = 3
WORDS = (*parameters.WAYS, *parameters.SIZES)  # of --only
COLORS = {"sequential": "tab:red", "tbb": "tab:orange", "at-once": "0.6", "invasive": "tab:blue"}
NAMES = {"sequential": "one after the other, OpenMP", "tbb": "all at once, TBB",
         "at-once": "all at once, OpenMP", "invasive": "invasive"}


def draw(axes, found: list[parameters.Found], ways: list[str]) -> None:
    width = 0.8 / len(ways)
    for i, way in enumerate(ways):
        axes.bar([x + (i - len(ways) / 2 + 0.5) * width for x in range(len(found))],
                 [f.typical(way) for f in found], width, label=NAMES[way], color=COLORS[way])
    axes.set_xticks(range(len(found)), [f.size for f in found])
    axes.set_ylabel("s")


def show(found: list[parameters.Found], notes: list[str], machine: parameters.Machine,
         file: Path) -> None:
    ways = list(found[0].seconds)
    others = [way for way in ways if way != "invasive"]
    rows = [[f.size, *(f.typical(way) for way in ways), *(f.over(way) for way in others),
             f.limit or ""] for f in found]
    table.show(f"Five tsunami simulations, {machine.cores} "
               f"{'emulated ' if machine.emulated else ''}cores",
               ["size", *(f"{way} s" for way in ways), *(f"invasive/{way}" for way in others),
                "work/cores s"], rows, notes, file, [f.model for f in found])
    plt = table.pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), width_ratios=[2, 1])
    draw(left, found, ways)
    left.set_yscale("log")
    left.legend(fontsize="small")
    draw(right, found[-2:], ways)
    table.save(figure, file.with_suffix(".png"))


def cores_over_time(ctx: Context, machine: parameters.Machine, work: Path, scale: float,
                    size: str, file: Path) -> None:
    here = parameters.Study(ctx, machine, size, scale, work)
    if machine.emulated:
        here.prepare(*parameters.costs(ctx, machine, work, scale))
    trace = file.with_suffix(".trace")
    here.run("invasive", trace)
    balance.draw_trace(ctx, trace, file)


def both(ctx: Context, machine: parameters.Machine, directory: Path, work: Path, scale: float,
         name: str) -> None:
    found, notes = parameters.study(ctx, machine, work, scale)
    show(found, notes, machine, directory / f"parameters-{name}.csv")
    cores_over_time(ctx, machine, work, scale, found[-1].size,
                    directory / f"parameters-{name}-cores.png")


def real(ctx: Context, directory: Path, work: Path, scale: float) -> None:
    both(ctx, parameters.REAL, directory, work, scale, "real")


def emulated(ctx: Context, directory: Path, work: Path, scale: float) -> None:
    both(ctx, parameters.EMULATED, directory, work, scale, "emulated")
