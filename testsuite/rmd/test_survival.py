# SPDX-License-Identifier: GPL-3.0-or-later
"""rmd is killed and started again, and processes misbehave: what rmd-survival(7) says, a test
for each line that has none elsewhere."""

import contextlib
import fcntl
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path

import pytest

from lib.building.layout import STRUCTURES
from lib.building.small_programs import SHARED, compile_text
from lib.machine import CPUS, two_cpus
from lib.manager.connections import follower
from lib.manager.core_table import ANONYMOUS, ELSEWHERE, F_SEAL_FUTURE_WRITE, NOBODY
from lib.manager.fake_system import put_online
from lib.manager.member import UserMember, counts, pins, started_by
from lib.manager.protocol import (
    ALL,
    DROP,
    HOLDER_SUFFIX,
    STORE,
    holder_message,
    read_holder_message,
)
from lib.manager.rmd import preload, rmctl, sanitizers
from lib.manager.users import ALICE, BOB, CAROL
from lib.processes import opened, processor_s
from lib.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.sanitize,
              pytest.mark.machine(os.getuid() == 0, "only root can be several users")]


CAP_SYS_RESOURCE = 24


# --- rmd ends and comes back

def test_programs_go_on_and_are_taken_over_by_the_next_rmd(mortal):
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
    assert (one.table(), bob.table()) == before  # rmd is ready after the takeover
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


def test_rmd_has_low_latency_before_it_looks_at_each_core(build, tmp_path, short_path):
    """hwloc runs on every core in turn.  On a busy machine a process of usual priority waits long
    for each, and no core moves between users meanwhile.  Here rmd waits for the description of
    the machine."""
    machine = tmp_path / "machine.xml"
    os.mkfifo(machine)
    process = subprocess.Popen(
        [build / "bin/rmd", "--config=/dev/null", f"--socket={short_path}/rmd.sock"],
        env={**os.environ, "HWLOC_XMLFILE": str(machine)}, stderr=subprocess.DEVNULL)
    try:
        with machine.open("w"):  # opens when rmd reads
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == -15
            process.kill()
    finally:
        process.kill()
        process.wait(PATIENCE_S)


