# SPDX-License-Identifier: GPL-3.0-or-later
"""The service as systemd runs it: what `make install` installs, under the distribution's systemd as
process 1 of namespaces of its own.  There where this machine lets root make such."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lib.machine import TWO_CPUS
from lib.manager.core_table import ELSEWHERE
from lib.manager.hostile import goes_on, run_hostile
from lib.manager.systemd_box import BOOTS, CPUSETS, SOCKET, SYSTEMD, Box, BoxMember
from lib.manager.users import ALICE, BOB
from lib.waiting import PATIENCE_S, eventually

ASK_FOR_METRICS = """
import socket, sys
host, _, port = sys.argv[1].rpartition(":")
s = socket.socket(socket.AF_INET if host else socket.AF_UNIX)
s.settimeout(10)
s.connect((host, int(port)) if host else sys.argv[1].replace("@", "\\0"))
s.sendall(b"GET /metrics HTTP/1.0\\r\\n\\r\\n")
while (text := s.recv(65536)):
    print(text.decode(), end="")
"""


pytestmark = [
    pytest.mark.timeout(500),  # the first has the installation and the boot
    pytest.mark.machine(os.getuid() == 0, "only root can boot another systemd"),
    pytest.mark.skipif(not SYSTEMD.exists(), reason="needs package systemd"),
    pytest.mark.machine(BOOTS, "no two CPUs, control groups of version 2 that may be written to, "
                               "or namespaces with mounts: systemd cannot boot in them")]


@pytest.fixture(scope="module")
def machine(top, build, make_variable, tmp_path_factory):
    if make_variable("SYSTEMD_TYPE") != "notify":
        pytest.skip("built without libsystemd (package libsystemd-dev)")
    one = Box(top, build, tmp_path_factory.mktemp("box"), make_variable("CC"))
    one.run("systemd-sysusers", "/usr/local/lib/sysusers.d/invasive.conf")
    one.group = int(one.run("getent", "group", "invasive").stdout.split(":")[2])
    yield one
    one.close()


@pytest.fixture
def box(machine):
    """A box whose socket listens, its service not started yet; members end with the test."""
    members = []

    def member(uid, join=True):
        members.append(BoxMember(machine, uid, [machine.group]))
        if join:
            members[-1].slot = members[-1].join()
        return members[-1]

    machine.member = member
    machine.configure("")
    machine.begin_journal()
    machine.must("daemon-reload")
    machine.must("start", "rmd.socket")
    yield machine
    for one in members:
        with contextlib.suppress(OSError):
            one.close()
    machine.systemctl("stop", "rmd.socket", "rmd.service")
    machine.systemctl("reset-failed")


def test_the_first_client_of_the_group_starts_the_service(box):
    assert box.show("ActiveState") == "inactive"
    stranger = BoxMember(box, ALICE)
    stranger.say(f"join {SOCKET} -1 -1 -1")
    assert stranger.process.wait(PATIENCE_S) == 2  # it cannot even connect
    stranger.close()
    assert box.show("ActiveState") == "inactive"
    assert box.member(ALICE).owners() == [0, 0]
    assert (box.show("ActiveState"), box.show("Type")) == ("active", "notify")
    assert box.show("StatusText") == "2 CPUs" or len(os.sched_getaffinity(0)) != 2
    assert box.run("rmctl").stdout.startswith(f"domain {SOCKET}: ")


def test_another_group_gets_the_socket_with_its_drop_in(box):
    users = int(box.run("getent", "group", "users").stdout.split(":")[2])
    box.configure("socket-group = users\n")
    drop_in = "/etc/box/rmd.socket.d"
    box.must("start", "rmd")
    box.hears("not all users that socket-group lets in can connect")
    box.systemctl("stop", "rmd.socket", "rmd.service")
    box.run("mkdir", "-p", drop_in)
    example = "/usr/local/share/doc/invasive/examples/socket-group.conf"
    box.run("sh", "-c", f"sed s/=students/=users/ {example} >{drop_in}/socket-group.conf")
    try:
        box.must("daemon-reload")
        box.must("start", "rmd.socket")
        alice = BoxMember(box, ALICE, [users])
        alice.join()
        assert alice.owners().count(0) == len(alice.owners())
        alice.close()
    finally:
        box.run("rm", "-rf", drop_in)


def test_a_reload_takes_effect_and_one_with_an_error_does_not(box):
    box.configure(f"cores = {TWO_CPUS[0]},{TWO_CPUS[1]}\n")
    alice = box.member(ALICE)
    box.configure(f"cores = {TWO_CPUS[0]},{TWO_CPUS[1]}\nmax-cores = 1\n")
    box.must("reload", "rmd")
    eventually(lambda: alice.owners().count(0), 1)
    box.configure("max-cores = 2\nmax-cakes = 1\n")
    box.systemctl("reload", "rmd")
    box.hears("/etc/invasive/rmd.conf:2: key 'max-cakes' is unknown")
    assert alice.owners().count(0) == 1 and box.show("ActiveState") == "active"


def test_users_are_kept_to_their_cores_by_the_unit_as_it_is_confined(box):
    """By affinities of other users' processes, with the capabilities and the filter of the unit."""
    box.configure(f"cores = {TWO_CPUS[0]},{TWO_CPUS[1]}\ncheck-interval-ms = 20\n"
                  "reclaim-bound-us = 1000\nmax-job-cores = 1\n")
    alice = box.member(ALICE)
    for core in range(2):
        alice.ask(f"borrow {core}")
    bob = box.member(BOB)
    eventually(lambda: [m.owners().count(0) for m in (alice, bob)], [1, 1])
    eventually(lambda: alice.pins() & bob.pins(), set())
    os.sched_setaffinity(alice.inner(), TWO_CPUS)
    eventually(lambda: alice.pins() & bob.pins(), set())


