# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that blocks in the kernel lends its core while another one wants it, and has it back
when it computes again; two programs without MPI on two real cores."""

import contextlib
import ctypes
import os
import platform
import signal
import time

import pytest

from lib.machine import TWO_CPUS, two_cpus
from lib.manager.blocked import WAYS
from lib.manager.rmd import Rmd
from lib.manager.users import ALICE
from lib.processes import processor_s
from lib.waiting import PATIENCE_S, comes_true, eventually

pytestmark = two_cpus


@pytest.mark.parametrize("how", WAYS)
def test_the_core_of_a_process_that_blocks_is_the_others_until_it_computes(domain, blocks, how):
    d = domain()
    blocked = d.blocked(blocks, how)
    other = d.start(blocks, "computes")
    d.comes_to_hold(0, 2)
    d.wakes(blocked)
    d.comes_to_hold(1, 1)
    d.ends_well(blocked, other)


SCHED_GETATTR = 315  # x86_64


class Attributes(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("policy", ctypes.c_uint32), ("flags", ctypes.c_uint64),
                ("nice", ctypes.c_int32), ("priority", ctypes.c_uint32),
                ("runtime", ctypes.c_uint64), ("deadline", ctypes.c_uint64),
                ("period", ctypes.c_uint64)]


def slice_ns(pid):
    got = Attributes()
    if ctypes.CDLL(None).syscall(SCHED_GETATTR, pid, ctypes.byref(got), ctypes.sizeof(got), 0):
        pytest.skip("sched_getattr of another machine")
    return got.runtime


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of a system call")
def test_the_slices_of_a_thread_are_its_own_again_when_it_has_its_core(domain, blocks):
    """Meanwhile they are short, so that it runs as soon as it wakes (0: an older kernel)."""
    d = domain()
    blocked = d.blocked(blocks, "read")
    usual = slice_ns(blocked.pid)
    other = d.start(blocks, "computes")
    d.comes_to_hold(0, 2)
    eventually(lambda: slice_ns(blocked.pid), 100000 if usual else 0)
    d.wakes(blocked)
    d.comes_to_hold(1, 1)
    eventually(lambda: slice_ns(blocked.pid), usual)
    d.ends_well(blocked, other)


def test_threads_that_are_joined_keep_the_core_of_their_process(domain, blocks):
    """The first thread sleeps, others of the process compute: the core is lent for a moment at
    most, at intervals that grow."""
    d = domain()
    joins = d.blocked(blocks, "workers")
    other = d.start(blocks, "computes")
    eventually(lambda: len(d.processes()), 2)
    eventually(lambda: [p["wants_cores"] for p in d.processes()], [False, True])
    comes_true(lambda: all(d.held() == [1, 1] for _ in range(20)), "the core is the process's")
    d.ends_well(joins, other)


def test_a_core_that_a_thread_has_borrowed_and_sleeps_on_is_anothers(domain, blocks):
    """The owner has lent it and sleeps; the third program comes when the borrower does, too."""
    d = domain()
    owner = d.blocked(blocks, "read")
    borrower = d.start(blocks, "borrows")
    assert borrower.stdout.readline() == "borrows\n"
    d.comes_to_hold(0, 2)
    os.kill(d.processes()[1]["pid"], signal.SIGUSR1)
    assert borrower.stdout.readline() == "blocks\n"
    other = d.start(blocks, "computes")
    d.comes_to_hold(0, 0, 2)
    for _ in range(2):
        d.wake.write()
    d.ends_well(owner, borrower, other)


@pytest.mark.parametrize("how, code", [("exit", 0), ("kill", -signal.SIGKILL)])
def test_a_process_that_ends_while_its_core_is_lent_leaves_nothing(domain, blocks, how, code):
    d = domain()
    blocked = d.blocked(blocks, how)
    other = d.start(blocks, "computes")
    d.comes_to_hold(0, 2)
    d.wake.write()
    assert blocked.wait(PATIENCE_S) == code
    d.comes_to_hold(2)
    assert d.processes()[0]["owned_cores"] == 2
    again = d.blocked(blocks, "read")  # in the slot of the former one
    d.comes_to_hold(0, 2)
    d.wakes(again)  # it may have slept on a core of the other, which is not returned
    d.ends_well(again, other)


def test_a_process_that_becomes_another_program_while_its_core_is_lent_leaves_nothing(
        domain, blocks):
    d = domain()
    blocked = d.blocked(blocks, "exec")
    other = d.start(blocks, "computes")
    d.comes_to_hold(0, 2)
    d.wake.write()
    d.comes_to_hold(2)
    assert d.processes()[0]["owned_cores"] == 2 and blocked.poll() is None
    d.ends_well(other)


# --- rmd ends and comes back

@pytest.fixture
def survivor(mortal, domain):
    """(rmd as a service that can be killed, its domain)"""
    s = mortal(f"cores = {','.join(map(str, TWO_CPUS))}\n")
    return s, domain(s.name)


def test_a_core_that_is_lent_when_rmd_is_killed_comes_back(survivor, blocks):
    s, d = survivor
    blocked = d.blocked(blocks, "read")
    other = d.start(blocks, "computes")
    d.comes_to_hold(0, 2)
    s.kill_and_start_again()
    d.wakes(blocked)
    d.ends_well(blocked, other)


def test_a_core_that_was_returned_when_rmd_is_killed_is_the_threads(survivor, blocks):
    """The thread does not know yet that its core was lent."""
    s, d = survivor
    blocked = d.blocked(blocks, "read")
    other = d.start(blocks, "computes")
    d.comes_to_hold(0, 2)
    d.wakes(blocked)
    d.comes_to_hold(1, 1)
    s.kill_and_start_again()
    d.comes_to_hold(1, 1)
    d.ends_well(blocked, other)


def test_a_core_that_rmd_was_taking_when_it_was_killed_is_free(mortal):
    s = mortal(f"cores = {','.join(map(str, TWO_CPUS))}\n")
    member = s.member(ALICE)
    assert member.ask("borrow 0") == member.ask("borrow 1") == "1"
    s.die()
    assert member.ask("unname 1") == "0"
    s.begin()
    assert member.holders() == [0, -1]


def test_the_next_rmd_lends_what_a_former_one_had_lent(survivor, blocks):
    s, d = survivor
    blocked = d.blocked(blocks, "read")
    other = d.start(blocks, "computes")
    for _ in range(3):
        d.comes_to_hold(0, 2)
        s.kill_and_start_again()
    d.comes_to_hold(0, 2)
    d.wakes(blocked)
    d.ends_well(blocked, other)


# --- when rmd looks

def processor_s_of_two(process):
    """Processor time in two seconds."""
    before = processor_s(process)
    time.sleep(2)
    return processor_s(process) - before


def test_rmd_does_not_look_while_no_process_wants_a_core(domain, blocks):
    d = domain()
    both = [d.blocked(blocks, "read"), d.blocked(blocks, "read")]
    eventually(lambda: len(d.processes()), 2)
    comes_true(lambda: processor_s_of_two(d.rmd.process) < 0.01, "rmd does not look")
    d.wake.write()
    d.wakes(both[0])
    d.ends_well(*both)


def test_emulated_cores_are_not_lent_for_threads_that_sleep(build, domain, blocks):
    """Threads that compute on them sleep."""
    with contextlib.closing(Rmd(build, "--emulate-cores=2")) as rmd:
        d = domain(rmd.name)
        blocked = d.blocked(blocks, "read")
        other = d.start(blocks, "computes")
        eventually(lambda: [p["wants_cores"] for p in d.processes()].count(True), 1)
        d.comes_to_hold(1, 1)
        for _ in range(100):
            assert sorted(d.held()) == [1, 1]
            time.sleep(0.005)
        d.wakes(blocked)
        d.ends_well(blocked, other)
