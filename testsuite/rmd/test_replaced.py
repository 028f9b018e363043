# SPDX-License-Identifier: GPL-3.0-or-later
"""A member that becomes another program (exec) without joining again is no member any more, at
once, and what it starts changes nothing."""

import os

import pytest

from lib.manager.core_table import NOBODY
from lib.manager.rmd import rmctl
from lib.manager.users import ALICE
from lib.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.sanitize


@pytest.mark.parametrize("how", ["execve", "raw", "thread"])
def test_a_member_that_has_become_another_program_owns_holds_and_wants_nothing(rmd, how):
    r = rmd(4)
    one, other = r.joined(2, 0, 1)
    for core in one.owners():
        if core == one.slot:
            one.ask(f"borrow {core}")
    one.ask("want 1")
    one.say(f"become {how}")
    eventually(other.states, [other.slot])
    # Cores are given away after the member's place is free.
    eventually(lambda: (other.owners(), other.holders()), ([other.slot] * 4, [NOBODY] * 4))
    assert one.process.poll() is None
    assert other.ask("borrow 0") == other.ask("lend 0") == "1"
    code, said, _ = rmctl(r.build, f"--socket={r.name}", "status")
    assert code == 0 and str(one.process.pid) not in said.split()


def test_of_more_processes_than_cores_one_that_becomes_another_gives_its_tokens_back(rmd):
    one, other = rmd(1).joined(2, 0, 1)
    assert one.ask("token") == "1" and other.table()[1] == 0
    one.say("become execve")
    eventually(lambda: other.table()[1], 1)
    eventually(other.states, [other.slot])


@pytest.mark.parametrize("how", ["fork", "vfork", "spawn"])
def test_a_member_whose_child_becomes_another_program_stays_one(rmd, how):
    one, other = rmd(2).joined(2, 0, 1)
    mine = one.owners().index(one.slot)
    one.ask(f"borrow {mine}")
    assert one.ask(f"start {how}") == "0"
    other.kill()  # when that has been seen, so has what came before
    eventually(one.states, [one.slot])
    eventually(one.owners, [one.slot] * 2)
    assert one.holders()[mine] == one.slot


def test_a_member_that_ends_has_died_and_not_become_another_program(rmd):
    r = rmd(2, "--verbose")
    members = [r.member() for _ in range(20)]
    for member in members:
        member.join()
    for member in members:
        member.kill()
    watcher = r.member()
    watcher.join()
    eventually(lambda: len(watcher.states()), 1)
    said = r.close()
    assert "is gone" in said and "another program" not in said


def test_a_program_that_comes_after_another_joins_as_any(rmd):
    r = rmd(4)
    one, other = r.joined(2, 0, 1)
    for _ in range(20):
        one.say("exec")
        one.slot = one.join(0, 2, 2)
        assert len(other.states()) == 2
        assert one.owners() == other.owners()
        assert sorted(other.owners()) == sorted([one.slot, other.slot] * 2)


@pytest.mark.machine(os.getuid() == 0, "only root can be several users")
def test_a_program_that_is_another_when_rmd_comes_back_is_no_member(service):
    s = service("emulate-cores = 4\n")
    one, two, other = (s.member(ALICE) for _ in range(3))
    s.process.kill()
    s.process.wait(PATIENCE_S)
    one.say("become execve")
    eventually(lambda: os.readlink(f"/proc/{one.process.pid}/exe").endswith("rmd_member"), False)
    s.start_again()
    eventually(other.states, [two.slot, other.slot])
    two.say("become raw")
    eventually(other.states, [other.slot])
    eventually(other.owners, [other.slot] * 4)
