# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes on two real cores, one of which blocks in the kernel (rmd/programs/blocks.cpp)."""

import contextlib
import ctypes
import errno
import json
import os
import platform
import subprocess

import pytest

from lib.building.build import BUILD, TOP, variable_of
from lib.machine import TWO_CORES
from lib.manager.rmd import Rmd, rmctl
from lib.processes import running
from lib.waiting import eventually

SOURCE = TOP / "testsuite/rmd/programs/blocks.cpp"
USERFAULTFD = {"x86_64": 323, "aarch64": 282}
SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE_RECV = 1, 1 << 3, 1 << 5


def userfaultfd_works():
    """Without privileges, for faults of the program alone: UFFD_USER_MODE_ONLY."""
    number = USERFAULTFD.get(platform.machine())
    fd = ctypes.CDLL(None).syscall(number, os.O_CLOEXEC | 1) if number else -1
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def calls_can_be_slow():
    """Linux 5.19: a system call waits uninterruptibly for a thread that answers.  A kernel that
    knows the flags reads the filter next, of which there is none."""
    number = SECCOMP.get(platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(number) and libc.syscall(number, SET_MODE_FILTER, NEW_LISTENER | WAIT_KILLABLE_RECV,
                                         None) < 0 and ctypes.get_errno() == errno.EFAULT


WAYS = ("sleep", "poll", "read", "epoll", "waitpid", "system", "join", "condition", "future",
        "futex", "socket", "tcp", *(("fault",) if userfaultfd_works() else ()),
        *(("fsync",) if calls_can_be_slow() else ()))


def compile_blocks(path, *flags):
    compiler = (variable_of(BUILD, "CXX") or "g++").split()
    subprocess.run([*compiler, "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp",
                    SOURCE, "-o", path, *flags, "-pthread"], check=True, timeout=100)
    return path


@pytest.fixture(scope="session")
def blocks(tmp_path_factory):
    return compile_blocks(tmp_path_factory.mktemp("blocks") / "blocks")


class Fifo:
    """A line in it stays until it is read."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path, self.fd = path, os.open(path, os.O_RDWR)

    def write(self):
        os.write(self.fd, b"x\n")


class Domain:
    """Programs of an rmd, which two FIFOs wake and end."""

    def __init__(self, build, socket, directory, env):
        self.build, self.socket, self.env = build, socket, dict(env)
        self.wake, self.end = Fifo(directory / "wake"), Fifo(directory / "end")
        self.programs = contextlib.ExitStack()

    def start(self, *command):
        """invade COMMAND... WAKE END"""
        words = [self.build / "invade", f"--socket={self.socket}", "--", *command, self.wake.path,
                 self.end.path]
        return self.programs.enter_context(running(*map(str, words), env=self.env, bufsize=1))

    def blocked(self, *command):
        """Such a program, which blocks now."""
        program = self.start(*command)
        assert program.stdout.readline().startswith("blocks")  # lines of ranks may be mixed
        return program

    def status(self):
        code, text, _ = rmctl(self.build, f"--socket={self.socket}", "status", "--json")
        assert code == 0, text
        found, = json.loads(text)["domains"]
        return found

    def processes(self):
        """By rank, or else in the order in which they came."""
        return sorted(self.status()["processes"], key=lambda p: (p["rank"] or 0, p["slot"]))

    def held(self):
        """Cores that each process holds, in the order of processes()."""
        return [process["held_cores"] for process in self.processes()]

    def comes_to_hold(self, *held):
        try:
            eventually(self.held, list(held))
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.status()}") from error

    def wakes(self, program):
        self.wake.write()
        assert program.stdout.readline() == "woken\n"

    def ends_well(self, *programs):
        self.end.write()
        for program in programs:
            output, errors = program.communicate(timeout=60)
            assert program.returncode == 0, output + errors


@pytest.fixture
def domain(build, tmp_path, stock_env):
    """domain(SOCKET) - programs of this rmd; by default of one of the test's own on two real cores,
    which is its attribute rmd"""
    opened = []

    def start(socket=None):
        rmd = None if socket else Rmd(build, TWO_CORES)
        assert socket or rmd.ready == "ready 2\n"
        opened.append(Domain(build, socket or rmd.name, tmp_path, stock_env))
        opened[-1].rmd = rmd
        return opened[-1]

    yield start
    for one in opened:
        one.programs.close()
        os.close(one.wake.fd)
        os.close(one.end.fd)
        if one.rmd:
            one.rmd.close()
            assert one.rmd.process.returncode == 0
