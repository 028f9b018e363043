# SPDX-License-Identifier: GPL-3.0-or-later
"""What no client of rmd's socket can do to it, whoever it is: have it wait, or keep it busy."""

from __future__ import annotations

import array
import contextlib
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest
from test_rmd_domain import (
    JOIN,
    MAGIC,
    PATIENCE_S,
    REPLY,
    REQUEST,
    VERSION,
    Member,
    processor_s,
    rmctl,
    rmd,  # noqa: F401 (a fixture)
)
from test_rmd_service import (
    ALICE,
    BOB,
    counts,
    public,  # noqa: F401 (a fixture)
)
from test_rmd_survival import (
    mortal,  # noqa: F401 (a fixture)
)

pytestmark = [pytest.mark.sanitize,
              pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")]
CONTROL, METRICS, OVERVIEW, TRACE = 16, 18, 19, 32
LIMIT, UNSAID = 4, 2**32 - 1


def request(kind, program=b"p"):
    return REQUEST.pack(MAGIC, VERSION, kind, -1, -1, -1, -1, program)


def limit(cores):
    """struct inv_control; nobody waits for the effect"""
    return request(CONTROL) + struct.pack("=IIiIIIII4x128x", LIMIT, 0, 0, UNSAID, cores, UNSAID,
                                          0, 0)


def connected(s, uid, where=None, kind=socket.SOCK_SEQPACKET):
    """A connection of this user's; the kernel looks at the effective one."""
    one = socket.socket(socket.AF_UNIX, kind)
    name = str(where or s.name)
    os.seteuid(uid)
    try:
        one.connect("\0" + name[1:] if name.startswith("@") else name)
    finally:
        os.seteuid(0)
    return one


# --- descriptors

@contextlib.contextmanager
def lingering():
    """A descriptor of which the last close() waits for minutes; it ends with the test."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one = socket.create_connection(server.getsockname())
        with server.accept()[0]:
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    one.send(bytes(65536))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 300))
            yield one.detach()


def send_with(connection, message, fd):
    connection.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    os.close(fd)


@contextlib.contextmanager
def stopped(process):
    """So that it is not the first to close a descriptor."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


WITH_ONE = {
    "nonsense": [b"x"],
    "empty": [b""],
    "join": [request(JOIN)],
    "trace": [request(TRACE, b"start")],
    "no-trace": [request(TRACE, b"stop")],
    "behind": [request(METRICS), b""],  # rmd hangs up without having seen it
    "twice": [request(TRACE, b"start"), request(TRACE, b"start")],
}


@pytest.mark.parametrize("messages", WITH_ONE.values(), ids=WITH_ONE)
def test_a_descriptor_that_takes_long_to_close_is_not_waited_for(mortal, messages):  # noqa: F811
    s = mortal("emulate-cores = 2\n")
    alice = s.member(ALICE)
    with contextlib.ExitStack() as stack:
        last = stack.enter_context(lingering())
        with stopped(s.process), connected(s, ALICE) as one:
            for message in messages[:-1]:
                one.send(message)
            send_with(one, messages[-1], last)
        bob = s.member(BOB)
        assert (counts(alice, 0), counts(bob, 0)) == ([1], [1])


def test_nor_is_one_that_another_user_sends_to_a_launchs_own_rmd(rmd, build):  # noqa: F811
    r = rmd(2)
    with lingering() as last:
        with stopped(r.process), connected(r, ALICE) as one:
            send_with(one, request(JOIN), last)
        r.members.append(Member(build, r.name))
        assert r.members[-1].join() == 0


def test_nor_are_many_whose_sender_never_reads(mortal):  # noqa: F811
    """More than rmd has children for at one time."""
    s = mortal("emulate-cores = 2\n")
    alice = s.member(ALICE)
    with contextlib.ExitStack() as stack:
        with stopped(s.process):
            for _ in range(40):
                last = stack.enter_context(lingering())
                send_with(stack.enter_context(connected(s, ALICE)), b"x", last)
        bob = s.member(BOB)
        assert (counts(alice, 0), counts(bob, 0)) == ([1], [1])


def held_by(process):
    """What a child that waits for a descriptor has open, but its first three."""
    deadline = time.monotonic() + PATIENCE_S
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while time.monotonic() < deadline:
        for child in children.read_text().split():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{child}/comm").read_text() == "rmd-holder\n":
                    os.kill(int(child), signal.SIGSTOP)
                    fds = Path(f"/proc/{child}/fd")
                    found = [os.readlink(fds / fd) for fd in os.listdir(fds) if int(fd) > 2]
                    os.kill(int(child), signal.SIGCONT)
                    return found
    return None


def test_who_waits_for_it_has_nothing_else_that_rmd_has_open(mortal):  # noqa: F811
    """Neither the listener nor the keeper's connection, which are to end with rmd."""
    s = mortal("emulate-cores = 2\n")
    s.member(ALICE)
    with contextlib.ExitStack() as stack:
        with stopped(s.process):
            for _ in range(8):
                last = stack.enter_context(lingering())
                send_with(stack.enter_context(connected(s, ALICE)), b"x", last)
        held = held_by(s.process)
        assert held and len(held) == 1 and held[0].startswith("socket:"), held


def test_nor_is_one_that_comes_with_a_request_for_metrics(mortal, tmp_path):  # noqa: F811
    where = tmp_path / "metrics.sock"
    s = mortal("emulate-cores = 2\n", f"--metrics={where}")
    for text in (b"GET /metrics HTTP/1.0\r\n\r\n", b"GET /metrics"):
        with lingering() as last:
            with stopped(s.process), connected(s, 0, where, socket.SOCK_STREAM) as one:
                send_with(one, text, last)
            assert rmctl(s.build, f"--socket={s.name}", "policy")[0] == 0


def test_who_sends_a_descriptor_with_another_request_is_refused(mortal):  # noqa: F811
    s = mortal("emulate-cores = 2\n")
    with connected(s, ALICE) as one:
        send_with(one, request(JOIN), os.open("/dev/null", os.O_RDONLY))
        answer = REPLY.unpack(one.recv(REPLY.size))
    assert answer[2] == 1 and answer[-1].startswith(b"a descriptor came with a request")


# --- processor time

FLOOD = """
import socket, sys, time
name, request, seconds = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3]
end, asked = time.monotonic() + float(seconds), 0
while time.monotonic() < end:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.settimeout(1)
        try:
            one.connect(name)
            one.send(request)
            while one.recv(1 << 20):
                pass
            asked += 1
        except OSError:
            pass
print(asked)
"""


def flood(s, uid, message, seconds):
    return subprocess.Popen(["python3", "-c", FLOOD, s.name, message.hex(), str(seconds)],
                            user=uid, group=60000, extra_groups=[], cwd="/",
                            stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("kind", [METRICS, OVERVIEW], ids=["metrics", "overview"])
def test_a_user_that_asks_all_the_time_takes_little_of_a_processor(mortal, kind):  # noqa: F811
    """A tenth, after what is granted at once; others are answered meanwhile."""
    seconds, granted = 4, 0.2
    s = mortal("emulate-cores = 256\nreclaim-bound-us = 60000000\nlog-level = warning\n")
    alice = s.member(ALICE)
    assert alice.ask("borrow 0") == alice.ask("borrow 1") == "1"
    assert alice.ask(f"fork 100 {s.name}") == "100 0"
    before, begun = processor_s(s.process), time.monotonic()
    floods = [flood(s, ALICE, request(kind), seconds) for _ in range(3)]
    try:
        bobs = [s.member(BOB).slot for _ in range(2)]
        asked = [int(one.communicate(timeout=PATIENCE_S)[0]) for one in floods]
    finally:
        for one in floods:
            one.kill()
            one.wait(PATIENCE_S)
    spent, lasted = processor_s(s.process) - before, time.monotonic() - begun
    assert bobs == [0, 1] and min(asked) > 0
    assert spent < granted + 0.2 * lasted + 0.1, (spent, lasted, asked)


def test_commands_that_wait_are_of_their_user_only(mortal):  # noqa: F811
    s = mortal("emulate-cores = 4\nreclaim-bound-us = 60000000\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    for core in [core for core, owner in enumerate(alice.owners()) if owner == 0]:
        assert alice.ask(f"borrow {core}") == "1"
    told = []
    for uid in [ALICE] * 130 + [BOB]:
        with connected(s, uid) as one:
            one.send(limit(1))
            one.recv(REPLY.size)
            told.append(struct.unpack_from("=I", one.recv(4096))[0])
    not_yet, refused = 1, 2
    assert told[0] == told[-1] == not_yet and told[-2] == refused
    assert bob.process.poll() is None
