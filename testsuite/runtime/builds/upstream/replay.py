# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the kept programs of libgomp's testsuite with a given libgomp.so.1, under given conditions.

Judges as DejaGnu does: the exit status is 0 (or not, where the source says dg-shouldfail) and the
output matches dg-output. Each program runs in a directory and process group of its own.
"""

import concurrent.futures
import dataclasses
import itertools
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

OK = "ok"
OUTPUT_LIMIT = 1 << 20


@dataclasses.dataclass
class Condition:
    """How to run a program: with the libgomp.so.1 of a directory (None: the system's), and behind
    the words of a command (empty: directly), one of several commands in turn."""

    name: str
    library: Path = None
    launchers: tuple = ((),)

    def __post_init__(self):
        self.turns = itertools.cycle(self.launchers)

    def command(self, program):
        return [*next(self.turns), str(program)]

    def environment(self, settings):
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OMP_", "GOMP_", "ACC_", "INVASIVE", "LD_"))
        }
        environment.update(settings)
        environment["LC_ALL"] = "C"
        if self.library:
            # The library's own dependence, libinvasive, lies one directory above.
            environment["LD_LIBRARY_PATH"] = f"{self.library}:{self.library.parent}"
        return environment


@dataclasses.dataclass
class Program:
    """One kept test: its name, such as c++:libgomp.c-c++-common/for-1.c, and what to expect."""

    name: str
    path: Path
    settings: dict
    fails: bool = False
    pattern: str = ""


def tcl_string(text):
    """What Tcl makes of the characters between double quotes."""
    named = {"n": "\n", "r": "\r", "t": "\t"}
    return re.sub(r"\\(.)", lambda match: named.get(match[1], match[1]), text, flags=re.DOTALL)


def load(programs, tests):
    """The kept programs below PROGRAMS; TESTS is the testsuite's source."""
    found = []
    for directory in sorted(programs.iterdir()):
        if not (directory / "program").exists():
            continue
        name = directory.name.replace("%", "/")
        settings = dict(
            line.split("=", 1) for line in (directory / "env").read_text().splitlines() if line
        )
        source = (tests / name.split(":", 1)[1].split("@")[0]).read_text(errors="replace")
        outputs = re.findall(r'\{\s*dg-output\s+"((?:[^"\\]|\\.)*)"\s*\}', source)
        found.append(
            Program(
                name,
                directory / "program",
                settings,
                fails=bool(re.search(r"\{\s*dg-shouldfail\b", source)),
                pattern="".join(map(tcl_string, outputs)),
            )
        )
    return found


def ended(process, limit):
    """Wait until PROCESS ends, at most LIMIT seconds, but do not reap it: as long as it is a zombie
    its process group can be signalled without hitting another program's."""
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(select.select([descriptor], [], [], limit)[0])
    finally:
        os.close(descriptor)


def stop(process):
    """End what is left of a process group of ours, and reap its leader. Ask first, so that a
    launcher can clean up behind itself."""
    os.killpg(process.pid, signal.SIGTERM)
    ended(process, 2)
    os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def run(program, condition, limit=60):
    """Run PROGRAM once; return "ok" or what went wrong, in a few words."""
    directory = tempfile.mkdtemp(prefix="upstream-")
    try:
        with open(os.path.join(directory, "output"), "w+b") as output:
            process = subprocess.Popen(
                condition.command(program.path),
                cwd=directory,
                env=condition.environment(program.settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            in_time = False
            try:
                in_time = ended(process, limit)
            finally:
                status = stop(process)
            if not in_time:
                return f"no end within {limit} s"
            output.seek(0)
            text = output.read(OUTPUT_LIMIT).decode(errors="replace")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if (status != 0) != program.fails:
        return describe(status) + last_line(text)
    if program.pattern and not re.search(program.pattern, text):
        return "other output than expected" + last_line(text)
    return OK


def describe(status):
    # A launcher reports a signal as a shell does.
    number = -status if status < 0 else status - 128 if 128 < status < 160 else 0
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"exit status {status}"


def last_line(text):
    lines = text.strip().splitlines()
    return f": {lines[-1][:120]}" if lines else ""


def run_all(programs, condition, jobs, times, limit=60, progress=None):
    """Run all PROGRAMS, JOBS at a time; return {name: result}. TIMES, {name: seconds}, is what they
    took before and gets what they take now: those that take long (most of them sleep) come first,
    so that none is waited for at the end."""
    results = {}

    def one(program):
        start = time.monotonic()
        result = run(program, condition, limit)
        times[program.name] = round(time.monotonic() - start, 4)
        return result

    order = sorted(programs, key=lambda program: -times.get(program.name, 0))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(one, program): program.name for program in order}
        try:
            for future in concurrent.futures.as_completed(waiting):
                results[waiting[future]] = future.result()
                if progress:
                    progress(len(results), len(programs))
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
    return results
