# SPDX-License-Identifier: GPL-3.0-or-later
"""No client of rmd's socket, of any user, can make rmd wait or keep rmd busy."""

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

from lib.building.small_programs import SHARED, compile_text
from lib.manager.connections import connected, counted_by, flood
from lib.manager.member import Member, counts
from lib.manager.protocol import (
    ADMIN_SNAPSHOT,
    E_PROTOCOL,
    JOIN,
    METRICS,
    NOT_YET,
    OK,
    OUTCOME,
    REFUSED,
    REPLY,
    REPORT,
    REPORT_OF_PROCESS,
    TRACE,
    limit,
    request,
)
from lib.manager.rmd import preload, rmctl, sanitizers
from lib.manager.users import ALICE, BOB
from lib.processes import opened, processor_s
from lib.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.sanitize,
              pytest.mark.machine(os.getuid() == 0, "only root can be several users")]
FORGOTTEN = 61000  # the first of some users


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
    """Stops rmd, so that a test closes a descriptor before rmd does."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


WITH_ONE = {
    "nonsense": [b"x"],
    "empty": [b""],
    "join": [request(JOIN)],
    "trace": [request(TRACE, program=b"start")],
    "no-trace": [request(TRACE, program=b"stop")],
    "behind": [request(METRICS), b""],  # rmd hangs up without having seen it
    "twice": [request(TRACE, program=b"start"), request(TRACE, program=b"start")],
}


@pytest.mark.parametrize("messages", WITH_ONE.values(), ids=WITH_ONE)
def test_a_descriptor_that_takes_long_to_close_is_not_waited_for(mortal, messages):
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


def test_a_descriptor_that_another_user_sends_to_a_launchs_own_rmd_is_not_waited_for(rmd, build):
    r = rmd(2)
    with lingering() as last:
        with stopped(r.process), connected(r, ALICE) as one:
            send_with(one, request(JOIN), last)
        r.members.append(Member(build, r.name))
        assert r.members[-1].join() == 0


def test_many_descriptors_of_a_sender_that_never_reads_are_not_waited_for(mortal):
    """More descriptors than rmd may have children for at one time."""
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
    """The open files of a child that waits for a descriptor, but its first three."""
    deadline = time.monotonic() + PATIENCE_S
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while time.monotonic() < deadline:
        for child in children.read_text().split():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{child}/comm").read_text() == "rmd-holder\n":
                    os.kill(int(child), signal.SIGSTOP)
                    found = [what for fd, what in opened(child).items() if int(fd.name) > 2]
                    os.kill(int(child), signal.SIGCONT)
                    return found
    return None


def test_the_process_that_closes_a_descriptor_has_nothing_else_that_rmd_has_open(mortal):
    """Neither the listener nor the connection to the descriptor holder, which must end with rmd."""
    s = mortal("emulate-cores = 2\n")
    s.member(ALICE)
    with contextlib.ExitStack() as stack:
        with stopped(s.process):
            for _ in range(8):
                last = stack.enter_context(lingering())
                send_with(stack.enter_context(connected(s, ALICE)), b"x", last)
        held = held_by(s.process)
        assert held and len(held) == 1 and held[0].startswith("socket:"), held


def test_a_descriptor_that_comes_with_a_request_for_metrics_is_not_waited_for(mortal, short_path):
    where = short_path / "metrics.sock"
    s = mortal("emulate-cores = 2\n", f"--metrics={where}")
    for text in (b"GET /metrics HTTP/1.0\r\n\r\n", b"GET /metrics"):
        with lingering() as last:
            with stopped(s.process), connected(s, 0, where, socket.SOCK_STREAM) as one:
                send_with(one, text, last)
            assert rmctl(s.build, f"--socket={s.name}", "policy")[0] == 0


@pytest.fixture
def slow_traces(mortal):
    """An rmd to which twenty users have sent, for a trace, a descriptor that takes long to close.
    Two seconds for each would be longer than the tests wait."""
    s = mortal("emulate-cores = 2\n")
    with contextlib.ExitStack() as stack:
        with stopped(s.process):
            for uid in range(FORGOTTEN, FORGOTTEN + 20):
                one = stack.enter_context(connected(s, uid))
                send_with(one, request(TRACE, program=b"start"), stack.enter_context(lingering()))
        yield s


def asked_by_others(s, n):
    """Statuses of answers to n users at once, the last first.  (A signal would end the wait.)"""
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(connected(s, FORGOTTEN + 100 + i)) for i in range(n)]
        for one in many:
            one.send(request(ADMIN_SNAPSHOT))
            one.settimeout(PATIENCE_S)
        return [REPLY.unpack(one.recv(REPLY.size)).status for one in reversed(many)]


def test_traces_of_forgotten_users_are_not_waited_for(slow_traces, tmp_path):
    assert asked_by_others(slow_traces, 60) == [0] * 60
    with connected(slow_traces, FORGOTTEN) as one:  # it has a thread that waits still
        send_with(one, request(TRACE, program=b"start"),
                  os.open(tmp_path / "a", os.O_CREAT | os.O_WRONLY))
        answer = REPLY.unpack(one.recv(REPLY.size))
    assert answer.status != OK and answer.message.startswith(b"a trace is being taken already")


def test_all_traces_together_are_waited_for_when_rmd_ends(slow_traces):
    assert asked_by_others(slow_traces, 1) == [0]
    assert slow_traces.close() == 0


def test_a_client_that_sends_a_descriptor_with_another_request_is_refused(mortal):
    s = mortal("emulate-cores = 2\n")
    with connected(s, ALICE) as one:
        send_with(one, request(JOIN), os.open("/dev/null", os.O_RDONLY))
        answer = REPLY.unpack(one.recv(REPLY.size))
    assert answer.status == E_PROTOCOL
    assert answer.message.startswith(b"a descriptor came with a request")


# --- the identity of a joining process

WITHOUT_PEERPIDFD = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    if (level == SOL_SOCKET && name == 77) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return (int)syscall(SYS_getsockopt, fd, level, name, value, size);
}
"""
HEIR = """
import os, socket, sys
one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
one.connect(sys.argv[1])
if os.fork():
    os._exit(0)
if sys.stdin.read(1):
    one.send(bytes.fromhex(sys.argv[2]))
    print(one.recv(4096).hex())
"""
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


