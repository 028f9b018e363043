# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program pays for invading in every step: the paper's micro benchmark (6.1).

A single process with 128 cells, always the same, in 25 runs: threads only (stock), and managed with
no, a non-blocking or a blocking invade of the number of cells before every step.  The paper had
up to 5 % and 15 %.

Whole runs differ by 20 %, since the hypervisor moves the virtual cores of a machine from second to
second.  So a stock run and a run under invade take turns: while one computes a block of steps, the
threads of the other sleep.  The forms of invading follow each other in smaller blocks of the same
process.  Two blocks are compared only if a cache line took as long from core to core in both.  The
figure is the median over the runs of a run's median ratio.
Stock is the quicker one of its threads bound to cores and not.

Beside them, what it costs to announce another number in every step, which is a message to rmd each
time; a blocking one waits for rmd's answer.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from pathlib import Path

from common import BenchError, Context, Figure, Run, clean_environment

RUNS = 25
TURNS = 20        # of blocks, in each run
STEPS = 240       # in a block of stock
ROUNDS = 4        # a block of the managed program: so often a part of these steps in each form
CHANGING_STEPS = 40
FORMS = ("off", "nonblocking", "blocking")
CHANGING = ("nonblocking-changing", "blocking-changing")
THREADS = 2
ASLEEP_S = 0.1  # until then, at most, a program's threads sleep after a block
NAME = "overhead_steps"


def tasks_below(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for process in found:  # grows
        for task in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


class Program:
    """One run of the program, which computes when it is asked to."""

    def __init__(self, ctx: Context, words: list[str], **env: str):
        command = [*words, str(ctx.build / "bench" / NAME)]
        env = clean_environment({"OMP_NUM_THREADS": str(THREADS), **env})
        self.job = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE)
        self.first_region_us = float(self.line()[0])
        self.pid = next(p for p in tasks_below(self.job.pid)
                        if Path(f"/proc/{p}/comm").read_text().strip() == NAME)

    def line(self) -> list[float]:
        words = self.job.stdout.readline().split()
        if not words:
            raise BenchError(f"{NAME}: no answer")
        return [float(word) for word in words]

    def wait_until_asleep(self) -> None:
        """Idle threads spin for a while, which is not to be in the way of the other program."""
        end = time.monotonic() + ASLEEP_S
        while time.monotonic() < end:
            stats = [(task / "stat").read_text() for task in
                     Path(f"/proc/{self.pid}/task").iterdir()]
            if not any(stat.rpartition(")")[2].split()[0] == "R" for stat in stats):
                return
            time.sleep(0.0005)

    def ask(self, steps: int, rounds: int, forms: tuple[str, ...]) -> dict:
        """Microseconds a step in each of the forms, and how long cache lines took."""
        self.job.stdin.write(f"{steps} {rounds} {' '.join(forms)}\n")
        self.job.stdin.flush()
        rows = [self.line() for _ in range(rounds)]
        self.wait_until_asleep()
        answer = {}
        for i, form in enumerate(forms):
            answer[form] = statistics.fmean(row[2 * i] for row in rows)
            answer[f"{form}_median"] = statistics.median(row[2 * i + 1] for row in rows)
        answer["lines"] = [us for row in rows for us in row[2 * len(forms):]]
        return answer

    def end(self) -> None:
        self.job.stdin.close()
        try:
            self.job.wait(20)
        finally:
            self.job.kill()


def alike(one: dict, other: dict) -> bool:
    """Were the two cores as near to each other all the time?  (0: one thread after the other.)"""
    lines = one["lines"] + other["lines"]
    return min(lines) > 0 and max(lines) <= 2 * min(lines)


