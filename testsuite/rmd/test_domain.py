# SPDX-License-Identifier: GPL-3.0-or-later
"""rmd as its members see it: the owners of cores after joins, announcements and deaths, and the
answers to invalid requests.  The members are processes of testsuite/rmd_member."""

import contextlib
import fcntl
import os
import random
import signal
import socket
import struct
import subprocess

import pytest

from lib.building.small_programs import SHARED, compile_text
from lib.manager.core_table import ANONYMOUS, F_SEAL_FUTURE_WRITE, NOBODY, PINNED
from lib.manager.member import Member
from lib.manager.protocol import (
    E_PROTOCOL,
    JOIN,
    LEAVE,
    MAGIC,
    OBSERVE,
    REPLY,
    REQUEST,
    VERSION,
    exchange,
    join,
    request,
)
from lib.manager.rmd import counter, preload, rmctl
from lib.processes import opened
from lib.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.sanitize


# --- the form for a further node of a launch

@pytest.fixture
def node_rmd(build):
    """node_rmd(OPTIONS...) - rmd --node on a socket that listens before rmd runs; and its name"""
    started = []

    def start(*options):
        name = f"@rmd-test-node-{os.getpid()}-{next(counter)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("\0" + name[1:])
            listener.listen()
            out, ready = os.pipe()
            started.append(subprocess.Popen(
                [build / "bin" / "rmd", "--node", f"--ready-fd={ready}", f"--socket={name}",
                 f"--listen-fd={listener.fileno()}", *options],
                pass_fds=(ready, listener.fileno())))
            os.close(ready)
        with os.fdopen(out) as pipe:
            return started[-1], name, pipe.read()

    yield start
    for process in started:
        process.kill()
        process.wait(PATIENCE_S)


def test_a_nodes_rmd_ends_when_no_process_comes(node_rmd):
    process, _, said = node_rmd("--emulate-cores=3")
    assert said == "ready 3\n"
    assert process.wait(PATIENCE_S) == 0


def test_a_nodes_rmd_serves_as_long_as_a_process_is_there(build, node_rmd):
    process, name, _ = node_rmd("--emulate-cores=3")
    member = Member(build, name)
    try:
        member.join()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(4)
    finally:
        member.close()
    assert process.wait(PATIENCE_S) == 0


def test_a_node_without_any_of_the_listed_cpus_uses_what_it_has(node_rmd):
    has = os.sched_getaffinity(0)
    absent = next(cpu for cpu in range(1024) if cpu not in has)
    assert node_rmd(f"--cores={absent}")[2] == f"ready {len(has)}\n"
    assert node_rmd(f"--cores={absent},{min(has)}")[2] == "ready 1\n"


# --- shares

@pytest.mark.smoke
def test_each_of_the_expected_processes_finds_its_equal_share(rmd):
    first, second = rmd(8).joined(2, 0, 1)
    assert first.owners() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert first.holders() == [NOBODY] * 8
    assert second.table()[0] == PINNED


@pytest.mark.parametrize("cores", [1, 3])
def test_max_cores_holds_where_rmd_is_one_users_own(build, rmd, cores):
    r = rmd(4, f"--max-cores={cores}")
    first, = r.joined(1, 0)
    assert first.owners().count(0) == cores
    assert [first.ask(f"borrow {core}") for core in range(4)].count("1") == cores
    said = rmctl(build, f"--socket={r.name}", "limit")[1]
    assert f": cores {cores}, cores of a launch all" in said


def test_the_first_to_come_does_not_get_everything(rmd):
    first, = rmd(8).joined(4, 0)
    assert first.owners() == [0, 0] + [NOBODY] * 6


def test_ranks_are_neighbours_in_rank_order_however_they_join(rmd):
    members = rmd(8).joined(4, 2, 0, 3, 1)
    assert members[0].owners() == [1, 1, 3, 3, 0, 0, 2, 2]


