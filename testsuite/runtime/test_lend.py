# SPDX-License-Identifier: GPL-3.0-or-later
"""inv_lend and inv_reclaim, in C, Fortran and Python: the core of a thread that says that it waits
is others' at once, also while the thread is awake, and its own again when it says so, or
computes."""

import os
import sys

import pytest

from lib.building.build import TOP
from lib.machine import two_cpus
from lib.manager.lending import compile_fortran
from lib.waiting import PATIENCE_S, eventually


@two_cpus
@pytest.mark.parametrize("how", ["reclaim", "region"])
def test_a_core_that_is_lent_is_the_others_until_it_is_reclaimed_or_a_region_begins(
        domain, lends, how):
    d = domain()
    lender = d.blocked(lends, how)
    other = d.start(lends, "computes")
    d.comes_to_hold(0, 2)
    d.wakes(lender)
    d.comes_to_hold(1, 1)
    d.ends_well(lender, other)


@two_cpus
@pytest.mark.parametrize("how", ["exit", "thread_exit"])
def test_a_thread_that_ends_while_its_core_is_lent_leaves_nothing(domain, lends, how):
    d = domain()
    lender = d.blocked(lends, how)
    other = d.start(lends, "computes")
    d.comes_to_hold(0, 2)
    d.wake.write()
    assert lender.wait(PATIENCE_S) == 0
    d.comes_to_hold(2)
    assert d.processes()[0]["owned_cores"] == 2
    d.ends_well(other)


@two_cpus
def test_implicit_and_explicit_tasks_may_lend_while_another_program_takes_their_cores(
        domain, lends):
    d = domain()
    other = d.start(lends, "computes")
    eventually(lambda: len(d.processes()), 1)
    for _ in range(3):
        tasks = d.blocked(lends, "tasks")
        assert tasks.wait(PATIENCE_S) == 0
    d.comes_to_hold(2)
    d.ends_well(other)


@pytest.mark.parametrize("contexts", ["on", "off"])
def test_a_process_by_itself_lends_and_reclaims(build, lends, run_program, contexts):
    result = run_program([build / "invade", lends, "alone"], env={"INVASIVE_CONTEXTS": contexts})
    assert result.stdout == "managed\n" and not result.stderr


@pytest.mark.parametrize("env", [{}, {"OMP_NUM_THREADS": "16"}])
def test_nothing_is_lent_without_a_resource_manager(lends, run_program, env):
    result = run_program([lends, "alone"], env=env)
    assert result.stdout == "unmanaged\n" and not result.stderr


def test_nothing_is_lent_with_our_runtime_alone(build, lends, run_program):
    result = run_program([lends, "alone"], env={"LD_LIBRARY_PATH": str(build / "lib/invasive"),
                                                "OMP_NUM_THREADS": "16"})
    assert result.stdout == "unmanaged\n" and not result.stderr


def test_nothing_is_lent_with_invasive_off(build, lends, run_program):
    result = run_program([build / "invade", lends, "alone"], env={"INVASIVE": "off"})
    assert result.stdout == "unmanaged\n"


# --- Fortran

FORTRAN = """
program lends
    use invasive
    use, intrinsic :: iso_c_binding, only: c_bool, c_double, c_int
    implicit none
    type(inv_constraint) :: constraint
    type(inv_claim) :: before, meanwhile, after
    logical(c_bool) :: lent, reclaimed
    constraint%workload = 3
    if (inv_invade(constraint, INV_BLOCKING, before) /= 0) error stop "invade"
    constraint%min_cores = 100000
    if (inv_reinvade(constraint, INV_NONBLOCKING) /= -1) error stop "reinvade"
    if (inv_announce_workload(2.0_c_double) /= 0) error stop "announce"
    constraint%scalability%point(1) = inv_scalability_point(4, 3.0)
    if (inv_announce_scalability(constraint%scalability) /= 0) error stop "scalability"
    lent = inv_lend()
    meanwhile = inv_claim_now()
    reclaimed = inv_reclaim()
    after = inv_claim_now()
    print "(4L2)", before%managed, lent, reclaimed, inv_reclaim()
    print "(3I3)", before%held_cores, meanwhile%held_cores, after%held_cores
    if (inv_retreat() /= 0) error stop "retreat"
end program
"""


@pytest.fixture
def fortran(tmp_path):
    return compile_fortran(tmp_path, FORTRAN)


def test_a_fortran_program_lends_and_reclaims(build, run_program, fortran):
    lines = run_program([build / "invade", fortran]).stdout.split()
    assert lines == ["T", "T", "T", "F", "1", "0", "1"]


def test_a_fortran_program_lends_nothing_without_a_resource_manager(run_program, fortran):
    cpus = str(len(os.sched_getaffinity(0)))
    assert run_program([fortran]).stdout.split() == ["F", "F", "F", "F", cpus, cpus, cpus]


# --- Python

PYTHON = """
import invasive
claim = invasive.invade(workload=2)
invasive.announce_workload(3)
with invasive.lent() as lent:
    meanwhile = invasive.claim_now()
    assert not invasive.lend()
after = invasive.claim_now()
print(claim.managed, lent, invasive.reclaim())
print(claim.held_cores, meanwhile.held_cores, after.held_cores)
for wrong in (lambda: invasive.invade(min_cores=100000), lambda: invasive.announce_workload(-1)):
    try:
        wrong()
    except OSError as error:
        print(error.errno)
invasive.retreat()
"""


@pytest.fixture
def python():
    """(COMMAND, its environment)"""
    return [sys.executable, "-B", "-c", PYTHON], {"PYTHONPATH": str(TOP / "include")}


def test_a_python_program_lends_and_reclaims(build, run_program, python):
    command, env = python
    words = run_program([build / "invade", *command], env=env).stdout.split()
    assert words == ["True", "True", "False", "1", "0", "1", "22", "22"]


@pytest.mark.parametrize("off", [False, True])
def test_a_python_program_lends_nothing_without_a_resource_manager(
        build, run_program, python, off):
    command, env = python
    under = [build / "invade"] if off else []
    result = run_program([*under, *command], env={**env, "INVASIVE": "off"} if off else env)
    cpus = str(len(os.sched_getaffinity(0)))
    assert result.stdout.split()[:6] == ["False", "False", "False", cpus, cpus, cpus]
