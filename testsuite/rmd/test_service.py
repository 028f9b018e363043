# SPDX-License-Identifier: GPL-3.0-or-later
"""rmd as the service of a machine: users apart from each other, the permission to ask, a change of
its configuration while it runs, its messages, and systemd.  Only root can be several users."""

import contextlib
import datetime
import grp
import itertools
import json
import mmap
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from lib.building.small_programs import SHARED, compile_text
from lib.machine import CPUS, two_cpus
from lib.manager.connections import follower, idle_connections
from lib.manager.control_groups import (
    REAL,
    cpusets_in,
    fake_tree,
    group_in,
    group_of,
    of_each_version,
    real_tree,
    with_cpusets,
)
from lib.manager.core_table import ANONYMOUS, ELSEWHERE, NOBODY, PINNED
from lib.manager.fake_system import RAPL, put_stat, put_zone, value_of
from lib.manager.member import UserMember, counts, pins, started_by
from lib.manager.protocol import (
    HOLDER_SUFFIX,
    OBSERVE,
    OK,
    exchange,
    follow,
    observe_another,
    request,
)
from lib.manager.rmd import rmctl
from lib.manager.service import Service
from lib.manager.users import ALICE, BOB, CAROL
from lib.processes import processor_s
from lib.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.sanitize,
              pytest.mark.machine(os.getuid() == 0, "only root can be several users")]
counter = itertools.count()


# --- users apart

def test_each_user_has_a_table_and_an_equal_share(service):
    s = service("emulate-cores = 8\nreclaim-bound-us = 60000000\n")
    alice = s.member(ALICE)
    assert counts(alice, 0, ELSEWHERE) == [8, 0]
    bob = s.member(BOB)
    assert counts(alice, 0, ELSEWHERE) == counts(bob, 0, ELSEWHERE) == [4, 4]
    for a, b in zip(alice.owners(), bob.owners()):
        assert (a == ELSEWHERE) != (b == ELSEWHERE)
    second = s.member(BOB)
    assert counts(bob, 0, 1, ELSEWHERE) == [2, 2, 4] and second.slot == 1
    carol = s.member(CAROL)
    assert sorted(counts(m, ELSEWHERE)[0] for m in (alice, bob, carol)) == [5, 5, 6]