LOST = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
long syscall(long number, ...)
{
    static unsigned asked;
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"), a[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    if (number == SYS_pidfd_open && a[0] != getpid() && !asked++) {
        errno = ESRCH;
        return -1;
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""


def test_a_process_that_ends_while_it_is_taken_back_leaves_its_cores_to_the_others(
        mortal, tmp_path):
    """The last process of its table ends while rmd takes the table back."""
    library = compile_text(tmp_path / "lost.so", LOST, *SHARED, "-ldl")
    s = mortal("emulate-cores = 4\nlog-level = info\n")
    s.member(ALICE)
    s.die()
    preloaded = preload(s.build, library)
    s.begin(preexec=lambda: os.environ.update(LD_PRELOAD=preloaded))
    s.hears(f"user {ALICE}: the last process has gone")
    s.members[0].kill()
    bob, alice = s.member(BOB), s.member(ALICE)
    assert counts(alice, 0, ELSEWHERE) == counts(bob, 0, ELSEWHERE) == [2, 2]
    for a, b in zip(alice.owners(), bob.owners()):
        assert (a == ELSEWHERE) != (b == ELSEWHERE)


def test_all_are_taken_over_within_a_second_of_a_kill(mortal):
    """On a busy machine it may be longer now and then; how long, bench/run chaos says."""
    s = mortal("emulate-cores = 6\nreclaim-bound-us = 60000000\n")
    members = [s.member(uid) for uid in (ALICE, BOB, CAROL) for _ in range(12)]
    for member in members:
        for core in range(6):
            member.ask(f"borrow {core}")
    before = [member.table() for member in members]
    took = []
    while min(took, default=2) > 1 and len(took) < 10 or len(took) < 5:
        start = time.monotonic()
        s.kill_and_start_again()
        took.append(time.monotonic() - start)
        assert [member.table() for member in members] == before
    assert min(took) <= 1, took


def test_a_client_that_follows_events_hears_that_rmd_was_killed(mortal, build):
    s = mortal("emulate-cores = 2\n")
    s.member(ALICE)
    with follower(s, build / "bin" / "rmctl") as process:
        s.die()
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1 and "was it killed" in err
    s.begin()


def test_a_process_that_died_without_rmd_is_reaped_by_the_next(mortal):
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


def beheaded(member):
    """Ends the first thread of the member, which goes on: the kernel shows it as a zombie."""
    assert member.ask("behead") == "0"
    stat = Path(f"/proc/{member.process.pid}/stat")
    eventually(lambda: stat.read_text().rsplit(")", 1)[1].split()[0], "Z")


def test_a_process_that_goes_on_without_its_first_thread_is_taken_over(mortal):
    s = mortal("emulate-cores = 4\n")
    one, bob = s.member(ALICE), s.member(BOB)
    beheaded(one)
    before = one.table()
    s.kill_and_start_again()
    assert one.table() == before and counts(bob, 0) == [2]
    one.kill()
    eventually(lambda: counts(bob, 0), [4])


def test_a_process_that_is_stopped_without_its_first_thread_keeps_no_other_waiting(mortal):
    s = mortal(QUICK + "emulate-cores = 2\n")
    one, other = s.member(ALICE), s.member(ALICE)
    beheaded(one)
    assert one.ask("borrow 0") == "1"
    one.process.send_signal(signal.SIGSTOP)
    eventually(lambda: other.ask("borrow 0"), "1")
    one.process.send_signal(signal.SIGCONT)
    s.hears("goes on")


def test_tokens_are_right_after_a_restart(mortal):
    s = mortal("emulate-cores = 2\n")
    members = s.crowd(ALICE, 4)
    assert members[0].table()[:2] == (ANONYMOUS, 2)
    assert members[0].ask("token") == members[1].ask("token") == "1"
    s.die()
    members[0].kill()
    members[1].ask("scribble tokens -5")  # as if rmd had died while it reaped one
    s.begin()
    assert members[1].table()[:2] == (ANONYMOUS, 1)
    members[1].kill()
    eventually(lambda: members[2].table()[1], 2)


def test_a_core_on_its_way_between_users_is_never_held_twice(mortal):
    s = mortal("emulate-cores = 2\nreclaim-bound-us = 60000000\n")
    alice = s.member(ALICE)
    assert alice.ask("borrow 0") == alice.ask("borrow 1") == "1"
    bob = s.member(BOB)
    wanted = alice.owners().index(ELSEWHERE)
    s.kill_and_start_again()
    assert alice.owners().index(ELSEWHERE) == wanted and counts(bob, 0) == [0]
    assert alice.ask(f"lend {wanted}") == "1"
    eventually(lambda: counts(bob, 0, ELSEWHERE), [1, 1])
    assert bob.ask(f"borrow {wanted}") == "1" and alice.ask(f"borrow {wanted}") == "0"


def held_twice_or_lost(members):
    """Cores that two users have or no user, by their tables, and cores with invalid holders."""
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
        other = s.member(CAROL, join=False)
        other.say(f"join {s.name} -1 -1 -1")
        for member in (alice, bob):
            member.say(f"borrow {chance.randrange(6)}")
        time.sleep(chance.random() * 0.004)
        s.die()
        for member in (alice, bob):
            member.hear()
        other.kill()
        s.members.remove(other)
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


# --- orders

@pytest.fixture
def tell(build):
    """tell(SERVICE, WORD...) - the answer of rmctl to root, which may give any order"""

    def go(s, *words):
        code, out, err = rmctl(build, f"--socket={s.name}", *map(str, words))
        assert code == 0, err
        return out

    return go


def test_what_was_ordered_of_processes_holds_for_the_next_rmd(mortal, tell):
    s = mortal("emulate-cores = 6\nreclaim-bound-us = 1000\n")
    one, other = s.member(ALICE), s.member(ALICE)
    pid = one.process.pid
    tell(s, "shrink", pid, 1)
    tell(s, "expand", other.process.pid, 4)
    s.kill_and_start_again()
    one.ask("announce 9 0 0")
    other.ask("announce 1 0 0")
    assert counts(one, one.slot, other.slot) == [1, 5]
    tell(s, "shrink", pid, "--reset")
    assert counts(one, one.slot, other.slot) == [2, 4]
    tell(s, "shrink", other.process.pid, 1)
    tell(s, "pin", pid, "1,5")
    before = one.owners()
    assert sorted(before) == [one.slot] * 2 + [other.slot] + [ELSEWHERE] * 3
    s.kill_and_start_again()
    assert one.owners() == before
    idle = before.index(ELSEWHERE)
    assert one.ask(f"borrow {idle}") == other.ask(f"borrow {idle}") == "0"
    one.kill()
    eventually(lambda: sorted(other.owners()), [other.slot] + [ELSEWHERE] * 5)


def test_orders_end_with_a_process_that_ends_while_there_is_no_rmd(mortal, tell):
    s = mortal("emulate-cores = 4\n")
    one, other = s.member(ALICE), s.member(ALICE)
    tell(s, "pin", one.process.pid, "0-2")
    s.die()
    one.kill()
    s.begin()
    eventually(lambda: other.owners(), [other.slot] * 4)
    assert [other.ask(f"borrow {core}") for core in range(4)] == ["1"] * 4


@pytest.fixture
def own_limits(build, public):
    """own_limits(SERVICE, CORES, UIDS) - users limit themselves, or with None look at a policy"""
    shutil.copy(build / "bin/rmctl", public / "rmctl")

    def go(s, cores, uids):
        words = ["policy"] if cores is None else ["limit", f"--cores={cores}"]
        for uid in uids:
            subprocess.run([public / "rmctl", f"--socket={s.name}", *words], cwd="/", user=uid,
                           group=60000, extra_groups=[], check=True, timeout=PATIENCE_S,
                           stdout=subprocess.DEVNULL)

    return go


def test_a_user_that_has_limited_itself_is_not_forgotten_for_others_that_have_not(
        mortal, own_limits):
    s = mortal("emulate-cores = 8\nreclaim-bound-us = 1000\n")
    own_limits(s, 3, [ALICE])
    own_limits(s, None, range(61000, 61040))
    assert counts(s.member(ALICE), 0) == [3]


def test_a_user_whose_trace_goes_on_is_not_forgotten(mortal, own_limits, build, tmp_path):
    """Its processes have ended; new ones will join."""
    s = mortal("emulate-cores = 8\nreclaim-bound-us = 1000\n")
    alice = s.member(ALICE)
    trace = tmp_path / "alice.trace"
    words = ["trace", f"--user={ALICE}"]
    assert rmctl(build, f"--socket={s.name}", *words, "start", trace)[0] == 0
    alice.kill()
    own_limits(s, None, range(61000, 61040))
    s.member(ALICE)
    assert rmctl(build, f"--socket={s.name}", *words, "stop")[0] == 0
    assert trace.read_bytes().count(b"member") == 2


def test_a_user_that_has_traced_itself_is_forgotten_as_others_are(
        mortal, own_limits, build, public):
    """One has ended its trace, the other has none but itself to write it for."""
    s = mortal("emulate-cores = 8\n")
    public.chmod(0o777)
    own_limits(s, None, [])  # rmctl is there
    for uid, words in ((ALICE, "start"), (ALICE, "stop"), (BOB, "start")):
        subprocess.run([public / "rmctl", f"--socket={s.name}", "trace", words,
                        *([public / str(uid)] if words == "start" else [])], cwd="/", user=uid,
                       group=60000, extra_groups=[], check=True, timeout=PATIENCE_S)
    own_limits(s, None, range(61000, 61040))
    code, text = rmctl(build, f"--socket={s.name}", "metrics")[:2]
    known = {int(uid) for uid in re.findall(r'invasive_user_cores{[^}]*user="(\d+)"', text)}
    assert code == 0 and 61039 in known and not known & {ALICE, BOB}
    with open(public / str(BOB), "rb") as file:  # its trace has been ended
        eventually(lambda: os.fstat(file.fileno()).st_size > 0, True)


def test_a_trace_is_written_with_no_more_rights_than_its_user_has(mortal, own_limits, public):
    """Within its disk quota, and not in the space that file systems reserve for root."""
    s = mortal("emulate-cores = 8\n")
    public.chmod(0o777)
    own_limits(s, None, [])  # rmctl is there
    s.member(ALICE)
    subprocess.run([public / "rmctl", f"--socket={s.name}", "trace", "start", public / "trace"],
                   cwd="/", user=ALICE, group=60000, extra_groups=[], check=True,
                   timeout=PATIENCE_S)
    rights = {}
    for thread in Path(f"/proc/{s.process.pid}/task").iterdir():
        try:
            status = (thread / "status").read_text()
        except OSError:  # it has ended
            continue
        said = dict(line.split(":", 1) for line in status.splitlines())
        rights[int(said["Uid"].split()[3])] = int(said["CapEff"], 16) >> CAP_SYS_RESOURCE & 1
    assert rights[ALICE] == 0 and 0 in rights


def test_a_user_whose_own_limit_is_forgotten_does_not_get_it_back_from_the_next_rmd(
        mortal, own_limits):
    """After orders of so many other users; the user after that one keeps its limit."""
    s = mortal("emulate-cores = 8\nreclaim-bound-us = 1000\n")
    own_limits(s, 3, [ALICE, BOB])
    own_limits(s, 2, range(61000, 61127))
    own_limits(s, None, [61127])
    assert f"user {ALICE}: its own limits and policy are forgotten" in s.said()
    assert f"user {BOB}: its own" not in s.said()
    s.kill_and_start_again()
    assert "policies of 128 users" in s.said() and s.said().count("forgotten") == 1
    alice = s.member(ALICE)
    assert counts(alice, 0) == [8]
    alice.kill()
    eventually(lambda: counts(s.member(BOB), 0), [3])


def test_a_user_with_processes_when_rmd_is_killed_is_not_forgotten_for_users_that_rest(
        mortal, own_limits):
    s = mortal("emulate-cores = 8\nreclaim-bound-us = 1000\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    own_limits(s, 3, [ALICE, BOB])
    own_limits(s, 2, range(61000, 61128))
    s.kill_and_start_again()
    assert "policies of 130 users" in s.said() and "forgotten" not in s.said()
    assert counts(alice, 0) == counts(bob, 0) == [3]


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM"])
def test_drains_limits_and_policies_hold_for_the_next_rmd(mortal, tell, end):
    """Also when no process is there."""
    text = "socket-group = *\nemulate-cores = 8\nreclaim-bound-us = 1000\n"
    s = mortal(text.partition("\n")[2])
    tell(s, "drain", "0,3")
    tell(s, "limit", f"--user={ALICE}", "--cores=4", "--job-cores=3")
    tell(s, "policy", "equal")
    for more in ("", "", "policy = jobs\n"):
        s.process.send_signal(getattr(signal, end))
        s.process.wait(PATIENCE_S)
        s.config.write_text(text + more)
        s.begin()
        assert f"policy {'jobs' if more else 'equal'}\n" in tell(s, "policy")
    assert "2 cores drained" in s.said()
    alice = s.member(ALICE)
    assert counts(alice, 0) == [3]
    tell(s, "limit", f"--user={ALICE}", "--job-cores=all")
    assert counts(alice, 0) == [4]
    tell(s, "limit", f"--user={ALICE}", "--reset")
    assert counts(alice, 0) == [6] and [alice.owners()[c] for c in (0, 3)] == [ELSEWHERE] * 2
    assert len(s.memory_of_holder("invasive-rmd-orders")) == 1
    tell(s, "drain", "--undo", "0,3")
    assert counts(alice, 0) == [8]
    eventually(lambda: s.memory_of_holder("invasive-rmd-orders"), [])


@pytest.mark.parametrize("how", ["flood", pytest.param("ring", marks=pytest.mark.full),
                                 pytest.param("reopen", marks=pytest.mark.full)])
def test_a_user_that_rings_all_the_time_takes_little_of_a_processor(mortal, how):
    """A decision on a hundred processes and 256 cores takes time.  Each close of the table's file
    may be from a process that has called exec."""
    s = mortal("emulate-cores = 256\nlog-level = warning\n")
    alice = s.member(ALICE)
    assert alice.ask(f"fork 100 {s.name}") == "100 0"
    alice.ask(f"{how} 1")  # takes what a user is granted at once (rmd/host/rate_limit.h)
    before, begun = processor_s(s.process), time.monotonic()
    answers = int(alice.ask(f"{how} 5"))
    spent, lasted = processor_s(s.process) - before, time.monotonic() - begun
    assert answers > 0
    assert spent < 0.13 * lasted + 0.01, (spent, lasted, answers)


@pytest.mark.parametrize("how", ["hold", "requeue"])
def test_rmd_ends_with_a_table_whose_bell_a_process_keeps_silent(mortal, how):
    """A process that is no member, but has the table, does so at each end of the domain."""
    s = mortal("emulate-cores = 4\nlog-level = warning\n")
    alice = s.member(ALICE)
    assert alice.ask(f"leave {s.name}") == "0"
    for _ in range(40 if how == "hold" else 5):
        bob = s.member(BOB)
        other = int(bob.ask(f"mute {how}"))
        try:
            bob.kill()
            alice.join()
            assert alice.ask(f"leave {s.name}") == "0"
            assert rmctl(s.build, f"--socket={s.name}", "policy")[0] == 0
        finally:
            os.kill(other, signal.SIGKILL)


ZONE = "sys/class/powercap/intel-rapl:0/{}"
RAPL = ZONE.format("constraint_0_{}")
LIMIT = RAPL.format("power_limit_uw")
FREQ = "sys/devices/system/cpu/cpu0/cpufreq/{}"
PACKAGE = {ZONE.format("name"): "package-0", ZONE.format("enabled"): 1}


@pytest.mark.parametrize("machine,limit,before,capped", [
    ({**PACKAGE, LIMIT: 100000000}, LIMIT, 100000000, 80000000),
    ({**PACKAGE, LIMIT: 190000000, RAPL.format("max_power_uw"): 200000000}, LIMIT, 190000000,
     160000000),
    ({FREQ.format("cpuinfo_max_freq"): 1000000, FREQ.format("cpuinfo_min_freq"): 400000,
      FREQ.format("scaling_max_freq"): 970000}, FREQ.format("scaling_max_freq"), 970000, 928318),
], ids=["as-it-is", "as-the-vendor-says", "frequency"])
def test_a_power_cap_is_undone_however_often_rmd_is_killed(mortal, tmp_path, machine, limit, before,
                                                           capped):
    """Each rmd caps from the limit before the first one, and the last one restores that limit."""
    for name, value in machine.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{value}\n")
    s = mortal("emulate-cores = 2\n", f"--sys-root={tmp_path}", "--power-cap=80%")
    for _ in range(2):
        assert int((tmp_path / limit).read_text()) == capped
        s.kill_and_start_again()
    assert int((tmp_path / limit).read_text()) == capped
    s.process.terminate()
    assert s.process.wait(PATIENCE_S) == 0
    assert int((tmp_path / limit).read_text()) == before
    eventually(lambda: s.fd_holder(), None)  # nothing is left to keep
    s.begin()
    s.die()
    s.options = s.options[:1]
    s.begin()
    assert int((tmp_path / limit).read_text()) == before
    assert "the power cap of an rmd that was killed is undone" in s.said()
    eventually(lambda: s.memory_of_holder("invasive-rmd-orders"), [])


# cpufreq's answer for CPU 1, while the file $OFFLINE exists
OFFLINE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    bool offline = access(getenv("OFFLINE"), F_OK) == 0;
    if ((flags & O_WRONLY) && strstr(path, "/cpu1/cpufreq/") && offline) {
        errno = EBUSY;
        return -1;
    }
    return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}
int open64(const char *, int, ...) __attribute__((alias("open")));
"""


@pytest.mark.parametrize("end", ["killed", "ended"])
def test_a_cpu_that_is_offline_keeps_no_other_one_capped(mortal, tmp_path, end):
    limits = [tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq"
              for cpu in (0, 1)]
    for limit in limits:
        limit.parent.mkdir(parents=True)
        limit.write_text("1000000\n")
        (limit.parent / "cpuinfo_max_freq").write_text("1000000\n")
        (limit.parent / "cpuinfo_min_freq").write_text("400000\n")
    s = mortal("emulate-cores = 2\n", f"--sys-root={tmp_path}", "--power-cap=50%")
    s.die()
    offline = tmp_path / "offline"
    library = compile_text(tmp_path / "offline.so", OFFLINE, *SHARED, "-ldl")
    preloaded = preload(s.build, library)
    if end == "killed":
        offline.touch()
        s.options = s.options[:1]
    s.begin(preexec=lambda: os.environ.update(LD_PRELOAD=preloaded, OFFLINE=str(offline)))
    offline.touch()
    if end == "ended":
        s.process.terminate()
        assert s.process.wait(PATIENCE_S) == 0
    assert int(limits[0].read_text()) == 1000000 > int(limits[1].read_text())
    assert (f"CPU 1 is offline, and stays capped: write 1000000 to {limits[1]} when it is online"
            in s.said())
    eventually(lambda: s.memory_of_holder("invasive-rmd-orders"), [])  # there is nothing to undo


def test_orders_and_a_power_cap_are_kept_beside_each_other(mortal, tmp_path, tell):
    limit = tmp_path / LIMIT
    limit.parent.mkdir(parents=True)
    for name, value in {**PACKAGE, LIMIT: 100000000}.items():
        (tmp_path / name).write_text(f"{value}\n")
    s = mortal("emulate-cores = 2\n", f"--sys-root={tmp_path}", "--power-cap=50%")
    tell(s, "drain", "0")
    s.kill_and_start_again()
    assert "1 cores drained" in s.said() and int(limit.read_text()) == 50000000
    tell(s, "drain", "--undo", "0")
    s.kill_and_start_again()
    assert int(limit.read_text()) == 50000000 and s.said().count("former rmd's orders") == 1
    tell(s, "drain", "0")
    s.process.terminate()
    assert s.process.wait(PATIENCE_S) == 0
    s.begin()
    assert s.said().count("former rmd's orders") == 2 and int(limit.read_text()) == 50000000


# --- another version

def alter(path, structure, field):
    """Writes a version that never was."""
    offset, form = STRUCTURES[structure].fields[field]
    with open(path, "r+b", buffering=0) as file:
        os.pwrite(file.fileno(), struct.pack(f"={form}", 4711), offset)


@contextlib.contextmanager
def in_place_of_the_holder(s, *kept):
    """Gives the next rmd these files, (uid, kind, path); yields its messages to the holder."""
    eventually(lambda: Path(s.name + HOLDER_SUFFIX).exists(), False)  # such a table has no process
    heard = []

    def keep():
        client = ours.accept()[0]
        for uid, what, path in kept:
            with open(path, "r+b", buffering=0) as file:
                client.sendmsg([holder_message(STORE, uid, what)],
                               [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                 struct.pack("<i", file.fileno()))])
        client.send(holder_message(ALL))
        while message := client.recv(64):
            heard.append(read_holder_message(message))
        client.close()

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours:
        ours.bind(s.name + HOLDER_SUFFIX)
        ours.listen()
        ours.settimeout(PATIENCE_S)
        answers = threading.Thread(target=keep)
        answers.start()
        yield heard
        s.process.kill()
        answers.join(PATIENCE_S)
    Path(s.name + HOLDER_SUFFIX).unlink()


@pytest.mark.parametrize("version", ["version", "table_version"], ids=["state", "table"])
def test_processes_in_a_table_of_another_version_go_on_without_rmd(mortal, version):
    """An upgrade after which a version word differs; the log says so once."""
    s = mortal("emulate-cores = 4\n")
    alice = s.member(ALICE)
    files, kept = [], []
    for what, name in enumerate(("core-table", "rmd-state")):
        # What is on its way to the holder outlives rmd, too, but there is nothing to alter yet.
        eventually(lambda n=name: len(s.memory_of_holder(f"invasive-{n}")), 1)
        memory, = s.memory_of_holder(f"invasive-{name}")
        files.append(open(memory, "r+b", buffering=0))
        kept.append((ALICE, what, f"/proc/self/fd/{files[-1].fileno()}"))
    alter(kept[1][2], "rmd_state", version)
    s.die()
    with in_place_of_the_holder(s, *kept) as heard:
        s.begin()
        assert s.said().count("which is of another version or none: if it has processes they go on "
                              "by themselves until they end") == 1
        eventually(lambda: {(DROP, ALICE, 0), (DROP, ALICE, 1)} <= set(heard), True)
        assert alice.owners() == [0] * 4 and alice.ask("borrow 3") == "1"  # as it was
        new = s.member(ALICE)
        assert new.slot == 0 and counts(new, 0) == [4]
        alice.kill()
        assert new.ask("borrow 3") == "1"
    for file in files:
        file.close()
    s.process.wait(PATIENCE_S)
    s.begin()
    assert s.said().count("another version") == 1 and s.member(ALICE).slot == 0


def test_no_process_can_seal_what_is_kept_for_the_next_rmd(mortal, tell):
    s = mortal("emulate-cores = 4\n")
    s.member(ALICE)
    tell(s, "drain", "0")
    for name in ("core-table", "rmd-state", "rmd-orders"):
        eventually(lambda n=name: len(s.memory_of_holder(f"invasive-{n}")), 1)
        memory, = s.memory_of_holder(f"invasive-{name}")
        with open(memory, "r+b", buffering=0) as file, pytest.raises(PermissionError):
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
    s.kill_and_start_again()
    assert s.member(ALICE).slot == 1


def test_orders_of_another_version_are_given_up(mortal, tell):
    s = mortal("emulate-cores = 4\n")
    tell(s, "drain", "0")
    # What is on its way to the holder outlives rmd, too, but there is nothing to alter yet.
    eventually(lambda: len(s.memory_of_holder("invasive-rmd-orders")), 1)
    orders, = s.memory_of_holder("invasive-rmd-orders")
    alter(orders, "rmd_persisted_memory", "version")
    s.kill_and_start_again()
    assert "former rmd's orders are of another version, or none" in s.said()
    assert counts(s.member(ALICE), 0) == [4]
    tell(s, "drain", "1")
    s.kill_and_start_again()
    assert "1 cores drained" in s.said()


def test_a_descriptor_holder_of_another_version_is_left_alone(mortal):
    s = mortal("emulate-cores = 4\n")
    alice = s.member(ALICE)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as foreign:
        foreign.bind(s.name + ".keep1")
        foreign.listen()
        s.kill_and_start_again()
    Path(s.name + ".keep1").unlink()
    assert s.said().count("keep1 keeps core tables of another version of rmd") == 1
    assert "took back" in s.said() and counts(alice, 0) == [4]


def test_what_keeps_tables_ends_with_the_last_process(mortal):
    s = mortal("emulate-cores = 2\n")
    alice = s.member(ALICE)
    fd_holder = s.running_holder()
    s.die()
    time.sleep(0.1)
    os.kill(fd_holder, 0)
    assert len(list(Path(f"/proc/{fd_holder}/fd").iterdir())) <= 7
    alice.kill()
    eventually(lambda: s.fd_holder(), None)
    s.begin()
    assert s.running_holder() != fd_holder


def test_a_second_rmd_on_the_same_socket_takes_nothing(mortal):
    s = mortal("emulate-cores = 2\n")
    alice = s.member(ALICE)
    second = subprocess.run([s.build / "bin/rmd", f"--config={s.config}", f"--socket={s.name}"],
                            capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert second.returncode == 1 and "cannot listen on" in second.stderr
    s.kill_and_start_again()
    assert counts(alice, 0) == [2] and "took back" in s.said()


def test_without_its_descriptor_holder_rmd_goes_on_and_says_so(mortal):
    s = mortal("emulate-cores = 2\n")
    os.kill(s.running_holder(), signal.SIGKILL)
    alice = s.member(ALICE)
    s.hears("core tables are not kept for a restart any more")
    assert counts(alice, 0) == [2]
    s.kill_and_start_again()
    assert s.member(ALICE).slot == 0


def test_a_descriptor_holder_that_does_nothing_is_not_waited_for_for_ever(mortal):
    s = mortal("emulate-cores = 2\n")
    s.member(BOB)
    alice, fd_holder = s.member(ALICE, join=False), s.running_holder()
    os.kill(fd_holder, signal.SIGSTOP)
    try:
        while "core tables are not kept for a restart any more" not in s.said():
            for command in (f"join {s.name} -1 -1 -1", f"leave {s.name}"):  # another table
                alice.say(command)
                assert select.select([alice.process.stdout], [], [], PATIENCE_S)[0], command
                assert alice.hear() == "0"
    finally:
        os.kill(fd_holder, signal.SIGCONT)
    assert s.member(ALICE).slot == 0


def client_of_the_holder(s):
    """A connection to the holder in place of rmd's, and the stored descriptors, {(uid, kind)}."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.settimeout(PATIENCE_S)
        one.connect(s.name + HOLDER_SUFFIX)
        kept = set()
        while message := one.recv(64):
            kind, uid, what = read_holder_message(message)
            if kind == ALL:
                return one, kept
            if kind == STORE:
                kept.add((uid, what))
        one.close()  # rmd's end is about to be closed
    raise AssertionError("the holder has another client")


def test_orders_are_kept_beside_as_many_tables_as_there_may_be(mortal):
    s = mortal("emulate-cores = 2\n")
    alice = s.member(ALICE)
    eventually(lambda: len(s.memory_of_holder("invasive-rmd-state")), 1)
    memory = s.memory_of_holder("invasive-rmd-state")[0].open("r+b", buffering=0)
    s.die()
    tables = [(100000 + i, what) for i in range(1023) for what in (0, 1)]
    orders = (0, 2)
    one, _ = client_of_the_holder(s)
    with one, memory:
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("<i", memory.fileno()))]
        for item in [*tables, orders]:
            one.sendmsg([holder_message(STORE, *item)], passed)
    one, kept = client_of_the_holder(s)
    with one:
        for item in [*tables, orders]:
            one.send(holder_message(DROP, *item))
    assert kept == {(ALICE, 0), (ALICE, 1), *tables, orders}
    s.begin()
    assert counts(alice, 0) == [2]


