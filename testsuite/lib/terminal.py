# SPDX-License-Identifier: GPL-3.0-or-later
"""Pseudo-terminals: invade as the foreground job of one, and rmctl top on one."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from lib.waiting import PATIENCE_S


def begin_on_terminal(env, *command):
    """The command as the foreground job of a new terminal: process and terminal."""
    master, slave = pty.openpty()

    def take_terminal():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave,
                               preexec_fn=take_terminal, env=env)
    os.close(slave)
    return process, master


@contextlib.contextmanager
def on_terminal(invade, env, *command):
    """invade as the foreground job of a terminal; yields process and terminal."""
    process, master = begin_on_terminal(env, invade, "--", *command)
    try:
        yield process, master
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        os.close(master)


def read_until(master, text):
    seen = b""
    while text not in seen:
        seen += os.read(master, 4096)
    return seen


class Top:
    """rmctl top on a pseudo-terminal."""

    def __init__(self, build, r, *options):
        pid_, self.fd = pty.fork()
        if pid_ == 0:
            os.environ.update(TERM="screen-256color")
            os.environ.pop("INVASIVE_SOCKET", None)
            os.execv(build / "bin" / "rmctl",
                     ["rmctl", f"--socket={r.name}", "top", "--delay=0.1", *options])
        self.pid, self.said, self.code = pid_, "", None
        self.resize(30, 100)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, text, patience=PATIENCE_S):
        end = time.monotonic() + patience
        while text not in self.said:
            assert time.monotonic() < end, repr(self.said[-3000:])
            if select.select([self.fd], [], [], 0.1)[0]:
                self.said += os.read(self.fd, 65536).decode(errors="replace")

    def wait(self):
        """Reads all output, and returns the exit code."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
