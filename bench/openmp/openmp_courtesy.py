# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that must run at the same time, and threads that seldom can.

spin-sync: threads that synchronise by loops of their own, which no runtime sees.
courtesy: a program that synchronises often beside sixteen others that compute all the time.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
from contextlib import contextmanager

from common import Context, Figure, clean_environment
from openmp_compare import ACTIVE, PASSIVE, Results, Setting
from openmp_runtimes import OURS, Runtimes

CORES = sorted(os.sched_getaffinity(0))


ONE_CORE = ("taskset", "-c", str(CORES[0]))
SPIN_GOAL = 1.05
# Words in front of the command, threads, rounds of each kernel.  Where threads are more than cores,
# a hand-over lasts until the kernel takes the core from a thread that spins in vain.
SPIN_SETTINGS = {
    "2 on 2 cores": ((), 2, {"pingpong": 20000, "pipeline": 5000, "meet": 20000, "yield": 20000}),
    "4 on 2 cores": ((), 4, {"pipeline": 300, "meet": 100, "yield": 10000}),
    "2 on 1 core": (ONE_CORE, 2, {"pingpong": 40, "pipeline": 300, "meet": 100, "yield": 10000}),
}


# Of a single run, in a bad turn of the machine too.
TURN_GOAL = 2


def over_stock(results: Results, setting: str, row: str, name: str,
               of=statistics.median) -> float | None:
    cell = results.values[setting, row]
    if name not in cell or "stock" not in cell:
        return None
    return of(o / s for o, s in zip(cell[name], cell["stock"]))


def ratio_table(results: Results, setting: str, names: list[str], reference) -> None:
    """`reference(row, name)`: the ratio to print for one of ours."""
    ours = [n for n in names if n in OURS]
    print(f"    {setting + ', ms':<20}" + "".join(f"{n:>15}" for n in names)
          + "".join(f"{n + ' ratio':>15}" for n in ours))
    for row in [r for s, r in results.values if s == setting]:
        cells = "".join(f"{results.median(setting, row, n):>15.2f}" for n in names)
        ratios = "".join(f"{reference(row, n):>15.2f}" for n in ours)
        print(f"    {row:<20}{cells}{ratios}", flush=True)


def spin_sync(ctx: Context) -> list[Figure]:
    runtimes = Runtimes(ctx, others=("stock",))
    names, program = runtimes.names(), runtimes.program("spinsync")
    results = Results()
    settings = {s: v for s, v in SPIN_SETTINGS.items() if ctx.selected("settings", s)}
    for _ in range(ctx.pairs):
        for setting, (before, threads, rounds) in settings.items():
            kernels = [k for k in rounds if not ctx.only or k in ctx.only]
            for kernel, name in itertools.product(kernels, names):
                run = runtimes.run(name, [program, f"--rounds={rounds[kernel]}", kernel],
                                   {"OMP_NUM_THREADS": str(threads)}, before)
                results.add(setting, kernel, name, run.values[kernel])
        if ctx.verbose:
            print("    turn", flush=True)
    for setting in settings:
        ratio_table(results, setting, names,
                    lambda row, n, s=setting: over_stock(results, s, row, n))
    figures = []
    for name in [n for n in names if n in OURS]:
        for kind, of, goal in (("", statistics.median, SPIN_GOAL), ("-turn", max, TURN_GOAL)):
            worst, row, setting = max((over_stock(results, s, r, name, of), r, s)
                                      for s, r in results.values)
            figures.append(Figure(f"spin-sync-{name}{kind}", worst, "x stock", "<=", goal,
                                  f"worst: {row}, {setting}"))
    figures.append(Figure("spin-sync", max(f.value for f in figures if "-turn" not in f.name),
                          "x stock", "<=", SPIN_GOAL, "limit 1.0"))
    return figures


OTHER_PROGRAMS = 16
ROUNDS = 200
CROWD_SETTINGS = (Setting("default", 2), Setting("active", 2, ACTIVE),
                  Setting("passive", 2, PASSIVE))


@contextmanager
def crowd(program: str, count: int):
    """`count` programs that compute all the time."""
    others = [subprocess.Popen([program, "--burn=240"], env=clean_environment({}))
              for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
        for other in others:
            other.wait()


def courtesy(ctx: Context) -> list[Figure]:
    """Stock with each wait policy, the others and ours with their defaults."""
    runtimes = Runtimes(ctx)
    program = runtimes.program("crowd")
    variants = [(f"stock-{s.name}", "stock", s) for s in CROWD_SETTINGS]
    variants += [(n, n, CROWD_SETTINGS[0]) for n in runtimes.names() if n != "stock"]
    results, where, work_us = Results(), f"{OTHER_PROGRAMS} others", []
    with crowd(program, OTHER_PROGRAMS):
        for _ in range(ctx.pairs):
            for name, runtime, setting in variants:
                run = runtimes.run(runtime, [program, f"--rounds={ROUNDS}", *ctx.only],
                                   setting.environment())
                work_us.append(run.values.pop("work_us"))
                for row, value in run.values.items():
                    results.add(where, row, name, value)
    return judge_courtesy(results, where, [v[0] for v in variants], min(work_us))


def judge_courtesy(results: Results, where: str, names: list[str], work_us: float) -> list[Figure]:
    stock = [n for n in names if n.startswith("stock")]

    def over_best(row: str, name: str) -> float:
        cell = results.values[where, row]
        best = results.best(where, row, stock)
        return statistics.median(o / b for o, b in zip(cell[name], cell[best]))

    ratio_table(results, where, names, over_best)
    share = (OTHER_PROGRAMS + 2) / len(CORES)
    print(f"    with its fair share of a core, {1 / share:.3f}, each of the 2 threads would do the "
          f"work alone in {1e-3 * ROUNDS * work_us * share:.1f} ms")
    figures = []
    for name in [n for n in names if n in OURS]:
        worst, row = max((over_best(r, name), r) for s, r in results.values)
        figures.append(Figure(f"courtesy-{name}", worst, "x stock's best wait policy", "<=", 1.1,
                              f"worst: {row}"))
    figures.append(Figure("courtesy", max(f.value for f in figures), "x stock's best wait policy",
                          "<=", 1.1))
    return figures