def test_a_file_in_the_place_of_the_holders_socket_is_left_there(mortal):
    s = mortal("emulate-cores = 2\n")
    eventually(lambda: Path(s.name + HOLDER_SUFFIX).exists(), True)
    s.process.terminate()
    assert s.process.wait(PATIENCE_S) == 0
    file = Path(s.name + HOLDER_SUFFIX)
    eventually(file.exists, False)
    file.write_text("kept")
    s.begin()
    assert "core tables are not kept for a restart" in s.said()
    assert f"{file}: something is there that is no socket" in s.said()
    assert s.member(ALICE).slot == 0 and file.read_text() == "kept"
    file.unlink()


# --- a table that a process scribbles over

QUICK = "check-interval-ms = 20\n"


@pytest.mark.parametrize("what", ["words", "slots", "head", "all"])
def test_what_a_process_scribbles_is_put_right(mortal, what):
    s = mortal(QUICK + "emulate-cores = 4\n")
    one, other, bob = s.member(ALICE), s.member(ALICE), s.member(BOB)
    before, theirs = one.table()[2:], bob.table()
    for number in range(2, 7):
        assert other.ask(f"scribble {what} {number}") == "0"
        if what != "head":  # a member prints as many as the head says
            eventually(lambda: one.states(), [0, 1])
            eventually(lambda: one.owners(), before[0])
    other.kill()  # overwritten fields of other processes are right once the writer is dead
    eventually(lambda: one.owners(), [0 if o == 1 else o for o in before[0]])
    assert bob.table() == theirs
    assert "a process has overwritten" in s.said()
    assert s.said().count("a process has overwritten") <= 60
    assert s.member(ALICE).slot == 1


