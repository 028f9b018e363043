# SPDX-License-Identifier: GPL-3.0-or-later
"""The search of control points (libinvasive/base/tune.c) on simulated programs: it finds the best
value, does not end with one that is worse than the program's own, and begins anew when times have
changed."""

from __future__ import annotations

import random
import subprocess
from typing import NamedTuple

import pytest

from lib.building.build import TOP
from lib.building.small_programs import compile_text


class Look(NamedTuple):
    value: int
    settled: int
    searches: int


class Search:
    """A search that runs: it says a value, and is told a time."""

    def __init__(self, program, low, high, own):
        self.process = subprocess.Popen([program, *map(str, (low, high, own))], text=True,
                                        bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.look = self.hear()

    def hear(self):
        return Look(*map(int, self.process.stdout.readline().split()))

    def add(self, seconds):
        self.process.stdin.write(f"{int(seconds * 1e9)}\n")
        self.look = self.hear()
        return self.look

    def run(self, seconds_of, iterations):
        """The values that have been used, until the search is over."""
        used = []
        for _ in range(iterations):
            used.append(self.look.value)
            if self.add(seconds_of(self.look.value)).settled:
                return used
        raise AssertionError(f"not settled in {iterations} iterations")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    source = TOP / "testsuite/runtime/structures/tune.c"
    return compile_text(tmp_path_factory.mktemp("tune") / "tune", source.read_text(), "-std=gnu17",
                        "-DINV_ASSERTIONS", f"-I{TOP}", TOP / "libinvasive/base/tune.c")


@pytest.fixture
def search(program):
    """search(LOW, HIGH, OWN) - a Search"""
    started = []

    def start(*numbers):
        started.append(Search(program, *numbers))
        return started[-1]

    yield start
    for one in started:
        one.process.stdin.close()
        assert one.process.wait(60) == 0
        one.process.stdout.close()


def bowl(best, steepness=0.5):
    """Seconds that are least at `best`, and grow with the factor from it."""
    return lambda value: 0.01 * (1 + steepness * (max(value, best) / min(value, best) - 1))


@pytest.mark.parametrize("low,high,own,best", [
    (1, 33, 1, 20), (1, 33, 33, 5), (1, 33, 17, 17), (8, 1024, 64, 300), (1, 1_000_000, 10, 50_000),
    (4, 5, 5, 4), (100, 130, 100, 130)])
def test_the_best_value_of_a_smooth_curve_is_found(search, low, high, own, best):
    s = search(low, high, own)
    cost = bowl(best)
    used = s.run(cost, 400)
    assert used[0] == own and all(low <= value <= high for value in used)
    assert cost(s.look.value) <= (1.15 if high > 1000 else 1.015) * cost(best)


@pytest.mark.parametrize("seed", range(4))
def test_noise_leads_to_no_value_that_is_worse_than_the_programs_own(search, seed):
    """Noise of a tenth, and now and then an iteration three times as long: 2 % worse at most."""
    noise = random.Random(seed)
    cost = bowl(20, 0.1)

    def measured(value):
        return cost(value) * noise.uniform(0.95, 1.05) * (3 if noise.random() < 0.05 else 1)

    s = search(1, 64, 30)
    s.run(measured, 600)
    assert cost(s.look.value) <= 1.02 * cost(30)


def test_where_the_value_makes_no_difference_the_programs_own_stays(search):
    s = search(1, 64, 30)
    s.run(lambda _: 0.01, 600)
    assert s.look.value == 30


def test_a_value_that_is_much_worse_is_tried_in_three_iterations_only(search):
    s = search(1, 33, 17)
    used = s.run(lambda value: 0.01 if value == 17 else 0.1, 200)
    assert s.look.value == 17
    assert max(used.count(value) for value in set(used) - {17}) == 3


def test_a_curve_with_a_step_is_no_obstacle(search):
    """As where a block no longer fits into a cache."""
    s = search(1, 33, 4)
    s.run(lambda value: (0.02 if value > 24 else 0.01) / value ** 0.5, 400)
    assert s.look.value == 24


def test_a_hill_in_the_way_is_no_obstacle_if_it_is_narrower_than_half_of_the_range(search):
    """As where some sizes of blocks share sets of the cache."""
    s = search(1, 1024, 4)
    s.run(lambda value: bowl(100, 0.05)(value) if value > 15 else 0.09 if value > 6 else 0.06, 400)
    assert s.look.value > 15


def test_a_search_begins_anew_when_times_have_changed_for_good(search):
    s = search(1, 33, 10)
    s.run(bowl(10), 400)
    for _ in range(700):
        assert s.add(bowl(10)(s.look.value)).settled
    for _ in range(300):
        s.add(2 * bowl(25)(s.look.value))
    assert s.look == Look(25, 1, 2)


def test_times_that_come_and_go_begin_no_search(search):
    s = search(1, 33, 10)
    s.run(bowl(10), 400)
    for n in range(1000):
        assert s.add((3 if n % 7 == 0 else 1) * bowl(10)(s.look.value)) == Look(10, 1, 1)


def test_searches_take_a_small_part_of_the_iterations_of_a_program_that_never_rests(search):
    s, noise, searching = search(1, 33, 10), random.Random(1), 0
    for n in range(4000):
        factor = 2 if n // 150 % 2 else 1
        look = s.add(factor * bowl(10)(s.look.value) * noise.uniform(0.99, 1.01))
        searching += not look.settled
    assert searching < 4000 / 5, searching


def test_a_range_of_one_value_is_that_value(search):
    s = search(5, 5, 9)
    assert set(s.run(lambda _: 0.01, 100)) == {5}


@pytest.mark.parametrize("low,high,own", [
    (-5, 5, 0), (-2**31, 2**31 - 1, 7), (0, 2**31 - 1, 2**31 - 1), (1, 2**31 - 1, 1),
    (-100, -1, -100)])
def test_any_range_of_ints_has_values_within_it(search, low, high, own):
    s = search(low, high, own)
    used = s.run(lambda value: 0.01 + 1e-12 * abs(value - own), 600)
    assert used[0] == own and all(low <= value <= high for value in used)


def test_times_of_zero_are_times(search):
    s = search(1, 4, 2)
    s.run(lambda _: 0, 200)
    assert s.look.value == 2