def test_a_hostile_user_harms_no_program_of_another_under_the_unit(box):
    """What test_hostile.py does, with the capabilities and the filter of the unit."""
    box.configure(f"cores = {TWO_CPUS[0]},{TWO_CPUS[1]}\ncheck-interval-ms = 20\n"
                  "reclaim-bound-us = 2000\n")
    alice = box.member(ALICE)
    right = box.run("env", "OMP_NUM_THREADS=1", "victim", "300").stdout
    service = box.show("MainPID")
    ids = Path(f"/proc/{alice.inner()}/status").read_text().partition("NSpid:")[2]
    inside = int(ids.splitlines()[0].split()[-1])
    child, out = run_hostile(SOCKET, [inside, int(service)], [box.group], box.enter)
    try:
        assert out.readline() == b"\n"  # it broke into nothing
        assert out.read(1) == b"."
        eventually(lambda: [alice.owners().count(of) for of in (0, ELSEWHERE)], [1, 1])
        hostile = int(Path(f"/proc/{child}/task/{child}/children").read_text())
        childs = int(Path(f"/proc/{hostile}/task/{hostile}/children").read_text())
        for pid in (hostile, childs):
            eventually(lambda p=pid: TWO_CPUS[alice.owners().index(0)] in os.sched_getaffinity(p),
                       False)
        programs = [start_program(box, ALICE, 300) for _ in range(2)]
        for program in programs:
            said, complaint = program.communicate(timeout=PATIENCE_S * 3)
            assert (program.returncode, said, complaint) == (0, right, "")
        assert goes_on(out)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        out.close()
    eventually(lambda: alice.owners().count(ELSEWHERE), 0)
    assert (box.show("ActiveState"), box.show("MainPID")) == ("active", service)


@pytest.mark.machine(CPUSETS, "no cpusets in control groups of version 2")
@pytest.mark.parametrize("how", ["restart", "kill"])
def test_programs_in_cpusets_go_on_while_the_service_is_started_again(box, how):
    """They are in control groups below the unit's own, and come back to where they were."""
    box.configure(f"cores = {TWO_CPUS[0]},{TWO_CPUS[1]}\nenforce = cpuset\n")
    alice, bob = box.member(ALICE, join=False), box.member(BOB)
    home = alice.group()
    alice.slot = alice.join()
    box.hears("groups with cpusets, version 2, in ")
    eventually(lambda: alice.pins() & bob.pins(), set())
    assert alice.group().endswith(f"/rmd.service/invasive-{ALICE}")
    own, before = alice.pins(), box.show("MainPID")
    with contextlib.suppress(OSError):
        os.sched_setaffinity(alice.inner(), TWO_CPUS)
    assert alice.pins() == own
    box.must(*(["restart", "rmd"] if how == "restart" else
               ["kill", "--signal=KILL", "--kill-who=main", "rmd"]))
    eventually(lambda: (box.show("ActiveState"), box.show("MainPID") != before),
               ("active", True))
    assert [m.process.poll() for m in (alice, bob)] == [None, None]
    assert len(alice.states()) == 1
    eventually(lambda: alice.group().endswith(f"/rmd.service/invasive-{ALICE}"), True)
    assert alice.pins() == own
    bob.close()
    eventually(lambda: alice.pins(), set(TWO_CPUS))
    assert alice.ask(f"leave {SOCKET}") == "0"
    assert alice.group() == home