def pids_can_be_chosen():
    try:
        LAST_PID.write_text(LAST_PID.read_text())
    except OSError:
        return False
    return True


@pytest.fixture(params=["told", "not-told"])
def of_a_kernel(request, mortal, tmp_path):
    """A service; the kernel has SO_PEERPIDFD, or is made to look older than Linux 6.5"""
    s = mortal("emulate-cores = 2\n")
    if request.param == "not-told":
        library = compile_text(tmp_path / "old.so", WITHOUT_PEERPIDFD, *SHARED)
        preloaded = preload(s.build, library)
        s.die()
        s.begin(preexec=lambda: os.environ.update(LD_PRELOAD=preloaded))
    return s


def process_of(uid, pid):
    """Make a process of that user with this pid; False if it gets another one."""
    LAST_PID.write_text(str(pid - 1))
    child = os.fork()
    if not child:
        os.setgid(60000)
        os.setuid(uid)
        time.sleep(3 * PATIENCE_S if os.getpid() == pid else 0)
        os._exit(0)
    if child != pid:
        os.waitpid(child, 0)
    return child == pid


def refuses(answer, pid):
    reply = REPLY.unpack(answer)
    status, why = reply.status, reply.message.rstrip(b"\0").decode()
    return (status, why) == (1, f"cannot watch process {pid}: it has ended, or is another user's "
                                "by now")


