# SPDX-License-Identifier: GPL-3.0-or-later
"""What constructs, loops and tasks cost with ours and with three other OpenMP runtimes."""

from __future__ import annotations

import os

from common import Context, Figure
from openmp_compare import ACTIVE, PASSIVE, Setting, collect, compare, judge, print_table
from openmp_runtimes import OURS, Runtimes

CORES = len(os.sched_getaffinity(0))
ONE, TWO, FOUR = Setting("1", 1), Setting("2", 2), Setting("4", 4)
TWO_ACTIVE, FOUR_PASSIVE = Setting("2-active", 2, ACTIVE), Setting("4-passive", 4, PASSIVE)


def command(ctx: Context, runtimes: Runtimes, program: str, *options: str) -> list[str]:
    return [runtimes.program(program), *options, *ctx.only]


# What the design asks for at 2 active threads, in nanoseconds.
DESIGN_NS = {"parallel": 570, "barrier": 290, "critical": 30}


def sync(ctx: Context) -> list[Figure]:
    """Overhead per construct.  Less than 5 ns is some instructions more or less."""
    figures, results = compare(ctx, "sync", [ONE, TWO_ACTIVE, FOUR, FOUR_PASSIVE],
                               lambda r: command(ctx, r, "sync", f"--cores={CORES}"), "ns", 5)
    for row, goal in DESIGN_NS.items():
        ours = [m for n in OURS if (m := results.median(TWO_ACTIVE.name, row, n)) is not None]
        if ours:
            figures.insert(0, Figure(f"sync-{row}", max(ours), "ns at 2 active threads", "<=",
                                     goal))
    return figures


def sched(ctx: Context) -> list[Figure]:
    """Overhead per loop of some 10 us: 1 % of it is below what can be told apart."""
    return compare(ctx, "sched", [ONE, TWO_ACTIVE, FOUR],
                   lambda r: command(ctx, r, "sched", f"--cores={CORES}"), "ns a loop", 100)[0]


def tasks(ctx: Context) -> list[Figure]:
    figures, results = compare(ctx, "tasks", [ONE, TWO, FOUR],
                               lambda r: command(ctx, r, "tasks"), "ns a task", 2,
                               skip=lambda row: row.endswith("_ms"))
    for runtime in OURS:
        ours = judge(results, "2", "fib", runtime, 0.1, ["stock"])
        if ours:
            figures.insert(0, Figure(f"tasks-fib-{runtime}", 1 / ours.ratio,
                                     "x faster than stock at 2 threads", ">=", 8))
    return figures


# Constructs at whose end no thread waits for all threads to have come to the same place.
WITHOUT_BARRIER = ("parallel", "parallel_for", "reduction")


def oversubscribed(ctx: Context) -> list[Figure]:
    """More threads than cores: our default policy, stock's passive one."""
    runtimes = Runtimes(ctx)
    program = command(ctx, runtimes, "sync", f"--cores={CORES}", "--budget-ms=40")
    sizes = [Setting(str(n), n) for n in (2, 4, 16, 40)]
    names = [n for n in OURS if ctx.selected("runtimes", n)]
    results = collect(ctx, runtimes, sizes, program, names)
    passive = collect(ctx, runtimes, [Setting(s.name, s.threads, PASSIVE) for s in sizes], program,
                      ["stock"])
    for cell, values in passive.values.items():
        results.values[cell]["stock"] = values["stock"]
        results.handover[cell]["stock"] = passive.handover[cell]["stock"]
    verdicts = []
    for setting, row in results.values:
        if setting != "2":
            verdicts += [v for n in names if (v := judge(results, setting, row, n, 5, ["stock"]))]
    for setting in sizes:
        print_table(results, setting.name, "ns", ["stock", *names], verdicts)
    return [*growth(results, names), *slower_than_passive(verdicts, names)]


def growth(results, names: list[str]) -> list[Figure]:
    figures = []
    for name in names:
        ratios = []
        for setting, row in results.values:
            if setting == "2" or row not in WITHOUT_BARRIER or ("2", row) not in results.values:
                continue
            few, many = (results.median(s, row, name) for s in ("2", setting))
            ratios.append((many / few, row, setting))
        if ratios:
            worst, row, setting = max(ratios)
            figures.append(Figure(f"oversubscribed-growth-{name}", worst,
                                  "x the 2-thread figure, regions without barriers", "<=", 2.0,
                                  f"worst: {row}, {setting} threads"))
    return figures


def slower_than_passive(verdicts, names: list[str]) -> list[Figure]:
    figures = []
    for name in names:
        mine = [v for v in verdicts if v.runtime == name]
        if mine:
            worst = max(mine, key=lambda v: v.counted)
            figures.append(Figure(f"oversubscribed-{name}", worst.counted, "x stock passive", "<=",
                                  1.0, f"worst: {worst.row}, {worst.setting} threads; "
                                  f"{sum(v.counted > 1 for v in mine)} of {len(mine)} are slower"))
    if figures:
        figures.append(Figure("oversubscribed", max(f.value for f in figures), "x stock passive",
                              "<=", 1.0))
    return figures
