# SPDX-License-Identifier: GPL-3.0-or-later
"""The placement keeps what rmd/placement/placement.h promises on machines from a laptop to 4
packages of 2 NUMA nodes of 64 cores of 2 threads: moves are minimal, and the cores of a process are
close together.  How close is judged against the best there is, where that can be found."""

import functools
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.asked import Asked

pytestmark = pytest.mark.sanitize

# The same examples every time, and none that depends on how fast the machine is.
settings.register_profile("same", max_examples=50, derandomize=True, deadline=None, database=None,
                          suppress_health_check=list(HealthCheck))
settings.load_profile("same")

NOBODY, UNKNOWN = -1, -2
LEVELS = 4
CORE, CACHE, NODE, PACKAGE = range(LEVELS)

LAPTOP = "package:1 l3:1 core:4 pu:2"
DESKTOP = "package:1 l3:2 core:8 pu:2"
SERVER = "package:2 numa:2 l3:4 core:4 pu:2"
LARGEST = "package:4 numa:2 core:64 pu:2"
MACHINES = ["core:1 pu:1", "core:6 pu:1", LAPTOP, DESKTOP, "package:2 core:12 pu:1",
            "numa:4 l3:2 core:4 pu:1", SERVER, LARGEST]


class Placer(Asked):
    """testsuite/rmd/programs/rmd_placement."""

    def machine(self, description, smt="each"):
        """apart of each core"""
        return self.numbers("machine", smt, description)

    def place(self, apart, owner, targets, main_core=None, preferred=None, holders=None):
        """moved, spread, owner afterwards"""
        n = len(targets)
        answer = self.numbers("place", len(apart), n, *apart, *owner,
                              *(holders or [UNKNOWN] * len(apart)),
                              *(x for p in zip(targets, main_core or [-1] * n,
                                               preferred or [-1] * n)
                                for x in p))
        return answer[0], answer[1], answer[2:]


@pytest.fixture(scope="module")
def placer(build):
    placer = Placer(build / "testsuite/rmd/programs/rmd_placement")
    yield placer
    placer.close()


def groups_of(apart, level):
    """The number of the group of each core."""
    groups = []
    for core, step in enumerate(apart):
        groups.append(groups[-1] + (step > level) if core else 0)
    return groups


@functools.cache
def groups(apart):
    """The groups of each level: a list by core."""
    return [groups_of(apart, level) for level in range(LEVELS)]


def spread_of(apart, owner):
    """The spread of a placement, as placement.h defines it."""
    return sum(len({(p, g) for p, g in zip(owner, of) if p != NOBODY})
               for of in groups(tuple(apart)))


# --- the best placement, by trying all of them

def best_spread(apart, owner, targets):
    """The least spread of all placements with minimal moves.  What can become of a group depends
    on nothing but how many of its cores each process has afterwards: so for each such vector the
    least spread within the group is found from those of its children."""
    change = [t - owner.count(p) for p, t in enumerate(targets)]
    growers = [p for p, c in enumerate(change) if c > 0]

    def one_core(core):
        who = owner[core]
        loses = who == NOBODY or change[who] < 0
        results = {who} | ({NOBODY, *growers} if loses else set())
        return {tuple(int(p == q) for q in range(len(targets))): 0 for p in results}

    def group(first, end, level):
        """The cores first .. end - 1 are one group of `level`; -1 is a single core."""
        if level < 0:
            return one_core(first)
        cuts = [first, *(c for c in range(first + 1, end) if apart[c] >= level), end]
        total = {(0,) * len(targets): 0}
        for a, b in zip(cuts, cuts[1:]):
            child, sums = group(a, b, level - 1), {}
            for x, cost in total.items():
                for y, more in child.items():
                    both = tuple(i + j for i, j in zip(x, y))
                    if all(i <= max(t, h) for i, t, h in zip(both, targets, had)):
                        sums[both] = min(sums.get(both, 1 << 30), cost + more)
            total = sums
        if level == LEVELS:
            return total
        return {x: cost + sum(i > 0 for i in x) for x, cost in total.items()}

    had = [owner.count(p) for p in range(len(targets))]
    return group(0, len(apart), LEVELS)[tuple(targets)]


def cuts(r, ncores, nprocs):
    """Random targets that add up to at most ncores."""
    at = sorted(r.randint(0, ncores) for _ in range(nprocs))
    return [b - a for a, b in zip([0, *at], at)]


def starts(placer, r, apart, nprocs):
    """The owners before placement: none, random ones, or those that earlier placements chose."""
    n = len(apart)
    start = r.choice(["empty", "random", "placed", "placed"])
    if start == "random":
        return [r.randint(NOBODY, nprocs - 1) for _ in range(n)]
    owner = [NOBODY] * n
    for _ in range(r.randint(1, 3) if start == "placed" else 0):
        _, _, owner = placer.place(apart, owner, cuts(r, n, nprocs))
    return owner


@pytest.mark.parametrize("description", [
    None, "package:2 l3:2 core:3 pu:1", "numa:2 core:3 pu:2", "package:2 core:6 pu:1"])
