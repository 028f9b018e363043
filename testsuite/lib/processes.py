# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of the machine: which ones there are, what they do, and commands that a test starts."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from lib.waiting import PATIENCE_S

TIME_IS_UP = 124  # exit code of timeout(1)


def at_most(seconds, *command):
    """The command, ended by SIGTERM after so long, so that mpiexec clears up; its exit code is then
    TIME_IS_UP."""
    return ["timeout", "-k", 10, seconds, *command]


def debugged(run_program, command, **more):
    """run_program, and again if gdb itself has failed.  While a program with several threads ends,
    gdb 13 now and then finds a thread gone, and stops, or ends by an internal error."""
    failures = ("internal-error", "Cannot find user-level thread")
    for _ in range(4):
        ran = run_program(command, check=False, **more)
        if not any(failure in ran.stdout + ran.stderr for failure in failures):
            break
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran


def opened(pid):
    """{file of /proc: its target} for the open descriptors of the process, except those that it
    closes meanwhile; {} when the process has ended."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            found[fd] = os.readlink(fd)
    return found


def children(pid, name=None):
    """pids of the process's children, or of the children whose command line begins with this word,
    except of a child that ends meanwhile."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            if not entry.name.isdigit():
                continue
            parent = int((entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[1])
            words = (entry / "cmdline").read_text(errors="replace").split("\0")
            if parent == pid and name in (None, words[0]):
                found.append(int(entry.name))
    return found


def descendants(pid):
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()
                parents[int(entry.name)] = (int(fields[1]), fields[0])
    found = [pid]
    for one in found:
        found += [p for p, (parent, state) in parents.items() if parent == one and state != "Z"]
    return found[1:]


def gone(pids):
    end = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in status(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def status(pid):
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "\nState:\tZ"


@contextlib.contextmanager
def running(*command, env, **more):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, env=env, **more)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)


def alive(pid):
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return state != "Z"
    return False


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def processor_s(process):
    """Processor time of all threads of the process."""
    total = 0
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def with_argument_below(directory):
    """Processes with a word of their command line in the directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(directory).encode() in (
                    entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
