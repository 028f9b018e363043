# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job of ./quickstart: three programs stock and under invade, in turns, and a table."""

from __future__ import annotations

import statistics
import sys

import lammps_half
import loads
from common import BenchError, Context, same_checksum

# Turns that differ by more than this factor say little: the row has a mark, and a line says so.
UNSTEADY, MARK = 1.2, " *"
NOTE = "* The turns differ by more than 20 %: other programs run.  Again where nothing else does."


def seconds(turns, index: int) -> float:
    return statistics.median(t[index].values["seconds"] for t in turns)


def spread(turns, index: int) -> float:
    values = [t[index].values["seconds"] for t in turns]
    return max(values) / min(values)


def row(name: str, turns, stock_at: int, invade_at: int, limit: float) -> str:
    """Of turns in which stock and ours are the runs of these indices."""
    stock, invade = seconds(turns, stock_at), seconds(turns, invade_at)
    ratio, bound = invade / stock, limit / stock
    unsteady = max(spread(turns, stock_at), spread(turns, invade_at)) > UNSTEADY
    return (f"{name:<34} {stock:8.2f} s {invade:8.2f} s {ratio:8.2f} {bound:8.2f} "
            f"{100 * (invade / limit - 1):+8.0f} %{MARK if unsteady else ''}")


def imbalance_row(ctx: Context) -> str:
    units = loads.units_per_ms(ctx)
    shape = {"work_ms": 60, "regions": 1, "iterations": 40, "wait": "blocking"}
    equal = loads.imbalance_command(ctx, "5:5", units, **shape)
    unequal = loads.imbalance_command(ctx, "1:9", units, **shape)
    turns = ctx.turns(lambda: ctx.stock(equal, variant="limit"), lambda: ctx.stock(unequal),
                      lambda: ctx.invade(unequal))
    same_checksum([run for turn in turns for run in turn[1:]])
    return row("imbalance, loads 1:9", turns, 1, 2, seconds(turns, 0))


def artificial_row(ctx: Context) -> str:
    command = ctx.mpi(2, ctx.app("artificial"))
    turns = ctx.turns(lambda: ctx.stock(command), lambda: ctx.invade(command))
    same_checksum([run for turn in turns for run in turn])
    return row("artificial, loads T-t and t", turns, 0, 1, seconds(turns, 0) * 4 / 7)


def lammps_row(ctx: Context) -> str:
    program = lammps_half.Lammps(ctx)
    turns = ctx.turns(program.limit, lambda: program.stock(1),
                      lambda: program.invade(lammps_half.THREADS))
    lammps_half.same_thermo([turn[i] for turn in turns for i in (1, 2)])
    return row("LAMMPS, fluid in half of the box", turns, 1, 2, seconds(turns, 0))


def table(ctx: Context) -> tuple[list[str], bool]:
    """The lines of the table, and whether every program ran."""
    rows, complete = [], True
    for what, measure in (("artificial", artificial_row), ("imbalance", imbalance_row),
                          ("LAMMPS", lammps_row)):
        print(f"  {what}: {ctx.pairs} turns", flush=True)
        try:
            rows.append(measure(ctx))
        except BenchError as error:
            rows.append(f"{what:<34} failed: {str(error).splitlines()[0]}")
            print(f"    {error}", file=sys.stderr)
            complete = False
    heading = f"{'2 ranks on 2 cores':<34} {'stock':>10} {'invade':>10} {'ratio':>8} "
    note = [NOTE] if any(line.endswith(MARK) for line in rows) else []
    return [heading + f"{'limit':>8} {'distance':>10}", *rows, *note], complete
