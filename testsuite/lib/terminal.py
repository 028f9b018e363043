# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal, and invade as its foreground job."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import termios

from lib.waiting import PATIENCE_S


@contextlib.contextmanager
def on_terminal(invade, env, *command):
    """invade as the foreground job of a terminal; yields process and terminal."""
    master, slave = pty.openpty()

    def take_terminal():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen([invade, "--", *command], stdin=slave, stdout=slave, stderr=slave,
                               preexec_fn=take_terminal, env=env)
    os.close(slave)
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
