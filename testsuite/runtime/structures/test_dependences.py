# SPDX-License-Identifier: GPL-3.0-or-later
"""Dependences between the children of a task (task/taskdeps.c), without the scheduler of tasks:
which children may run, and when.  dependences.c is told what happens; what it answers is compared
with OpenMP's rules for depend clauses.  dependences_stress.c completes children on several
threads."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.building.build import FEWER
from lib.building.runtime_parts import Conversation

ALL_MEMORY = "out:0"
KINDS = ("out", "mutex", "inoutset", "in")  # the strongest first: it counts if there are several


class Family:
    """A task and its children: which of them run, as the program says, and which ones may, by
    OpenMP's rules."""

    def __init__(self, program):
        self.program = program
        self.depends = {}  # number of a child that is not complete: {address: kind}
        self.running = set()
        self.created = 0

    def kinds(self, depend):
        pairs = [word.removeprefix("object-").split(":") for word in depend]
        pairs.sort(key=lambda pair: KINDS.index(pair[0]), reverse=True)
        return {address: kind for kind, address in pairs}

    def enter(self, *depend):
        """A new child; its number, and whether it runs at once."""
        self.created += 1
        said, *others = self.program.ask("enter", self.created, *depend).split()
        self.depends[self.created] = self.kinds(depend)
        self.running.update(map(int, others))
        if said == "runs":
            self.running.add(self.created)
        return self.created, said == "runs"

    def waiting(self, *depend):
        number, runs = self.enter(*depend)
        assert not runs
        return number

    def runs(self, *depend):
        number, runs = self.enter(*depend)
        assert runs
        return number

    def leave(self, number):
        """The child is complete.  The numbers of those that run now, and whether a taskwait is
        over."""
        self.running.remove(number)
        words = self.program.ask("leave", number).split()
        del self.depends[number]
        now = [int(word) for word in words if word != "over"]
        self.running.update(now)
        return now, "over" in words

    def next(self, number):
        return self.leave(number)[0]

    def conflict(self, one, other):
        """The kinds of two children where they share an address, unless they may run together."""
        if "0" in {*one, *other}:
            return {("out", "out")}
        shared = {(one[address], other[address]) for address in one.keys() & other.keys()}
        return shared - {("in", "in"), ("inoutset", "inoutset")}

    def waits_for(self, number):
        """Children before it that must be complete first."""
        return [other for other in self.depends if other < number
                and self.conflict(self.depends[number], self.depends[other]) - {("mutex", "mutex")}]

    def excluded_by(self, number):
        return [other for other in self.running - {number}
                if ("mutex", "mutex") in self.conflict(self.depends[number], self.depends[other])]

    def check(self):
        for number in self.depends:
            hindered = self.waits_for(number) or self.excluded_by(number)
            assert (number in self.running) == (not hindered), (number, self.depends, self.running)

    def pending(self, *depend):
        return self.program.ask("pending", *depend) == "yes"

    def forget(self):
        """The children run, and the parent ends.  How many nodes are left."""
        while self.depends:
            self.leave(min(self.running))
        return int(self.program.ask("forget"))


@pytest.fixture(scope="module")
def command(compile_part):
    return compile_part("dependences", ["taskdeps.c"], "task", "address,undefined")


@pytest.fixture
def family(command):
    with Conversation(command) as program:
        family = Family(program)
        yield family
        assert family.forget() == 0


WORDS = ("out", "mutex", "in", *(f"object-{kind}" for kind in KINDS))
SOME = st.lists(st.builds("{}:{}".format, st.sampled_from(WORDS), st.integers(1, 4)),
                min_size=1, max_size=4)
STEPS = st.lists(st.one_of(SOME, SOME, st.just([ALL_MEMORY]),
                           st.integers(0, 100), st.integers(0, 100), SOME.map(tuple)),
                 max_size=50)


