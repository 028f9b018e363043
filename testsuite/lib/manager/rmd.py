# SPDX-License-Identifier: GPL-3.0-or-later
"""An rmd of a test's own, on emulated cores, and rmctl."""

import contextlib
import itertools
import json
import os
import socket
import subprocess

import pytest

from lib.manager.member import Member
from lib.waiting import PATIENCE_S

counter = itertools.count()


def sanitizers(build):
    """The libraries of sanitizers, which must be preloaded first."""
    libraries = subprocess.run(["ldd", build / "bin/rmd"], capture_output=True, text=True,
                               check=False, timeout=60).stdout
    return [line.split()[2] for line in libraries.splitlines()
            if line.strip().startswith(("libasan", "libtsan", "libubsan"))]


def preload(build, library):
    """LD_PRELOAD for an rmd that has this library."""
    return " ".join([*sanitizers(build), str(library)])


class Rmd:
    """A private rmd on emulated cores."""

    def __init__(self, build, *options):
        self.build = build
        self.name = f"@rmd-test-{os.getpid()}-{next(counter)}"
        ours, theirs = socket.socketpair()
        self.control = ours
        self.process = subprocess.Popen(
            [build / "bin" / "rmd", "--private", f"--ready-fd={theirs.fileno()}",
             f"--socket={self.name}", *options], pass_fds=(theirs.fileno(),),
            stderr=subprocess.PIPE, text=True)
        theirs.close()
        self.ready = ours.makefile().readline()
        self.members = []

    def member(self):
        self.members.append(Member(self.build, self.name))
        return self.members[-1]

    def joined(self, *local_and_ranks):
        """joined(LOCAL, RANK, ...): members that have joined in this order."""
        local, *ranks = local_and_ranks
        members = [self.member() for _ in ranks]
        for member, rank in zip(members, ranks):
            member.slot = member.join(rank, local, local)
        return members

    def close(self):
        """Ends rmd as its launcher would; returns its messages."""
        for member in self.members:
            with contextlib.suppress(OSError):
                member.close()
        self.control.close()
        try:
            return self.process.communicate(timeout=PATIENCE_S)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture
def rmd(build):
    """rmd(CORES, OPTIONS..., machine=None) - an rmd on that many emulated cores, or on a machine in
    hwloc's description; it must end well."""
    started = []

    def start(cores, *options, machine=None):
        started.append(Rmd(build, f"--emulate-cores={machine or cores}", *options))
        assert started[-1].ready == f"ready {cores}\n"
        return started[-1]

    yield start
    for one in started:
        one.close()
        assert one.process.returncode == 0


def rmctl(build, *arguments):
    done = subprocess.run([build / "bin" / "rmctl", *arguments], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False,
                          env={k: v for k, v in os.environ.items() if k != "INVASIVE_SOCKET"})
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def tell(build):
    """tell(RMD, WORD...) - what rmctl says: exit code, stdout, stderr"""
    return lambda r, *words: rmctl(build, f"--socket={r.name}", *map(str, words))


@pytest.fixture
def ask(tell):
    """ask(RMD, WORD...) - the same with --json, which is there and whole; exit code 0"""

    def answer(r, *words):
        code, out, err = tell(r, *words, "--json")
        assert (code, err) == (0, ""), err
        return json.loads(out)

    return answer
