# SPDX-License-Identifier: GPL-3.0-or-later
"""What `invade --report` says a program would have taken without moving cores, against stock runs:
each rank on a core of its own.

The report is of the time from MPI_Init to MPI_Finalize, a program's own seconds are those of its
main loop; what moving cores has shortened is in both, so the difference is added to the latter.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

import lammps_half
import loads
from common import BenchError, Context, Figure, Run, same_checksum

GOAL = 0.10


def reported(ctx: Context, command: list[str], threads: int | None = None, **env: str) -> Run:
    """A run under invade; its value "estimate" is what the main loop would have taken."""
    if threads is not None:
        env["OMP_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "report.json")
        run = ctx.run("reported", [str(ctx.build / "invade"), f"--report={file}", "--", *command],
                      env)
        job, = json.loads(file.read_text())["jobs"]
    without = job["without_moving_seconds"]
    if without is None:
        raise BenchError(f"the report of {' '.join(command)} has no estimate")
    run.values["gain"] = without - job["elapsed_seconds"]
    return run


def figure(name: str, turns: list[tuple[Run, Run]]) -> Figure:
    """The figure of turns of (stock, reported)."""
    ratios = [(ours.values["seconds"] + ours.values["gain"]) / stock.values["seconds"]
              for stock, ours in turns]
    ratio = statistics.median(ratios)
    gain = statistics.median(stock.values["seconds"] / ours.values["seconds"]
                             for stock, ours in turns)
    return Figure(f"estimate {name}", abs(ratio - 1), "of stock's time off", "<=", GOAL,
                  f"estimate {ratio:.3f} x stock, from {min(ratios):.3f} to {max(ratios):.3f}; "
                  f"stock took {gain:.2f} times as long as ours")


def of_program(ctx: Context, name: str, command: list[str]) -> Figure:
    turns = ctx.turns(lambda: ctx.stock(command), lambda: reported(ctx, command))
    same_checksum([run for turn in turns for run in turn])
    return figure(name, turns)


def of_lammps(ctx: Context) -> Figure:
    program, threads = lammps_half.Lammps(ctx), lammps_half.THREADS
    turns = ctx.turns(lambda: program.stock(1), lambda: program.finish(
        reported(ctx, program.command(threads), threads,
                 LD_LIBRARY_PATH=str(program.venv / "lib"))))
    lammps_half.same_thermo([run for turn in turns for run in turn])
    return figure("lammps", turns)


def estimate(ctx: Context) -> list[Figure]:
    names = ("imbalance", "artificial", "lammps")
    ctx.check_only(*names)
    chosen = ctx.only or names
    units = loads.units_per_ms(ctx)
    unequal = loads.imbalance_command(ctx, "1:9", units, 60, 1, 50, "blocking")
    measures = {"imbalance": lambda: of_program(ctx, "imbalance", unequal),
                "artificial": lambda: of_program(
                    ctx, "artificial", ctx.mpi(loads.RANKS, ctx.app("artificial"), "-T", "1280")),
                "lammps": lambda: of_lammps(ctx)}
    return [measures[name]() for name in names if name in chosen]
