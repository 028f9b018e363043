# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests know of the machine that they run on."""

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

CPUS = sorted(os.sched_getaffinity(0))
TWO_CPUS = CPUS[:2]  # or the only one
TWO_CORES = "--cores=" + ",".join(map(str, TWO_CPUS))  # for invade


def set_uid_place():
    """A directory that every user can reach, and write to, where the kernel gives set-uid programs
    the rights of their owner; None where there is none, or this process may get no more rights."""
    if "NoNewPrivs:\t1" in Path("/proc/self/status").read_text():
        return None
    for place in (Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/run")):
        with contextlib.suppress(OSError):
            flags = os.statvfs(place).f_flag
            if (os.access(place, os.W_OK | os.X_OK) and place.stat().st_mode & 0o005 == 0o005
                    and not flags & (os.ST_NOSUID | os.ST_NOEXEC | os.ST_RDONLY)):
                return place
    return None


SET_UID_PLACE = set_uid_place()
NO_SET_UID = "set-uid programs have no effect: nosuid everywhere, or no_new_privs"


def shared_memory():
    """Names of the files of POSIX shared memory."""
    return set(os.listdir("/dev/shm"))


def mapped(name):
    """Does a process of any user map such a file?"""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"/dev/shm/{name}" in (entry / "maps").read_text():
                return True
        except OSError:
            continue
    return False


two_cpus = pytest.mark.machine(len(CPUS) > 1, "it has one CPU")
