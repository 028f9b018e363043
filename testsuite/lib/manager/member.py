# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of a domain: processes of testsuite/rmd/programs/rmd_member, which follow commands."""

import contextlib
import os
import signal
import subprocess

from lib.waiting import PATIENCE_S

MEMBER = "testsuite/rmd/programs/rmd_member"


class Member:
    """A process of the domain."""

    def __init__(self, build, name):
        self.name = name
        self.process = subprocess.Popen([build / MEMBER], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, command):
        self.say(command)
        return self.hear()

    def say(self, command):
        self.process.stdin.write(command + "\n")

    def hear(self):
        return self.process.stdout.readline().strip()

    def join(self, rank=-1, size=-1, local=-1, local_rank=-1):
        return int(self.ask(f"join {self.name} {rank} {size} {local} {local_rank}"))

    def table(self):
        """mode, free tokens, owners, holders, reclaims"""
        mode, tokens, *rest = (int(word) for word in self.ask("table").split())
        return mode, tokens, rest[0::3], rest[1::3], rest[2::3]

    def owners(self):
        return self.table()[2]

    def holders(self):
        return self.table()[3]

    def states(self):
        return [int(word) for word in self.ask("states").split()]

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def close(self):
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


class UserMember(Member):
    """A process of some user."""

    def __init__(self, program, name, uid, groups=(), env=None):
        self.name = name
        self.process = subprocess.Popen(
            [program], text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            user=uid, group=60000, extra_groups=groups, cwd="/", start_new_session=True,
            env={**os.environ, **(env or {})})


def counts(member, *owners):
    """How many cores each of these slots owns in the member's table."""
    found = member.owners()
    return [found.count(owner) for owner in owners]


def pins(member):
    return os.sched_getaffinity(member.process.pid)


@contextlib.contextmanager
def started_by(member, *kinds):
    """Processes that a member starts, "child" or "orphan", and that never join."""
    pids = [int(member.ask(kind)) for kind in kinds]
    try:
        yield pids if len(pids) > 1 else pids[0]
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
