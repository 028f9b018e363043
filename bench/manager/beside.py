# SPDX-License-Identifier: GPL-3.0-or-later
"""A managed program beside one of C++ threads that is not managed, on two cores: neither may lose.

The program is a static loop in each iteration, on one rank and on two.  The co-runner has one
thread, not bound or bound to a core, or two threads.  All computes without a pause.

The program's time is compared with stock's beside the same co-runner.  What a co-runner is due is
half of a core for each of its threads: there are as many threads of the program as cores, and so
many cores are shared by two threads, to which the kernel gives equal parts.  Beside stock a
co-runner has also what a stock program leaves idle while its threads wait for each other.  That is
not due to it, since a program that leaves nothing idle takes nothing from it.  So the co-runner's
work in a second is compared with what is due, or with its work beside stock if that is less.  What
a core delivers is the co-runner's work alone with a thread on each core, over the cores.

The co-runner has a session of its own, as each rank has, since the kernel may divide a core by
sessions and not by threads (sched(7), autogroup).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from common import BenchError, Context, Figure, Programs, Run, same_checksum
from loads import imbalance_command, units_per_ms

TIME_GOAL, WORK_GOAL = 1.05, 0.95
WORK_MS, ITERATIONS = 60, 20
CORES = 2
LINE = 64  # bytes of the file for each thread
ALONE_S = 0.4
DUE = 0.5  # of a core, for each thread


@dataclass
class CoRunner:
    """A program of so many threads; bound: all of them to the second core."""

    threads: int
    bound: bool = False


CO_RUNNERS = {"free": CoRunner(1), "bound": CoRunner(1, bound=True), "two": CoRunner(2)}
RANKS = {"rank": 1, "ranks": 2}


class Machine:
    """The CPUs of the measurement, and what runs there."""

    def __init__(self, ctx: Context):
        self.ctx = ctx
        self.cpus = sorted(os.sched_getaffinity(0))[:CORES]
        if len(self.cpus) < CORES:
            raise BenchError("beside: this machine has one core")

    def on(self, cpus: list[int], *words: str) -> list[str]:
        return ["taskset", "-c", ",".join(map(str, cpus)), *words]

    @contextlib.contextmanager
    def co_runner(self, kind: CoRunner) -> Iterator[Callable[[], float]]:
        """A co-runner that computes; the function tells how many units of work it has done."""
        program = self.ctx.build / "bench" / "programs" / "threads"
        if not program.exists():
            raise BenchError("threads is not built: make bench/programs/threads")
        with tempfile.NamedTemporaryFile() as file, Programs() as programs:
            file.truncate(LINE * kind.threads)
            cpus = self.cpus[1:] if kind.bound else self.cpus
            started = programs.start(self.on(cpus, str(program), file.name, str(kind.threads)), {},
                                     start_new_session=True)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as counters:

                def counts() -> list[int]:
                    if started.poll() is not None:
                        raise BenchError(f"the co-runner has ended: {started.returncode}")
                    return [struct.unpack_from("=Q", counters, LINE * thread)[0]
                            for thread in range(kind.threads)]

                while not all(counts()):
                    time.sleep(0.01)
                yield lambda: sum(counts())

    def alone(self) -> float:
        """Units in a second that a core delivers where all compute."""
        with self.co_runner(CoRunner(CORES)) as units:
            return rate(units, lambda: time.sleep(ALONE_S))[1] / CORES

    def run(self, kind: CoRunner, run: Callable[[], Run]) -> Run:
        """With the co-runner's work in a second, `units`, among its values."""
        with self.co_runner(kind) as units:
            done, done.values["units"] = rate(units, run)
            return done


def rate(units: Callable[[], float], run: Callable[[], Run | None]) -> tuple:
    """What `run` returns, and the units of work in a second meanwhile."""
    before, start = units(), time.monotonic()
    result = run()
    return result, (units() - before) / (time.monotonic() - start)


@dataclass
class Row:
    """The medians over the turns for one co-runner and one number of ranks."""

    time: float  # over stock's
    work: float  # the co-runner's, over what is due
    text: str


def measure(machine: Machine, name: str, ranks: int, units: str) -> Row:
    ctx, kind = machine.ctx, CO_RUNNERS[name]
    program = imbalance_command(ctx, "1", units, WORK_MS, 1, ITERATIONS, "blocking", ranks)
    label = f"{name}, {ranks} rank{'s' if ranks > 1 else ''}"

    def stock() -> Run:
        env = {"OMP_NUM_THREADS": str(CORES // ranks)}
        return machine.run(kind, lambda: ctx.run(
            f"{label}: stock", machine.on(machine.cpus, *program), env))

    def managed() -> Run:
        words = machine.on(machine.cpus, str(ctx.build / "invade"), "--", *program)
        return machine.run(kind, lambda: ctx.run("invade", words, {}))

    parts = []
    for _ in range(ctx.pairs):
        due = machine.alone() * DUE * kind.threads
        theirs, ours = ctx.turn(stock, managed)
        same_checksum([theirs, ours])
        parts.append((ours.values["seconds"] / theirs.values["seconds"],
                      ours.values["units"] / min(due, theirs.values["units"]),
                      ours.values["units"] / due, theirs.values["units"] / due))
    over_stock, work, ours_due, stock_due = map(statistics.median, zip(*parts))
    return Row(over_stock, work,
               f"{label}: time {over_stock:.3f} of stock's; the co-runner's work {ours_due:.3f} "
               f"of what is due, {stock_due:.3f} beside stock")


def beside(ctx: Context) -> list[Figure]:
    ctx.check_only(*CO_RUNNERS, *RANKS)

    def chosen(names) -> list[str]:
        return [name for name in names if name in ctx.only] or list(names)

    machine, units = Machine(ctx), units_per_ms(ctx)
    rows = [measure(machine, name, RANKS[ranks], units)
            for ranks in chosen(RANKS) for name in chosen(CO_RUNNERS)]
    text = "\n    ".join(row.text for row in rows)
    return [Figure("beside co-runner", min(row.work for row in rows), "x the work that is due",
                   ">=", WORK_GOAL, text),
            Figure("beside", max(row.time for row in rows), "x stock", "<=", TIME_GOAL)]