@pytest.mark.machine(pids_can_be_chosen(), "no process can be given the pid of another one")
def test_a_process_with_the_pid_of_a_dead_client_is_not_made_its_users(of_a_kernel):
    """The client's child inherits the connection, and asks when the pid is another user's."""
    s = of_a_kernel
    for _ in range(20):
        client = subprocess.Popen(["python3", "-c", HEIR, s.name, request(JOIN).hex()], user=ALICE,
                                  group=60000, extra_groups=[], cwd="/", stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        client.wait(PATIENCE_S)
        pid = client.pid
        if any(process_of(BOB, pid) for _ in range(20)):
            break
        client.communicate()
    else:
        raise AssertionError("others have had each pid")
    try:
        client.stdin.write("x")
        client.stdin.close()
        assert refuses(bytes.fromhex(client.stdout.read()), pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        client.stdout.close()
    assert s.member(BOB).slot == 0


def test_a_process_that_is_another_users_since_it_has_connected_is_no_member(of_a_kernel):
    """As after exec of a set-uid program, with the connection left to a child."""
    s = of_a_kernel
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with connected(s, ALICE) as one:  # and it is root's again
            one.send(request(JOIN))
            os.write(writer, one.recv(REPLY.size))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        assert refuses(answer.read(), child)
    os.waitpid(child, 0)
    assert s.member(ALICE).slot == 0


# --- memory

def granted(answer):
    """How many messages this reply to a request for reports announces."""
    reply = REPLY.unpack(answer)
    assert (reply.status, reply.slot) == (OK, 0)
    return reply.count


def resident_bytes(process):
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def test_reports_that_are_not_read_need_no_memory(mortal):
    """A client that reads them at last gets all, also that of a process that has died meanwhile."""
    s = mortal("emulate-cores = 2\n")
    alice, other = s.member(ALICE), s.member(ALICE)
    clients, brought = 20, 300
    assert {alice.ask(f"submit {s.name} 7 256 0") for _ in range(brought)} == {"0"}
    with contextlib.ExitStack() as stack:
        before = resident_bytes(s.process)
        asking = [stack.enter_context(connected(s, ALICE)) for _ in range(clients)]
        for one in asking:
            one.settimeout(3 * PATIENCE_S)  # a user that asks for much waits
            one.send(request(REPORT))
            assert granted(one.recv(REPLY.size)) == brought + 2
        more = resident_bytes(s.process) - before
        other.kill()
        eventually(alice.states, [alice.slot])
        told = []
        while message := asking[0].recv(1 << 20):
            of = REPORT_OF_PROCESS.unpack(message)
            told.append((len(message), of.pid, of.alive))
    record = told[0][0]
    assert more < clients * brought * record / 20, (more, record)
    assert [size for size, _, _ in told[:brought]] == [record] * brought
    assert [(pid, alive) for _, pid, alive in told[brought:]] == [
        (alice.process.pid, 1), (other.process.pid, 0)]


def test_reports_of_all_users_are_bounded(mortal):
    """The users with most reports lose records; a user with few does not."""
    s = mortal("emulate-cores = 8\n")
    modest = s.member(ALICE)
    assert modest.ask(f"submit {s.name} 7 256 0") == "0"
    before = resident_bytes(s.process)
    for uid in range(61000, 61005):  # together 340 MB
        greedy = s.member(uid)
        assert {greedy.ask(f"submit {s.name} 7 256 0") for _ in range(600)} == {"0"}
        greedy.kill()
    if not sanitizers(s.build):  # these keep what is freed, and more
        assert 200 << 20 < resident_bytes(s.process) - before < 300 << 20
    with connected(s, ALICE) as one:
        one.send(request(REPORT))
        assert granted(one.recv(REPLY.size)) == 2
        record = len(one.recv(1 << 20))
        assert record > 256 * 400  # whole


# --- processor time


@pytest.mark.parametrize("kind", [pytest.param(METRICS, marks=pytest.mark.full), ADMIN_SNAPSHOT],
                         ids=["metrics", "admin-snapshot"])
def test_a_user_that_asks_all_the_time_takes_little_of_a_processor(mortal, kind):
    """A tenth, after the time that is granted at once; rmd answers other users meanwhile."""
    seconds, granted = 4, 0.2
    s = mortal("emulate-cores = 256\nreclaim-bound-us = 60000000\nlog-level = warning\n")
    alice = s.member(ALICE)
    assert alice.ask("borrow 0") == alice.ask("borrow 1") == "1"
    assert alice.ask(f"fork 100 {s.name}") == "100 0"
    before, begun = processor_s(s.process), time.monotonic()
    floods = [flood(s, ALICE, request(kind), seconds) for _ in range(3)]
    bobs, asked = counted_by(floods, lambda: [s.member(BOB).slot for _ in range(2)])
    spent, lasted = processor_s(s.process) - before, time.monotonic() - begun
    assert bobs == [0, 1] and min(asked) > 0
    assert spent < granted + 0.2 * lasted + 0.1, (spent, lasted, asked)


SCRAPE = """
import socket, sys, time
where, seconds, how = sys.argv[1:]
end, asked = time.monotonic() + float(seconds), 0
while time.monotonic() < end:
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(10)
        try:
            one.connect(where)
            asked += 1
            if how == "asks":
                one.sendall(b"GET /metrics HTTP/1.0\\r\\n\\r\\n")
            while how == "asks" and one.recv(1 << 20):
                pass
        except OSError:
            time.sleep(0.001)
print(asked)
"""


@pytest.mark.parametrize("how", ["asks", pytest.param("connects", marks=pytest.mark.full)])
def test_a_client_that_asks_for_metrics_all_the_time_takes_little_of_a_processor(
        mortal, short_path, how):
    """rmd does not know the user of a collector, so all of them share one user's rate limit."""
    seconds, granted = 3, 0.2
    where = str(short_path / "metrics.sock")
    s = mortal("emulate-cores = 256\nlog-level = warning\n", f"--metrics={where}")
    alice = s.member(ALICE)
    assert alice.ask(f"fork 100 {s.name}") == "100 0"
    before, begun = processor_s(s.process), time.monotonic()
    floods = [subprocess.Popen(["python3", "-c", SCRAPE, where, str(seconds), how],
                               stdout=subprocess.PIPE, text=True) for _ in range(3)]
    bob, asked = counted_by(floods, lambda: s.member(BOB).slot)
    spent, lasted = processor_s(s.process) - before, time.monotonic() - begun
    assert bob == 0 and sum(asked) > 0
    assert spent < granted + 0.2 * lasted + 0.1, (spent, lasted, asked)
    with connected(s, 0, where, socket.SOCK_STREAM) as one:  # it listens again
        one.settimeout(PATIENCE_S)
        one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert one.recv(12) == b"HTTP/1.1 200"


def test_commands_that_wait_are_of_their_user_only(mortal):
    s = mortal("emulate-cores = 4\nreclaim-bound-us = 60000000\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    for core in [core for core, owner in enumerate(alice.owners()) if owner == 0]:
        assert alice.ask(f"borrow {core}") == "1"
    told = []
    for uid in [ALICE] * 130 + [BOB]:
        with connected(s, uid) as one:
            one.send(limit(1))
            one.recv(REPLY.size)
            told.append(OUTCOME.unpack(one.recv(4096)).status)
    assert told[0] == told[-1] == NOT_YET and told[-2] == REFUSED
    assert bob.process.poll() is None
