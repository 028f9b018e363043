# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job of ./quickstart: three programs stock and under invade, in turns, and a table."""

from __future__ import annotations

import statistics
import sys

import lammps_half
import loads
from common import BenchError, Context, same_checksum


def seconds(turns, index: int) -> float:
    return statistics.median(t[index].values["seconds"] for t in turns)


def row(name: str, stock: float, invade: float, limit: float) -> str:
    ratio, bound = invade / stock, limit / stock
    return (f"{name:<34} {stock:8.2f} s {invade:8.2f} s {ratio:8.2f} {bound:8.2f} "
            f"{100 * (invade / limit - 1):+8.0f} %")


def imbalance_row(ctx: Context) -> str:
    units = loads.units_per_ms(ctx)
    shape = {"work_ms": 60, "regions": 1, "iterations": 40, "wait": "blocking"}
    equal = loads.imbalance_command(ctx, "5:5", units, **shape)
    unequal = loads.imbalance_command(ctx, "1:9", units, **shape)
    turns = ctx.turns(lambda: ctx.stock(equal, variant="limit"), lambda: ctx.stock(unequal),
                      lambda: ctx.invade(unequal))
    same_checksum([run for turn in turns for run in turn[1:]])
    return row("imbalance, loads 1:9", seconds(turns, 1), seconds(turns, 2), seconds(turns, 0))


def artificial_row(ctx: Context) -> str:
    command = ctx.mpi(2, ctx.app("artificial"))
    turns = ctx.turns(lambda: ctx.stock(command), lambda: ctx.invade(command))
    same_checksum([run for turn in turns for run in turn])
    stock = seconds(turns, 0)
    return row("artificial, loads T-t and t", stock, seconds(turns, 1), stock * 4 / 7)


def lammps_row(ctx: Context) -> str:
    program = lammps_half.Lammps(ctx)
    turns = ctx.turns(program.limit, lambda: program.stock(1),
                      lambda: program.invade(lammps_half.THREADS))
    lammps_half.same_thermo([turn[i] for turn in turns for i in (1, 2)])
    return row("LAMMPS, fluid in half of the box", seconds(turns, 1), seconds(turns, 2),
               seconds(turns, 0))


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
    return [heading + f"{'limit':>8} {'distance':>10}", *rows], complete