def test_the_order_is_that_of_the_ranks_on_this_node(rmd):
    """Of six ranks in all, 1, 3 and 5 are here."""
    r = rmd(6)
    places = {}
    for rank, local_rank in ((5, 2), (1, 0), (3, 1)):
        member = r.member()
        places[local_rank] = member.join(rank, 6, 3, local_rank)
    owners = r.members[0].owners()
    assert owners == [slot for local_rank in range(3) for slot in [places[local_rank]] * 2]


def test_an_uneven_share_leaves_no_core_over(rmd):
    owners = rmd(7).joined(3, 0, 1, 2)[0].owners()
    assert sorted(owners.count(slot) for slot in range(3)) == [2, 2, 3]


def test_a_lone_process_owns_all_and_shares_with_the_next_ones(rmd):
    r = rmd(4)
    first, second = r.member(), r.member()
    first.join()
    assert first.owners() == [0, 0, 0, 0]
    second.join()
    assert first.owners() == [0, 0, 1, 1]


def test_more_processes_than_cores_that_were_not_announced_own_nothing(rmd):
    r = rmd(2)
    members = [r.member() for _ in range(3)]
    assert [m.join() for m in members] == [0, 1, 2]
    assert members[0].table()[0] == PINNED and sorted(members[0].owners()) == [0, 1]


def test_more_processes_than_cores_get_anonymous_tokens(rmd):
    members = rmd(2).joined(5, 0, 1, 2, 3, 4)
    mode, tokens, owners, _, _ = members[4].table()
    assert (mode, tokens, owners) == (ANONYMOUS, 2, [NOBODY, NOBODY])


def test_more_processes_than_cores_are_assigned_to_cores_by_load(rmd):
    members = rmd(2).joined(4, 0, 1, 2, 3)

    def assigned():
        return [int(word) for word in members[0].ask("assigned").split()]

    for member, load in zip(members[:3], (0.2, 0.4, 0.6)):
        member.ask(f"announce {load} 0 0")
        assert assigned() == [NOBODY] * 4, "not all are known"
    members[3].ask("announce 0.8 0 0")
    small, *middle, large = assigned()
    assert small == large and middle == [1 - large] * 2
    members[0].ask("announce 0.25 0 0")
    assert assigned() == [small, *middle, large], "as even as before"
    members[1].kill()
    eventually(lambda: len(members[0].states()), 3)
    eventually(lambda: sorted(assigned()), sorted([large, 1 - large, 1 - large]))


def test_the_launcher_can_tell_how_many_will_come(rmd):
    member = rmd(2, "--procs=3").member()
    member.join()
    assert member.table()[0] == ANONYMOUS


def test_a_domain_that_was_empty_takes_the_mode_of_the_next_job(rmd):
    r = rmd(2)
    for local, mode in ((4, ANONYMOUS), (2, PINNED), (3, ANONYMOUS), (2, PINNED)):
        members = r.joined(local, *range(local))
        assert members[0].table()[0] == mode
        for member in members:
            member.kill()
        watcher = r.member()
        watcher.join()
        eventually(lambda w=watcher: len(w.states()), 1)
        watcher.kill()


def test_a_process_that_execs_is_one_process(rmd):
    r = rmd(4)
    one, other = r.joined(2, 0, 1)
    one.ask("borrow 0")
    one.say("exec")
    one.slot = one.join(0, 2, 2)
    assert other.states() == [0, 1]
    assert sorted(other.owners()) == [0, 0, 1, 1] and other.holders() == [NOBODY] * 4


def test_a_process_that_execs_before_the_others_come_is_counted_once(rmd):
    one, other = rmd(6).joined(3, 0, 1)
    one.say("exec")
    one.join(0, 3, 3)
    assert sorted(other.owners()) == [NOBODY, NOBODY, 0, 0, 1, 1]


def test_a_process_that_leaves_is_out(rmd):
    r = rmd(4)
    one, other = r.joined(2, 0, 1)
    one.ask("borrow 0")
    assert one.ask(f"leave {r.name}") == "0"
    assert other.states() == [1] and other.owners() == [1] * 4
    assert other.holders() == [NOBODY] * 4


