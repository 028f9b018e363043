# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that test for messages under a lock of the program, which other threads of the rank
need."""

import re
import shutil

import pytest

# Lock, function of MPI, thread level, threads of a rank.
CASES = [("omp", "Testsome", "serialized", 2),
         ("omp", "Iprobe", "multiple", 4),
         ("critical", "Test", "multiple", 2),
         pytest.param("pthread", "Testany", "serialized", 2, marks=pytest.mark.full),
         ("pthread", "Test", "multiple", 4),
         pytest.param("std", "Iprobe", "multiple", 2, marks=pytest.mark.full),
         ("std", "Testsome", "serialized", 4),
         ("spin", "Testall", "serialized", 2),
         pytest.param("spin", "Test", "multiple", 3, marks=pytest.mark.full),
         ("sleepy", "Request_get_status", "multiple", 2)]
STEPS = 100  # 0.1 to 3 s with us and without, 20 s and more where a thread sleeps under the lock
LIMIT_S = 60
SLOWER, MORE_S = 2, 5  # than the same program without us, on a machine that others use
TRIES = 3  # which thread gets a lock that threads spin for is luck, without us too


def seconds(process):
    return float(re.search(r"([0-9.]+) s$", process.stdout, re.M).group(1))


@pytest.mark.parametrize("lock,test,level,threads", CASES)
def test_a_test_under_a_lock_keeps_no_other_thread_waiting(managed, mpi, run_program, lock, test,
                                                           level, threads):
    command = [mpi.program("mpi-shim/tests/polls"), lock, test, level, threads, STEPS]
    took = []
    for _ in range(TRIES):
        stock = run_program(mpi.run(2, *command), timeout=LIMIT_S)
        with_us = managed(2, *command, timeout=LIMIT_S)
        assert f"{STEPS} steps" in with_us.stdout and "wrong" not in with_us.stdout
        took.append((seconds(with_us), seconds(stock)))
        if took[-1][0] < SLOWER * took[-1][1] + MORE_S:
            return
    pytest.fail(f"seconds with us and without: {took}")


def test_a_thread_that_tests_once_and_goes_on_is_not_taken_for_one_that_waits(managed, mpi):
    assert managed(1, mpi.program("mpi-shim/tests/polls"), "once").stdout == "looked\n"


def test_a_program_that_works_between_its_tests_goes_on_working(managed, mpi):
    """It takes 0.1 s; more than a minute where each test were a wait."""
    assert managed(2, mpi.program("mpi-shim/tests/polls"), "between",
                   timeout=LIMIT_S).stdout == "200000 steps of work\n"


def test_a_transport_sweep_in_fortran_that_polls_under_a_lock_ends_as_without_us(
        managed, mpi, run_program, top, tmp_path):
    compiler = shutil.which(f"mpif90.{mpi.name}")
    if not compiler or not shutil.which("gfortran"):
        pytest.skip(f"mpif90.{mpi.name} and gfortran are needed")
    program = tmp_path / "transport"
    run_program([compiler, "-O1", "-fopenmp", "-o", program,
                 top / "mpi-shim/tests/transport.F90"], cwd=tmp_path)
    env = {"OMP_NUM_THREADS": "2"}
    stock = run_program(mpi.run(2, program, 200), env=env, timeout=LIMIT_S)
    with_us = managed(2, program, 200, env=env, timeout=LIMIT_S)
    assert with_us.stdout.splitlines()[0] == stock.stdout.splitlines()[0]
    assert with_us.stdout.startswith("flux ")
    assert seconds(with_us) < SLOWER * seconds(stock) + MORE_S
