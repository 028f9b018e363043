# SPDX-License-Identifier: GPL-3.0-or-later
"""invade --mpi-tasks: a thread that waits in MPI runs OpenMP tasks meanwhile, when asked to."""


import pytest

from lib.machine import TWO_CORES


@pytest.fixture
def invade(build, mpi, run_program, stock_env):
    def run(*options, how, timeout=60):
        return run_program([build / "invade", *options, "--", mpi.mpiexec, "-n", "2",
                            mpi.program("mpi-shim/tests/tasks"), how],
                           env=stock_env, timeout=timeout)
    return run


@pytest.mark.parametrize("cores", [TWO_CORES, "--emulate-cores=1", "--emulate-cores=4"])
@pytest.mark.parametrize("how", ["call", "task", "nested"])
def test_a_thread_that_waits_in_mpi_runs_tasks_that_no_other_thread_could(invade, how, cores):
    """The program hangs otherwise: it waits for an answer to messages that the tasks send."""
    assert invade("--mpi-tasks", cores, how=how).stdout == "ok\n"


def test_programs_without_tasks_are_as_ever_with_mpi_tasks(build, mpi, run_program, stock_env):
    done = run_program([build / "invade", "--mpi-tasks", TWO_CORES, "--", mpi.mpiexec,
                        "-n", "2", mpi.program("mpi-shim/tests/calls")], env=stock_env)
    stock = run_program([*mpi.run(2, mpi.program("mpi-shim/tests/calls"))], env=stock_env)
    assert sorted(done.stdout.splitlines()) == sorted(stock.stdout.splitlines())
