# SPDX-License-Identifier: GPL-3.0-or-later
"""rmd as the service of a machine, for several users."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from lib.manager.member import UserMember
from lib.manager.protocol import HOLDER_SUFFIX
from lib.manager.rmd import counter, rmctl
from lib.processes import opened
from lib.waiting import PATIENCE_S, eventually, until


def fd_holder_of(socket):
    """The pid of the descriptor holder of the rmd at this socket; None if there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if "(rmd-fd-holder)" not in (process / "stat").read_text():
                continue
            unix = Path("/proc/net/unix").read_text()
            links = opened(process.name).values()
            if any(f"socket:[{line.split()[6]}]" in links for line in unix.splitlines()
                   if line.endswith(f" {socket}{HOLDER_SUFFIX}")):
                return int(process.name)
    return None


class Service:
    """A service that runs."""

    def __init__(self, build, public, text, options, env, group=None, before=()):
        self.build, self.public, self.members = build, public, []
        self.options, self.env = options, env
        enter = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group] if group else []
        self.before = [*enter, *before]
        self.config = public / "rmd.conf"
        self.config.write_text(text)
        self.log = public / "log"
        number = next(counter)
        self.name = str(public / f"rmd{number}.sock")
        self.start()

    def start(self, *options, log="w", preexec=None):
        reader, writer = os.pipe()
        with self.log.open(log) as log_file:
            self.process = subprocess.Popen(
                [*self.before, self.build / "bin" / "rmd", "--foreground",
                 f"--config={self.config}", f"--socket={self.name}", f"--ready-fd={writer}",
                 *self.options, *options], pass_fds=(writer,), stderr=log_file,
                # None: what `preexec` sets in os.environ counts
                env={**os.environ, **self.env} if self.env else None, preexec_fn=preexec)
        os.close(writer)
        with os.fdopen(reader) as ready:
            self.ready = ready.readline()

    def start_again(self):
        """Starts a killed rmd again; the log begins anew."""
        self.start()
        assert self.ready.startswith("ready "), self.said()

    def die(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def kill_and_start_again(self):
        self.die()
        self.start_again()

    def member(self, uid, join=True, **more):
        member = UserMember(self.public / "member", self.name, uid, **more)
        self.members.append(member)
        if join:
            member.slot = member.join()
        return member

    def crowd(self, uid, n):
        """The processes of a job: ranks 0 to n - 1 of n."""
        members = [self.member(uid, join=False) for _ in range(n)]
        for rank, member in enumerate(members):
            member.join(rank, n, n)
        return members

    def said(self):
        """Its log until now."""
        return self.log.read_text()

    def events(self):
        code, text, _ = rmctl(self.build, f"--socket={self.name}", "--json", "events")
        assert code == 0
        return [json.loads(line) for line in text.splitlines()]

    def hears(self, text):
        eventually(lambda: text in self.said(), True)

    def reload(self, text):
        self.config.write_text(text)
        before = self.said().count("configuration has")
        self.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.said().count("configuration has"), before + 1)

    def close(self):
        for member in self.members:
            with contextlib.suppress(OSError):
                member.close()
        self.process.terminate()
        status = self.process.wait(PATIENCE_S)
        self.end_holder_of_orders()
        return status

    def fd_holder(self):
        """The pid of the descriptor holder; None if there is none."""
        return fd_holder_of(self.name)

    def memory_of_holder(self, name):
        """The files in /proc of the holder's memory files of this name."""
        return [fd for fd, what in opened(self.fd_holder()).items()
                if what == f"/memfd:{name} (deleted)"]

    def end_holder_of_orders(self):
        """Persisted orders would otherwise keep the descriptor holder running for some minutes."""
        fd_holder = self.fd_holder() if Path(self.name + HOLDER_SUFFIX).exists() else None
        if fd_holder and self.memory_of_holder("invasive-rmd-orders"):
            os.kill(fd_holder, signal.SIGKILL)
            Path(self.name + HOLDER_SUFFIX).unlink()


@pytest.fixture
def public(build):
    """A directory that every user can reach, with a member's program."""
    path = Path(tempfile.mkdtemp(prefix="invasive-test-"))
    path.chmod(0o755)
    shutil.copy(build / "testsuite/rmd/programs/rmd_member", path / "member")
    yield path
    shutil.rmtree(path, ignore_errors=True)  # a holder may still be removing its socket


@pytest.fixture
def service(build, public, several_users):
    """service(TEXT, OPTION..., env={}, group=CGROUP, before=WORDS) - one with this configuration,
    its command after these words; it must end well"""
    started = []

    def start(text="", *options, env=None, group=None, before=()):
        open_to_all = "" if "socket-group" in text else "socket-group = *\n"
        started.append(Service(build, public, open_to_all + text, options, env or {}, group,
                               before))
        assert started[-1].ready.startswith("ready "), started[-1].said()
        return started[-1]

    yield start
    for one in started:
        assert one.close() == 0, one.said()


class Mortal(Service):
    """An rmd that can be killed and started again, on the same socket."""

    def __init__(self, build, public, text, options=()):
        super().__init__(build, public, text, options, {})

    def begin(self, *options, preexec=None):
        """The log goes on."""
        self.start(*options, log="a", preexec=preexec)
        assert self.ready.startswith("ready "), self.said()

    def start_again(self):
        self.begin()

    def running_holder(self):
        """The process has its name a moment after its start."""
        fd_holder = until(self.fd_holder)
        assert fd_holder
        return fd_holder


@pytest.fixture
def mortal(build, public):
    """mortal(TEXT, OPTION...) - a service; it must end well, and leave nothing"""
    started = []

    def start(text="", *options):
        started.append(Mortal(build, public, "socket-group = *\n" + text, options))
        assert started[-1].ready.startswith("ready "), started[-1].said()
        return started[-1]

    yield start
    for one in started:
        assert one.close() == 0, one.said()
        eventually(lambda path=Path(one.name + HOLDER_SUFFIX): path.exists(), False)
