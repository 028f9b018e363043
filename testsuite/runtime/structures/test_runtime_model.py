# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocols of the OpenMP runtime's threads, checked with spin in every interleaving; and that
the models find the faults that are put in on purpose."""

from __future__ import annotations

import pytest

from lib.building.models import check

SCRIPT = "libgomp-invasive/model/check.sh"


@pytest.mark.timeout(1200)
@pytest.mark.beside(command=check(SCRIPT, "deque"))
def test_no_task_is_taken_twice_and_no_sleeper_missed(checked):
    lines = checked()
    assert sum("finds" in line for line in lines) == 5


@pytest.mark.timeout(1200)
@pytest.mark.beside(command=check(SCRIPT, "tickets"))
def test_every_implicit_task_runs_once_and_no_thread_waits_in_vain(checked):
    lines = checked()
    assert sum("finds" in line for line in lines) == 13


@pytest.mark.timeout(1200)
@pytest.mark.beside(command=check(SCRIPT, "contexts"))
def test_every_context_goes_on_whichever_carrier_gives_its_core_up(checked):
    lines = checked()
    assert sum("finds" in line for line in lines) == 7


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.beside(command=check(SCRIPT, "contexts", "--full"))
def test_every_context_goes_on_also_with_more_contexts(checked):
    lines = checked()
    assert any("5 contexts" in line for line in lines)


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.beside(command=check(SCRIPT, "tickets", "--full"))
def test_every_implicit_task_runs_once_also_with_more_tickets_and_helpers(checked):
    lines = checked()
    assert any("more tickets" in line for line in lines)


@pytest.mark.timeout(1200)
@pytest.mark.beside(command=check(SCRIPT, "handover"))
def test_every_ready_thread_runs_and_no_hold_is_lost_or_doubled(checked):
    lines = checked()
    assert sum("finds" in line for line in lines) == 3


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.beside(command=check(SCRIPT, "handover", "--full"))
def test_every_ready_thread_runs_also_with_three_threads_from_the_start(checked):
    lines = checked()
    assert sum("3 threads" in line for line in lines) == 3


@pytest.mark.timeout(1200)
@pytest.mark.beside(command=check(SCRIPT, "eviction"))
def test_a_core_that_its_owner_takes_back_strands_no_thread(checked):
    lines = checked()
    assert sum("finds" in line for line in lines) == 1


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.beside(command=check(SCRIPT, "eviction", "--full"))
def test_a_lock_and_a_core_that_is_taken_back_twice_strand_no_thread(checked):
    lines = checked()
    assert sum("a lock" in line or "twice" in line for line in lines) == 2