def test_the_spread_is_within_three_percent_of_the_best(placer, description):
    """On average over small machines (None: of any shape); never less than the best."""
    total = best = 0
    for seed in range(60):
        r = random.Random(seed)
        apart = (placer.machine(description) if description
                 else [LEVELS] + [r.choice([0, 1, 1, 2, 3, 4]) for _ in range(r.randint(2, 9))])
        nprocs = r.randint(1, 3)
        owner, targets = starts(placer, r, apart, nprocs), cuts(r, len(apart), nprocs)
        _, spread, _ = placer.place(apart, owner, targets)
        least = best_spread(apart, owner, targets)
        assert least <= spread <= least + 3, (apart, owner, targets)
        total += spread
        best += least
    assert total <= 1.03 * best


# --- properties

@st.composite
def question(draw):
    """A machine (a description or any tree), the owners, and the targets of the processes."""
    machine = draw(st.sampled_from(MACHINES) | st.lists(st.integers(0, LEVELS), min_size=1,
                                                         max_size=40))
    return machine, draw(st.integers(1, 12)), draw(st.randoms(use_true_random=False))


def asked(placer, machine, nprocs, r):
    apart = placer.machine(machine) if isinstance(machine, str) else machine
    owner = starts(placer, r, apart, nprocs)
    return apart, owner, cuts(r, len(apart), nprocs), [
        r.choice([-1, r.randrange(len(apart)), *(c for c, o in enumerate(owner) if o == p)][:9])
        for p in range(nprocs)]


@given(question())
def test_moves_are_minimal_and_homes_are_kept(placer, q):
    apart, before, targets, main_core = asked(placer, *q)
    r = q[2]
    holders = r.choice([None, [r.randint(NOBODY, q[1] - 1) for _ in apart]])
    preferred = [r.randint(-1, len(apart)) for _ in targets]
    moved, spread, after = placer.place(apart, before, targets, main_core, preferred, holders)
    assert len(after) == len(apart) and spread == spread_of(apart, after)
    assert moved == sum(a != b for a, b in zip(before, after))
    for p, target in enumerate(targets):
        had = before.count(p)
        kept = sum(a == b == p for a, b in zip(before, after))
        assert after.count(p) == target
        assert kept == min(had, target)  # so target - kept = max(0, growth) have moved
        if target and main_core[p] >= 0 and before[main_core[p]] == p:
            assert after[main_core[p]] == p


@given(question())
def test_what_is_right_already_stays(placer, q):
    apart, owner, targets, _ = asked(placer, *q)
    _, _, once = placer.place(apart, owner, targets)
    assert placer.place(apart, once, targets)[::2] == (0, once)


@given(question())
def test_targets_of_more_than_there_is_give_out_all_there_is(placer, q):
    apart, owner, targets, _ = asked(placer, *q)
    _, _, after = placer.place(apart, owner, [t + len(apart) for t in targets])
    assert NOBODY not in after
    assert all(a in (NOBODY, b) for a, b in zip(owner, after))


@given(st.sampled_from(MACHINES), st.data())
def test_a_process_that_fits_in_a_group_of_an_empty_machine_is_in_one(placer, machine, data):
    apart = placer.machine(machine)
    target = data.draw(st.integers(1, len(apart)))
    _, _, after = placer.place(apart, [NOBODY] * len(apart), [target])
    for level, of in enumerate(groups(tuple(apart))):
        size = max(of.count(g) for g in set(of))
        if target <= size:
            assert len({g for g, o in zip(of, after) if o == 0}) == 1, (level, after)