def test_holders_that_are_no_members_are_taken_out_of_words(mortal):
    s = mortal(QUICK + "emulate-cores = 4\n")
    one = s.member(ALICE)
    one.ask("scribble words 3")
    eventually(lambda: one.table()[2:], ([0] * 4, [NOBODY] * 4, [0] * 4))
    assert [one.ask(f"borrow {core}") for core in range(4)] == ["1"] * 4


def test_a_count_of_tokens_that_is_wrong_is_counted_again(mortal):
    s = mortal(QUICK + "emulate-cores = 2\n")
    members = s.crowd(ALICE, 3)
    members[0].ask("token")
    for wrong in (2**31 - 1, -2**31, 0, 2):
        members[1].ask(f"scribble tokens {wrong}")
        eventually(lambda: members[0].table()[1], 1)


def test_a_table_that_was_scribbled_over_is_taken_over_whole(mortal):
    s = mortal("emulate-cores = 4\n")
    one, other = s.member(ALICE), s.member(ALICE)
    before = one.owners()
    s.die()
    other.ask("scribble all 9")
    s.begin()
    assert one.owners() == before and one.states() == [0, 1]
    other.kill()
    eventually(lambda: one.owners(), [0] * 4)


def test_a_head_that_is_written_over_all_the_time_ends_no_process_but_its_users(mortal):
    """Each value of the head that rmd has read and checked is another one a moment later."""
    s = mortal(QUICK + "emulate-cores = 256\n")
    bob, hammer = s.member(BOB), s.member(ALICE)
    assert hammer.ask("hammer") == "0"
    for _ in range(3):
        crew = s.member(ALICE, join=False)
        assert crew.ask(f"fork 60 {s.name}") == "60 0"
        crew.kill()  # and they with it, one after the other
        eventually(lambda: len(hammer.states()), 1)
    hammer.kill()
    eventually(lambda: counts(bob, 0), [256])
    assert s.process.poll() is None and s.member(ALICE).slot == 0