def test_what_an_ended_user_had_goes_to_the_others(service):
    s = service("emulate-cores = 6\nreclaim-bound-us = 60000000\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    bob.ask(f"borrow {bob.owners().index(0)}")
    bob.kill()
    eventually(lambda: counts(alice, 0), [6])
    assert s.member(BOB).table()[3] == [NOBODY] * 6


def test_no_process_of_one_user_can_take_a_core_of_another(service):
    s = service("emulate-cores = 4\nreclaim-bound-us = 60000000\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    taken = {core for member in (alice, bob) for core in range(4)
             if member.ask(f"borrow {core}") == "1"}
    assert taken == set(range(4))
    for core in range(4):
        assert alice.ask(f"borrow {core}") == bob.ask(f"borrow {core}") == "0"
        assert sorted([alice.holders()[core], bob.holders()[core]]) == [NOBODY, 0]


def test_a_core_that_is_computed_on_goes_to_another_user_only_when_it_is_given_up(service):
    s = service("emulate-cores = 2\nreclaim-bound-us = 60000000\n")
    alice = s.member(ALICE)
    assert alice.ask("borrow 0") == alice.ask("borrow 1") == "1"
    bob = s.member(BOB)
    assert counts(bob, 0, ELSEWHERE) == [0, 2]
    wanted = alice.owners().index(ELSEWHERE)
    assert alice.table()[4][wanted] == 1
    assert alice.ask(f"lend {wanted}") == "1"
    eventually(lambda: counts(bob, 0, ELSEWHERE), [1, 1])
    assert bob.ask(f"borrow {wanted}") == "1" and alice.ask(f"borrow {wanted}") == "0"


def test_a_core_that_is_not_given_up_is_taken_when_the_bound_has_passed(service):
    s = service("emulate-cores = 2\nreclaim-bound-us = 1000\n")
    alice = s.member(ALICE)
    assert alice.ask("borrow 0") == alice.ask("borrow 1") == "1"
    bob = s.member(BOB)
    eventually(lambda: counts(bob, 0), [1])
    core = bob.owners().index(0)
    assert alice.holders()[core] == NOBODY and alice.ask(f"borrow {core}") == "0"
    assert "taken by force" in s.said()


def test_a_user_that_asks_back_before_the_core_is_given_up_keeps_it(service):
    s = service("emulate-cores = 2\nreclaim-bound-us = 60000000\n")
    alice = s.member(ALICE)
    assert alice.ask("borrow 0") == alice.ask("borrow 1") == "1"
    s.member(BOB).kill()
    eventually(lambda: counts(alice, 0), [2])
    assert alice.table()[3:] == ([0, 0], [0, 0])


def test_a_core_that_comes_and_stays_free_is_offered_to_a_process_that_waits_for_one(service):
    """Any process may borrow the cores that the limit of a launch leaves over."""
    s = service("emulate-cores = 4\nmax-job-cores = 1\nreclaim-bound-us = 60000000\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    away = [core for core in range(4) if alice.ask(f"borrow {core}") == "0"]
    assert len(away) == 2
    alice.ask("want 1")
    assert alice.ask("park 0") == "parked"
    bob.kill()
    assert alice.hear() in map(str, away)


def test_tokens_of_a_crowded_domain_follow_its_share(service):
    s = service("emulate-cores = 4\n")
    crowd = s.crowd(ALICE, 6)
    assert crowd[0].table()[:2] == (ANONYMOUS, 4)
    bob = s.member(BOB)
    assert bob.table()[0] == PINNED and counts(bob, 0) == [2]
    eventually(lambda: crowd[0].table()[1], 2)
    bob.kill()
    eventually(lambda: crowd[0].table()[1], 4)


def test_the_words_of_a_crowded_domain_say_which_user_has_the_cores(service):
    """A process lets a child run on the cores that its table says are here."""
    s = service("emulate-cores = 4\n")
    bob = s.member(BOB)
    crowd = s.crowd(ALICE, 6)
    assert crowd[0].table()[0] == ANONYMOUS
    eventually(lambda: (counts(crowd[0], ELSEWHERE), counts(bob, ELSEWHERE)), ([2], [2]))
    bob.kill()
    eventually(lambda: counts(crowd[0], NOBODY), [4])
    s.member(BOB)
    eventually(lambda: counts(crowd[0], NOBODY, ELSEWHERE), [2, 2])


def test_the_share_that_is_to_come_decides_how_a_newcomer_counts(service):
    """Two processes on two cores that another user still computes on."""
    s = service("emulate-cores = 4\nreclaim-bound-us = 60000000\n")
    alice = s.member(ALICE)
    for core in range(4):
        alice.ask(f"borrow {core}")
    bob = s.member(BOB, join=False)
    bob.join(0, 2, 2)
    assert bob.table()[0] == PINNED


def test_there_are_at_most_as_many_users_as_cores(service):
    s = service("emulate-cores = 2\n")
    s.member(ALICE)
    bob = s.member(BOB)
    carol = s.member(CAROL, join=False)
    assert carol.ask(f"join {s.name} -1 -1 -1") == "refused 3 every core has a user already"
    bob.kill()
    s.hears(f"user {BOB}: the last process has gone")
    carol.join()


def test_many_users_one_after_the_other_leave_nothing(service):
    s = service("emulate-cores = 2\n")
    fds = Path(f"/proc/{s.process.pid}/fd")
    for uid in range(70000, 70050):
        s.member(uid).close()
        s.members.pop()
    eventually(lambda: len(list(fds.iterdir())) < 20, True)
    alice = s.member(ALICE)
    eventually(lambda: counts(alice, 0), [2])


# --- limits

def test_a_user_owns_no_more_than_its_limit(service):
    s = service(f"emulate-cores = 8\nmax-cores = 5\n[user {BOB}]\nmax-cores = 2\n")
    alice = s.member(ALICE)
    assert counts(alice, 0, ELSEWHERE) == [5, 3]
    assert alice.ask(f"borrow {alice.owners().index(ELSEWHERE)}") == "0"
    bob = s.member(BOB)
    assert counts(alice, 0)[0] == 5 and counts(bob, 0)[0] == 2


def test_a_job_owns_no_more_than_its_limit(service):
    """A launch is a job; without one a session is."""
    s = service("emulate-cores = 8\nmax-job-cores = 3\n")
    first = [s.member(ALICE, env={"INVASIVE_LAUNCH": "one/1"}) for _ in range(2)]
    assert sorted(counts(first[0], 0, 1)) == [1, 2]
    s.member(ALICE, env={"INVASIVE_LAUNCH": "other/1"})
    assert counts(first[0], 2) == [3]
    assert sum(counts(first[0], 0, 1)) == 3
    s.member(ALICE)
    assert counts(first[0], 3)[0] == 2 and counts(first[0], NOBODY) == [0]


@pytest.mark.parametrize("mpiexec", [
    {"PMIX_NAMESPACE": "5.1", "PMIX_SERVER_TMPDIR": "/t"},
    {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, {"PMI_PORT": "h:1", "PMI_ID": "0"}],
    ids=["pmix", "slurm", "port"])
def test_the_ranks_of_an_mpiexec_are_one_job_though_each_has_an_invade(service, mpiexec):
    s = service("emulate-cores = 8\nmax-job-cores = 3\n")
    ranks = [s.member(ALICE, join=False, env={**mpiexec, "INVASIVE_LAUNCH": f"{rank}/1"})
             for rank in range(2)]
    for rank, member in enumerate(ranks):
        member.join(rank, 2, 2)
    helper = s.member(ALICE, env=mpiexec)  # a program of theirs that is none of MPI's
    assert [counts(helper, slot) for slot in range(3)] == [[1]] * 3
    s.member(ALICE, env={name: value + "0" for name, value in mpiexec.items()})
    assert counts(helper, 3) == [3]


# --- physical cores

THREADS = "emulate-cores = core:4 pu:2\nsmt = core\nreclaim-bound-us = 60000000\n"


def test_no_two_users_have_threads_of_one_physical_core_where_these_go_together(service):
    s = service(THREADS)
    alice, bob = s.member(ALICE), s.member(BOB)
    assert counts(alice, 0) == counts(bob, 0) == [4]
    assert bob.table()[0] == PINNED
    carol = s.member(CAROL)
    for member in (alice, bob, carol):
        owners = member.owners()
        assert owners[::2] == owners[1::2]
    assert sorted(counts(m, 0)[0] for m in (alice, bob, carol)) == [2, 2, 4]


def test_a_physical_core_goes_to_another_user_when_all_of_it_is_given_up(service):
    s = service(THREADS)
    alice = s.member(ALICE)
    for core in range(8):
        assert alice.ask(f"borrow {core}") == "1"
    bob = s.member(BOB)
    wanted = [core for core, owner in enumerate(alice.owners()) if owner == ELSEWHERE]
    assert len(wanted) == 4 and counts(bob, 0) == [0]
    assert alice.ask(f"lend {wanted[0]}") == "1"
    dave = s.member(ALICE)  # when rmd has seen this one it has seen that core
    assert dave.slot == 1 and counts(bob, 0) == [0]
    assert alice.ask(f"lend {wanted[1]}") == "1"
    eventually(lambda: [c for c, owner in enumerate(bob.owners()) if owner == 0], wanted[:2])


def test_limits_are_met_by_whole_physical_cores(service):
    s = service(THREADS + f"max-cores = 5\nmax-job-cores = 1\n[user {BOB}]\nmax-cores = 1\n")
    alice = s.member(ALICE)
    assert counts(alice, 0, NOBODY, ELSEWHERE) == [2, 2, 4]
    bob = s.member(BOB)
    assert counts(bob, 0, ELSEWHERE) == [2, 6]


def test_there_are_at_most_as_many_users_as_physical_cores(service):
    s = service("emulate-cores = core:2 pu:2\nsmt = core\n")
    s.member(ALICE)
    s.member(BOB)
    carol = s.member(CAROL, join=False)
    assert carol.ask(f"join {s.name} -1 -1 -1") == "refused 3 every core has a user already"


# --- policies

@pytest.fixture
def policy(build, public):
    """policy(SERVICE, USER, NAME...) - what `rmctl policy` of this user says is chosen now"""
    shutil.copy(build / "bin" / "rmctl", public / "rmctl")

    def go(s, uid, *name):
        done = subprocess.run([public / "rmctl", f"--socket={s.name}", "policy", *name], cwd="/",
                              capture_output=True, text=True, timeout=PATIENCE_S, check=True,
                              user=uid, group=60000)
        return done.stdout.splitlines()[0].split()[-1]

    return go


def pair(s, uid):
    """Two processes, the second with nine times the work of the first."""
    one, other = s.member(uid), s.member(uid)
    other.ask("announce 9 0 0")
    one.ask("announce 1 0 0")
    return one


def test_a_user_chooses_the_policy_of_its_own_domain_only(service, policy):
    s = service("emulate-cores = 16\n")
    alice, bob = pair(s, ALICE), pair(s, BOB)
    assert counts(alice, 0, 1) == counts(bob, 0, 1) == [1, 7]
    assert policy(s, ALICE, "equal") == policy(s, ALICE) == "equal"
    assert policy(s, BOB) == policy(s, 0) == "workload"
    assert counts(alice, 0, 1) == [4, 4] and counts(bob, 0, 1) == [1, 7]
    assert policy(s, CAROL) == "workload"


def test_root_chooses_the_policy_of_users_that_have_not_chosen(service, policy):
    s = service(f"emulate-cores = 24\n[user {CAROL}]\npolicy = workload\n")
    alice, bob, carol = pair(s, ALICE), pair(s, BOB), pair(s, CAROL)
    assert policy(s, ALICE, "makespan") == "makespan"
    assert policy(s, 0, "equal") == "equal"
    assert [policy(s, uid) for uid in (ALICE, BOB, CAROL, 70000)] == \
        ["makespan", "equal", "workload", "equal"]
    assert [counts(m, 0, 1) for m in (alice, bob, carol)] == [[1, 7], [4, 4], [1, 7]]


def test_what_was_chosen_holds_until_the_file_says_another_policy(service, policy):
    base = "socket-group = *\nemulate-cores = 8\n"
    s = service(base)
    policy(s, ALICE, "fair")
    policy(s, 0, "equal")
    s.reload(base + "max-cores = 4\n")
    assert [policy(s, uid) for uid in (ALICE, BOB)] == ["fair", "equal"]
    s.reload(base + f"[user {ALICE}]\npolicy = jobs\n")
    assert [policy(s, uid) for uid in (ALICE, BOB)] == ["jobs", "equal"]
    s.reload(base + f"policy = makespan\n[user {ALICE}]\npolicy = jobs\n")
    assert [policy(s, uid) for uid in (ALICE, BOB, 0)] == ["jobs", "makespan", "makespan"]


def test_a_reload_that_changes_a_policy_is_an_event_of_that_user(service):
    base = "socket-group = *\nemulate-cores = 8\n"
    s = service(base)
    for uid in (ALICE, BOB):
        s.member(uid)
    s.reload(base + f"[user {ALICE}]\npolicy = jobs\n")
    events = s.events()
    assert [(e["uid"], e["text"]) for e in events if e["event"] == "policy"] == [(ALICE, "jobs")]
    assert [e["event"] for e in events][-1] == "config"


def test_cores_that_deliver_less_count_for_less_in_each_domain_that_asks(service, policy, tmp_path):
    put_stat(tmp_path, [(100, 0)] * 32)
    s = service("emulate-cores = 32\n", f"--sys-root={tmp_path}")
    alice, bob = s.member(ALICE), s.member(BOB)
    s.member(ALICE)
    s.member(BOB)
    for uid in (ALICE, BOB):
        policy(s, uid, "interference")
    slow = [0 in (a, b) for a, b in zip(alice.owners(), bob.owners())]
    put_stat(tmp_path, [(300, 200) if first else (500, 0) for first in slow])
    eventually(lambda: [counts(m, 0, 1) for m in (alice, bob)], [[10, 6], [10, 6]])
    policy(s, ALICE, "fair")
    assert [counts(m, 0, 1) for m in (alice, bob)] == [[8, 8], [10, 6]]


def test_a_power_cap_of_the_file_ends_with_the_service(service, tmp_path):
    put_zone(tmp_path, 0, "package-0", 200)
    s = service("emulate-cores = 2\npower-cap = 25%\n", f"--sys-root={tmp_path}")
    assert value_of(tmp_path, RAPL.format(0, "power_limit_uw")) == 50000000
    assert s.close() == 0
    assert value_of(tmp_path, RAPL.format(0, "power_limit_uw")) == 193000000


@pytest.mark.parametrize("what", ["launcher", "metrics", "socket"])
def test_an_rmd_that_cannot_start_leaves_everything_as_it_was(build, public, tmp_path, what):
    """Whatever it had begun: the socket, the descriptor holder, metrics, a power cap."""
    name, metrics = public / "start.sock", public / "start.metrics"
    put_zone(tmp_path, 0, "package-0", 200)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other, open(os.devnull) as null:
        if what == "socket":
            other.bind(str(name))
            other.listen()
        done = subprocess.run(
            [build / "bin/rmd", f"--config={os.devnull}", "--emulate-cores=2", f"--socket={name}",
             f"--sys-root={tmp_path}", "--power-cap=50%",
             f"--metrics={metrics if what != 'metrics' else public / 'nowhere/metrics'}",
             f"--ready-fd={null.fileno()}"], pass_fds=[null.fileno()],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    why = {"launcher": "cannot reach the launcher", "metrics": "cannot serve metrics",
           "socket": "cannot listen on"}[what]
    assert done.returncode == 1 and why in done.stderr
    assert name.exists() == (what == "socket")
    name.unlink(missing_ok=True)
    assert not metrics.exists() and not Path(f"{name}{HOLDER_SUFFIX}").exists()
    assert value_of(tmp_path, RAPL.format(0, "power_limit_uw")) == 193000000


# --- the permission to ask

def test_only_members_of_the_group_may_ask(service):
    s = service("emulate-cores = 2\nsocket-group = 4242\n")
    mode = os.stat(s.name)
    assert stat.S_IMODE(mode.st_mode) == 0o660 and mode.st_gid == 4242
    stranger = s.member(ALICE, join=False)
    stranger.say(f"join {s.name} -1 -1 -1")
    assert stranger.process.wait(PATIENCE_S) == 2  # it cannot even connect
    assert s.member(ALICE, groups=[7, 4242]).slot == 0


def test_a_user_that_reaches_the_socket_must_be_in_the_group(service):
    """The file mode says nothing for an abstract socket, or one that another program has opened."""
    s = service("emulate-cores = 4\nsocket-group = 4242\n", f"--socket=@rmd-service-{os.getpid()}")
    s.name = f"@rmd-service-{os.getpid()}"
    refused = s.member(ALICE, join=False).ask(f"join {s.name} -1 -1 -1")
    assert refused == "refused 2 not in the group that may use this rmd"
    assert s.member(ALICE, groups=[4242]).slot == 0
    assert s.member(BOB, groups=[1, 2, 3, 4242]).slot == 0
    assert s.member(0).slot == 0


def test_without_a_group_only_root_may_ask(service):
    """service() adds a group to the file, unless the text has the word socket-group."""
    with contextlib.suppress(KeyError):
        grp.getgrnam("invasive")
        return  # on this machine that is the default
    s = service("# no socket-group\nemulate-cores = 2\n")
    assert stat.S_IMODE(os.stat(s.name).st_mode) == 0o600
    stranger = s.member(ALICE, join=False)
    stranger.say(f"join {s.name} -1 -1 -1")
    assert stranger.process.wait(PATIENCE_S) == 2
    assert s.member(0).slot == 0


@pytest.mark.parametrize("group,mode,fits", [("4242", 0o660, False), ("4243", 0o660, True),
                                             ("4242", 0o666, True), ("*", 0o660, False),
                                             ("*", 0o666, True)])
def test_a_socket_that_is_handed_over_and_keeps_the_group_out_is_told(build, public, group, mode,
                                                                      fits):
    path = public / "handed-over.sock"
    config = public / "rmd.conf"
    config.write_text(f"emulate-cores = 2\nsocket-group = {group}\nsocket = {path}\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        os.chown(path, 0, 4243)
        path.chmod(mode)
        with subprocess.Popen([build / "bin" / "rmd", "--foreground", f"--config={config}",
                               f"--listen-fd={listener.fileno()}"], stderr=subprocess.PIPE,
                              pass_fds=[listener.fileno()], text=True) as process:
            said = ""
            while "serving " not in said:
                said += process.stderr.readline()
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
    assert ("socket-group" not in said) == fits, said


def test_a_user_that_floods_keeps_no_other_out(service):
    s = service("emulate-cores = 2\n")
    with idle_connections(s, ALICE, 600):
        assert s.member(BOB).slot == 0


def test_users_with_many_connections_do_not_end_the_operators(service, build):
    s = service("emulate-cores = 2\n")
    s.member(ALICE)
    with follower(s, build / "bin" / "rmctl") as process, \
            idle_connections(s, ALICE, 128), idle_connections(s, BOB, 128), \
            idle_connections(s, CAROL, 128):
        # With a sanitizer it is a while until rmd has seen to so many connections.
        eventually(lambda: rmctl(build, f"--socket={s.name}", "policy", "fair")[0], 0)
        while json.loads(process.stdout.readline())["event"] != "policy":
            pass
        s.process.terminate()  # that is no error
        assert process.wait(PATIENCE_S) == 0


def test_a_client_that_follows_events_goes_after_the_idle_ones_and_hears_of_it(
        service, build, public):
    s = service("emulate-cores = 2\n")
    s.member(ALICE)
    shutil.copy(build / "bin" / "rmctl", public / "rmctl")
    with follower(s, public / "rmctl", ALICE) as process:
        with idle_connections(s, ALICE, 200):
            s.member(ALICE)
            while json.loads(process.stdout.readline())["event"] != "join":
                pass
        with idle_connections(s, ALICE, 128, follow(1)):
            out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1 and "no more connections" in err
    assert "no more connections" in json.loads(out.splitlines()[-1])["error"]


def test_a_user_sees_its_own_table_only(service):
    s = service("emulate-cores = 3\n")
    s.member(ALICE)
    _, (fd,) = exchange(s.name, request(OBSERVE))
    try:
        assert b"member" not in os.pread(fd, 1 << 20, 0)
    finally:
        os.close(fd)


def test_what_an_operator_gets_of_a_users_table_cannot_be_written(service):
    s = service("emulate-cores = 3\n")
    s.member(ALICE)
    status, (fd,) = exchange(s.name, observe_another(ALICE))
    assert status == OK
    try:
        assert b"member" in os.pread(fd, 1 << 20, 0)
        with pytest.raises(OSError):
            os.pwrite(fd, b"x", 0)
        with pytest.raises(PermissionError):
            mmap.mmap(fd, 4096)
    finally:
        os.close(fd)


# --- enforcement, on real cores


@two_cpus
def test_processes_are_kept_to_the_cores_of_their_user(service):
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n")
    alice = s.member(ALICE)
    assert pins(alice) == set(CPUS)
    bob = s.member(BOB)
    eventually(lambda: pins(alice) & pins(bob), set())
    others = pins(alice) - {CPUS[alice.owners().index(0)]}
    assert pins(bob) & {*CPUS[:2]} == {CPUS[bob.owners().index(0)]}
    assert others == {*CPUS[2:]} == pins(bob) - {*CPUS[:2]}
    own = pins(alice)
    os.sched_setaffinity(alice.process.pid, CPUS)  # it does not cooperate
    eventually(lambda: pins(alice), own)
    bob.kill()
    eventually(lambda: pins(alice), set(CPUS))


@two_cpus
def test_a_process_that_leaves_and_all_when_the_service_ends_may_use_all_cores_again(service):
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n")
    alice, second, bob = s.member(ALICE), s.member(ALICE), s.member(BOB)
    eventually(lambda: pins(alice) & pins(bob), set())
    assert alice.ask(f"leave {s.name}") == "0"
    eventually(lambda: pins(alice), {*CPUS})
    assert not pins(second) & pins(bob)
    s.process.terminate()
    s.process.wait(PATIENCE_S)
    assert pins(second) == pins(bob) == {*CPUS}


@two_cpus
def test_a_process_of_many_threads_is_kept_but_takes_little_of_a_processor(service):
    """The threads widen their affinities again all the time; a look at all of them takes long."""
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\nlog-level = warning\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    assert alice.ask("crowd 2000") == "0"
    threads = [int(t) for t in os.listdir(f"/proc/{alice.process.pid}/task")]
    before, begun = processor_s(s.process), time.monotonic()
    while time.monotonic() < begun + 5:
        for thread in threads:
            os.sched_setaffinity(thread, CPUS)
    spent, lasted = processor_s(s.process) - before, time.monotonic() - begun
    assert spent < 0.25 * lasted, (spent, lasted)
    eventually(lambda: [t for t in threads if os.sched_getaffinity(t) & pins(bob)], [])


@two_cpus
def test_children_that_never_join_are_kept_to_the_cores_of_their_user(service):
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n")
    alice = s.member(ALICE)
    with started_by(alice, "child") as child:
        assert os.sched_getaffinity(child) == {*CPUS}
        bob = s.member(BOB)
        eventually(lambda: pins(alice) & pins(bob), set())
        eventually(lambda: os.sched_getaffinity(child), pins(alice))
        os.sched_setaffinity(child, CPUS)  # it does not cooperate
        eventually(lambda: os.sched_getaffinity(child), pins(alice))
        bob.kill()
        eventually(lambda: os.sched_getaffinity(child), {*CPUS})


@two_cpus
def test_a_process_that_has_become_another_program_is_kept_to_the_cores_of_its_user(service):
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n")
    alice, other = s.member(ALICE), s.member(ALICE)
    bob = s.member(BOB)
    eventually(lambda: pins(other) & pins(bob), set())
    alice.say("become execve")
    eventually(other.states, [other.slot])
    eventually(lambda: pins(alice), pins(other))
    os.sched_setaffinity(alice.process.pid, CPUS)  # it does not cooperate
    eventually(lambda: pins(alice), pins(other))
    bob.kill()
    eventually(lambda: pins(alice), {*CPUS})
    assert other.states() == [other.slot]


@two_cpus
def test_a_child_of_a_stopped_process_keeps_to_one_core(service):
    """Its user then owns no core: all cores of the domain are another user's."""
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\nreclaim-bound-us = 1000\n")
    alice = s.member(ALICE)
    with started_by(alice, "child") as child:
        alice.process.send_signal(signal.SIGSTOP)
        bob = s.member(BOB)
        eventually(lambda: counts(bob, 0), [2])
        eventually(lambda: os.sched_getaffinity(child), {*CPUS[2:]} or {CPUS[0]})
        alice.process.send_signal(signal.SIGCONT)
        eventually(lambda: counts(bob, 0), [1])
        eventually(lambda: os.sched_getaffinity(child) & pins(bob) & {*CPUS[:2]}, set())
        bob.kill()
        eventually(lambda: (os.sched_getaffinity(child), pins(alice)), ({*CPUS}, {*CPUS}))


@two_cpus
def test_a_child_without_its_first_thread_is_kept_too(service):
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n")
    alice = s.member(ALICE)
    with started_by(alice, "headless") as child:
        bob = s.member(BOB)
        eventually(lambda: pins(alice) & pins(bob), set())
        others = [int(t) for t in os.listdir(f"/proc/{child}/task") if int(t) != child]
        for _ in range(2):
            eventually(lambda: [t for t in others if os.sched_getaffinity(t) != pins(alice)], [])
            for thread in others:
                os.sched_setaffinity(thread, CPUS)  # it does not cooperate


@two_cpus
def test_a_child_stays_one_when_its_parent_has_ended(service):
    """The child may use all CPUs again when the last member of its user has ended."""
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n")
    alice, second = s.member(ALICE), s.member(ALICE)
    with started_by(alice, "child") as child:
        bob = s.member(BOB)
        eventually(lambda: os.sched_getaffinity(child), pins(alice))
        assert not pins(alice) & pins(bob)
        own = pins(alice)
        alice.kill()
        os.sched_setaffinity(child, CPUS)
        eventually(lambda: os.sched_getaffinity(child), own)
        second.kill()
        eventually(lambda: os.sched_getaffinity(child), {*CPUS})
        assert pins(bob) == {*CPUS}


@two_cpus
def test_of_many_children_all_are_kept_and_let_go_of(service):
    """More children than rmd looks at without a pause."""
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n")
    alice = s.member(ALICE)
    with started_by(alice, *["child"] * 200) as children:
        bob = s.member(BOB)
        eventually(lambda: pins(alice) & pins(bob), set())
        for child in children:
            os.sched_setaffinity(child, CPUS)
        eventually(lambda: [c for c in children if os.sched_getaffinity(c) != pins(alice)], [])
        bob.kill()
        eventually(lambda: [c for c in children if os.sched_getaffinity(c) != {*CPUS}], [])


@two_cpus
def test_children_are_kept_from_nothing_when_the_service_has_ended(service):
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n")
    alice = s.member(ALICE)
    s.member(BOB)
    with started_by(alice, "child") as child:
        eventually(lambda: len(os.sched_getaffinity(child) & {*CPUS[:2]}), 1)
        os.sched_setaffinity(child, CPUS)
        eventually(lambda: len(os.sched_getaffinity(child) & {*CPUS[:2]}), 1)
        s.process.terminate()
        s.process.wait(PATIENCE_S)
        assert os.sched_getaffinity(child) == {*CPUS}


@two_cpus
def test_processes_that_come_from_no_member_are_left_alone(service):
    """Processes of the same user, and of a user that has no member."""
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    others = [s.member(uid, join=False) for uid in (ALICE, CAROL)]
    with started_by(alice, "child") as child:
        eventually(lambda: pins(alice) & pins(bob), set())
        for _ in range(3):
            os.sched_setaffinity(child, CPUS)
            eventually(lambda: os.sched_getaffinity(child), pins(alice))
        assert [pins(other) for other in others] == [{*CPUS}] * 2


@two_cpus
def test_all_processes_of_a_user_are_kept_to_its_cores_where_the_operator_wants_it(service):
    """Except of a user without a managed process.  Ends with the last managed process of the user,
    or when the configuration says otherwise."""
    base = f"socket-group = *\ncores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\n"
    s = service(base + f"[user {ALICE}]\nenforce-on = user\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    strange, bobs, carols = (s.member(uid, join=False) for uid in (ALICE, BOB, CAROL))
    with started_by(alice, "orphan") as orphan:
        eventually(lambda: pins(alice) & pins(bob), set())
        eventually(lambda: pins(strange), pins(alice))
        for pid in (orphan, strange.process.pid):
            os.sched_setaffinity(pid, CPUS)
            eventually(lambda p=pid: os.sched_getaffinity(p), pins(alice))
        s.reload(base)
        eventually(lambda: pins(strange), {*CPUS})
        s.reload(base + "enforce-on = user\n")
        eventually(lambda: [pins(strange), pins(bobs)], [pins(alice), pins(bob)])
        alice.kill()
        eventually(lambda: [os.sched_getaffinity(orphan), pins(strange)], [{*CPUS}] * 2)
        assert pins(carols) == {*CPUS}


@two_cpus
def test_of_root_only_what_comes_from_a_managed_process_is_kept(service):
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\ncheck-interval-ms = 20\nenforce-on = user\n")
    root, bob = s.member(0), s.member(BOB)
    strange = s.member(0, join=False)
    with started_by(root, "child") as child:
        eventually(lambda: pins(root) & pins(bob), set())
        for _ in range(3):
            os.sched_setaffinity(child, CPUS)
            eventually(lambda: os.sched_getaffinity(child), pins(root))
        assert pins(strange) == {*CPUS}
        assert os.sched_getaffinity(0) == os.sched_getaffinity(s.process.pid) == {*CPUS}


@two_cpus
def test_where_nothing_is_enforced_affinities_stay(service):
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\nenforce = none\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    assert pins(alice) == pins(bob) == set(CPUS)


@two_cpus
@pytest.mark.parametrize("version", [1, 2])
def test_a_cpuset_for_each_user_holds_its_cores_and_processes(service, tmp_path, version):
    tree = fake_tree(tmp_path / "tree", version)
    s = service(cpusets_in(tree))
    alice = s.member(ALICE)
    group = tree / f"invasive-{ALICE}"
    both = {CPUS[0], CPUS[1]}
    assert (group / "cpuset.cpus").read_text() == \
        (f"{CPUS[0]}-{CPUS[1]}" if CPUS[1] == CPUS[0] + 1 else f"{CPUS[0]},{CPUS[1]}")
    assert (group / "cgroup.procs").read_text() == f"{alice.process.pid}\n"
    if version == 1:
        assert (group / "cpuset.mems").read_text() == "0\n"
    else:
        assert (tree / "cgroup.subtree_control").read_text() == "+cpuset"
    bob = s.member(BOB)
    sets = [int((tree / f"invasive-{uid}" / "cpuset.cpus").read_text()) for uid in (ALICE, BOB)]
    assert set(sets) == both
    assert sets == [CPUS[m.owners().index(0)] for m in (alice, bob)]
    before = tree / group_of(bob.process.pid, version).lstrip("/") / "cgroup.procs"
    before.write_text("")
    assert bob.ask(f"leave {s.name}") == "0"
    assert before.read_text().split()[0] == str(bob.process.pid)


@two_cpus
def test_without_a_tree_for_cpusets_affinity_is_enforced(service, tmp_path):
    s = service(f"cores = {CPUS[0]},{CPUS[1]}\nenforce = cpuset\ncgroup = {tmp_path}/none\n")
    assert f"no control group with cpusets at {tmp_path}/none" in s.said()
    alice, bob = s.member(ALICE), s.member(BOB)
    eventually(lambda: pins(alice) & pins(bob), set())


def as_directory(path):
    """A path that no process can write to, not even root's: a directory."""
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)


def kept_off(one, *pids):
    """No thread of these processes may use the core that this member owns, by any call."""
    other = CPUS[one.owners().index(one.slot)]
    for pid in pids:
        os.sched_setaffinity(pid, CPUS)
        eventually(lambda p=pid: other in os.sched_getaffinity(p), False)


@two_cpus
@pytest.mark.parametrize("version", [1, 2])
def test_a_process_that_cannot_be_put_into_a_cpuset_is_kept_by_affinity(service, tmp_path, version):
    """Also its descendants; other members are kept by their cpusets."""
    tree = fake_tree(tmp_path / "tree", version)
    as_directory(tree / f"invasive-{ALICE}" / "cgroup.procs")
    s = service(cpusets_in(tree) + "check-interval-ms = 20\nlog-level = warning\n")
    alice, second = s.member(ALICE), s.member(ALICE)
    with started_by(alice, "child") as child:
        bob = s.member(BOB)
        kept_off(bob, alice.process.pid, child)
        assert (tree / f"invasive-{BOB}/cgroup.procs").read_text() == f"{bob.process.pid}\n"
        assert pins(bob) == {*CPUS}  # it is for the kernel to keep it, were this its file system
        s.member(ALICE)
        assert second.ask(f"leave {s.name}") == "0"
        assert pins(second) == {*CPUS}
        assert s.said().count(f"process {alice.process.pid} cannot be put into its cpuset: Is a "
                              "directory: enforcing by affinity") == 1
        bob.kill()
        eventually(lambda: os.sched_getaffinity(child), {*CPUS})
        eventually(lambda: pins(alice), {*CPUS})


@two_cpus
@pytest.mark.parametrize("version", [1, 2])
def test_while_a_cpuset_cannot_be_changed_affinity_is_enforced(service, tmp_path, version):
    tree = fake_tree(tmp_path / "tree", version)
    s = service(cpusets_in(tree) + "check-interval-ms = 20\nlog-level = warning\n")
    alice = s.member(ALICE)
    with started_by(alice, "child") as child:
        as_directory(tree / f"invasive-{ALICE}" / "cpuset.cpus")
        bob = s.member(BOB)
        kept_off(bob, alice.process.pid, child)
        assert s.said().count(f"user {ALICE}: cannot change its cpuset: Is a directory: enforcing "
                              "by affinity") == 1
        (tree / f"invasive-{ALICE}" / "cpuset.cpus").rmdir()
        s.member(ALICE)  # an occasion to write it
        eventually(lambda: os.sched_getaffinity(child), {*CPUS})
        assert pins(alice) == {*CPUS}
        assert (tree / f"invasive-{ALICE}/cpuset.cpus").read_text() == \
            str(CPUS[alice.owners().index(0)])


def is_held_by_its_cpuset(alice, bob):
    """Alice's process is kept to its core until bob's ends; then it may use both cores."""
    eventually(lambda: pins(alice) & pins(bob), set())
    own = pins(alice)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(alice.process.pid, CPUS)
    assert pins(alice) == own
    bob.kill()
    eventually(lambda: pins(alice), {CPUS[0], CPUS[1]})


@with_cpusets
@of_each_version
def test_a_real_cpuset_cannot_be_left(service, version):
    with real_tree(version) as tree:
        s = service(cpusets_in(tree))
        alice, bob = s.member(ALICE), s.member(BOB)
        is_held_by_its_cpuset(alice, bob)
        alice.kill()
        eventually(lambda: [p.name for p in tree.iterdir() if p.is_dir()], [])


@contextlib.contextmanager
def refusing(path):
    """A file that refuses all writes, even root's."""
    subprocess.run(["mount", "--bind", "/dev/full", path], check=True, timeout=60)
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True, timeout=60)


@with_cpusets
@of_each_version
@pytest.mark.parametrize("file", ["cgroup.procs", "cpuset.cpus"])
def test_a_cpuset_that_can_be_used_at_last_is_all_that_keeps_a_process(service, version, file):
    """Affinity keeps it until then, and is lifted then, even if the kernel shows a part of it."""
    with real_tree(version) as tree:
        s = service(cpusets_in(tree) + "check-interval-ms = 20\n")
        group = tree / f"invasive-{ALICE}"
        group.mkdir()
        with contextlib.ExitStack() as stack:
            with refusing(group / file):
                alice = s.member(ALICE)
                child = stack.enter_context(started_by(alice, "child"))
                bob = s.member(BOB)
                kept_off(bob, alice.process.pid, child)
            s.member(ALICE)  # an occasion to try again
            for pid in (alice.process.pid, child):
                eventually(lambda p=pid: group_of(p, version), f"/{tree.name}/{group.name}")
            bob.kill()
            for pid in (alice.process.pid, child):
                eventually(lambda p=pid: os.sched_getaffinity(p), {CPUS[0], CPUS[1]})


@with_cpusets
@of_each_version
def test_a_process_that_leaves_comes_back_to_the_group_it_was_in(service, version):
    with real_tree(version) as tree:
        s = service(cpusets_in(tree))
        alice = s.member(ALICE, join=False)
        before = group_of(alice.process.pid, version)
        alice.slot = alice.join()
        assert group_of(alice.process.pid, version) == f"/{tree.name}/invasive-{ALICE}"
        assert alice.ask(f"leave {s.name}") == "0"
        assert group_of(alice.process.pid, version) == before


def member_from(group, s):
    """A process of ALICE's that was in the group when it joined."""
    alice = s.member(ALICE, join=False)
    (group / "cgroup.procs").write_text(str(alice.process.pid))
    alice.slot = alice.join()
    return alice


@with_cpusets
@of_each_version
def test_a_group_of_the_users_name_elsewhere_is_not_the_users(service, version):
    """A group that was delegated to the user may have that name.  Processes in it are moved to the
    user's own group, and back."""
    with real_tree(version) as tree:
        group_in(tree, version, "slice")
        own, theirs = f"/{tree.name}/invasive-{ALICE}", f"/{tree.name}/slice/invasive-{ALICE}"
        other = group_in(tree, version, f"slice/invasive-{ALICE}")
        s = service(cpusets_in(tree) + "check-interval-ms = 20\n")
        alice = member_from(other, s)
        s.member(BOB)
        with started_by(alice, "child") as child:
            assert group_of(alice.process.pid, version) == own
            (other / "cgroup.procs").write_text(str(child))
            eventually(lambda: group_of(child, version), own)
            assert alice.ask(f"leave {s.name}") == "0"
            eventually(lambda: [group_of(pid, version) for pid in (alice.process.pid, child)],
                       [theirs, theirs])


@with_cpusets
@of_each_version
def test_a_child_that_never_joined_goes_to_where_its_parent_came_from(service, version):
    """Not to the machine's root group, where no limit of its slice holds."""
    with real_tree(version) as tree:
        home = group_in(tree, version, "slice")
        s = service(cpusets_in(tree))
        alice = member_from(home, s)
        with started_by(alice, "child", "orphan") as pids:
            ours = f"/{tree.name}/invasive-{ALICE}"
            assert [group_of(pid, version) for pid in pids] == [ours, ours]
            alice.kill()
            before = f"/{tree.name}/slice"
            eventually(lambda: [group_of(pid, version) for pid in pids], [before, before])
            eventually(lambda: (tree / f"invasive-{ALICE}").exists(), False)


@with_cpusets
@of_each_version
def test_a_child_from_before_its_parent_joined_comes_into_the_cpuset(service, version):
    with real_tree(version) as tree:
        s = service(cpusets_in(tree) + "check-interval-ms = 20\n")
        alice = s.member(ALICE, join=False)
        before = group_of(alice.process.pid, version)
        with started_by(alice, "child") as child:
            alice.slot = alice.join()
            s.member(BOB)
            eventually(lambda: group_of(child, version), f"/{tree.name}/invasive-{ALICE}")
            alice.kill()
            eventually(lambda: group_of(child, version), before)


@with_cpusets
@of_each_version
def test_a_process_that_comes_from_no_member_is_kept_where_its_control_group_is(service, version):
    """The program that has put it there, such as systemd for a login, relies on that group."""
    with real_tree(version) as tree:
        s = service(cpusets_in(tree) + "check-interval-ms = 20\nenforce-on = user\n")
        alice, bob = s.member(ALICE), s.member(BOB)
        strange = s.member(ALICE, join=False)
        before = group_of(strange.process.pid, version)
        eventually(lambda: [pins(strange) & pins(bob), pins(alice) & pins(strange)],
                   [set(), pins(alice)])
        assert group_of(strange.process.pid, version) == before
        bob.kill()
        eventually(lambda: pins(strange), {*CPUS})


@with_cpusets
@of_each_version
def test_a_process_that_can_go_back_nowhere_stays_in_its_users_group_with_all_cpus(
        service, version):
    """Until it ends; its slice's group is gone meanwhile, as an empty scope of systemd is."""
    with real_tree(version) as tree:
        home = group_in(tree, version, "slice")
        s = service(cpusets_in(tree) + "check-interval-ms = 20\n")
        bob = s.member(BOB)
        alice = member_from(home, s)
        with started_by(alice, "child") as child:
            home.rmdir()
            eventually(lambda: len(os.sched_getaffinity(child)), 1)
            alice.kill()
            bob.kill()
            eventually(lambda: os.sched_getaffinity(child), {*CPUS})
            assert group_of(child, version) == f"/{tree.name}/invasive-{ALICE}"
            s.hears(f"user {ALICE}: processes stay in ")
        eventually(lambda: (tree / f"invasive-{ALICE}").exists(), False)


def rights_of_the_unit(top):
    """setpriv, with the capabilities that rmd.service has."""
    unit = (top / "rmd/init/rmd.service.in").read_text()
    names = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1).split()
    return ["setpriv", "--bounding-set",
            ",".join(["-all", *(f"+{name.lower()[4:]}" for name in names)])]


@with_cpusets
@of_each_version
@pytest.mark.parametrize("rights", ["of the unit", "none"])
def test_a_group_that_belongs_to_its_user_is_gone_back_to(service, top, version, rights):
    """As below user@UID.service.  If rmd may not write there, it logs that and moves no process."""
    before = rights_of_the_unit(top)
    if rights == "none":
        before[-1] = "-all,+sys_nice,+sys_ptrace"
    with real_tree(version) as tree:
        home = group_in(tree, version, "slice")
        for path in (home, *home.iterdir()):
            os.chown(path, ALICE, 60000)
        s = service(cpusets_in(tree), before=before)
        alice = member_from(home, s)
        assert alice.ask(f"leave {s.name}") == "0"
        if rights == "none":
            s.hears(f"process {alice.process.pid} stays in its user's group: cannot put it back")
            assert group_of(alice.process.pid, version) == f"/{tree.name}/invasive-{ALICE}"
        else:
            assert group_of(alice.process.pid, version) == f"/{tree.name}/slice"


@with_cpusets
@of_each_version
def test_after_sigkill_of_rmd_members_still_come_back_to_where_they_were(service, version):
    with real_tree(version) as tree:
        home, other = (group_in(tree, version, name) for name in ("slice", "another"))
        s = service(cpusets_in(tree))
        alice, second = member_from(home, s), member_from(other, s)
        s.kill_and_start_again()
        s.hears("took back a core table with 2 processes")
        ours = f"/{tree.name}/invasive-{ALICE}"
        assert [group_of(m.process.pid, version) for m in (alice, second)] == [ours, ours]
        assert alice.ask(f"leave {s.name}") == second.ask(f"leave {s.name}") == "0"
        assert group_of(alice.process.pid, version) == f"/{tree.name}/slice"
        assert group_of(second.process.pid, version) == f"/{tree.name}/another"


@with_cpusets
@of_each_version
def test_what_a_killed_rmd_has_left_of_users_that_have_gone_is_cleared_away(service, version):
    with real_tree(version) as tree:
        s = service(cpusets_in(tree) + "check-interval-ms = 20\n")
        alice, bob = s.member(ALICE), s.member(BOB)
        group = tree / f"invasive-{ALICE}"
        with started_by(alice, "child") as child:
            eventually(lambda: len(os.sched_getaffinity(child)), 1)
            s.process.kill()
            s.process.wait(PATIENCE_S)
            alice.kill()
            bob.kill()
            s.start_again()
            eventually(lambda: os.sched_getaffinity(child), {*CPUS})
            assert group_of(child, version) == f"/{tree.name}/{group.name}"
            assert not (tree / f"invasive-{BOB}").exists()
        eventually(group.exists, False)


@pytest.mark.machine(len(CPUS) > 1 and 2 in REAL, "no cpusets in control groups of version 2")
def test_the_service_makes_room_in_the_group_that_it_runs_in(service):
    """As under systemd with Delegate=cpuset: a group with processes cannot have such groups."""
    with real_tree(2) as tree:
        s = service(f"cores = {CPUS[0]},{CPUS[1]}\nenforce = cpuset\n", group=tree)
        s.hears(f"groups with cpusets, version 2, in {tree}")
        assert group_of(s.process.pid, 2) == f"/{tree.name}/rmd"
        alice, bob = s.member(ALICE), s.member(BOB)
        assert group_of(bob.process.pid, 2) == f"/{tree.name}/invasive-{BOB}"
        is_held_by_its_cpuset(alice, bob)


# --- the configuration while it runs

def test_a_reload_changes_what_may_change(service):
    base = "socket-group = *\nemulate-cores = 8\n"
    s = service(base)
    one, other = s.member(ALICE), s.member(ALICE)
    other.ask("announce 9 0 0")
    one.ask("announce 1 0 0")
    assert counts(one, 0, 1) == [1, 7]
    s.reload(base + "policy = equal\n")
    assert counts(one, 0, 1) == [4, 4]
    s.reload(base + f"[user {ALICE}]\nmax-cores = 2\n")
    assert counts(one, 0, 1, ELSEWHERE) == [1, 1, 6]
    s.reload(base + "max-job-cores = 1\n")
    assert counts(one, 0, 1, ELSEWHERE, NOBODY) == [1, 1, 0, 6]
    s.reload(base + "policy = energy\n")
    one.ask("graph 1 1 8 8")
    other.kill()
    one.ask("announce 1 0 0")
    eventually(lambda: counts(one, 0, NOBODY), [8, 0])
    s.reload(base + "policy = energy\nenergy-loss = 50\n")
    assert counts(one, 0, NOBODY) == [4, 4]
    s.reload(base + "reclaim-bound-us = 777\nlog-level = debug\n")
    status = subprocess.run([s.build / "bin/rmctl", f"--socket={s.name}"], capture_output=True,
                            text=True, timeout=PATIENCE_S, user=ALICE, group=60000, check=False,
                            cwd="/")
    if status.returncode == 0:  # the build may be where only root can go
        assert "reclaim bound 777 us" in status.stdout
    s.member(BOB)
    s.hears("is in slot 0 and owns 4 cores")  # told from level debug on


def test_options_win_over_the_file_also_after_a_reload(service):
    base = "socket-group = *\nemulate-cores = 8\n"
    s = service(base + "policy = workload\nmax-cores = 2\n", "--policy=equal", "--max-cores=4")
    one, other = s.member(ALICE), s.member(ALICE)
    other.ask("announce 9 0 0")
    one.ask("announce 1 0 0")
    assert counts(one, 0, 1, ELSEWHERE) == [2, 2, 4]
    s.reload(base + "policy = workload\nmax-cores = 6\n")
    assert counts(one, 0, 1, ELSEWHERE) == [2, 2, 4]


def test_what_cannot_change_is_said_and_stays(service):
    s = service("emulate-cores = core:2 pu:2\nenforce = none\n")
    s.reload("socket-group = 1\nemulate-cores = 2\nenforce = cpuset\nmax-cores = 2\n"
             "smt = core\npower-cap = 50%\n")
    for key in ("emulate-cores", "enforce", "socket-group", "smt", "power-cap"):
        assert f"key '{key}' cannot change while rmd runs: start it again" in s.said()
    s.member(ALICE)
    assert counts(s.member(ALICE), 0, 1, ELSEWHERE) == [1, 1, 2]


def test_the_manual_marks_the_keys_that_can_change(service, top):
    keys = dict(re.findall(r"^\.It Cm (\S+) = .*?(\*?)$", (top / "doc/man/rmd.conf.5").read_text(),
                           re.MULTILINE))
    s = service("emulate-cores = 4\nenforce = none\nsocket-group = 1\n")
    others = {"smt": "core", "policy": "equal", "energy-loss": 1, "power-cap": "50%",
              "max-cores": 1, "max-job-cores": 1, "socket": "@another", "socket-group": "*",
              "enforce": "cpuset", "enforce-on": "user", "cgroup": "/another",
              "log-level": "debug", "metrics": "@metrics", "subuid-file": "none",
              "lend-blocked": "no"}
    s.reload("".join(f"{key} = {others.get(key, 100)}\n" for key in keys
                     if key not in ("cores", "emulate-cores")))
    s.reload("cores = 0\n")
    told = re.findall(r"key '(\S+)' cannot change", s.said())
    # --socket is told on the command line here, and wins
    assert {*told, "socket"} == {key for key, star in keys.items() if not star}


def test_a_broken_file_leaves_the_old_configuration_in_force(service):
    s = service("emulate-cores = 4\nmax-cores = 3\n")
    for broken in ("max-cores = 2\npolicy = fairest\n", "\0"):
        s.reload(broken)
    assert f"{s.config}:2: key 'policy': 'fairest' is not allowed: use workload, equal, " \
        in s.said()
    assert s.said().count("the configuration has errors: the old one stays in force") == 2
    s.config.unlink()
    s.process.send_signal(signal.SIGHUP)
    s.hears("cannot be read")
    assert counts(s.member(ALICE), 0) == [3]


def test_a_service_with_a_broken_file_does_not_start(build, public):
    s = Service(build, public, "policy = fairest\n", [], {})
    assert s.process.wait(PATIENCE_S) == 1 and s.ready == ""
    assert f"{s.config}:1: key 'policy'" in s.said()


def test_embedded_forms_read_no_configuration(build, public, run_program):
    (public / "rmd.conf").write_text("nonsense\n")
    done = run_program([build / "bin/rmd", "--node", f"--config={public / 'rmd.conf'}",
                        f"--socket=@rmd-embedded-{os.getpid()}", "--emulate-cores=2"])
    assert done.stderr == ""


# --- what it tells

def test_each_event_is_one_line_with_time_and_level(service):
    s = service("emulate-cores = 2\nlog-level = info\n")
    s.member(ALICE).kill()
    s.hears("the last process has gone")
    lines = s.said().splitlines()
    heads = [re.fullmatch(r"(\S+Z) rmd: (notice|info): (.*)", line).groups() for line in lines]
    assert heads[0][1:] == ("notice", "serving 2 emulated cores")
    times = [datetime.datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%fZ") for time, *_ in heads]
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    assert times == sorted(times) and 0 <= (now - times[0]).total_seconds() < 600
    assert [f"user {ALICE}" in line for line in lines] == [False, True, True]
    quiet = service("emulate-cores = 2\nlog-level = error\n")
    quiet.member(ALICE)
    assert quiet.said() == ""


def test_lines_have_priorities_where_stderr_is_the_journal(build, public):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    where = os.fstat(theirs.fileno())
    (public / "rmd.conf").write_text("emulate-cores = 2\nlog-level = debug\n")
    for stream, start in ((f"{where.st_dev}:{where.st_ino}", "<5>serving "),
                          (f"{where.st_dev}:{where.st_ino + 1}", "Z rmd: notice: serving "),
                          ("nonsense", "Z rmd: notice: serving ")):
        process = subprocess.Popen(
            [build / "bin/rmd", f"--config={public}/rmd.conf", f"--socket={public}/j.sock"],
            stderr=theirs, env={**os.environ, "JOURNAL_STREAM": stream})
        text = ""
        while "serving" not in text or not text.endswith("\n"):
            text += ours.recv(4096).decode()
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        text += ours.recv(4096).decode()
        line, = [line for line in text.splitlines() if "serving" in line]
        assert line.startswith(start) or (start[0] == "Z" and start in line)
        prefixes = {line.split(">")[0] for line in text.splitlines()} if start[0] == "<" else set()
        assert prefixes <= {"<5", "<6", "<7"}
    ours.close()
    theirs.close()


# --- systemd, without it


def handed_over(build, fds, *options, env=None):
    """rmd with descriptors from 3 on, as systemd would start it; fds: {name: fd}."""
    moves = " ".join(f"{3 + i}<&{fd}" for i, fd in enumerate(fds.values()))
    script = f'LISTEN_PID=$$ exec {build}/bin/rmd "$@" {moves}'
    return subprocess.Popen(
        ["bash", "-c", script, "rmd", "--foreground", *options], pass_fds=[*fds.values()],
        stderr=subprocess.PIPE, text=True,
        env={**os.environ, "LISTEN_FDS": str(len(fds)), "LISTEN_FDNAMES": ":".join(fds),
             **(env or {})})


def test_systemd_is_told_of_start_reload_and_end(service, notifications):
    s = service("emulate-cores = 2\n", env={"NOTIFY_SOCKET": notifications.path})
    assert notifications.until("READY")["STATUS"] == "2 emulated cores"
    s.process.send_signal(signal.SIGHUP)
    reloading = notifications.until("RELOADING")
    assert int(reloading["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    notifications.until("READY")
    s.close()
    notifications.until("STOPPING")


def test_a_libsystemd_that_cannot_be_used_is_reported_once(service, notifications, tmp_path):
    """An empty library of that name is found first; rmd goes on as without systemd."""
    compile_text(tmp_path / "libsystemd.so.0", "int unused;\n", *SHARED)
    s = service("emulate-cores = 2\n", env={"NOTIFY_SOCKET": notifications.path,
                                            "LD_LIBRARY_PATH": str(tmp_path)})
    s.member(ALICE).kill()  # its table would be stored, and be removed
    s.process.send_signal(signal.SIGHUP)
    bob = s.member(BOB)
    eventually(lambda: counts(bob, 0), [2])
    s.close()
    assert s.said().count("systemd cannot be told anything: ") == 1


def test_a_socket_that_systemd_listens_on_is_used_and_left(build, public, notifications):
    path = public / "activated.sock"
    (public / "rmd.conf").write_text("emulate-cores = 2\nsocket-group = *\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(0o666)
        process = handed_over(build, {"rmd.socket": listener.fileno()},
                              f"--config={public}/rmd.conf",
                              env={"NOTIFY_SOCKET": notifications.path})
        member = UserMember(public / "member", str(path), ALICE)
        try:
            assert member.join() == 0 and counts(member, 0) == [2]
        finally:
            member.close()
        process.terminate()
        assert process.communicate(timeout=PATIENCE_S) and process.returncode == 0
        assert path.exists()


@pytest.mark.parametrize("fds", [2, 1])
def test_descriptors_that_make_no_sense_are_refused(build, public, fds):
    with open("/dev/null", encoding="ascii") as null:
        process = handed_over(build, {f"s{i}": null.fileno() for i in range(fds)},
                              "--emulate-cores=2", f"--socket={public}/x.sock")
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert ("2 sockets to listen on: one is allowed" if fds == 2 else
            "descriptor 3 is no listening SOCK_SEQPACKET socket") in said


def test_core_tables_are_kept_by_systemd_and_taken_back(build, public, service, notifications):
    s = service("emulate-cores = 2\n", env={"NOTIFY_SOCKET": notifications.path})
    alice = s.member(ALICE)
    bob = s.member(BOB)

    def names(*uids):
        return {f"{kind}-{uid}" for uid in uids for kind in ("table", "state")}

    assert {notifications.until("FDSTORE")["FDNAME"] for _ in range(4)} == names(ALICE, BOB)
    bob.kill()
    assert {notifications.until("FDSTOREREMOVE")["FDNAME"] for _ in range(2)} == names(BOB)
    eventually(lambda: alice.ask("borrow 1"), "1")
    s.process.kill()
    s.process.wait(PATIENCE_S)
    with open("/dev/null", encoding="ascii") as null:
        process = handed_over(
            build, {**notifications.kept, "table-77": null.fileno()}, f"--config={s.config}",
            f"--socket={s.name}", env={"NOTIFY_SOCKET": notifications.path})
        dropped = {notifications.until("FDSTOREREMOVE")["FDNAME"] for _ in range(4)}
    assert dropped == names(BOB, 77)
    notifications.until("READY")
    assert alice.table()[2:4] == ([0, 0], [NOBODY, 0])  # it goes on in its table,
    alice.kill()  # as a member
    assert {notifications.until("FDSTOREREMOVE")["FDNAME"] for _ in range(2)} == names(ALICE)
    process.terminate()
    _, said = process.communicate(timeout=PATIENCE_S)
    assert f"user {ALICE}: took back a core table with 1 processes" in said
    assert process.returncode == 0
    s.process = subprocess.Popen(["true"])  # what the fixture ends
    s.process.wait(PATIENCE_S)


# --- what is installed

@pytest.fixture
def installed_units(build, make_variable, tmp_path):
    """The units with the program of this build, for systemd-analyze looks for it."""
    if not (build / "rmd/init/rmd.service").exists():
        subprocess.run(["make", "-C", build, "rmd/init/rmd.service", "rmd/init/rmd.socket"],
                       check=True, timeout=60, stdout=subprocess.DEVNULL)
    for name in ("rmd.service", "rmd.socket"):
        text = (build / "rmd/init" / name).read_text()
        (tmp_path / name).write_text(text.replace(
            make_variable("prefix") + "/bin/rmd", str(build / "bin/rmd")))
    return tmp_path


def sections(path):
    found, section = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = found.setdefault(line[1:-1], {})
        elif line and not line.startswith("#"):
            key, value = line.split("=", 1)
            section[key] = value
    return found


def test_the_units_start_this_rmd_and_confine_it(build, installed_units, make_variable):
    service_unit = sections(installed_units / "rmd.service")
    command, option = service_unit["Service"]["ExecStart"].split()
    assert Path(command) == build / "bin/rmd" and option == "--foreground"
    assert service_unit["Service"]["Type"] == make_variable("SYSTEMD_TYPE") in ("notify", "exec")
    for word in ("NoNewPrivileges", "ProtectSystem", "ProtectHome", "MemoryDenyWriteExecute",
                 "SystemCallFilter", "CapabilityBoundingSet", "FileDescriptorStoreMax",
                 "OOMScoreAdjust"):
        assert word in service_unit["Service"]
    socket_unit = sections(installed_units / "rmd.socket")["Socket"]
    assert socket_unit["ListenSequentialPacket"] == "/run/invasive/rmd.sock"
    assert (socket_unit["SocketMode"], socket_unit["SocketGroup"]) == ("0660", "invasive")
    # systemd's own opinion, where it is installed
    if (analyze := shutil.which("systemd-analyze")) is not None:
        done = subprocess.run(
            [analyze, "verify", "--man=no", "--recursive-errors=no",
             installed_units / "rmd.service", installed_units / "rmd.socket"],
            capture_output=True, text=True, timeout=60, check=False)
        ours = [line for line in done.stderr.splitlines() if "rmd." in line]
        assert not ours, done.stderr


def test_the_init_script_starts_restarts_reloads_and_stops_it(build, public, tmp_path):
    if not shutil.which("start-stop-daemon"):
        pytest.skip("no start-stop-daemon (package dpkg)")
    script = public / "rmd.init"
    script.write_text((build / "rmd/init/rmd.init").read_text())
    (public / "rmd.conf").write_text("emulate-cores = 2\n")
    rmd = public / "rmd-for-init"
    shutil.copy(build / "bin/rmd", rmd)
    sock, log, pidfile = (public / name for name in ("init.sock", "log", "pid"))
    env = {**os.environ, "RMD": str(rmd), "PIDFILE": str(pidfile), "LOGFILE": str(log),
           "RMD_OPTIONS": f"--config={public}/rmd.conf --socket={sock}"}

    def do(verb):
        return subprocess.run(["sh", script, verb], env=env, timeout=PATIENCE_S, check=False,
                              capture_output=True, text=True).returncode

    def drain(*words):
        return rmctl(build, f"--socket={sock}", "drain", *words)[0]

    try:
        assert do("status") == 3
        assert do("start") == do("start") == 0  # the second one does nothing
        eventually(sock.exists, True)
        assert do("status") == 0 and drain("1") == 0
        assert do("restart") == 0
        eventually(lambda: log.read_text().count("serving 2 emulated"), 2)
        assert drain("0") == 1  # since 1 is still drained
        assert drain("--undo", "1") == 0
        assert do("reload") == 0
        eventually(lambda: "has been read again" in log.read_text(), True)
        assert do("dance") == 2
    finally:
        assert do("stop") == 0
    assert do("status") == 3 and not sock.exists() and not pidfile.exists()


def makes_pid_namespaces():
    return subprocess.run(["unshare", "-p", "-f", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.machine(makes_pid_namespaces(), "no pid namespace may be made")
def test_as_the_first_process_of_a_container_it_reaps_orphans_and_ends_well(build, public):
    sock = public / "first.sock"
    process = subprocess.Popen(["unshare", "-p", "-f", "--kill-child", build / "bin/rmd",
                                "--foreground", "--emulate-cores=2", f"--socket={sock}"],
                               stderr=subprocess.DEVNULL)
    try:
        eventually(sock.exists, True)
        of = Path("/proc") / str(process.pid) / "task" / str(process.pid) / "children"
        first = int(of.read_text())
        assert Path(f"/proc/{first}/status").read_text().split("NSpid:")[1].split()[1] == "1"
        children = Path(f"/proc/{first}/task/{first}/children")  # zombies are among them
        with subprocess.Popen(["nsenter", "-t", str(first), "-p", "sh", "-c",
                               "exec 3<&0; cat <&3 &"], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL) as shell:
            assert shell.wait(PATIENCE_S) == 0
            eventually(lambda: children.read_text() == "", False)
        eventually(children.read_text, "")  # what it read from is closed: it has ended
        os.kill(first, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0 and not sock.exists()
    finally:
        process.kill()
        process.wait(PATIENCE_S)


def test_a_directory_for_the_socket_is_made(build, public):
    path = public / "run" / "rmd.sock"
    process = subprocess.Popen([build / "bin/rmd", "--foreground", "--emulate-cores=2",
                                f"--socket={path}"], stderr=subprocess.DEVNULL)
    try:
        eventually(path.exists, True)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