def test_a_domain_that_is_full_says_so(rmd):
    r = rmd(1024)
    members = [r.member() for _ in range(257)]
    for member in members[:256]:
        member.join()
    assert members[256].ask(f"join {r.name} -1 -1 -1").startswith("refused 3 ")
    members[7].kill()
    eventually(lambda: len(members[0].states()), 255)
    assert members[256].join() == 7


# --- workloads

def test_ownership_follows_the_workloads(rmd):
    one, other = rmd(10).joined(2, 0, 1)
    assert one.ask("announce 1 0 0") == "0"
    assert other.ask("announce 9 0 0") == "0"
    assert one.owners() == [0] + [1] * 9
    assert other.ask("announce 1 0 0") == "0"
    assert one.owners() == [0] * 5 + [1] * 5


def test_a_scalability_graph_is_shown_and_nonsense_in_its_place_is_unknown(rmd, build):
    r = rmd(8)
    one, other = r.joined(2, 0, 1)
    assert one.ask("graph 1 1 2 1.9 8 4.5") == "0" and one.ask("announce 1 0 0") == "0"
    for nonsense in ("4 1 2 1", "1 nan", "1 inf", "1 -3", "3 1 3 1", "1 0"):
        assert other.ask(f"graph {nonsense}") == "0" and other.ask("announce 1 0 0") == "0"
        lines = [line.split() for line in rmctl(build, f"--socket={r.name}")[1].splitlines()]
        assert ["0", "1:1", "2:1.9", "8:4.5"] in lines
        assert ["1", "not", "valid"] in lines
        assert one.owners() == [0] * 4 + [1] * 4


def test_the_changes_of_owners_are_counted(rmd, build):
    r = rmd(10)
    one, other = r.joined(2, 0, 1)

    def moved():
        return int(rmctl(build, f"--socket={r.name}")[1].split("owners changed ")[1].split()[0])

    assert moved() == 0
    one.ask("announce 1 0 0")
    other.ask("announce 9 0 0")
    assert one.owners() == [0] + [1] * 9 and moved() == 4
    other.ask("announce 9.1 0 0")
    assert moved() == 4
    other.kill()
    eventually(one.owners, [0] * 10)
    assert moved() == 4  # a dead process's cores have no owner before they move


def test_the_equal_policy_ignores_workloads_but_not_ranges(rmd):
    one, other = rmd(10, "--policy=equal").joined(2, 0, 1)
    assert other.ask("announce 9 0 0") == "0"
    assert one.owners() == [0] * 5 + [1] * 5
    assert one.ask("announce 9 2 3") == "0"
    assert one.owners() == [0] * 3 + [1] * 7


def test_a_new_owner_that_wants_its_core_gets_the_holder_asked_for_it(rmd):
    one, other = rmd(4).joined(2, 0, 1)
    assert one.ask("borrow 1") == "1"
    other.ask("want 1")
    assert one.ask("announce 1 1 1") == "0"
    _, _, owners, holders, reclaims = one.table()
    assert (owners, holders) == ([0, 1, 1, 1], [NOBODY, 0, NOBODY, NOBODY])
    assert reclaims[1] == 1


def test_a_new_owner_that_wants_is_woken_for_a_free_core(rmd):
    one, other = rmd(4).joined(2, 0, 1)
    for core in (2, 3):
        other.ask(f"borrow {core}")
    for core in (0, 1):
        one.ask(f"borrow {core}")
    one.ask("lend 1")
    other.ask("want 1")
    other.say("park 3")
    assert other.hear() == "parked"
    assert one.ask("announce 1 1 1") == "0"
    assert other.hear() == "1"


# --- placement, and hardware threads

def test_a_share_is_in_one_package_if_it_fits(rmd):
    machine = "package:2 core:6 pu:1"
    members = rmd(12, machine=machine).joined(3, 0, 1, 2)
    owners = members[0].owners()
    assert owners == [0] * 4 + [2] * 2 + [1] * 4 + [2] * 2