def start_program(box, uid, rounds):
    """A program with the OpenMP runtime, as some user of the group."""
    return subprocess.Popen(
        box.command("setpriv", f"--reuid={uid}", "--regid=60000", f"--groups={box.group}",
                    "invade", f"--socket={SOCKET}", "--", "victim", str(rounds)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_programs_go_on_while_the_service_is_started_again(box, how):
    box.configure(f"cores = {TWO_CPUS[0]},{TWO_CPUS[1]}\n")
    alice = box.member(ALICE)
    eventually(lambda: box.show("NFileDescriptorStore") > "0", True)
    assert alice.ask("borrow 0") == "1"
    program = start_program(box, ALICE, 3000)
    eventually(lambda: len(alice.states()), 2)
    box.run("rmctl", f"--socket={SOCKET}", "policy", "fair")
    before = box.show("MainPID")
    if how == "restart":
        box.must("restart", "rmd")
    else:
        box.must("kill", "--signal=KILL", "rmd")
    eventually(lambda: (box.show("ActiveState"), box.show("MainPID") != before),
               ("active", True))
    assert alice.ask("lend 0") == "1"  # the program may have it now
    said, complaint = program.communicate(timeout=PATIENCE_S * 3)
    assert (program.returncode, complaint) == (0, "")
    assert said == box.run("env", "OMP_NUM_THREADS=1", "victim", "3000").stdout
    box.hears("took back a core table")
    assert "policy fair\n" in box.run("rmctl", f"--socket={SOCKET}", "policy").stdout
    assert box.member(BOB).slot == 0


def test_killed_again_and_again_it_is_started_again(box):
    alice = box.member(ALICE)
    for _ in range(7):  # systemd's own limit is five in ten seconds
        before = box.show("MainPID")
        box.must("kill", "--signal=KILL", "rmd")
        eventually(lambda: (box.show("ActiveState"), box.show("MainPID") != before),  # noqa: B023
                   ("active", True))
    assert len(alice.states()) == 1
    assert box.member(BOB).owners().count(0) == 1


@pytest.mark.parametrize("where", ["/run/invasive/metrics.sock", "@metrics", "127.0.0.1:9777"])
def test_metrics_are_served_by_the_unit_and_its_drop_in(box, where):
    box.configure(f"metrics = {where}\n")
    drop_in = "/etc/box/rmd.service.d"
    if not where.startswith("/"):
        box.run("ip", "link", "set", "lo", "up")
        box.systemctl("start", "rmd")
        if not where.startswith("@"):
            box.hears(f"cannot serve metrics at {where}: ")
        box.run("mkdir", "-p", drop_in)
        box.run("cp", "/usr/local/share/doc/invasive/examples/metrics.conf", drop_in)
        box.must("daemon-reload")
    box.systemctl("stop", "rmd.socket", "rmd.service")  # or it may be about to start again
    box.systemctl("reset-failed")
    try:
        box.must("start", "rmd.socket", "rmd.service")
        done = box.run(sys.executable, "-c", ASK_FOR_METRICS, where)
    finally:
        box.run("rm", "-rf", drop_in)
    assert done.stdout.startswith("HTTP/1.1 200 ") and "invasive_cores 2\n" in done.stdout


def test_a_stop_ends_it_and_leaves_programs_running(box):
    alice = box.member(ALICE)
    box.must("stop", "rmd.socket", "rmd.service")
    assert box.show("Result") == "success" and box.show("ActiveState") == "inactive"
    assert box.run("test", "-e", SOCKET, check=False).returncode == 1
    assert alice.ask("borrow 0") == "1"


def test_the_journal_has_its_lines_with_priorities(box):
    box.member(ALICE)
    box.run("journalctl", "--sync")
    lines = [json.loads(line) for line in
             box.journal("-u", "rmd", "-o", "json").splitlines()]
    told = {line["MESSAGE"]: line["PRIORITY"] for line in lines if line.get("_COMM") == "rmd"}
    assert any(text.startswith("serving ") and p == "5" for text, p in told.items())
    assert told[next(text for text in told if text.startswith(f"user {ALICE}: a first "))] == "6"
