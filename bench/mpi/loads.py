# SPDX-License-Identifier: GPL-3.0-or-later
"""Two ranks with unequal loads on two cores: how near moving the cores comes to balanced work.

The limit of the constant imbalance is measured: the same work shared out equally, stock, with one
rank on each core.  The limit of the artificial benchmark is arithmetic: 4/7 of the stock time.
The matrix varies loads, length of an iteration, regions and kind of wait.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
import tempfile
from pathlib import Path

from common import BenchError, Context, Figure, Run, median_ratio, median_value, same_checksum

RANKS = 2


def units_per_ms(ctx: Context) -> str:
    """Calibrated once, so that all variants do the same work."""
    run = ctx.stock(ctx.mpi(1, ctx.app("imbalance"), "--calibrate"), variant="calibrate")
    return f"{run.values['units_per_ms']:.3f}"


def imbalance_command(ctx: Context, loads: str, units: str, work_ms: float, regions: int,
                      iterations: int, wait: str, ranks: int = RANKS) -> list[str]:
    return ctx.mpi(ranks, ctx.app("imbalance"), f"--loads={loads}", f"--units-per-ms={units}",
                   f"--work-ms={work_ms}", f"--regions={regions}", f"--iterations={iterations}",
                   f"--wait={wait}")


def over_limit(ctx: Context, name: str, goal: float, **shape) -> list[Figure]:
    """Loads 1:9 under invade against the balanced run; stock 1:9 beside it, for the reader."""
    units = units_per_ms(ctx)
    unequal = imbalance_command(ctx, "1:9", units, **shape)
    equal = imbalance_command(ctx, "5:5", units, **shape)
    turns = ctx.turns(lambda: ctx.stock(equal, variant="limit"),
                      lambda: ctx.stock(unequal),
                      lambda: ctx.invade(unequal))
    same_checksum([run for turn in turns for run in turn[1:]])
    stock = median_ratio(turns, 1, 0)
    return [Figure(name, median_ratio(turns, 2, 0), "x the limit", "<=", goal,
                   f"stock {stock:.2f}; limit {median_value(turns, 0):.3f} s, the balanced run")]


TRACE_RUNS = 8  # in a turn, of each kind


def trace_cost(ctx: Context) -> list[Figure]:
    """imbalance-fine with and without a trace of it: some ten thousand events a second.

    Many short runs, a pair of them after the other, the traced one first in every second pair: what
    changes on the machine within a second meets both.  Processor time, which waiting for a core is
    not in, is a second figure beside it.  The median's own error is told by the quartiles."""
    command = imbalance_command(ctx, "1:9", units_per_ms(ctx), 2, 8, 200, "blocking")
    pairs: list[tuple[Run, Run]] = []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "trace")

        def untraced() -> Run:
            return ctx.invade(command)

        def traced() -> Run:
            return ctx.run("traced", [str(ctx.build / "invade"), f"--trace={file}", "--", *command],
                           {})

        for number in range(ctx.pairs * TRACE_RUNS):
            runs = ctx.turn(*((untraced, traced) if number % 2 else (traced, untraced)))
            pairs.append(runs if number % 2 else runs[::-1])
        same_checksum([run for pair in pairs for run in pair])
        size = file.stat().st_size
    ratios = [t.values["seconds"] / u.values["seconds"] for u, t in pairs]
    cpu = statistics.median(t.cpu_s / u.cpu_s for u, t in pairs)
    low, _, high = statistics.quantiles(ratios, n=4)
    error = (high - low) / 1.35 * 1.25 / math.sqrt(len(ratios))  # of a median, if it were normal
    return [Figure("trace-cost", statistics.median(ratios), "x untraced", "<=", 1.01,
                   f"{size / 16 / pairs[-1][1].values['seconds']:.0f} events a second; "
                   f"{len(pairs)} pairs of runs, +- {error:.3f}; processor time {cpu:.3f} x")]


# --- the matrix

LOADS = {"1:3": (2, "1:3", ""), "1:9": (2, "1:9", ""), "alternating": (2, "0.5:1.5", "--alternate"),
         "1:2:3:4": (4, "1:2:3:4", "")}
REGIONS = (1, 8)
LENGTHS_MS = (1, 3, 10, 30, 100)
WAITS = ("blocking", "polled")
RUN_S = 0.6  # of one run at the limit
CORES = 2


CROWDED_GOALS = {1: 1.15, 3: 1.10}  # ms: goal, with more ranks than cores; 1.05 above these