def test_ownership_goes_where_a_process_computes_already(rmd):
    one, other = rmd(8).joined(2, 0, 1)
    assert other.ask("borrow 1") == "1"
    assert one.ask("announce 1 1 3") == "0"
    assert one.owners() == [0, 1, 0, 0, 1, 1, 1, 1]


def test_a_core_is_borrowed_near_home(rmd):
    """First the sibling, then cache, NUMA node, package, machine; in each, cores above home before
    cores below it."""
    machine = "package:2 numa:2 l3:2 core:2 pu:2"
    member, = rmd(32, machine=machine).joined(1, 0)
    assert [int(member.ask("near 11")) for _ in range(33)] == [
        11, 10, 9, 8, 12, 13, 14, 15, 7, 6, 5, 4, 3, 2, 1, 0, *range(16, 32), -1]


@pytest.mark.parametrize("how, before, after", [
    ("each", [0] * 4 + [1] * 4, [0] + [1] * 7),
    ("core", [0] * 4 + [1] * 4, [0] * 2 + [1] * 6),
    ("first", [0] * 2 + [1] * 2, [0] + [1] * 3)])
def test_threads_of_a_physical_core_are_given_out_as_the_operator_says(rmd, how, before, after):
    r = rmd(len(before), f"--smt={how}", machine="core:4 pu:2")
    one, other = r.joined(2, 0, 1)
    assert one.owners() == before
    assert one.ask("announce 1 0 0") == "0"
    assert other.ask("announce 9 0 0") == "0"
    assert one.owners() == after


@pytest.mark.parametrize("least, most, cores", [(1, 1, 2), (0, 3, 2), (3, 0, 4), (5, 6, 6)])
def test_a_range_of_cores_is_met_by_whole_physical_cores(rmd, least, most, cores):
    one, other = rmd(8, "--smt=core", machine="core:4 pu:2").joined(2, 0, 1)
    assert other.ask("announce 1 0 0") == "0"
    load = 1000 if most else 0.001
    assert one.ask(f"announce {load} {least} {most}") == "0"
    assert one.owners() == [0] * cores + [1] * (8 - cores)


def test_a_physical_core_goes_as_a_whole_when_its_owner_dies(rmd):
    members = rmd(12, "--smt=core", machine="core:6 pu:2").joined(3, 0, 1, 2)
    members[1].kill()
    eventually(lambda: sorted(members[0].owners()), [0] * 6 + [2] * 6)
    owners = members[0].owners()
    assert members[0].states() == [0, 2] and owners[::2] == owners[1::2]


def test_more_processes_than_physical_cores_get_anonymous_tokens_if_threads_go_together(rmd):
    member = rmd(8, "--smt=core", "--procs=5", machine="core:4 pu:2").member()
    member.join()
    assert member.table()[:2] == (ANONYMOUS, 8)


@pytest.mark.parametrize("option, said", [
    ("--smt=both", "use each, core or first"),
    ("--emulate-cores=x", "or a machine"), ("--emulate-cores=1025", "from 1 to 1024"),
    ("--emulate-cores=package:2000", "or a machine")])
