# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections to rmd: idle ones, ones of another user, and floods."""

import contextlib
import json
import os
import signal
import socket
import subprocess

from lib.manager.protocol import REPLY
from lib.waiting import PATIENCE_S


def connected(s, uid, where=None, kind=socket.SOCK_SEQPACKET):
    """A connection of this user; the kernel checks the effective user ID."""
    one = socket.socket(socket.AF_UNIX, kind)
    name = str(where or s.name)
    os.seteuid(uid)
    try:
        one.connect("\0" + name[1:] if name.startswith("@") else name)
    finally:
        os.seteuid(0)
    return one


FLOOD = """
import socket, sys, time
name, request, seconds = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3]
end, asked = time.monotonic() + float(seconds), 0
while time.monotonic() < end:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.settimeout(10)
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


def counted_by(floods, meanwhile):
    """The result of meanwhile(), and the count that each of `floods` prints at its end."""
    try:
        seen = meanwhile()
        return seen, [int(one.communicate(timeout=PATIENCE_S)[0]) for one in floods]
    finally:
        for one in floods:
            one.kill()
            one.wait(PATIENCE_S)


@contextlib.contextmanager
def idle_connections(s, uid, count, request=None):
    """A process of this user that holds so many connections, and sends nothing or `request`."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.setuid(uid)
        held = []
        for _ in range(count):
            held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            held[-1].connect(s.name)
            if request:
                held[-1].send(request)
                held[-1].recv(REPLY.size)
        os.write(writer, b"x")
        signal.pause()
    try:
        assert os.read(reader, 1) == b"x"
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


@contextlib.contextmanager
def follower(s, program, uid=0):
    """A process that follows events, and has received one."""
    with subprocess.Popen([program, f"--socket={s.name}", "events", "--follow", "--json"], user=uid,
                          group=60000, extra_groups=[], stdout=subprocess.PIPE, cwd="/",
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            assert json.loads(process.stdout.readline())["number"]
            yield process
        finally:
            process.kill()
