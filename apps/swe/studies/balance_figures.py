# SPDX-License-Identifier: GPL-3.0-or-later
"""The study of one unbalanced simulation as a table, figure 7's bars and figure 8's picture."""

from __future__ import annotations

from pathlib import Path

from common import Context

from . import balance, table

TURNS = 3
COLUMNS = ["cores/ranks", "clusters by", "stock s", "invade s", "invade/stock", "limit, fixed s",
           "limit, moved s", "limit, whole clusters s", "invade/limit"]


def bars(file: Path, names: list[str], stock: list[float], ours: list[float],
         limits: list[float], title: str) -> None:
    plt = table.pyplot()
    figure, axes = plt.subplots(figsize=(1.5 + len(names), 3.5))
    at = range(len(names))
    axes.bar([x - 0.2 for x in at], stock, 0.4, label="stock", color="0.7")
    axes.bar([x + 0.2 for x in at], ours, 0.4, label="invade", color="tab:blue")
    axes.hlines(limits, [x - 0.4 for x in at], [x + 0.4 for x in at], color="black",
                label="limit")
    axes.set_xticks(list(at), names)
    axes.set_ylabel("s")
    axes.set_title(title)
    axes.legend()
    table.save(figure, file)


def real(ctx: Context, directory: Path, _work: Path, scale: float) -> None:
    rows, names, stock, ours, limits = [], [], [], [], []
    for parallel in balance.PARALLELS:
        for c in balance.real(ctx, (4, 2), parallel, scale):
            rows.append([f"{balance.CORES}/{c.ranks}", parallel, c.best, c.stock, c.ours, c.ratio,
                         c.best_of_all, c.ratio_of_all, c.over_limit])
            names.append(f"{balance.CORES}/{c.ranks}\n{parallel}")
            stock.append(c.stock)
            ours.append(c.ours)
            limits.append(c.limit)
    table.show(f"Dam break off the centre, {balance.CORES} cores", [
        "cores/ranks", "clusters by", "best stock", "stock s", "invade s", "invade/best",
        "best of all shapes", "invade/best of all", "invade/limit"], rows,
        [f"the limit is what one rank and thread takes, over {balance.CORES} cores"],
        directory / "balance-real.csv")
    bars(directory / "balance-real.png", names, stock, ours, limits, f"{balance.CORES} cores")
    words = [ctx.app("swe"), *balance.short(balance.REAL, scale)]
    balance.picture_of_cores(ctx, 4, words, directory / "balance-real-cores.png")


def emulated(ctx: Context, directory: Path, work: Path, scale: float) -> None:
    found, notes = balance.emulated(ctx, work, scale=scale)
    rows = [[f"{r.cores}/{r.ranks}", r.parallel, r.stock, r.ours, r.ratio, r.fixed, r.moved,
             r.ended, r.ours / r.moved] for r in found]
    table.show("Dam break off the centre, emulated cores", COLUMNS, rows, notes,
               directory / "balance-emulated.csv", [r.model for r in found])
    bars(directory / "balance-emulated.png", [f"{r.cores}/{r.ranks}\n{r.parallel}" for r in found],
         [r.stock for r in found], [r.ours for r in found], [r.moved for r in found],
         "emulated cores")
    shown = found[0]  # figure 8: 40 cores, 4 ranks, by the loop
    balance.picture_of_cores(ctx, shown.ranks, shown.words,
                             directory / "balance-emulated-cores.png", shown.cores)
