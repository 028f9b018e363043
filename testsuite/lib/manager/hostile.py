# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostile user: computes for ever on every core, breaks into whatever it can reach, floods the
socket, and writes nonsense over its own core table."""

import contextlib
import ctypes
import mmap
import os
import random
import signal
import socket
import subprocess
from pathlib import Path

from lib.machine import TWO_CPUS
from lib.manager.protocol import HOLDER_SUFFIX, JOIN, OBSERVE, exchange, request
from lib.manager.users import BOB

FUTEX, FUTEX_WAKE = 202, 1  # x86-64
PR_SET_PDEATHSIG = 1


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    unsigned long sum = 0;
    unsigned rounds = argc > 1 ? atoi(argv[1]) : 300;
    for (unsigned round = 1; round <= rounds; round++)
        #pragma omp parallel for reduction(^ : sum)
        for (unsigned long i = 0; i < 100000; i++)
            sum ^= (i * 2654435761u + round) * (i + round);
    printf("%lu\\n", sum);
}
"""


def compile_victim(where, cc):
    """A program whose result is the same however many cores it has."""
    (where / "victim.c").write_text(PROGRAM)
    subprocess.run([*cc.split(), "-O2", "-fopenmp", where / "victim.c", "-o", where / "victim"],
                   check=True, timeout=60)


class Hostile:
    """What the hostile user does, in a process of its own."""

    def __init__(self, name, victims):
        self.name, self.victims = name, victims
        self.random = random.Random(5)
        self.held = []

    def breaches(self):
        """Data of other users that the process gets at."""
        found = []

        def attempt(what, do):
            with contextlib.suppress(OSError):
                do()
                found.append(what)

        for pid in self.victims:
            proc = f"/proc/{pid}"
            attempt(f"memory of {pid}", lambda p=proc: open(f"{p}/mem", "r+b").close())
            attempt(f"descriptors of {pid}", lambda p=proc: os.listdir(f"{p}/fd"))
            for fd in range(64):
                attempt(f"descriptor {fd} of {pid}",
                        lambda p=proc, n=fd: os.close(os.open(f"{p}/fd/{n}", os.O_RDONLY)))
            attempt(f"mappings of {pid}", lambda p=proc: os.listdir(f"{p}/map_files"))
            attempt(f"environment of {pid}", lambda p=proc: Path(p, "environ").read_bytes())
            attempt(f"affinity of {pid}", lambda n=pid: os.sched_setaffinity(n, TWO_CPUS))
            attempt(f"a signal to {pid}", lambda n=pid: os.kill(n, 0))
        attempt("the tables of the descriptor holder", self.ask_holder)
        _, fds = exchange(self.name, request(OBSERVE, program=b"hostile"))
        if b"victim" in os.pread(fds[0], 1 << 24, 0):
            found.append("another's table by observing")
        attempt("writing to a table to look at", lambda: os.pwrite(fds[0], b"x", 0))
        os.close(fds[0])
        return found

    def ask_holder(self):
        """The descriptor holder takes a process that may connect to it for the next rmd."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours:
            ours.settimeout(1)
            ours.connect(f"{self.name}{HOLDER_SUFFIX}")
            if not ours.recvmsg(4096, socket.CMSG_SPACE(4))[1]:
                raise OSError

    def join(self):
        _, (fd,) = exchange(self.name, request(JOIN, program=b"hostile"))
        self.table = mmap.mmap(fd, os.fstat(fd).st_size)
        os.close(fd)
        self.words = (ctypes.c_uint32 * (len(self.table) // 4)).from_buffer(self.table)

    def scribble(self):
        for _ in range(200):
            at = self.random.randrange(len(self.table) - 64)
            if self.random.random() < 0.5:
                at %= 200000  # header, cores and the first slots
            self.table[at:at + 8] = self.random.choice(
                (b"\0" * 8, b"\xff" * 8, self.random.randbytes(8)))
        libc = ctypes.CDLL(None)
        for word in range(0, 1024, 16):  # rmd's bell is one of them
            libc.syscall(FUTEX, ctypes.byref(self.words, 4 * word), FUTEX_WAKE, 1 << 30, None)

    def flood(self):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.setblocking(False)
        with contextlib.suppress(OSError):
            one.connect(self.name)
            if self.random.random() < 0.5:
                one.send(self.random.randbytes(self.random.randrange(1, 4096)))
        self.held.append(one)
        if len(self.held) > 400:
            self.held.pop(0).close()

    def start_child(self):
        """It never joins, computes for ever and takes every core."""
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            while True:
                os.sched_setaffinity(0, TWO_CPUS)
                sum(range(10000))

    def go_on(self, written):
        """Goes on for ever, and writes a dot from time to time."""
        for turn in range(1 << 30):
            for _ in range(20):
                self.flood()
            self.scribble()
            os.sched_setaffinity(0, TWO_CPUS)
            if turn % 20 == 19:
                written(b".")


def run_hostile(name, victims, groups=(), enter=lambda: None):
    """The pid of a hostile process, and a pipe with a line of what it broke into, then dots.  It
    calls `enter` while it still is root's."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.close(reader)
            enter()
            os.setgroups(groups)
            os.setgid(60000)
            os.setuid(BOB)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            hostile = Hostile(name, victims)
            os.write(writer, ("; ".join(hostile.breaches()) + "\n").encode())
            hostile.join()
            hostile.start_child()
            hostile.go_on(lambda text: os.write(writer, text))
        finally:
            os._exit(1)
    os.close(writer)
    return child, os.fdopen(reader, "rb", buffering=0)


def goes_on(out):
    """Does the hostile process still go on?  Dots that it has written before do not count."""
    os.set_blocking(out.fileno(), False)
    while out.read(4096):
        pass
    os.set_blocking(out.fileno(), True)
    return out.read(1) == b"."
