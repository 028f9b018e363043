# SPDX-License-Identifier: GPL-3.0-or-later
"""The shim beside another profiler, and calls that the MPI library makes itself or that come from
functions which it calls."""

import re

import pytest

from lib.machine import TWO_CORES


@pytest.fixture
def build_c(make_variable, top, run_program, tmp_path):
    """build_c(NAME, *MORE, out=NAME) - testsuite/mpi/programs/NAME.c compiled to tmp_path/NAME."""

    def compiled(name, *more, out=None):
        out = tmp_path / (out or name)
        run_program([*make_variable("CC").split(), "-O2", "-Wall", "-Wextra", "-Werror", "-o", out,
                     top / f"testsuite/mpi/programs/{name}.c", *more])
        return out

    return compiled


@pytest.fixture
def invade(build, run_program):
    def run(*command, **more):
        return run_program([build / "invade", TWO_CORES, "--report", "--", *command], **more)

    return run


def counts(path):
    lines = sorted(path.read_text().splitlines())
    path.unlink()
    return lines


OF_STOCK = {}  # more ranks than cores, which spin, take long


def managed_ranks(process):
    return len(re.findall(r"^ *\d+ +\d+ +\S+ +[\d.]+ +[\d.]+ ", process.stderr, re.M))


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(3, marks=pytest.mark.full)])
@pytest.mark.parametrize("where", ["before us", "after us", "linked"])
def test_a_profiler_counts_the_programs_calls_and_nothing_else(
        build, mpi, top, make_variable, run_program, invade, build_c, tmp_path, where, ranks):
    profiler = build_c("count_calls", "-shared", "-fPIC", "-fvisibility=default",
                       out="libcount.so")
    out = tmp_path / "counts"
    env = {"COUNT_CALLS": str(out)}
    program = mpi.program("mpi-shim/tests/calls")
    if where == "linked":
        program = tmp_path / "calls"
        run_program([*make_variable("CC").split(), *mpi.flags[0], "-o", program,
                     top / "mpi-shim/tests/calls.c", "-Wl,--no-as-needed", profiler,
                     *mpi.flags[1]])
    key = mpi.name, ranks, where == "linked"
    if key not in OF_STOCK:
        stock_env = env if where == "linked" else {**env, "LD_PRELOAD": str(profiler)}
        OF_STOCK[key] = run_program(mpi.run(ranks, program), env=stock_env), counts(out)
    stock, without_us = OF_STOCK[key]
    command = [mpi.mpiexec, "-n", ranks, program]
    if where == "before us":
        command = ["sh", "-c", f'export LD_PRELOAD="{profiler}:$LD_PRELOAD"; exec "$@"', "sh",
                   *command]
    elif where == "after us":
        env["LD_PRELOAD"] = str(profiler)
    with_us = invade(*command, env=env)
    assert with_us.stdout == stock.stdout
    assert counts(out) == without_us
    assert len(without_us) == ranks and "Allreduce=0" not in without_us[0]
    assert all(" Pcontrol=1 " in line for line in without_us)
    assert managed_ranks(with_us) == ranks


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_the_library_calls_passes_through_the_shim(mpi, run_program, invade, build_c, tmp_path,
                                                        ranks):
    program = build_c("callbacks", *mpi.flags[0], *mpi.flags[1])
    command = [program, tmp_path / "file"]
    stock = run_program(mpi.run(ranks, *command))
    with_us = invade(mpi.mpiexec, "-n", ranks, *command)
    assert "wrong after file operations: 0" in stock.stdout
    assert mpi.name != "mpich" or "an error's text names MPI_Recv: 1" in stock.stdout
    assert with_us.stdout == stock.stdout
    assert managed_ranks(with_us) == ranks