def length_goal(ms: float, crowded: bool = False) -> float:
    """1.15 at 1 ms, 1.05 from 30 ms on; in between it falls with the logarithm of the length."""
    if crowded:
        return CROWDED_GOALS.get(ms, 1.05)
    if ms >= 30:
        return 1.05
    return round(1.15 - 0.10 * math.log(ms) / math.log(30), 3)


def matrix_rows(only: tuple[str, ...]) -> list[tuple]:
    """(name, loads, regions, ms, wait); --only 1:9,30ms,polled,8regions takes the rows that have
    one of the words of each kind."""
    rows = []
    for loads, regions, ms, wait in itertools.product(LOADS, REGIONS, LENGTHS_MS, WAITS):
        labels = (loads, f"{regions}regions", f"{ms}ms", wait)
        kinds = (LOADS, [f"{r}regions" for r in REGIONS], [f"{m}ms" for m in LENGTHS_MS], WAITS)
        if all(label in only or not set(kind) & set(only) for label, kind in zip(labels, kinds)):
            rows.append((" ".join(labels), loads, regions, ms, wait))
    known = {word for kind in kinds for word in kind}
    if set(only) - known:
        raise BenchError(f"imbalance-matrix: --only takes {', '.join(sorted(known))}")
    return rows


def matrix(ctx: Context) -> list[Figure]:
    """Each row against the balanced run of the same length and regions, which is the same work
    on as many ranks as cores: total work / cores.  Stock is not run; its limit is arithmetic."""
    units = units_per_ms(ctx)
    rows = matrix_rows(ctx.only)
    ratios: dict[str, list[float]] = {row[0]: [] for row in rows}

    def command(ranks, loads, regions, ms, wait, more=""):
        words = imbalance_command(ctx, loads, units, ms * CORES, regions,
                                  max(4, round(RUN_S * 1000 / ms)), wait, ranks)
        return [*words, more] if more else words

    for _ in range(ctx.pairs):
        for ms, regions in itertools.product(LENGTHS_MS, REGIONS):
            here = [row for row in rows if row[2:4] == (regions, ms)]
            if not here:
                continue
            limit = ctx.stock(command(RANKS, "1:1", regions, ms, "blocking"), variant="limit")
            for name, loads, _, _, wait in here:
                ranks, parts, more = LOADS[loads]
                run = ctx.invade(command(ranks, parts, regions, ms, wait, more), variant=name)
                ratios[name].append(run.values["seconds"] / limit.values["seconds"])
                if ctx.verbose:
                    print(f"    {name}: {ratios[name][-1]:.3f}", flush=True)
    return [Figure(name, statistics.median(ratios[name]), "x the limit", "<=",
                   length_goal(row[3], LOADS[row[1]][0] > CORES))
            for name, row in zip(ratios, rows)]


def imbalance(ctx: Context) -> list[Figure]:
    return over_limit(ctx, "imbalance", 1.10, work_ms=60, regions=1, iterations=50, wait="blocking")


def imbalance_fine(ctx: Context) -> list[Figure]:
    return over_limit(ctx, "imbalance-fine", 1.25, work_ms=2, regions=8, iterations=1000,
                      wait="blocking")


def imbalance_polled(ctx: Context) -> list[Figure]:
    return over_limit(ctx, "imbalance-polled", 1.15, work_ms=60, regions=1, iterations=50,
                      wait="polled")


def balanced(ctx: Context) -> list[Figure]:
    units = units_per_ms(ctx)
    command = imbalance_command(ctx, "5:5", units, 60, 1, 50, "blocking")
    turns = ctx.turns(lambda: ctx.stock(command), lambda: ctx.invade(command))
    same_checksum([run for turn in turns for run in turn])
    return [Figure("balanced", median_ratio(turns, 1, 0), "x stock", "<=", 1.01, "limit 1.0")]


def artificial(ctx: Context) -> list[Figure]:
    command = ctx.mpi(RANKS, ctx.app("artificial"), "-T", "1280")
    turns = ctx.turns(lambda: ctx.stock(command), lambda: ctx.invade(command))
    same_checksum([run for turn in turns for run in turn])
    steps = re.search(r"T = (\d+)", turns[0][0].output)
    if not steps:
        raise BenchError("artificial did not say how many steps it took")
    return [Figure("artificial", median_ratio(turns, 1, 0), "x stock", "<=", 0.62, "limit 0.571")]