@given(st.integers(0, 127), st.integers(1, 128))
def test_a_newcomer_is_in_the_fullest_node_that_has_room_for_it(placer, used, target):
    apart = placer.machine("numa:4 core:64 pu:2")
    owner = [0] * used + [NOBODY] * (128 - used) + [1] * 60 + [NOBODY] * (512 - 188)
    _, _, after = placer.place(apart, owner, [used, 60, target])
    room = {0: 128 - used, 1: 68, 2: 128}
    fits = min((free, node) for node, free in room.items() if free >= target)[0]
    nodes = {core // 128 for core, o in enumerate(after) if o == 2}
    assert len(nodes) == 1 and room[min(*nodes, 2)] == fits


@given(st.sampled_from(MACHINES), st.integers(0, 10))
def test_equal_shares_that_divide_the_machine_are_whole_groups(placer, machine, halvings):
    """For each power of two: a process is never in more groups than its share needs."""
    apart = placer.machine(machine)
    n = len(apart)
    share = n >> halvings
    if not share or n % share:
        return
    _, _, after = placer.place(apart, [NOBODY] * n, [share] * (n // share))
    for of in groups(tuple(apart)):
        size = of.count(0)
        if share % size and size % share:
            continue
        for p in range(n // share):
            assert len({g for g, o in zip(of, after) if o == p}) == max(1, share // size)


@given(st.sampled_from([LAPTOP, DESKTOP, SERVER, LARGEST]), st.integers(1, 24),
       st.randoms(use_true_random=False))
def test_a_hundred_decisions_leave_no_process_scattered(placer, machine, nprocs, r):
    """Cores go back and forth, two at a time; the spread stays near that of a new placement."""
    apart = placer.machine(machine)
    nprocs = min(nprocs, len(apart) // 4)
    targets = [len(apart) // nprocs] * nprocs
    _, fresh, owner = placer.place(apart, [NOBODY] * len(apart), targets)
    for _ in range(30):
        a, b = r.randrange(nprocs), r.randrange(nprocs)
        if a != b and targets[a] > 2:
            targets[a], targets[b] = targets[a] - 2, targets[b] + 2
            _, spread, owner = placer.place(apart, owner, targets)
            _, fresh, _ = placer.place(apart, [NOBODY] * len(apart), targets)
            assert spread <= 2 * fresh


# --- examples: package:2 l3:2 core:4 is 0-3 4-7 | 8-11 12-15

FOUR_CACHES = "package:2 numa:1 l3:2 core:4 pu:1"


def as_text(owner):
    return "".join("." if o == NOBODY else str(o) for o in owner)


@pytest.mark.parametrize("before, targets, after", [
    # the remote part goes first: the other package, then the other cache
    ("0000000000......", [8], "00000000........"),
    ("00000000......00", [8], "00000000........"),
    ("000000..........", [4], "0000............"),
    ("0000000.00......", [7], "0000000........."),
    # growing: in the own cache, in the own package, then elsewhere in one cache
    ("0011....1.......", [4, 3], "001100..1......."),
    ("00..........1111", [4, 4], "0000........1111"),
    ("0000........1111", [8, 4], "00000000....1111"),
    ("0000111122......", [5, 4, 2], "00001111220....."),
    # a process with room in one of its caches leaves the other to a process that has only that
    ("001.0...2222....", [6, 2, 4], "001100002222...."),
    # another process gives up the cores that are near the growing process
    ("0000111100001111", [10, 6], "0000110000001111"),
    ("0000000011111111", [12, 4], "0000000011110000"),
    ("0000000011111111", [4, 12], "0000111111111111"),
])
def test_small_machines_are_shared_out_as_in_the_examples(placer, before, targets, after):
    owner = [NOBODY if o == "." else int(o) for o in before]
    got = placer.place(placer.machine(FOUR_CACHES), owner, targets)[2]
    assert as_text(got) == after


def test_threads_of_a_core_stay_together(placer):
    apart = placer.machine("core:4 pu:2")
    assert as_text(placer.place(apart, [NOBODY] * 8, [3, 2, 3])[2]) in ("00021122", "00022211")
    owner = [0, 0, 0, 0, 0, 0, 1, 1]
    assert as_text(placer.place(apart, owner, [4, 4])[2]) == "00001111"


def test_cores_go_to_the_processes_that_compute_on_them(placer):
    apart = placer.machine("core:8 pu:1")
    owner = [0, 0, 0, 0, 0, 0, 1, 1]
    holders = [0, 0, 1, 0, 0, 0, 1, 1]
    _, _, after = placer.place(apart, owner, [5, 3], holders=holders)
    assert as_text(after) == "00100011"
    owner = [0, 0, NOBODY, NOBODY, NOBODY, NOBODY, 1, 1]
    holders = [0, 0, NOBODY, NOBODY, 0, 1, 1, 1]
    _, _, after = placer.place(apart, owner, [3, 3], holders=holders)
    assert as_text(after) == "00..0111"


def test_a_core_that_another_process_borrows_is_given_up_before_one_in_use(placer):
    apart = placer.machine("core:8 pu:1")
    holders = [0, 2, 0, 0, 0, 0, NOBODY, NOBODY]
    _, _, after = placer.place(apart, [0] * 6 + [1, 2], [5, 2, 1], main_core=[0, -1, -1],
                               holders=holders)
    assert after[1] == 1 and after.count(0) == 5


# --- the machine's tree

def test_a_machines_cores_are_as_far_apart_as_its_description_says(placer):
    assert placer.machine(LAPTOP) == [4, 0, 1, 0, 1, 0, 1, 0]
    assert placer.machine("package:2 numa:2 l3:2 core:1 pu:1") == [4, 2, 3, 2, 4, 2, 3, 2]
    largest = placer.machine(LARGEST)
    assert len(largest) == 1024
    assert [largest.count(k) for k in range(5)] == [512, 504, 0, 4, 4]
    server = placer.machine(SERVER)
    assert [sum(step > k for step in server) for k in range(4)] == [64, 16, 4, 2]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_of_first_threads_has_one_core_for_each_physical_core(placer, machine):
    every, first = placer.machine(machine), placer.machine(machine, "first")
    assert first == [step for step in every if step > 0]


@pytest.mark.parametrize("nonsense", ["0", "-1", "1025", "x", "core:2 x", "package:5 core:300",
                                      "1.5", "core:0"])
def test_nonsense_in_place_of_a_machine_is_refused(placer, nonsense):
    assert placer.numbers("machine", "each", nonsense) == [-1]
