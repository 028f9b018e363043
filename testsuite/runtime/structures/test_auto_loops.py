# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runtime learns of loops with OMP_SCHEDULE=auto (loop/loop_auto.c), and how it splits
them (loop_split.c), without teams: auto_loops.c is all threads of a team, one after the other, and
says how long each iteration takes.  auto_loops_stress.c has threads."""

from itertools import groupby

import pytest

from lib.building.runtime_parts import Conversation

THREADS = 4
CALM = 16  # split executions without a theft until the loop is static again
EQUAL = [1000] * 1000
GROWING = [2 * i for i in range(1000)]
SITE = 4096


class Loops:
    """Loops at call sites, which are numbers.  Times are in nanoseconds."""

    def __init__(self, program):
        self.program = program

    def run(self, costs, times=1, site=SITE, threads=THREADS, cores=None, parts="same"):
        """How each execution went: s: static, p: split into portions."""
        words = (f"{len(list(group))}*{ns}" for ns, group in groupby(costs))
        said = self.program.ask("loop", site, times, threads, cores or threads, parts, *words)
        ways, ns = said.split()
        self.ns = int(ns)  # of the last one
        return ways


@pytest.fixture(scope="module")
def command(compile_part):
    return compile_part("auto_loops", ["loop_auto.c", "loop_split.c"], "loop", "address,undefined")


@pytest.fixture
def loops(command):
    with Conversation(command) as program:
        yield Loops(program)


def bucket(site):
    return max((site * 0x9e3779b97f4a7c15 & 2**64 - 1) >> 56, 1)


def parts(*ns):
    """Iterations of which thread i has a part of ns[i] if the loop is static."""
    return [part // 100 for part in ns for _ in range(100)]


def test_a_loop_of_equal_iterations_stays_static(loops):
    assert loops.run(EQUAL, 100) == "s" * 100


def test_a_loop_of_growing_iterations_is_split_from_the_second_execution_on(loops):
    assert loops.run(GROWING, 100) == "s" + "p" * 99


def test_a_loop_with_one_long_iteration_is_split(loops):
    assert loops.run([1000] * 100 + [200_000] + [1000] * 899, 100) == "s" + "p" * 99


@pytest.mark.parametrize("threads, cores", [(2, 2), (4, 4), (16, 16), (16, 4)])
def test_a_split_loop_takes_hardly_longer_than_it_has_to(loops, threads, cores):
    assert loops.run(GROWING, threads=threads, cores=cores) == "s"
    static_ns = loops.ns
    assert loops.run(GROWING, threads=threads, cores=cores) == "p"
    ideal_ns = sum(GROWING) / cores
    assert loops.ns < 1.05 * ideal_ns < 0.9 * static_ns


@pytest.mark.parametrize("longest, way", [(109_900, "s"), (115_000, "p")])
def test_a_longest_part_of_a_tenth_more_than_the_mean_is_tolerated(loops, longest, way):
    rest = (400_000 - longest) // 3
    assert loops.run(parts(rest, longest, rest, rest), 2) == "s" + way


@pytest.mark.parametrize("longest, way", [(4900, "s"), (5100, "p")])
def test_parts_that_are_too_short_to_steal_from_stay_static(loops, longest, way):
    assert loops.run(parts(100, longest, 100, 100), 2) == "s" + way


def test_of_more_parts_than_cores_the_last_may_end_half_its_length_late(loops):
    """Two cores: the longest part may take a fifth of a core's time."""
    for longest, way in ((19_000, "s"), (21_000, "p")):
        rest = (200_000 - longest) // 15
        costs = parts(longest, *[rest] * 15)
        assert loops.run(costs, 2, site=longest, threads=16, cores=2) == "s" + way


def test_a_loop_of_fewer_than_eight_iterations_for_each_thread_stays_static(loops):
    for number, way in ((8 * THREADS - 1, "s"), (8 * THREADS, "p")):
        costs = [10_000 * i for i in range(number)]
        assert loops.run(costs, 2, site=number) == "s" + way


def test_a_team_of_one_learns_nothing(loops):
    assert loops.run(GROWING, 3, threads=1) == "sss"
    assert loops.run(GROWING, 2) == "sp"
    assert loops.run(GROWING, CALM, threads=1) == "s" * CALM
    assert loops.run(GROWING) == "p"


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_loop_may_have_fewer_iterations_than_threads(loops, number):
    assert loops.run([10_000] * number, 3) == "sss"


def test_each_call_site_has_its_own_history(loops):
    one, other = 4096, 8192
    assert bucket(one) != bucket(other)
    assert loops.run(GROWING, 2, site=one) == "sp"
    assert loops.run(EQUAL, 2, site=other) == "ss"
    assert loops.run(GROWING, 1, site=one) == "p"
    assert loops.run(EQUAL, 1, site=other) == "s"


def test_of_two_call_sites_with_one_entry_the_last_one_is_known(loops):
    one = 4096
    other = next(site for site in range(one + 16, 1 << 20, 16) if bucket(site) == bucket(one))
    assert loops.run(GROWING, 2, site=one) == "sp"
    assert loops.run(EQUAL, 2, site=other) == "ss"
    assert loops.run(GROWING, 2, site=one) == "sp"


def test_a_loop_whose_iterations_become_equal_is_static_again_after_a_while(loops):
    loops.run(GROWING, 2)
    assert loops.run(EQUAL, CALM + 10) == "p" * CALM + "s" * 10


def test_a_single_theft_keeps_a_loop_split(loops):
    loops.run(GROWING, 2)
    assert loops.run(EQUAL, CALM - 1) == "p" * (CALM - 1)
    assert loops.run(GROWING) == "p"
    assert loops.run(EQUAL, CALM + 1) == "p" * CALM + "s"


def test_a_static_loop_whose_iterations_are_equal_no_more_is_split(loops):
    assert loops.run(EQUAL, 10) == "s" * 10
    assert loops.run(GROWING, 10) == "s" + "p" * 9
    loops.run(EQUAL, CALM + 1)
    assert loops.run(GROWING, 2) == "sp"


def test_times_of_parts_that_end_on_another_kernel_thread_are_not_known(loops):
    assert loops.run(GROWING, 3, parts="moved") == "sss"
    assert loops.run(GROWING, 2) == "sp"


def test_every_iteration_runs_once_whichever_threads_claim_the_chunks(run_stress):
    said = run_stress("auto_loops_stress", ["loop_auto.c", "loop_split.c"], "loop")
    assert said.startswith("loops: ")