def test_options_that_make_no_sense_are_refused(build, option, said):
    done = subprocess.run([build / "bin" / "rmd", f"--socket=@rmd-test-{os.getpid()}-wrong",
                           option], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 64 and said in done.stderr


# --- death

def dies_while_it(action, one):
    if action == "holds":
        assert one.ask("borrow 0") == "1"
    elif action == "lends":
        one.ask("borrow 0")
        assert one.ask("lend 0") == "1"
    elif action == "borrows":
        assert one.ask("borrow 3") == "1"
    elif action == "wants":
        one.ask("want 1")
    elif action == "waits":
        one.say("park 0")
        assert one.hear() == "parked"


@pytest.mark.smoke
@pytest.mark.parametrize("action", ["holds", "lends", "borrows", "wants", "waits", "nothing"])
def test_a_dead_process_cores_are_the_others(rmd, action):
    one, other = rmd(4).joined(2, 0, 1)
    dies_while_it(action, one)
    one.kill()
    eventually(other.states, [1])
    eventually(lambda: (other.owners(), other.holders()), ([1] * 4, [NOBODY] * 4))
    assert all(other.ask(f"borrow {core}") == "1" for core in range(4))


def test_the_death_of_a_holder_wakes_the_process_that_wants_its_core(rmd):
    one, other = rmd(2).joined(2, 0, 1)
    one.ask("borrow 0")
    other.ask("borrow 1")
    other.ask("want 1")
    other.say("park 5")
    assert other.hear() == "parked"
    one.kill()
    assert other.hear() == "0"


def test_a_borrower_that_dies_gives_the_owner_its_core_back(rmd):
    one, other = rmd(2).joined(2, 0, 1)
    assert other.ask("borrow 0") == "1"
    assert one.ask("reclaim 0") == "asked"
    one.say("park 0")
    assert one.hear() == "parked"
    other.kill()
    assert one.hear() == "0"


def test_the_tokens_of_the_dead_are_free(rmd):
    members = rmd(2).joined(3, 0, 1, 2)
    assert members[0].ask("token") == members[0].ask("token") == "1"
    assert members[1].ask("token") == "0"
    members[0].kill()
    eventually(lambda: members[1].table()[1], 2)


def test_a_hundred_deaths_lose_no_core_and_no_slot(rmd):
    r = rmd(4)
    survivor, = r.joined(1, 0)
    chance = random.Random(1)
    for _ in range(100):
        victim = r.member()
        victim.join()
        dies_while_it(chance.choice(["lends", "borrows", "wants", "nothing"]), victim)
        victim.close()
        r.members.remove(victim)
    eventually(survivor.states, [0])
    eventually(lambda: (survivor.owners(), survivor.holders()), ([0] * 4, [NOBODY] * 4))


# --- rmd's own end

def test_rmd_ends_when_its_launcher_is_gone_and_its_members_go_on(rmd):
    r = rmd(2)
    one, other = r.joined(2, 0, 1)
    r.control.shutdown(socket.SHUT_RDWR)
    assert r.process.wait(PATIENCE_S) == 0
    assert one.ask("borrow 0") == "1" and one.ask("lend 0") == "1"
    assert other.ask("borrow 0") == "1"


def test_rmd_that_is_told_to_end_ends_with_its_launcher(rmd):
    """All processes of a job may be told at once, and the launcher has to ask for the report."""
    r = rmd(2)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        r.process.send_signal(number)
        assert rmctl(r.build, f"--socket={r.name}", "policy")[0] == 0


def test_a_path_is_removed_and_that_of_a_dead_rmd_taken_over(build, short_path):
    path = short_path / "rmd.sock"
    for _ in range(2):
        process = subprocess.Popen([build / "bin" / "rmd", f"--socket={path}"])
        try:
            eventually(path.exists, True)
            assert path.stat().st_mode & 0o777 == 0o600
        finally:
            process.kill()
            process.wait(PATIENCE_S)
        assert path.exists()
    r, w = os.pipe()
    process = subprocess.Popen([build / "bin" / "rmd", f"--socket={path}", f"--ready-fd={w}"],
                               pass_fds=(w,))
    os.close(w)
    with os.fdopen(r) as ready:
        assert ready.readline().startswith("ready ")
    second = subprocess.run([build / "bin" / "rmd", f"--socket={path}"], capture_output=True,
                            text=True, timeout=PATIENCE_S, check=False)
    assert second.returncode == 1 and str(path) in second.stderr
    process.terminate()
    assert process.wait(PATIENCE_S) == 0 and not path.exists()


def test_what_is_no_socket_is_left_where_it_is(build, short_path):
    file, link = short_path / "thesis.txt", short_path / "link"
    file.write_text("all of it")
    link.symlink_to(file)
    for path in (file, link):
        done = subprocess.run([build / "bin" / "rmd", f"--socket={path}"], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 1
        assert f"cannot listen on {path}: something is there that is no socket" in done.stderr
        assert file.read_text() == "all of it" and link.is_symlink()


SLOW_UNLINK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int unlink(const char *path)
{
    const char *go = getenv("TEST_GO"), *there = getenv("TEST_THERE");
    size_t n = strlen(path);
    if (n > 5 && !strcmp(path + n - 5, ".sock")) {
        close(open(there, O_WRONLY | O_CREAT, 0600));
        for (int i = 0; i < 1000 && access(go, F_OK); i++)
            usleep(20000);
    }
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
"""


def test_of_two_that_take_a_path_over_at_the_same_moment_one_has_it(build, tmp_path, short_path):
    """The first rmd is about to remove the socket that it has found when the second one comes."""
    path = short_path / "rmd.sock"
    there, go = tmp_path / "there", tmp_path / "go"
    library = compile_text(tmp_path / "slow.so", SLOW_UNLINK, *SHARED)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as killed:
        killed.bind(str(path))
    slow = {**os.environ, "LD_PRELOAD": preload(build, library), "TEST_GO": str(go),
            "TEST_THERE": str(there)}
    command = [build / "bin" / "rmd", f"--socket={path}", "--private", "--emulate-cores=2"]
    both = [subprocess.Popen(command, env=slow)]
    try:
        eventually(there.exists, True)
        both.append(subprocess.Popen(command))
        eventually(lambda: str(short_path) in opened(both[1].pid).values(), True)  # it waits
        go.touch()
        eventually(lambda: [one.poll() for one in both].count(1), 1)
        assert rmctl(build, f"--socket={path}", "policy")[0] == 0
    finally:
        go.touch()
        for one in both:
            one.terminate()
            one.wait(PATIENCE_S)
    assert not path.exists()


# --- nonsense

@pytest.mark.parametrize("members", [2, 9])  # cores with holders, or tokens
def test_rmd_answers_while_a_member_changes_all_words_all_the_time(rmd, members, tmp_path):
    """rmd bounds its tries to change a word, gives up, and tries again later."""
    r = rmd(8, "--check-interval-ms=10")
    first, *others = r.joined(members, *range(members))
    trace = tmp_path / "trace"
    assert rmctl(r.build, f"--socket={r.name}", "trace", "start", str(trace))[0] == 0
    assert first.ask("storm") == first.ask("storm") == "0"
    for turn in range(20):
        policy = "equal" if turn % 2 else "workload"
        assert rmctl(r.build, f"--socket={r.name}", "policy", policy)[0] == 0
        others[turn % len(others)].close()
        others[turn % len(others)] = newcomer = r.member()
        newcomer.join()
    assert rmctl(r.build, f"--socket={r.name}", "trace", "stop")[0] == 0
    first.close()
    for member in others:
        member.close()
    last = r.member()
    slot = last.join()
    eventually(lambda: set(last.owners()), {slot})


def test_what_rmd_does_to_words_ends_whatever_they_are(build, run_program):
    done = run_program([build / "testsuite/rmd/programs/rmd_loops"], timeout=30)
    assert done.stdout.splitlines()[-1] == "traced"


@pytest.mark.parametrize("other", [
    join(version=VERSION + 1),
    struct.pack("=IIIiiii64s", MAGIC, 4, JOIN, 0, 1, 1, 0, b"p"),
    struct.pack("=II", MAGIC, VERSION + 1)],
    ids=["alike", "shorter", "short"])
def test_a_client_of_another_version_is_told_so_whatever_the_size_of_its_messages(rmd, other):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(PATIENCE_S)
        s.connect("\0" + rmd(4).name[1:])
        s.send(other)
        answer = REPLY.unpack(s.recv(REPLY.size))
    assert answer.version == VERSION and answer.message.startswith(b"other protocol version")


@pytest.mark.parametrize("data", [
    b"x", join(program=b"x" * 64),
    join(kind=77),
    join(version=VERSION + 1),
    join(magic=1),
    join(rank=-7),
    join(local_size=2**31 - 1),
    join() + b"more", b"y" * 60000])
def test_a_malformed_request_is_refused(rmd, data):
    r = rmd(2)
    assert exchange(r.name, data) == (E_PROTOCOL, [])
    assert r.member().join() == 0


def test_random_requests_do_no_harm(rmd):
    r = rmd(2)
    chance = random.Random(2)
    for _ in range(300):
        data = bytearray(join(kind=OBSERVE))
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if REQUEST.unpack(data).kind in (JOIN, LEAVE):
            continue  # we ourselves would become a member
        for fd in exchange(r.name, bytes(data))[1]:
            os.close(fd)
    assert r.member().join() == 0


def test_clients_that_neither_send_nor_read_keep_no_other_out(rmd):
    r = rmd(2)
    with contextlib.ExitStack() as idle:
        for _ in range(300):
            s = idle.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            s.connect("\0" + r.name[1:])
        assert r.member().join() == 0


def test_an_observer_cannot_write(rmd):
    r = rmd(2)
    for join_first in (False, True):
        if join_first:
            r.member().join()
        status, (fd,) = exchange(r.name, request(OBSERVE))
        assert status == 0
        with pytest.raises(OSError):
            os.pwrite(fd, b"x", 0)
        os.close(fd)


def test_a_member_cannot_seal_the_table_against_the_others(rmd):
    """After F_SEAL_FUTURE_WRITE no process, not even the next rmd, could map it for writing."""
    r = rmd(2)
    status, (fd,) = exchange(r.name, request(JOIN))
    assert status == 0
    for seal in (F_SEAL_FUTURE_WRITE, fcntl.F_SEAL_WRITE, fcntl.F_SEAL_SEAL):
        with pytest.raises(PermissionError):
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seal)
    assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) == \
        fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    assert r.member().join() == 1
    os.close(fd)


@pytest.mark.machine(os.getuid() == 0, "only root can become another user")
def test_another_user_is_refused(rmd):
    r = rmd(2)
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.setuid(65534)
        status = exchange(r.name, join())[0]
        os.write(writer, bytes([status]))
        os._exit(0)
    os.close(writer)
    assert os.read(reader, 1) == bytes([2])
    os.close(reader)
    os.waitpid(child, 0)


# --- rmctl


@pytest.mark.smoke
def test_rmctl_shows_cores_processes_and_counters(rmd, build):
    r = rmd(4)
    one, other = r.joined(2, 0, 1)
    one.ask("borrow 2")
    other.ask("reclaim 2")
    other.ask("want 1")
    other.ask("announce 2.5 0 0")
    code, out, err = rmctl(build, f"--socket={r.name}", "status")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert f"rmd {r.process.pid}," in out and "4 emulated cores, pinned" in out
    assert ["2", "-", "1", "0"] == lines[5][:4] and lines[5][-2:] == ["asked", "-"]
    assert ["1", str(other.process.pid), "1", "member", "2", "0", "yes", "2.5"] in lines
    assert any(line[:4] == ["slot", "lends", "borrows", "reclaims"] for line in lines)


def test_rmctl_shows_a_domain_before_its_first_process(rmd, build):
    r = rmd(3)
    code, out, _ = rmctl(build, f"--socket={r.name}", "status")
    assert code == 0 and out.endswith("no process\n")
    assert r.joined(5, 0)[0].table()[0] == ANONYMOUS  # looking has decided nothing
    assert "anonymous tokens" in rmctl(build, f"--socket={r.name}")[1]


def test_rmctl_says_what_it_cannot_do(build):
    code, out, err = rmctl(build, "--socket=@nobody-is-here", "status")
    assert code == 1 and out == "" and "@nobody-is-here" in err
    assert rmctl(build, "dance")[0] != 0
    code, out, err = rmctl(build, "help")
    assert code == 0 and "status" in out