# --- processes that are stopped, fork, or hold on

def test_others_may_use_the_cores_of_a_process_that_is_stopped(mortal):
    s = mortal(QUICK + "emulate-cores = 4\n")
    one, other = s.member(ALICE), s.member(ALICE)
    for core in range(4):
        one.ask(f"borrow {core}")
    one.process.send_signal(signal.SIGSTOP)
    eventually(lambda: other.table()[2:4], ([0, 0, 1, 1], [NOBODY] * 4))
    assert [other.ask(f"borrow {core}") for core in range(4)] == ["1"] * 4
    one.process.send_signal(signal.SIGCONT)
    s.hears("goes on")
    assert one.ask("lend 0") == "0"  # it has lost the core,
    assert one.ask("reclaim 0") == "asked"  # which is its own still


def test_many_that_are_stopped_at_once_cost_one_look_at_all_threads(mortal):
    """Each of them may have been about to wake a thread of the table: rmd wakes all."""
    s = mortal("check-interval-ms = 500\nemulate-cores = 4\n")
    alice, crew = s.member(ALICE), s.member(ALICE, join=False)
    assert crew.ask(f"fork 200 {s.name}") == "200 0"
    assert alice.ask("tids") == "0"
    children = Path(f"/proc/{crew.process.pid}/task/{crew.process.pid}/children").read_text()
    before = int(alice.ask("rung"))
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for child in children.split():
            os.kill(int(child), number)
        told = "goes on" if number == signal.SIGCONT else "has been stopped"
        eventually(lambda what=told: s.said().count(what), 200)
    assert 1 <= int(alice.ask("rung")) - before < 100


