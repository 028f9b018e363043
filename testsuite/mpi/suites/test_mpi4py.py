# SPDX-License-Identifier: GPL-3.0-or-later
"""mpi4py's own test suite, from its source: what passes without us passes under invade.

The module is Debian's for Open MPI (python3-mpi4py); for MPICH it is built from the same source.
Each case is compared by itself, in each rank.  Stock may be slow with more ranks than cores, so of
a file it runs what it gets through in a short time, and then what failed with us; and what does not
end with us it gets as much time for."""

import sys
import time

import mpi4py_suite
import pytest
from common import BenchError

from lib.machine import TWO_CORES
from lib.processes import TIME_IS_UP, at_most

pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]
# For a file of tests.
OURS_S, STOCK_S, AGAIN_S = 100, 15, 60


@pytest.fixture(scope="session")
def mpi4py_source(tmp_path_factory):
    """The unpacked source package."""
    try:
        return mpi4py_suite.get_source(tmp_path_factory.mktemp("mpi4py"))
    except BenchError as error:
        pytest.skip(f"cannot download mpi4py's source: {error}")


@pytest.fixture(scope="session")
def module(mpi, mpi4py_source, stock_env):
    """The interpreter that has the module for this MPI, and the environment to find it."""
    try:
        return mpi4py_suite.python(mpi.name, mpi.mpicc, mpi4py_source, stock_env)
    except mpi4py_suite.Missing as error:
        pytest.skip(str(error))


class Run:
    """How the cases of a file ended: (rank, case) -> passed, skipped or failed."""

    def __init__(self, where, returncode, seconds):
        self.ended = returncode != TIME_IS_UP
        self.well = returncode == 0
        self.seconds = seconds
        self.cases = {}
        for log in where.iterdir():
            for line in log.read_text().splitlines():
                case, end, *_ = line.rsplit(maxsplit=3)
                self.cases[log.name, case] = end

    def passed(self):
        return {case for case, end in self.cases.items() if end == "passed"}


@pytest.fixture
def run_file(module, mpi, mpi4py_source, run_program, top, tmp_path_factory):
    """run_file(LAUNCHER, RANKS, FILE, SECONDS, CASES...) - a file of tests, or some of its cases"""
    python, env = module
    env = {**env, "PYTHONDONTWRITEBYTECODE": "1"}

    def run(launcher, ranks, name, seconds, *cases):
        where = tmp_path_factory.mktemp(name)
        only = [word for case in cases for word in ("-k", case)]
        command = mpi.run(ranks, python, top / "testsuite/mpi/suites/mpi4py_cases.py",
                          mpi4py_source / "test",
                          where, "--no-builddir", "-i", f"^{name}$", *only)
        start = time.monotonic()
        done = run_program(at_most(seconds, *launcher, *command), env=env, cwd=mpi4py_source,
                           timeout=seconds + 60, check=False)
        return Run(where, done.returncode, time.monotonic() - start)

    return run


def files(source):
    """The test files of mpi4py, except those that start processes: now and then these do not end,
    without us too (test_spawn.py)."""
    names = sorted(path.stem for path in (source / "test").glob("test_*.py"))
    return [name for name in names if name not in ("test_spawn", "test_dynproc")]


def worse(run_file, managed, ranks, name):
    """The cases of a file that pass without us and not with us; how long it took, if both ended."""
    ours = run_file(managed, ranks, name, OURS_S)
    stock = run_file([], ranks, name, STOCK_S if ours.ended else OURS_S)
    lost = stock.passed() - ours.passed()
    unknown = {case for case, end in ours.cases.items() if end == "failed"} - set(stock.cases)
    if unknown:
        names = {case.split(".", 1)[-1] for _, case in unknown}
        lost |= unknown & run_file([], ranks, name, AGAIN_S, *names).passed()
    if stock.well and not ours.well:
        lost.add(("job", "its exit code" if ours.ended else "its end"))
    print(f"{name}: {ours.seconds:.1f} s, {len(ours.passed())} passed; stock {stock.seconds:.1f} s,"
          f" {len(stock.passed())} passed", file=sys.stderr)
    return lost


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_mpi4pys_suite_passes_with_us_what_it_passes_without(
        run_file, mpi4py_source, invade, ranks):
    managed = [invade, TWO_CORES, "--"]
    lost = {}
    for name in files(mpi4py_source):
        cases = worse(run_file, managed, ranks, name)
        if cases:
            lost[name] = sorted(cases)
    assert not lost
