# SPDX-License-Identifier: GPL-3.0-or-later
"""rmd is killed and started again, and processes misbehave: the table SURVIVAL of rmd(8), a test for
each line that has none elsewhere."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from test_rmd_domain import (
    ANONYMOUS,
    NOBODY,
    PATIENCE_S,
    eventually,
    rmd,  # noqa: F401 (a fixture)
)
from test_rmd_service import (
    ALICE,
    BOB,
    CAROL,
    ELSEWHERE,
    Service,
    counts,
    public,  # noqa: F401 (a fixture)
)

pytestmark = [pytest.mark.sanitize,
              pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")]


class Mortal(Service):
    """One that can be killed and started again, on the same socket."""

    def __init__(self, build, public, text, options=()):  # noqa: F811
        self.options = options
        super().__init__(build, public, text, options, {})

    def begin(self, *options, preexec=None):
        reader, writer = os.pipe()
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [self.build / "bin" / "rmd", "--foreground", f"--config={self.config}",
                 f"--socket={self.name}", f"--ready-fd={writer}", *self.options, *options],
                pass_fds=(writer,), stderr=log, preexec_fn=preexec)
        os.close(writer)
        with os.fdopen(reader) as ready:
            self.ready = ready.readline()
        assert self.ready.startswith("ready "), self.said()

    def die(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def keeper(self):
        """Its pid; None when there is none."""
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if "(rmd-keeper)" not in stat.read_text():
                    continue
                unix = Path("/proc/net/unix").read_text()
                links = {os.readlink(fd) for fd in (stat.parent / "fd").iterdir()}
                if any(f"socket:[{line.split()[6]}]" in links for line in unix.splitlines()
                       if line.endswith(f" {self.name}.keep")):
                    return int(stat.parent.name)
        return None


@pytest.fixture
def mortal(build, public):  # noqa: F811
    """mortal(TEXT, OPTION...) - a service; it must end well, and leave nothing"""
    started = []

    def start(text="", *options):
        started.append(Mortal(build, public, "socket-group = *\n" + text, options))
        assert started[-1].ready.startswith("ready "), started[-1].said()
        return started[-1]

    yield start
    for one in started:
        assert one.close() == 0, one.said()
        eventually(lambda path=Path(one.name + ".keep"): path.exists(), False)


# --- rmd ends and comes back

def test_programs_go_on_and_are_adopted_by_the_next_rmd(mortal):
    s = mortal("emulate-cores = 6\nreclaim-bound-us = 60000000\n")
    one, other, bob = s.member(ALICE), s.member(ALICE), s.member(BOB)
    other.ask("announce 3 0 0")
    one.ask("announce 1 0 0")
    mine = one.owners().index(one.slot)
    assert one.ask(f"borrow {mine}") == "1"
    before = one.table(), bob.table()
    s.die()
    assert one.ask(f"lend {mine}") == one.ask(f"borrow {mine}") == "1"
    s.begin()
    assert (one.table(), bob.table()) == before  # when rmd is ready all are adopted
    assert s.said().count("took back a core table") == 2
    # They are members: announcements, deaths, new ones, and cores between users.
    assert one.ask("announce 9 0 0") == "0"
    assert counts(one, one.slot, other.slot) == [2, 1]
    bob.kill()
    eventually(lambda: counts(one, ELSEWHERE), [0])
    other.kill()
    eventually(lambda: counts(one, one.slot), [6])
    assert s.member(ALICE).slot == other.slot
    assert counts(s.member(BOB), 0) == [3]


def test_who_died_while_there_was_no_rmd_is_buried_by_the_next(mortal):
    s = mortal("emulate-cores = 4\n")
    one, other, bob = s.member(ALICE), s.member(ALICE), s.member(BOB)
    for core in range(4):
        other.ask(f"borrow {core}")
    assert other.slot in one.holders()
    s.die()
    other.kill()
    bob.kill()
    s.begin()
    assert one.table()[2:] == ([0] * 4, [NOBODY] * 4, [0] * 4)
    assert one.states() == [0]


def test_tokens_are_right_after_a_restart(mortal):
    s = mortal("emulate-cores = 2\n")
    members = [s.member(ALICE, join=False) for _ in range(4)]
    for rank, member in enumerate(members):
        member.join(rank, 4, 4)
    assert members[0].table()[:2] == (ANONYMOUS, 2)
    assert members[0].ask("token") == members[1].ask("token") == "1"
    s.die()
    members[0].kill()
    members[1].ask("scribble tokens -5")  # as if rmd had died while it buried somebody
    s.begin()
    assert members[1].table()[:2] == (ANONYMOUS, 1)
    members[1].kill()
    eventually(lambda: members[2].table()[1], 2)


def test_a_core_on_its_way_between_users_is_in_nobodys_hands_twice(mortal):
    s = mortal("emulate-cores = 2\nreclaim-bound-us = 60000000\n")
    alice = s.member(ALICE)
    assert alice.ask("borrow 0") == alice.ask("borrow 1") == "1"
    bob = s.member(BOB)
    wanted = alice.owners().index(ELSEWHERE)
    s.die()
    s.begin()
    assert alice.owners().index(ELSEWHERE) == wanted and counts(bob, 0) == [0]
    assert alice.ask(f"lend {wanted}") == "1"
    eventually(lambda: counts(bob, 0, ELSEWHERE), [1, 1])
    assert bob.ask(f"borrow {wanted}") == "1" and alice.ask(f"borrow {wanted}") == "0"


def held_twice_or_lost(members):
    """Cores that two users have, or none, as their tables say, and holders that are none."""
    wrong = []
    tables = [member.table() for member in members]
    for core in range(len(tables[0][2])):
        having = [t for t in tables if t[2][core] != ELSEWHERE]
        if len(having) != 1 or having[0][3][core] >= 100:
            wrong.append((core, tables))
    return wrong


def test_killed_at_any_moment_no_core_is_lost_or_held_twice(mortal):
    """Users come and go meanwhile, so that cores are on the move; each time rmd is killed a little
    later."""
    s = mortal("emulate-cores = 6\nreclaim-bound-us = 2000\n")
    chance = random.Random(5)
    alice, bob = s.member(ALICE), s.member(BOB)
    for turn in range(12):
        guest = s.member(CAROL, join=False)
        guest.say(f"join {s.name} -1 -1 -1")
        for member in (alice, bob):
            member.say(f"borrow {chance.randrange(6)}")
        time.sleep(chance.random() * 0.004)
        s.die()
        for member in (alice, bob):
            member.hear()
        guest.kill()
        s.members.remove(guest)
        s.begin()
        for member in (alice, bob):
            for core in range(6):
                member.ask(f"lend {core}")
        eventually(lambda: held_twice_or_lost([alice, bob]), [])
        eventually(lambda: (counts(alice, 0), counts(bob, 0)), ([3], [3]))
        assert alice.states() == bob.states() == [0], turn


def test_a_clean_end_is_an_upgrade_too(mortal):
    s = mortal("emulate-cores = 4\n")
    alice = s.member(ALICE)
    alice.ask("borrow 3")
    s.process.terminate()
    assert s.process.wait(PATIENCE_S) == 0
    s.begin()
    assert alice.table()[2:4] == ([0] * 4, [NOBODY] * 3 + [0])
    assert s.member(BOB).slot == 0


def test_tables_of_another_version_or_machine_are_left_alone(mortal):
    s = mortal("emulate-cores = 4\n")
    alice = s.member(ALICE)
    s.die()
    s.options = ("--emulate-cores=3",)
    s.begin()
    assert "of other cores than now: its processes go on by themselves until they end" in s.said()
    assert alice.ask("borrow 3") == "1"
    assert counts(s.member(ALICE), 0) == [3]  # a table of its own


def test_what_keeps_tables_ends_with_the_last_process(mortal):
    s = mortal("emulate-cores = 2\n")
    alice = s.member(ALICE)
    keeper = s.keeper()
    s.die()
    time.sleep(0.1)
    os.kill(keeper, 0)
    assert len(list(Path(f"/proc/{keeper}/fd").iterdir())) <= 7
    alice.kill()
    eventually(lambda: s.keeper(), None)
    s.begin()
    assert s.keeper() not in (None, keeper)


def test_a_second_rmd_on_the_same_socket_takes_nothing(mortal):
    s = mortal("emulate-cores = 2\n")
    alice = s.member(ALICE)
    second = subprocess.run([s.build / "bin/rmd", f"--config={s.config}", f"--socket={s.name}"],
                            capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert second.returncode == 1 and "cannot listen on" in second.stderr
    s.die()
    s.begin()
    assert counts(alice, 0) == [2] and "took back" in s.said()


def test_without_its_keeper_rmd_goes_on_and_says_so(mortal):
    s = mortal("emulate-cores = 2\n")
    os.kill(s.keeper(), signal.SIGKILL)
    alice = s.member(ALICE)
    s.hears("core tables are not kept for a restart any more")
    assert counts(alice, 0) == [2]
    s.die()
    s.begin()
    assert s.member(ALICE).slot == 0
