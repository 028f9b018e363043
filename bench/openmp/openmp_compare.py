# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of what something costs with each OpenMP runtime, and how far ours is from the best.

A program prints "row number" lines; it runs in some settings (threads, wait policy) with each
runtime in turn.  Ours is judged row by row against the best of the others: the median over the
turns of the ratio within a turn.  Two are equal when they differ by less than the resolution,
an absolute time, or when ours is the faster in a quarter of the turns.  Where the programs
say how near the cores were (see handover_ns in measure.h), like is compared with like.
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from dataclasses import dataclass

from common import BenchError, Context, Figure
from openmp_runtimes import OTHERS, OURS, Runtimes


@dataclass(frozen=True)
class Setting:
    """The circumstances under which all runtimes run a program."""

    name: str
    threads: int
    env: tuple[tuple[str, str], ...] = ()

    def environment(self) -> dict[str, str]:
        return {"OMP_NUM_THREADS": str(self.threads), **dict(self.env)}


ACTIVE = (("OMP_WAIT_POLICY", "active"),)
PASSIVE = (("OMP_WAIT_POLICY", "passive"),)


class Results:
    """values[setting, row][runtime]: one number for each turn, None where it failed.  `handover`
    has the time of a cache line from core to core while it was measured, the same way."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], dict[str, list]] = defaultdict(dict)
        self.handover: dict[tuple[str, str], dict[str, list]] = defaultdict(dict)
        self.failures: set[str] = set()
        self.left_out: set[str] = set()

    def add(self, setting: str, row: str, runtime: str, value: float | None,
            handover: float = 0) -> None:
        self.values[setting, row].setdefault(runtime, []).append(value)
        self.handover[setting, row].setdefault(runtime, []).append(handover)

    def comparable(self, setting: str, row: str) -> dict[str, list]:
        """The numbers that were measured while the machine's cores were as near to each other as
        they ever were (None in the other turns); all numbers, if some runtime has none then."""
        values, handover = self.values.get((setting, row), {}), self.handover[setting, row]
        nearest = min((h for list_ in handover.values() for h in list_), default=0)
        near = {n: [v if h <= 1.5 * nearest else None for v, h in zip(values[n], handover[n])]
                for n in values}
        whole = all(any(v is not None for v in near[n]) for n in values
                    if any(v is not None for v in values[n]))
        return near if whole else values

    def median(self, setting: str, row: str, runtime: str) -> float | None:
        found = [v for v in self.comparable(setting, row).get(runtime, []) if v is not None]
        return statistics.median(found) if found else None

    def best(self, setting: str, row: str, among) -> str | None:
        known = [(m, n) for n in among if (m := self.median(setting, row, n)) is not None]
        return min(known)[1] if known else None


def collect(ctx: Context, runtimes: Runtimes, settings: list[Setting], command: list[str],
            names: list[str] | None = None) -> Results:
    """Run everything in turns.  A failure of another runtime is noted; one of ours is an error."""
    results = Results()
    for turn in range(ctx.pairs):
        for setting in settings:
            if not ctx.selected("settings", setting.name):
                continue
            order = names or runtimes.names()
            for name in order[turn % len(order):] + order[:turn % len(order)]:
                try:
                    run = runtimes.run(name, command, setting.environment())
                except BenchError as error:
                    if name in OURS:
                        raise
                    results.failures.add(f"{name} {setting.name}: {str(error).splitlines()[0]}")
                    continue
                results.left_out |= {f"{name}: {line}" for line in run.output.splitlines()
                                     if " left out: " in line}
                for row, value in run.values.items():
                    if not row.endswith("_handover"):
                        results.add(setting.name, row, name, value,
                                    run.values.get(f"{row}_handover", 0))
        if ctx.verbose:
            print(f"    turn {turn + 1} of {ctx.pairs}", flush=True)
    for line in sorted(results.left_out) + [f"failed: {f}" for f in sorted(results.failures)]:
        print(f"    {line}")
    return results


@dataclass
class Verdict:
    """Ours against the best of the others in one row of one setting."""

    setting: str
    row: str
    runtime: str
    best: str
    ratio: float  # median over the turns
    counted: float  # 1.0 where the two are equal


def judge(results: Results, setting: str, row: str, runtime: str, resolution: float,
          others=OTHERS) -> Verdict | None:
    best = results.best(setting, row, others)
    if best is None or results.median(setting, row, runtime) is None:
        return None
    cell = results.comparable(setting, row)
    pairs = [p for p in zip(cell[runtime], cell[best]) if None not in p]
    if not pairs:
        pairs = [p for p in itertools.product(cell[runtime], cell[best]) if None not in p]
    ratios = sorted(max(o, resolution) / max(b, resolution) for o, b in pairs)
    ratio = statistics.median(ratios)
    apart = statistics.median(o - b for o, b in pairs)
    faster_now_and_then = len(ratios) > 3 and ratios[len(ratios) // 4] <= 1
    equal = abs(apart) <= resolution or (ratio > 1 and faster_now_and_then)
    return Verdict(setting, row, runtime, best, ratio, 1.0 if equal else ratio)


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def print_table(results: Results, setting: str, unit: str, names: list[str],
                verdicts: list[Verdict], skip=lambda row: False) -> None:
    """Rows of one setting; the ratio of each of ours, with a * where it counts as more than 1."""
    ours = [n for n in names if n in OURS]
    heading = "".join(f"{n:>11}" for n in names) + "".join(f"{n + '/best':>14}" for n in ours)
    print(f"    {setting + ', ' + unit:<28}{heading}")
    by_cell = {(v.row, v.runtime): v for v in verdicts if v.setting == setting}
    for row in [r for s, r in results.values if s == setting and not skip(r)]:
        line = f"    {row:<28}"
        line += "".join(f"{number(results.median(setting, row, n)):>11}" for n in names)
        for name in ours:
            v = by_cell.get((row, name))
            line += f"{v.ratio:>13.2f}{'*' if v.counted > 1 else ' '}" if v else f"{'':>14}"
        print(line, flush=True)


def compare(ctx: Context, name: str, settings: list[Setting], command, unit: str,
            resolution: float, skip=lambda row: False) -> tuple[list[Figure], Results]:
    """The whole benchmark: runs, tables, and the worst ratio of ours to the best of the others.
    `command(runtimes)` says what to run."""
    runtimes = Runtimes(ctx)
    names = runtimes.names()
    results = collect(ctx, runtimes, settings, command(runtimes))
    cells = [cell for cell in results.values if not skip(cell[1])]
    verdicts = [v for s, r in cells for n in names if n in OURS
                if (v := judge(results, s, r, n, resolution))]
    for setting in settings:
        if ctx.selected("settings", setting.name):
            print_table(results, setting.name, unit, names, verdicts, skip)
    print(f"    * slower than the best of the others; equal within {resolution:g} ns, or when ours "
          "is faster in a quarter of the turns")
    figures = []
    for runtime in [n for n in OURS if n in names]:
        mine = [v for v in verdicts if v.runtime == runtime]
        if not mine:
            continue
        worst = max(mine, key=lambda v: v.counted)
        slower = sum(v.counted > 1 for v in mine)
        figures.append(Figure(
            f"{name}-{runtime}", worst.counted, "x the best of the others", "<=", 1.0,
            f"worst: {worst.row}, {worst.setting}, against {worst.best}; {slower} of {len(mine)} "
            f"are slower; limit {1.0:g}, the best of the others{runtimes.note()}"))
    if figures:
        worst_figure = max(figures, key=lambda f: f.value)
        figures.append(Figure(name, worst_figure.value, worst_figure.unit, "<=", 1.0))
    return figures, results