@settings(max_examples=400 // FEWER, deadline=None, derandomize=True, database=None)
@given(steps=STEPS)
def test_a_child_runs_when_and_only_when_openmp_lets_it(command, steps):
    """A step is a new child, a child that is complete, or a look whether a task would wait."""
    with Conversation(command) as program:
        family = Family(program)
        for step in steps:
            if isinstance(step, list):
                family.enter(*step)
            elif isinstance(step, tuple):
                wanted = family.kinds(step)
                assert family.pending(*step) == any(
                    family.conflict(wanted, other) for other in family.depends.values())
            elif family.running:
                family.leave(sorted(family.running)[step % len(family.running)])
            family.check()
        assert family.forget() == 0


def test_readers_run_together_after_the_writer_and_before_the_next(family):
    writer = family.runs("out:1")
    readers = [family.waiting("in:1") for _ in range(3)]
    last = family.waiting("out:1")
    assert family.next(writer) == readers
    assert [family.next(reader) for reader in readers] == [[], [], [last]]


def test_writers_run_in_the_order_in_which_they_were_created(family):
    first = family.runs("out:1")
    others = [family.waiting("out:1") for _ in range(4)]
    for before, after in zip([first, *others], others):
        assert family.next(before) == [after]


def test_a_child_waits_for_the_last_of_all_its_addresses(family):
    one, two, three = (family.runs(f"out:{address}") for address in (1, 2, 3))
    child = family.waiting("in:1", "in:2", "in:3")
    assert (family.next(two), family.next(one), family.next(three)) == ([], [], [child])


def test_what_is_complete_hinders_no_child_that_comes_later(family):
    family.next(family.runs("out:1", "out:2"))
    family.runs("out:1")
    family.runs("in:2")


def test_children_of_a_mutexinoutset_run_one_at_a_time_in_any_order(family):
    writer = family.runs("out:1")
    members = {family.waiting("mutex:1") for _ in range(4)}
    reader = family.waiting("in:1")
    now = family.next(writer)
    while members:
        member, = now
        members.remove(member)
        now = family.next(member)
    assert now == [reader]


def test_children_of_several_mutexinoutsets_exclude_each_other_where_these_overlap(family):
    one = family.runs("mutex:1", "mutex:2")
    other = family.runs("mutex:3")
    between = family.waiting("mutex:2", "mutex:3")
    free = family.runs("mutex:4")
    assert (family.next(free), family.next(one), family.next(other)) == ([], [], [between])


def test_a_child_that_cannot_have_all_its_mutexinoutsets_keeps_none(family):
    one = family.runs("mutex:2")
    family.waiting("mutex:1", "mutex:2")
    family.runs("mutex:1")
    assert one in family.running


def test_children_of_an_inoutset_run_together_and_all_others_wait_for_them(family):
    reader = family.runs("in:1")
    members = [family.waiting("object-inoutset:1") for _ in range(3)]
    others = [family.waiting("in:1"), family.waiting("in:1")]
    assert family.next(reader) == members
    assert [family.next(member) for member in members] == [[], [], others]


def test_all_memory_is_after_every_child_and_before_every_other(family):
    first = [family.runs("in:1"), family.runs("out:2"), family.runs("mutex:3")]
    whole = family.waiting(ALL_MEMORY)
    later = [family.waiting("in:1"), family.waiting("in:9")]
    assert [family.next(number) for number in first] == [[], [], [whole]]
    assert family.next(whole) == later


def test_depend_objects_count_as_the_clauses_that_they_stand_for(family):
    writer = family.runs("object-out:1")
    readers = [family.waiting("object-in:1"), family.waiting("in:1")]
    member = family.waiting("object-mutex:1")
    assert family.next(writer) == readers
    assert [family.next(reader) for reader in readers] == [[], [member]]


@pytest.mark.parametrize("depend", [["in:1", "out:1"], ["object-in:1", "object-out:1"],
                                    ["out:1", "out:1"]])
def test_an_address_that_is_named_twice_counts_once_and_as_the_stronger(family, depend):
    reader = family.runs("in:1")
    child = family.waiting(*depend)
    after = family.waiting("in:1")
    assert family.next(reader) == [child]
    assert family.next(child) == [after]


@pytest.mark.parametrize("number", [1, 3, 4, 16, 17, 100])
def test_all_children_that_wait_for_one_run_after_it(family, number):
    writer = family.runs("out:1")
    readers = [family.waiting("in:1") for _ in range(number)]
    assert sorted(family.next(writer)) == readers


def test_a_child_may_have_any_number_of_dependences(family):
    writer = family.runs("out:200")
    child = family.waiting(*[f"in:{address}" for address in range(1, 201)])
    assert family.next(writer) == [child]


def test_a_taskwait_is_over_when_the_last_child_that_it_names_is_complete(family):
    other, one, two = family.runs("out:1"), family.runs("out:2"), family.runs("in:3")
    assert family.program.ask("taskwait", "in:2", "out:3") == "waits"
    assert family.leave(two) == ([], False)
    assert family.leave(one) == ([], True)
    assert family.program.ask("taskwait", "in:2", "out:3") == "over"
    assert other in family.running


def test_a_taskwait_for_readers_is_none_if_it_reads_itself(family):
    family.runs("in:1")
    assert family.program.ask("taskwait", "in:1") == "over"
    assert family.pending("out:1")


def test_a_taskwait_for_all_memory_waits_for_every_child_with_dependences(family):
    one, two = family.runs("in:1"), family.runs("mutex:2")
    assert family.program.ask("taskwait", ALL_MEMORY) == "waits"
    assert family.leave(one) == ([], False)
    assert family.leave(two) == ([], True)


def test_a_parent_that_goes_on_keeps_nodes_of_the_last_children_only(family):
    """One address again and again, then many addresses one after the other."""
    for _ in range(500):
        family.next(family.runs("out:1"))
        family.next(family.runs("in:1"))
    assert int(family.program.ask("nodes")) <= 4
    for address in range(1, 2000):
        family.next(family.runs(f"mutex:{address}"))
    assert int(family.program.ask("nodes")) <= 16


def test_children_on_several_threads_see_all_that_those_before_them_did(run_stress):
    said = run_stress("dependences_stress", ["taskdeps.c", "spinlock.c"], "task")
    assert said.startswith("dependences: ")