def crowded_out(s):
    """Two processes: one that wants a core, and one that has borrowed both."""
    one, other = s.member(ALICE), s.member(ALICE)
    other.ask("borrow 0")
    other.ask("borrow 1")
    one.ask("want 1")
    return one, other


def park_and_stop(s, one):
    one.say("park 3")
    assert one.hear() == "parked"
    one.process.send_signal(signal.SIGSTOP)
    s.hears("has been stopped")


def test_no_core_is_kept_for_a_process_that_is_stopped(mortal):
    """When the process goes on it has asked for its core, as before."""
    s = mortal(QUICK + "emulate-cores = 2\n")
    one, other = crowded_out(s)
    assert one.ask("reclaim 0") == "asked"
    park_and_stop(s, one)
    eventually(lambda: other.table()[4], [0, 0])
    assert other.ask("lend 0") == other.ask("borrow 0") == "1"
    one.process.send_signal(signal.SIGCONT)
    eventually(lambda: other.table()[4], [1, 0])
    assert other.ask("lend 0") == "1"
    assert one.hear() == "0"


def test_what_a_stopped_process_wanted_it_wants_again_also_from_the_next_rmd(mortal):
    s = mortal(QUICK + "emulate-cores = 2\n")
    one, other = crowded_out(s)
    park_and_stop(s, one)
    s.kill_and_start_again()
    one.process.send_signal(signal.SIGCONT)
    s.hears("goes on")
    assert other.ask("lend 0") == "1"
    assert one.hear() == "0"


def test_others_get_the_tokens_of_a_process_that_is_stopped(mortal):
    s = mortal(QUICK + "emulate-cores = 2\n")
    members = s.crowd(ALICE, 3)
    assert members[0].ask("token") == members[0].ask("token") == "1"
    for end in (signal.SIGCONT, signal.SIGKILL):
        members[0].process.send_signal(signal.SIGSTOP)
        eventually(lambda: members[1].table()[1], 2)
        members[0].process.send_signal(end)
        eventually(lambda: members[1].table()[1], 0 if end == signal.SIGCONT else 2)


