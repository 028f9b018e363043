# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes until a suspended job waits, and until it computes again when it is resumed.

Two OpenMP programs on two cores, each of which computes all the time (bench/recovery_program).  One
is suspended: the time from the start of `rmctl suspend` until none of its threads is ready to run
and the other program holds both cores.  Then from the start of `rmctl resume` until the job holds a
core and a thread of it runs.  A third process, which is suspended itself, reads the core table.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

from chaos import Member
from common import BenchError, Context, Figure, Run, clean_environment, nine_tenths

ROUNDS_A_TURN = 12
LIMIT_MS = 10
PATIENCE_S = 30
LOOK_S = 0.0002  # between two looks
APART_S = 0.05   # the job computes before it is suspended, and the other one alone


class Domain:
    """An rmd of two cores, two programs, and the process that reads its table."""

    def __init__(self, ctx: Context, stack: contextlib.ExitStack):
        cpus = sorted(os.sched_getaffinity(0))[:2]
        if len(cpus) < 2:
            raise BenchError("suspend: two CPUs are needed")
        self.ctx, self.name = ctx, f"@invasive-bench-suspend-{os.getpid()}"
        reader, writer = os.pipe()
        self.start(stack, [ctx.build / "bin/rmd", "--foreground", f"--socket={self.name}",
                           f"--cores={cpus[0]},{cpus[1]}", f"--ready-fd={writer}",
                           "--log-level=warning"], pass_fds=(writer,))
        os.close(writer)
        with os.fdopen(reader) as ready:
            if not ready.readline().startswith("ready "):
                raise BenchError("suspend: rmd does not start")
        for _ in range(2):
            program = self.start(
                stack, [ctx.build / "invade", f"--socket={self.name}", "--",
                        ctx.build / "bench/recovery_program/recovery", "0"],
                stdout=subprocess.PIPE, env=clean_environment({"OMP_NUM_THREADS": "16"}))
            if program.stdout.read(1) != b"r":
                raise BenchError("suspend: a program does not start")
        domain, = json.loads(self.rmctl("status", "--json"))["domains"]
        (self.pid, self.slot), (_, self.other) = sorted(
            (process["pid"], process["slot"]) for process in domain["processes"])
        self.reader = Member(ctx.build / "testsuite/rmd/programs/rmd_member", 0)
        stack.callback(self.reader.end)
        if not self.reader.join(self.name):
            raise BenchError("suspend: the reader of the table cannot join")
        self.rmctl("suspend", str(self.reader.process.pid))

    def start(self, stack: contextlib.ExitStack, command: list, **how) -> subprocess.Popen:
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, **how)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    def rmctl(self, *words: str) -> str:
        return subprocess.run([str(self.ctx.build / "bin/rmctl"), f"--socket={self.name}", *words],
                              check=True, capture_output=True, text=True, timeout=20).stdout

    def ready_threads(self) -> int:
        count = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # it has ended
                count += (task / "stat").read_text().rpartition(") ")[2].startswith("R")
        return count

    def waits(self) -> bool:
        return not self.ready_threads() and self.reader.table()[1] == [self.other] * 2

    def computes(self) -> bool:
        return self.slot in self.reader.table()[1] and self.ready_threads() > 0

    def measure(self, what: str, reached) -> float:
        """Milliseconds from the start of the command until so."""
        start = time.monotonic()
        command = subprocess.Popen([str(self.ctx.build / "bin/rmctl"), f"--socket={self.name}",
                                    what, str(self.pid)], stdout=subprocess.DEVNULL)
        while not reached():
            if time.monotonic() > start + PATIENCE_S:
                command.kill()
                raise BenchError(f"suspend: no effect of rmctl {what} within {PATIENCE_S} s")
            time.sleep(LOOK_S)
        took = time.monotonic() - start
        if command.wait(PATIENCE_S):
            raise BenchError(f"suspend: rmctl {what} ended with {command.returncode}")
        return took * 1e3


def suspend(ctx: Context) -> list[Figure]:
    ctx.check_only()
    suspended, resumed = [], []
    with contextlib.ExitStack() as stack:
        domain = Domain(ctx, stack)
        for _ in range(ROUNDS_A_TURN * ctx.pairs):
            time.sleep(APART_S)
            suspended.append(domain.measure("suspend", domain.waits))
            time.sleep(APART_S)
            resumed.append(domain.measure("resume", domain.computes))
    for name, times in (("suspend", suspended), ("resume", resumed)):
        ctx.runs.append(Run(name, sum(times) * 1e-3, 0, {f"ms_{i}": t for i, t in
                                                         enumerate(times)}, ""))
    return [Figure("suspend-resume", nine_tenths(resumed), "ms until the job computes, nine of ten",
                   "<=", LIMIT_MS, f"median {statistics.median(resumed):.1f}, longest "
                   f"{max(resumed):.1f}"),
            Figure("suspend", nine_tenths(suspended), "ms until the job waits, nine of ten", "<=",
                   LIMIT_MS, f"{len(suspended)} times; median {statistics.median(suspended):.1f}, "
                   f"longest {max(suspended):.1f}")]
