# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests know of the machine that they run on, and of the build."""

import contextlib
import os
import tempfile
import time
from pathlib import Path

# invade's option for two cores, or the only one.
TWO_CORES = "--cores=" + ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[:2])

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


def until(condition, seconds=20):
    """The value of the condition as soon as it is true, or its last value when the time is over: a
    second evaluation by the caller may give another one."""
    end = time.monotonic() + seconds
    while not (said := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return said


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
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (entry / "cmdline").read_text().split("\0")
            if parent == pid and name in (None, words[0]):
                found.append(int(entry.name))
    return found


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
    """Does a process of any user map such a file?"""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"/dev/shm/{name}" in (entry / "maps").read_text():
                return True
        except OSError:
            continue
    return False


RUNTIME_FOLDERS = ("overlay", "sched", "region", "task", "loop", "program")


def runtime_includes(top):
    """The compiler's options for the headers of the OpenMP runtime."""
    ours = top / "libgomp-invasive"
    return [word for folder in RUNTIME_FOLDERS for word in ("-I", ours / folder)]


def runtime_file(top, name):
    """The file of the OpenMP runtime of that name."""
    found, = (path for folder in RUNTIME_FOLDERS
              if (path := top / "libgomp-invasive" / folder / name).exists())
    return found
