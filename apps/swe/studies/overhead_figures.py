# SPDX-License-Identifier: GPL-3.0-or-later
"""The study of overheads as a table, and figure 5's runs as dots."""

from __future__ import annotations

import statistics
from pathlib import Path

from common import Context

from . import overhead, table

TURNS = 25  # the paper's number


def percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def show(found: overhead.Found, name: str, title: str, directory: Path, notes: list[str],
         unit: str) -> None:
    best = found.best()
    rows = [[f"stock, {key}", statistics.median(us), "", "", ""] for key, us in found.stock.items()]
    for form, us in found.ours.items():
        ratios = found.ratios(form)
        low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        rows.append([form, statistics.median(us), percent(statistics.median(ratios)),
                     f"{percent(low):+.1f} to {percent(high):+.1f}", overhead.PAPER[form]])
    table.show(title, ["", unit, "% over stock", "half of the runs", "paper"], rows,
               [f"{len(found.stock[best])} runs; stock is {best} here", *notes],
               directory / f"{name}.csv", [found.model for _ in rows])
    plt = table.pyplot()
    figure, axes = plt.subplots(figsize=(5, 3.5))
    for form in found.ours:
        ratios = [o / s for o, s in zip(found.ours[form], found.stock[best])]
        axes.plot(range(1, len(ratios) + 1), [percent(r) for r in ratios], "o", ms=4, label=form)
    axes.axhline(0, color="0.5", lw=1)
    axes.set_xlabel("run")
    axes.set_ylabel("% over stock")
    axes.set_title(title)
    axes.legend()
    table.save(figure, directory / f"{name}.png")


def real(ctx: Context, directory: Path, _work: Path, scale: float) -> None:
    found = overhead.real(ctx, ctx.pairs, scale)
    show(found, "overhead-real", "128 cells, 2 threads", directory, [], "us a step")


def emulated(ctx: Context, directory: Path, work: Path, scale: float) -> None:
    found, note = overhead.emulated(ctx, ctx.pairs, work, scale)
    show(found, "overhead-emulated", f"128 cells, {overhead.CORES} emulated cores", directory,
         [note], "us a run")
