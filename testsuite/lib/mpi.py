# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPI libraries that configure found, jobs of them, and the table of the shim's functions."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import sys
import time
from pathlib import Path

import pytest

from lib.machine import TWO_CORES, mapped, shared_memory


@pytest.fixture(scope="session")
def mpiexec(make_variable) -> str:
    """mpiexec of the MPI that the applications are built with."""
    program = make_variable("MPIEXEC")
    if not program:
        pytest.skip("configured without MPI")
    return program


@pytest.fixture
def start_ranks(mpiexec, invade):
    """start_ranks(N) - the words that start N ranks of a program that is tested, not of its MPI.
    More than two of them run under invade, on two cores: without it ranks of MPICH that wait keep
    the others off the cores, and the same takes up to twenty times as long."""

    def words(n, managed=None):
        more = ["--oversubscribe", "--bind-to", "none"] if "openmpi" in mpiexec else []
        managed = n > 2 if managed is None else managed
        return [*([invade, TWO_CORES, "--"] if managed else []), mpiexec, *more, "-n", n]

    return words


class Mpi:
    """One of the MPIs that configure found."""

    def __init__(self, name, value, build):
        prefix = name.upper()
        self.name = name
        self.mpiexec, self.mpicc = value(f"{prefix}_MPIEXEC"), value(f"{prefix}_MPICC")
        self.flags = value(f"{prefix}_CPPFLAGS").split(), value(f"{prefix}_LIBS").split()
        self._build = build
        self._suffix = ".openmpi" if name == "openmpi" and value("MPICH_MPICC") else ""

    def program(self, path) -> Path:
        """A program of the build tree, such as apps/allreduce/allreduce, compiled for this MPI."""
        return self._build / f"{path}{self._suffix}"

    def run(self, ranks, *command, bound=False) -> list:
        """The command line; more ranks than cores, and no binding, with either MPI.  bound: where
        the launcher binds ranks by default, which `managed` leaves to it."""
        more = ["--oversubscribe", "--bind-to", "none"][:1 if bound else 3]
        return [self.mpiexec, *(more if self.name == "openmpi" else []), "-n", ranks, *command]


@pytest.fixture(scope="session", params=["mpich", "openmpi"])
def mpi(request, make_variable, build) -> Mpi:
    """Each MPI that there is: the test is run with one after the other."""
    name = request.param
    if not make_variable(f"{name.upper()}_MPIEXEC"):
        pytest.skip(f"configured without {name}")
    return Mpi(name, make_variable, build)


@pytest.fixture
def what_mpi_leaves_when_it_is_killed_goes():
    """The MPI libraries' own segments stay when a rank is killed, with us or not.  A process maps
    a segment a moment after it has made it: a new segment of another job is no leftover."""
    before = shared_memory()
    yield
    left = [name for name in shared_memory() - before
            if name.startswith(("mpich_", "ucx_", "vader_", "osc_")) and not mapped(name)]
    if left:
        time.sleep(1)
    for name in left:
        if not mapped(name):
            with contextlib.suppress(PermissionError):  # of another user's job
                Path("/dev/shm", name).unlink(missing_ok=True)


@pytest.fixture
def table_module(top, monkeypatch):
    """The module mpi-shim/gen/table.py."""
    monkeypatch.syspath_prepend(str(top / "mpi-shim/gen"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return importlib.import_module("table")


@pytest.fixture
def table(top, table_module):
    """The functions of mpi-shim/gen/prototypes.txt, as the generator reads them."""
    return table_module.parse((top / "mpi-shim/gen/prototypes.txt").read_text())


@pytest.fixture
def managed(invade, mpi, run_program):
    """managed(RANKS, COMMAND...): an MPI job under invade with two cores; the completed process."""

    def run(ranks, *command, cores=TWO_CORES, **more):
        return run_program([invade, cores, "--report", "--", mpi.mpiexec, "-n", ranks, *command],
                           **more)

    return run
