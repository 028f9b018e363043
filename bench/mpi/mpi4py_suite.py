# SPDX-License-Identifier: GPL-3.0-or-later
"""mpi4py's own test suite, stock and under invade: how long a job of some of its files takes.

The source is the Python package index's, the module Debian's for Open MPI (python3-mpi4py); for
MPICH it is built from that source, once.  All ranks pass the same cases in both, or there is no
figure.  Stock ends the files in seconds, MPICH with five ranks on two cores too: there without
those of LONG.  The whole suite, file by file, is testsuite/mpi/suites/test_mpi4py.py's.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import TOP, BenchError, Context, Figure, Run, median_ratio, median_value
from mpi_programs import Library, libraries

VERSION = "3.1.4"
RANKS = (1, 2, 5)
FILES = ("test_attributes", "test_cco_obj", "test_comm", "test_file", "test_msgzero",
         "test_p2p_obj_matched", "test_pickle")
LONG = ("test_cco_buf", "test_io", "test_p2p_buf", "test_pack")


class Missing(BenchError):
    """Something is not installed."""


def must(command: list[str], **how) -> None:
    made = subprocess.run(command, check=False, capture_output=True, text=True, **how)
    if made.returncode != 0:
        raise BenchError(f"{' '.join(command)}: {made.stderr[-1000:]}")


def get_source(where: Path) -> Path:
    """The unpacked source package; nothing is done when it is there."""
    source = where / f"mpi4py-{VERSION}"
    if not source.exists():
        where.mkdir(parents=True, exist_ok=True)
        must([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
              f"mpi4py=={VERSION}"], cwd=where, timeout=600)
        must(["tar", "xf", f"mpi4py-{VERSION}.tar.gz"], cwd=where, timeout=60)
    return source


def get_module(source: Path, mpicc: str, env: dict[str, str] | None = None) -> Path:
    """The directory of the module for this compiler of MPI programs; made if it is not there."""
    base = source.parent / Path(mpicc).name
    done = base / ".built"
    if not done.exists():
        must([sys.executable, "setup.py", "-q", "build", f"--mpicc={mpicc}",
              f"--build-base={base}"], cwd=source, env=env, timeout=900)
        done.touch()
    return next(base.glob("lib*"))


def python(library: str, mpicc: str, source: Path,
           env: dict[str, str] | None = None) -> tuple[str, dict[str, str]]:
    """The interpreter that has the module for this library, and the environment to find it."""
    if library != "openmpi":
        return sys.executable, {"PYTHONPATH": str(get_module(source, mpicc, env))}
    program = "/usr/bin/python3"
    if subprocess.run([program, "-c", "import mpi4py"], check=False).returncode != 0:
        raise Missing("needs package python3-mpi4py")
    return program, {}


def passed(where: Path, ranks: int) -> list[set[str]]:
    """The cases that passed, for each rank."""
    cases = []
    for rank in range(ranks):
        ends = [line.rsplit(maxsplit=3) for line in (where / str(rank)).read_text().splitlines()]
        cases.append({name for name, end, *_ in ends if end == "passed"})
    return cases


class Suite:
    """The files with one library and number of ranks."""

    def __init__(self, ctx: Context, library: Library, source: Path, ranks: int):
        self.ctx, self.mpi, self.source, self.ranks = ctx, library, source, ranks
        self.program, env = python(library.name, f"mpicc.{library.name}", source)
        self.env = {**library.env, **env, "PYTHONDONTWRITEBYTECODE": "1"}
        slow = library.name == "mpich" and ranks > 2
        self.files = FILES if slow else FILES + LONG
        self.cases: list[set[str]] = []

    def run(self, variant: str, *launcher: str) -> Run:
        with tempfile.TemporaryDirectory(prefix="mpi4py-") as where:
            command = self.ctx.mpi(self.ranks, *self.mpi.options, self.program,
                                   str(TOP / "testsuite/mpi/suites/mpi4py_cases.py"),
                                   str(self.source / "test"), where, "--quiet", "--no-builddir",
                                   "-i", f"^({'|'.join(self.files)})$", mpiexec=self.mpi.launcher)
            run = self.ctx.run(f"{self.mpi.name}-{self.ranks}-{variant}", [*launcher, *command],
                               self.env, says_it=False)  # how many cases, on stderr
            cases = passed(Path(where), self.ranks)
        if self.cases and cases != self.cases:
            raise BenchError(f"{run.variant}: other cases passed than in the run before")
        self.cases = cases
        run.values = {"seconds": run.wall_s}
        return run

    def stock(self) -> Run:
        return self.run("stock")

    def ours(self) -> Run:
        return self.run("invade", str(self.ctx.build / "invade"), "--")


def mpi4py(ctx: Context) -> list[Figure]:
    """The figure is the worst of all libraries and numbers of ranks."""
    source = get_source(ctx.work / "mpi4py")
    figures = []
    for library in libraries(ctx):
        for ranks in RANKS:
            suite = Suite(ctx, library, source, ranks)
            turns = ctx.turns(suite.stock, suite.ours)
            stock, ours = (median_value(turns, i) for i in (0, 1))
            cpu = statistics.median(turn[1].cpu_s / turn[0].cpu_s for turn in turns)
            figures.append(Figure(f"mpi4py-{library.name}-{ranks}", median_ratio(turns, 1, 0),
                                  "x stock", "<=", 1.0,
                                  f"{library.name}, {ranks} ranks, {len(suite.cases[0])} cases: "
                                  f"stock {stock:.2f} s, invade {ours:.2f} s; "
                                  f"processor time {cpu:.2f} x stock"))
    figures.append(Figure("mpi4py", max(f.value for f in figures), "x stock", "<=", 1.0,
                          "the worst of them"))
    return figures
