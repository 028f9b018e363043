# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests know of the machine that they run on, and of the build."""

import contextlib
import os
import time
from pathlib import Path

# invade's option for two cores, or the only one.
TWO_CORES = "--cores=" + ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[:2])

TIME_IS_UP = 124  # exit code of timeout(1)


def at_most(seconds, *command):
    """The command, ended by SIGTERM after so long, upon which mpiexec clears up; it leaves then
    with TIME_IS_UP."""
    return ["timeout", "-k", 10, seconds, *command]


def until(condition, seconds=20):
    """What the condition says as soon as it is true, or when it has not become so in time: looked
    at once more it may have changed."""
    end = time.monotonic() + seconds
    while not (said := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return said


def opened(pid):
    """{file of /proc: what it is} of the process's descriptors, but of those that it closes
    meanwhile; of none when it has ended."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            found[fd] = os.readlink(fd)
    return found


def children(pid, name=None):
    """pids of the process's children, or of those whose command line begins with this word; none of
    one that ends meanwhile."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            if not entry.name.isdigit():
                continue
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (entry / "cmdline").read_text().split("\0")
            if parent == pid and name in (None, words[0]):
                found.append(int(entry.name))
    return found


def variable_of(build, name):
    """A variable of a build's Makefile: what configure found."""
    for line in (build / "Makefile").read_text().splitlines():
        if line.startswith(f"{name} = "):
            return line.split(" = ", 1)[1].strip()
    return ""


def shared_memory():
    """Names of the files of POSIX shared memory."""
    return set(os.listdir("/dev/shm"))


def mapped(name):
    """Does a process of anybody's use such a file?"""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"/dev/shm/{name}" in (entry / "maps").read_text():
                return True
        except OSError:
            continue
    return False