def test_another_user_gets_the_cores_of_one_whose_processes_are_all_stopped(mortal):
    s = mortal(QUICK + "emulate-cores = 4\nreclaim-bound-us = 1000\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    for core in range(4):
        alice.ask(f"borrow {core}")
    alice.process.send_signal(signal.SIGSTOP)
    eventually(lambda: counts(bob, 0), [4])
    s.die()
    s.begin()  # it is a member that is stopped for the next rmd too
    eventually(lambda: counts(bob, 0), [4])
    alice.process.send_signal(signal.SIGCONT)
    eventually(lambda: counts(alice, 0), [2])
    assert counts(bob, 0) == [2]


@two_cpus
def test_the_next_rmd_keeps_children_of_a_stopped_process_to_one_core(mortal):
    s = mortal(QUICK + f"cores = {CPUS[0]},{CPUS[1]}\nreclaim-bound-us = 1000\n")
    alice = s.member(ALICE)
    with started_by(alice, "child") as child:
        alice.process.send_signal(signal.SIGSTOP)
        bob = s.member(BOB)
        eventually(lambda: counts(bob, 0), [2])
        kept = {*CPUS[2:]} or {CPUS[0]}
        eventually(lambda: os.sched_getaffinity(child), kept)
        s.die()
        os.sched_setaffinity(child, CPUS)  # it does not cooperate
        s.begin()
        eventually(lambda: os.sched_getaffinity(child), kept)
        alice.process.send_signal(signal.SIGCONT)
        eventually(lambda: counts(bob, 0), [1])
        eventually(lambda: pins(alice) & pins(bob) & {*CPUS[:2]}, set())
        eventually(lambda: os.sched_getaffinity(child) == pins(alice), True)
        bob.kill()
        eventually(lambda: (os.sched_getaffinity(child), pins(alice)), ({*CPUS}, {*CPUS}))


@pytest.mark.parametrize("when", ["killed", "going-on", "taken-over"])
def test_a_user_whose_processes_are_all_stopped_is_not_forgotten(mortal, monkeypatch, when):
    """Of users without a process rmd remembers only the last ones; many come after this user."""
    monkeypatch.setenv("MALLOC_PERTURB_", "165")  # what is freed is nothing that can be used
    s = mortal(QUICK + "emulate-cores = 4\nlog-level = info\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    alice.process.send_signal(signal.SIGSTOP)
    eventually(lambda: counts(bob, 0), [4])
    if when == "taken-over":
        s.kill_and_start_again()
    for uid in range(61000, 61040):
        assert s.member(uid, join=False).ask(f"leave {s.name}") == "0"
    if when == "going-on":
        alice.process.send_signal(signal.SIGCONT)
        eventually(lambda: (counts(alice, 0), counts(bob, 0)), ([2], [2]))
        assert s.member(ALICE).slot == 1
        s.members[-1].kill()
        eventually(alice.states, [0])
    alice.kill()
    s.hears(f"user {ALICE}: the last process has gone")
    eventually(lambda: counts(bob, 0), [4])
    assert s.member(ALICE).slot == 0 and counts(bob, 0) == [2]


def test_a_thousand_children_are_no_members_and_those_that_join_fill_their_user_only(mortal):
    s = mortal("emulate-cores = 2\n")
    bob = s.member(BOB)
    alice = s.member(ALICE)
    assert alice.ask(f"fork 1000 {s.name}") == "255 745"  # with itself there are as many as slots
    assert counts(bob, 0) == [1]
    assert s.member(BOB).slot == 1
    alice.kill()
    bob.kill()
    eventually(lambda: s.members[-1].states(), [1])


def test_a_client_that_floods_rmd_keeps_no_other_out(mortal):
    """By requests, each of which is answered; silent connections are tested above."""
    s = mortal("emulate-cores = 2\n")
    script = ("import socket, sys\n"
              "while True:\n"
              "    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
              "    s.connect(sys.argv[1])\n"
              "    s.send(b'x' * 60000)\n")
    flood = subprocess.Popen(["python3", "-c", script, s.name], user=ALICE, group=60000, cwd="/",
                             stderr=subprocess.DEVNULL)
    try:
        for turn in range(1, 6):
            bob = s.member(BOB)
            assert counts(bob, 0)[0] >= 1
            bob.kill()
            eventually(lambda: s.said().count(f"user {BOB}: the last process"),  # noqa: B023
                       turn)
            assert flood.poll() is None
    finally:
        flood.kill()
        flood.wait(PATIENCE_S)


# --- the machine


def test_a_cpu_that_goes_offline_has_no_owner_until_it_is_back(mortal, tmp_path):
    put_online(tmp_path, "0-3")
    s = mortal(QUICK + "emulate-cores = 4\nreclaim-bound-us = 1000\n", f"--sys-root={tmp_path}")
    alice, bob = s.member(ALICE), s.member(BOB)
    for core in range(4):
        alice.ask(f"borrow {core}")
    put_online(tmp_path, "0-1,3")
    eventually(lambda: (alice.owners()[2], bob.owners()[2]), (ELSEWHERE, ELSEWHERE))
    eventually(lambda: sorted(counts(alice, 0) + counts(bob, 0)), [1, 2])
    assert alice.ask("borrow 2") == bob.ask("borrow 2") == "0"
    put_online(tmp_path, "")  # nonsense: nothing is known, so all are there
    eventually(lambda: counts(alice, 0) + counts(bob, 0), [2, 2])
    put_online(tmp_path, "7")  # none is left: better all than none
    put_online(tmp_path, "2")
    eventually(lambda: sorted(counts(alice, 0) + counts(bob, 0)), [0, 1])
    put_online(tmp_path, "0-3")
    eventually(lambda: counts(alice, 0) + counts(bob, 0), [2, 2])


def test_a_drain_leaves_each_user_a_cpu_that_is_online(mortal, build, tell, tmp_path):
    put_online(tmp_path, "0-3")
    s = mortal(QUICK + "emulate-cores = 4\n", f"--sys-root={tmp_path}")
    alice, bob = s.member(ALICE), s.member(BOB)
    put_online(tmp_path, "0-2")
    code, _, err = rmctl(build, f"--socket={s.name}", "drain", "0-1")
    assert code == 1 and "1 would be left of 4, and 2 users need at least one each" in err
    tell(s, "drain", "3")  # which is not there anyway
    tell(s, "drain", "1")
    assert [counts(m, 0) for m in (alice, bob)] == [[1], [1]]
    bob.kill()
    put_online(tmp_path, "1")  # better what is drained than what is offline
    eventually(lambda: alice.owners(), [ELSEWHERE, 0, ELSEWHERE, ELSEWHERE])
    tell(s, "drain", "--undo", "3")
    put_online(tmp_path, "0-3")
    eventually(lambda: alice.owners(), [0, ELSEWHERE, 0, 0])
    tell(s, "drain", "--undo", "1")
    assert counts(alice, 0) == [4]


def only(cpu):
    return lambda: os.sched_setaffinity(0, {cpu})  # what the kernel leaves of all when others go


@two_cpus
def test_a_cpu_that_went_offline_is_known_to_the_next_rmd(mortal, tmp_path):
    first, second = CPUS[:2]
    put_online(tmp_path, f"{first},{second}")
    s = mortal(QUICK + f"cores = {first},{second}\n", f"--sys-root={tmp_path}")
    alice, bob = s.member(ALICE), s.member(BOB)
    assert counts(alice, 0) == counts(bob, 0) == [1]
    bob.kill()
    eventually(lambda: counts(alice, 0), [2])
    put_online(tmp_path, first)
    eventually(lambda: counts(alice, 0), [1])
    s.die()
    s.begin(preexec=only(first))
    assert "took back a core table" in s.said() and "2 CPUs of the former rmd" in s.said()
    assert counts(alice, 0) == [1]
    bob = s.member(BOB, join=False)
    assert "every core has a user" in bob.ask(f"join {s.name} -1 -1 -1")  # none is given out twice
    put_online(tmp_path, f"{first},{second}")
    eventually(lambda: counts(alice, 0), [2])
    bob.join()
    assert (counts(alice, 0), counts(bob, 0)) == ([1], [1])
    bob.kill()
    eventually(lambda: pins(alice) >= {first, second}, True)


@two_cpus
def test_a_cpu_that_came_online_is_for_the_rmd_that_finds_no_processes(mortal, tmp_path):
    first, second = CPUS[:2]
    put_online(tmp_path, first)
    s = mortal(QUICK + f"cores = {first},{second}\n", f"--sys-root={tmp_path}")
    s.die()
    s.begin(preexec=only(first))
    alice = s.member(ALICE)
    assert len(alice.owners()) == 1
    put_online(tmp_path, f"{first},{second}")
    s.kill_and_start_again()
    assert "took back a core table" in s.said() and "the 1 CPUs of the former rmd" in s.said()
    assert counts(alice, 0) == [1]
    alice.kill()
    s.hears("the last process has gone")
    s.kill_and_start_again()
    assert counts(s.member(ALICE), 0) == [2]


@two_cpus
@pytest.mark.parametrize("cause", ["configuration", "affinity"])
def test_tables_of_other_cores_are_given_up_where_no_cpu_is_offline(mortal, tmp_path, cause):
    first, second = CPUS[:2]
    put_online(tmp_path, f"{first},{second}")
    s = mortal(QUICK + f"cores = {first},{second}\n", f"--sys-root={tmp_path}")
    s.member(ALICE)
    s.die()
    if cause == "configuration":
        s.config.write_text(s.config.read_text().replace(f"{first},{second}", f"{first}"))
    s.begin(preexec=only(first) if cause == "affinity" else None)
    assert "of other cores than now" in s.said()


def test_a_private_rmd_leaves_offline_cpus_alone_too(rmd, tmp_path):
    put_online(tmp_path, "0-3")
    member, = rmd(4, f"--sys-root={tmp_path}", "--check-interval-ms=20").joined(1, 0)
    assert member.owners() == [0] * 4
    put_online(tmp_path, "0,2-3")
    eventually(member.owners, [0, ELSEWHERE, 0, 0])


# --- out of something

@contextlib.contextmanager
def limited(s, what, value):
    before = resource.prlimit(s.process.pid, what)
    resource.prlimit(s.process.pid, what, (value, before[1]))
    yield
    resource.prlimit(s.process.pid, what, before)


def test_without_descriptors_clients_are_turned_away_and_rmd_sleeps(mortal, short_path):
    where = str(short_path / "metrics.sock")
    s = mortal("emulate-cores = 2\n", f"--metrics={where}")
    alice = s.member(ALICE)
    fds = [int(fd.name) for fd in Path(f"/proc/{s.process.pid}/fd").iterdir()]
    with limited(s, resource.RLIMIT_NOFILE, max(fds) + 1), contextlib.ExitStack() as idle:
        while "no descriptors are left: clients are turned away" not in s.said():
            one = idle.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            one.connect(s.name)
            time.sleep(0.005)
        bob = s.member(BOB, join=False)
        assert bob.ask(f"join {s.name} -1 -1 -1").startswith("refused 99")
        idle.enter_context(socket.socket(socket.AF_UNIX)).connect(where)
        before = processor_s(s.process)
        time.sleep(0.5)
        assert processor_s(s.process) - before < 0.05  # it sleeps
        assert alice.ask("announce 1 1 2") == "0"
    assert bob.join() == 0 and counts(alice, 0) == [1]


def test_without_a_descriptor_even_to_turn_clients_away_rmd_sleeps(mortal, short_path):
    """Clients that came meanwhile are let in when there are descriptors again."""
    where = str(short_path / "metrics.sock")
    s = mortal("emulate-cores = 2\n", f"--metrics={where}")
    alice = s.member(ALICE)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one, \
            socket.socket(socket.AF_UNIX) as other:
        with limited(s, resource.RLIMIT_NOFILE, 3):
            one.connect(s.name)
            other.connect(where)
            time.sleep(0.1)
            before = processor_s(s.process)
            time.sleep(0.5)
            assert processor_s(s.process) - before < 0.05
            assert alice.ask("announce 1 1 2") == "0"
        assert s.member(BOB).slot == 0 and counts(alice, 0) == [1]
        other.settimeout(PATIENCE_S)
        other.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert other.recv(12) == b"HTTP/1.1 200"


def test_without_memory_a_new_process_is_refused_and_the_others_go_on(mortal):
    s = mortal("emulate-cores = 2\n")
    if sanitizers(s.build):
        return  # a sanitizer gives up without memory
    alice = s.member(ALICE)
    bob = s.member(BOB, join=False)
    with limited(s, resource.RLIMIT_AS, 1 << 20):
        assert bob.ask(f"join {s.name} -1 -1 -1").startswith("refused ")
        assert alice.ask("announce 1 1 2") == "0"
    assert bob.join() == 0


def test_a_full_disk_or_a_closed_log_does_not_stop_rmd(mortal):
    s = mortal("emulate-cores = 2\nlog-level = debug\n")
    alice = s.member(ALICE)
    s.die()
    with open("/dev/full", "w", encoding="ascii") as full:
        s.begin(preexec=lambda: os.dup2(full.fileno(), 2))
    assert counts(alice, 0) == [2] and s.member(BOB).slot == 0
    s.process.send_signal(signal.SIGHUP)
    s.die()
    s.begin(preexec=lambda: os.close(2))
    files = [os.readlink(f"/proc/{s.process.pid}/fd/{fd}") for fd in (0, 1, 2)]
    assert files[2] == "/dev/null"  # nothing that a line of the log could harm
    assert counts(alice, 0) == [1] and s.member(BOB).slot == 1


@contextlib.contextmanager
def unread(kind):
    """The write end of a file that no process reads, and a function that reads what is there."""
    if kind == "pipe":
        ours, theirs = os.pipe()
    elif kind == "socket":
        ours, theirs = (end.detach() for end in socket.socketpair())
    else:
        ours, theirs = os.openpty()
    if kind == "stopped terminal":
        termios.tcflow(theirs, termios.TCOOFF)

    def take():
        if kind == "stopped terminal":
            termios.tcflow(theirs, termios.TCOON)
        text = b""
        while select.select([ours], [], [], 0.1)[0]:
            text += os.read(ours, 1 << 16)
        return text.decode().replace("\r\n", "\n")

    try:
        yield theirs, take
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("kind", ["pipe", "terminal", "stopped terminal", "socket"])
def test_a_log_that_is_not_read_does_not_stop_rmd(mortal, kind):
    """Lines are lost, and counted; other processes that write there wait as before."""
    s = mortal("emulate-cores = 2\nlog-level = debug\n")
    s.die()
    with unread(kind) as (stderr, take):
        s.begin(preexec=lambda: os.dup2(stderr, 2))
        links = {int(fd.name): what for fd, what in opened(s.process.pid).items()}
        assert [what for fd, what in links.items() if fd > 2].count(links[2]) == (kind != "socket")
        assert not fcntl.fcntl(stderr, fcntl.F_GETFL) & os.O_NONBLOCK
        alice = s.member(ALICE)
        assert {alice.ask(f"submit {s.name} 7 0 0") for _ in range(2000)} == {"0"}  # a line each
        assert rmctl(s.build, f"--socket={s.name}", "policy")[0] == 0
        assert s.member(BOB).slot == 0 and counts(alice, 0) == [1]
        before = take()
        assert all(re.match(r"[-\d]{10}T[:\d]{8}\.\d{3}Z rmd: \w+: ", line)
                   for line in before.splitlines()[:-1])
        s.member(CAROL, join=False).ask(f"join {s.name} -1 -1 -1")
        after = []
        lost = re.compile(r"(?m)^\S+Z rmd: warning: lines lost before this one.*: [1-9][0-9]+$")
        eventually(lambda: after.append(take()) or lost.search("".join(after)) is None, False)
        s.process.terminate()
        assert s.process.wait(PATIENCE_S) == 0
    s.begin()


def test_a_log_in_a_pipe_of_another_user_does_not_stop_rmd(build, public):
    """rmd cannot open the pipe once more; a line fits into the rest of it, or is lost."""
    name = f"@rmd-test-{os.getpid()}-pipe"
    ready, write_ready = os.pipe()
    with unread("pipe") as (stderr, take):
        rmd_ = subprocess.Popen(
            [build / "bin/rmd", "--private", f"--ready-fd={write_ready}", f"--socket={name}",
             "--emulate-cores=2", "--log-level=debug"], pass_fds=(write_ready,), stderr=stderr,
            user=ALICE, group=60000, extra_groups=[], cwd="/")
        os.close(write_ready)
        try:
            assert os.read(ready, 64) == b"ready 2\n"
            alice = UserMember(public / "member", name, ALICE)
            assert alice.join() == 0
            assert {alice.ask(f"submit {name} 7 0 0") for _ in range(2000)} == {"0"}
            take()
            alice.close()
            eventually(lambda: "lines lost before this one" in take(), True)
        finally:
            rmd_.kill()
            rmd_.wait(PATIENCE_S)
            os.close(ready)


CLOCK = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static time_t jump(void) /* some years, another way each time */
{
    static unsigned n;
    return (time_t)(n++ % 2 ? 1u << 30 : 0) - (1 << 28);
}
int clock_gettime(clockid_t clock, struct timespec *t)
{
    int result = (int)syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_REALTIME)
        t->tv_sec += jump();
    return result;
}
time_t time(time_t *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *restrict t, void *restrict unused)
{
    struct timespec now;
    (void)unused;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
"""


def test_a_clock_that_jumps_does_not_matter(mortal, tmp_path):
    """The time of day; the monotonic clock does not jump."""
    library = compile_text(tmp_path / "clock.so", CLOCK, *SHARED)
    s = mortal(QUICK + "emulate-cores = 2\nreclaim-bound-us = 1000\n")
    alice = s.member(ALICE)
    s.die()
    preloaded = preload(s.build, library)
    s.begin(preexec=lambda: os.environ.update(LD_PRELOAD=preloaded))
    alice.ask("borrow 0")
    alice.ask("borrow 1")
    bob = s.member(BOB)
    eventually(lambda: counts(bob, 0), [1])  # taken by force, by the bound
    alice.process.send_signal(signal.SIGSTOP)
    eventually(lambda: counts(bob, 0), [2])
    assert bob.ask("announce 1 1 2") == "0"
