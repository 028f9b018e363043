# SPDX-License-Identifier: GPL-3.0-or-later
"""inv_lend and inv_reclaim: the core of a thread that says that it waits
is others' at once, also while the thread is awake, and its own again when it says so, or
computes."""

from __future__ import annotations

import pytest

from lib.machine import two_cpus
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
