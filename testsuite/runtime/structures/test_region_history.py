# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runtime learns of each outlined function (region/history.c), without the threads that
run regions: region_history.c opens and closes them, and says how long each takes.  gate_stress.c
has threads, regions with the gate (region/region.c), and the history of what they do there."""

from __future__ import annotations

import pytest

from lib.building.runtime_parts import Conversation

LEARN, MEASURE = 1 << 16, 1 << 21  # regions; a window of trials has 2048 of them


class History:
    """Regions of a function, which is a number.  Times are in nanoseconds."""

    def __init__(self, program):
        self.ask = program.ask

    def run(self, fn, count, nthreads, alone, in_order, apart, *how):
        """How many regions went alone, apart; how many were timed."""
        return tuple(map(int, self.ask("regions", fn, count, nthreads, alone, in_order, apart,
                                       *how).split()))

    def shares(self, fn, nthreads, alone, in_order, apart):
        """Shares of regions that go alone, and apart, when the times are known."""
        self.run(fn, LEARN, nthreads, alone, in_order, apart)
        went = self.run(fn, MEASURE, nthreads, alone, in_order, apart)
        return went[0] / MEASURE, went[1] / MEASURE

    def show(self, fn):
        names = ("core", "alone", "shared", "in_order", "apart", "waits", "inside")
        said = self.ask("show", fn)
        return None if said == "none" else dict(zip(names, map(int, said.split())))


@pytest.fixture(scope="module")
def command(compile_part):
    return compile_part("region_history", ["history.c"], "region", "address,undefined")


@pytest.fixture
def history(command):
    with Conversation(command) as program:
        history = History(program)
        assert history.ask("cores", 2, 0, 0, 0) == "2"
        yield history


def bucket(fn):
    return (fn * 0x9e3779b97f4a7c15 & 2**64 - 1) >> 56


def test_of_a_function_without_regions_nothing_is_known(history):
    assert history.show(4096) is None


def test_times_that_stay_the_same_are_known_as_they_are(history):
    history.run(4096, LEARN, 4, 90_000, 50_000, 50_000)
    known = history.show(4096)
    assert (known["shared"], known["core"]) == (50_000, 100_000)


def test_new_times_replace_those_that_were_known(history):
    history.run(4096, LEARN, 4, 90_000, 50_000, 50_000)
    history.run(4096, LEARN, 4, 90_000, 60_000, 60_000)
    assert 59_900 < history.show(4096)["shared"] <= 60_000


def test_one_region_that_is_interrupted_changes_little(history):
    history.run(4096, LEARN, 4, 90_000, 50_000, 50_000)
    while history.show(4096)["core"] == 100_000:
        history.run(4096, 1, 4, 9_000_000, 50_000_000, 50_000_000)
    assert history.show(4096)["core"] <= 100_000 * 7 / 4


def test_some_regions_are_timed_and_most_are_not(history):
    timed = history.run(4096, LEARN, 4, 90_000, 50_000, 50_000)[2]
    assert LEARN / 32 < timed < LEARN / 4


def test_a_nested_region_is_not_timed(history):
    assert history.run(4096, LEARN, 4, 90_000, 50_000, 50_000, "nested")[2] == 0
    assert history.show(4096) is None or history.show(4096)["core"] == 0


def test_two_functions_do_not_share_what_is_known(history):
    one, other = 4096, next(fn for fn in range(8192, 2**20) if bucket(fn) != bucket(4096))
    history.run(one, LEARN, 4, 90_000, 50_000, 50_000)
    history.run(other, LEARN, 4, 90_000, 20_000, 20_000)
    assert (history.show(one)["shared"], history.show(other)["shared"]) == (50_000, 20_000)


def test_a_function_that_takes_anothers_place_begins_with_nothing(history):
    one, other = 4096, next(fn for fn in range(8192, 2**20) if bucket(fn) == bucket(4096))
    history.run(one, LEARN, 4, 90_000, 50_000, 50_000, "sleeps:9", "waits")
    history.ask("stalls", one, "alone")
    history.ask("stalls", one, "apart")
    history.ask("stalls", other, "region")
    assert history.show(one) is None
    assert set(history.show(other).values()) == {0}


# --- regions that are left to one core

def test_short_regions_go_alone_where_that_is_quicker_by_a_quarter(history):
    assert history.shares(4096, 2, 3_000, 5_000, 5_000)[0] > 0.95


@pytest.mark.parametrize("alone", [4_000, 8_000])
def test_short_regions_do_not_go_alone_where_that_is_not_quicker_by_a_quarter(history, alone):
    assert 0 < history.shares(4096, 2, alone, 5_000, 5_000)[0] < 0.05


def test_long_regions_never_go_alone(history):
    assert history.run(4096, LEARN, 2, 100, 50_000, 50_000)[0] == 0


def test_the_quicker_way_is_taken_again_when_times_have_changed(history):
    assert history.shares(4096, 2, 3_000, 5_000, 5_000)[0] > 0.95
    history.run(4096, MEASURE, 2, 6_000, 5_000, 5_000)
    assert history.run(4096, MEASURE, 2, 6_000, 5_000, 5_000)[0] < 0.05 * MEASURE


def test_no_region_goes_alone_after_one_that_was_not_over_soon(history):
    assert history.shares(4096, 2, 3_000, 5_000, 5_000)[0] > 0.95
    history.ask("stalls", 4096, "alone")
    assert history.run(4096, MEASURE, 2, 3_000, 5_000, 5_000)[0] == 0


@pytest.mark.parametrize("found", ["loops", "yielding"])
def test_no_region_goes_alone_if_threads_wait_in_loops_near_its_code(history, found):
    history.ask("code", found)
    assert history.run(4096, LEARN, 2, 3_000, 5_000, 5_000)[0] == 0
    assert history.ask("spins", 4096) == "no 1"  # the search


# --- the order in which cores take implicit tasks

@pytest.mark.parametrize("apart", [300_000, 410_000])
def test_cores_begin_with_what_they_had_if_that_takes_at_most_a_32nd_longer(history, apart):
    assert history.shares(4096, 8, 1, 400_000, apart)[1] > 0.95


def test_cores_take_implicit_tasks_in_order_if_that_is_quicker(history):
    assert 0 < history.shares(4096, 8, 1, 400_000, 500_000)[1] < 0.05


def test_implicit_tasks_of_more_than_a_millisecond_are_taken_in_order(history):
    assert history.run(4096, LEARN, 8, 1, 4_400_000, 1_000_000)[1] == 0


def test_implicit_tasks_that_waited_for_one_not_started_are_taken_in_order_from_then_on(history):
    assert history.shares(4096, 8, 1, 400_000, 300_000)[1] > 0.95
    history.ask("stalls", 4096, "apart")
    assert history.run(4096, MEASURE, 8, 1, 400_000, 300_000)[1] == 0


# --- implicit tasks that wait

def test_sleeps_count_for_each_implicit_task_if_there_are_more_than_cores(history):
    history.run(4096, 1000, 8, 1, 400_000, 400_000, "sleeps:16")
    assert history.show(4096)["waits"] == 2 * 256
    history.run(8192, 1000, 2, 1, 400_000, 400_000, "sleeps:16")
    assert history.show(8192) is None or history.show(8192)["waits"] == 0


def test_a_function_whose_implicit_tasks_have_waited_once_is_one_that_waits(history):
    history.run(4096, 1, 8, 1, 400_000, 400_000)
    assert history.show(4096)["inside"] == 1
    history.run(4096, 1, 8, 1, 400_000, 400_000, "waits")
    history.run(4096, 100, 8, 1, 400_000, 400_000)
    assert history.show(4096)["inside"] == 2


def test_of_regions_that_are_not_elastic_it_is_not_known_whether_they_wait(history):
    history.run(4096, LEARN, 8, 1, 400_000, 400_000, "bound", "waits")
    assert history.show(4096)["inside"] == 0


def test_code_is_searched_for_loops_after_a_stall_and_once(history):
    history.ask("code", "loops")
    assert history.ask("spins", 4096) == "no 0"
    history.ask("stalls", 4096, "region")
    assert history.ask("spins", 4096) == "yes 1"
    assert history.ask("spins", 4096) == "yes 1"


def test_a_stall_without_loops_near_the_code_is_no_wait_in_loops(history):
    history.ask("stalls", 4096, "region")
    assert history.ask("spins", 4096) == "no 1"
    assert history.ask("spins", 4096) == "no 1"


def test_many_calls_of_sched_yield_in_one_region_say_that_implicit_tasks_wait(history):
    assert history.ask("yields", 4096, 1, 255) == "unknown"
    assert history.ask("yields", 4096, 2, 255) == "unknown"
    assert history.ask("yields", 4096, 2, 1) == "seen"
    assert history.ask("spins", 4096) == "yes 1"


def test_loops_that_are_known_to_yield_are_no_wait_in_loops(history):
    history.ask("code", "yielding")
    history.ask("stalls", 4096, "region")
    assert history.ask("yields", 4096, 1, 1) == "known"
    assert history.ask("spins", 4096) == "no 1"


# --- cores

@pytest.mark.parametrize("words,wanted", [
    (("cores", 2, 3, 4, 5), 9), (("cores", 0, 0, 0, 5), 1), (("tokens", 3), 3), (("tokens", 0), 1),
    (("unmanaged", 6), 6)])
def test_cores_at_hand_are_held_or_lent_or_free_and_one_at_least(history, words, wanted):
    assert history.ask(*words) == str(wanted)


# --- the gate

def test_a_region_is_over_when_all_that_its_gate_counts_is_and_the_history_has_it(run_stress):
    said = run_stress("gate_stress", ["region.c", "history.c", "tickets.c", "spinlock.c"], "region")
    assert said.startswith("gate: ")