def one_run(ctx: Context) -> dict:
    """Median ratios of a run, and times of a step."""
    invade = [str(ctx.build / "invade"), "--"]
    programs = {"stock": Program(ctx, []), "bound": Program(ctx, [], OMP_PROC_BIND="true"),
                "managed": Program(ctx, invade)}
    try:
        turns = [{name: program.ask(STEPS // ROUNDS, ROUNDS,
                                    FORMS if name == "managed" else ("off",))
                  for name, program in programs.items()} for _ in range(TURNS)]
        late = [programs["managed"].ask(CHANGING_STEPS, 1, ("off", *CHANGING)) for _ in range(2)]
    finally:
        for program in programs.values():
            program.end()
    result = {"compared": 0}
    for stock in ("stock", "bound"):
        like = [t for t in turns if alike(t[stock], t["managed"])]
        result["compared"] += len(like)
        for form in FORMS:
            for kind in ("", "_median"):
                result[f"{form}_{stock}{kind}"] = statistics.median(
                    t["managed"][form + kind] / t[stock]["off" + kind] for t in like or turns)
        result[f"{stock}_us"] = statistics.median(t[stock]["off"] for t in like or turns)
    for form in FORMS[1:]:
        for kind in ("", "_median"):
            result[f"{form}_off{kind}"] = statistics.median(
                t["managed"][form + kind] / t["managed"]["off" + kind] for t in turns)
    for form in CHANGING:
        result[f"{form}_us"] = statistics.median(a[form] - a["off"] for a in late)
    for name, program in programs.items():
        result[f"{name}_first_us"] = program.first_region_us
    return result


def overhead(ctx: Context) -> list[Figure]:
    runs = []
    for _ in range(RUNS if ctx.pairs == 5 else ctx.pairs):
        start, before = time.monotonic(), os.times()
        values = one_run(ctx)
        after = os.times()
        cpu = sum(after[2:4]) - sum(before[2:4])
        runs.append(values)
        ctx.runs.append(Run("run", time.monotonic() - start, cpu, values, ""))
        if ctx.verbose:
            print("    " + ", ".join(f"{k} {v:.4g}" for k, v in values.items()), flush=True)

    def median(key: str) -> float:
        return statistics.median(run[key] for run in runs)

    def spread(key: str) -> str:
        """Of the middle half of the runs."""
        ratios = sorted(100 * (run[key] - 1) for run in runs)
        return f"{ratios[len(ratios) // 4]:+.2f} to {ratios[-1 - len(ratios) // 4]:+.2f} %"

    def percent(key: str) -> float:
        return 100 * (median(key) - 1)

    def note(form: str, under: str) -> str:
        return (f"half of the runs {spread(f'{form}_{under}')}, by the median step "
                f"{percent(f'{form}_{under}_median'):+.2f} %")

    def over_managed(form: str, goal: float) -> list[Figure]:
        """The steps that are the same but for the invade; by the mean, as over stock, and by the
        median step, which leaves out what the few long ones take."""
        return [Figure(f"overhead-{form}-managed", percent(f"{form}_off"),
                       "% of managed without invades", "<=", goal, f"half of the runs "
                       f"{spread(f'{form}_off')}; another number in each step: "
                       f"{median(f'{form}-changing_us'):.1f} us"),
                Figure(f"overhead-{form}-managed-median", percent(f"{form}_off_median"),
                       "% of managed without invades, by the median step", "<=", goal,
                       f"half of the runs {spread(f'{form}_off_median')}")]

    stock = min(("stock", "bound"), key=lambda name: median(f"{name}_us"))
    compared = sum(run["compared"] for run in runs) / (2 * TURNS * len(runs))
    return [
        Figure("overhead-threads", percent(f"off_{stock}"), "% of stock", "<=", 0.5,
               f"managed, no invades; {note('off', stock)}; over stock "
               f"unbound {percent('off_stock'):+.2f}, bound {percent('off_bound'):+.2f} %; a step "
               f"{median('stock_us'):.1f} and {median('bound_us'):.1f} us; {100 * compared:.0f} % "
               f"of the blocks compared; first region {median('stock_first_us'):.0f} us, managed "
               f"{median('managed_first_us'):.0f}"),
        Figure("overhead-nonblocking", percent(f"nonblocking_{stock}"), "% of stock", "<=", 0.5,
               f"{note('nonblocking', stock)}; paper 5 %"),
        *over_managed("nonblocking", 0.5), *over_managed("blocking", 1.0),
        Figure("overhead", percent(f"blocking_{stock}"), "% of stock", "<=", 1.0,
               f"blocking; {note('blocking', stock)}; paper 15 %"),
    ]
