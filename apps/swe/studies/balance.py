# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulation on several ranks whose parts of the grid are not equally fine (the paper's 6.3).

A dam breaks off the centre of the domain.  Each rank has its part of the curve for good, so most of
the work is first in one rank, then in others.  Stock each rank has its share of the cores; under
`invade` cores move.

On the real cores stock runs in each shape of ranks x threads, waiting threads spinning and
sleeping, and the best one counts: of those with as many ranks as ours, and of all.  1 x cores
has no ranks that could be unbalanced; it is what a program that needs no ranks would do.  As a
reference the ranks of one thread also run with waits that yield the CPU, which the stock library
(MPICH) has no mode for: bench/mpi/yield.c.
The limit is the work of one rank and thread, shared out evenly.

On emulated cores (model.py) the run is replayed: stock with cores / ranks threads a rank, whose
ranks look for messages every 50 us instead of spinning, since threads that sleep in place
of work need the real CPUs.  No more threads sleep at once than there are cores, under invade too:
when no thread has come to a region's next implicit task for long, the watchdog lets unheld threads
work, and these would be more machine than is said.  Three limits are known from the record: with
fixed shares, with cores that move, and with cores that end each cluster that they have begun.
"""

from __future__ import annotations

import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from common import BenchError, Context, Run, median_ratio, same_checksum
from mpi_programs import LIBRARIES, compiled

from . import model

DAM = [str(model.SCENARIOS / "dam_break.toml"), "-q", "scenario.x=0.25", "scenario.y=0.45"]
REAL = [*DAM, "grid.max_depth=18", "time.end=20", "grid.split=1024", "grid.join=512"]
MODEL = [*DAM, "grid.max_depth=18", "grid.split=1024", "grid.join=512"]
# Clusters stand for ones of 16 times as many cells, as those of REAL and MODEL are.
EMULATED = [*DAM, "grid.max_depth=13", "grid.min_depth=6", "grid.split=64", "grid.join=32",
            "time.steps=100"]
SHAPES = ((1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (4, 2))  # ranks x threads
POLICIES = ("active", "passive")  # active only where each thread has a core: else far slower
CORES = len(os.sched_getaffinity(0))
EMULATED_SHAPES = ((40, 4), (20, 4), (40, 2), (20, 2))  # cores / ranks, figure 7's
TASK_MS = 10.0  # ranks wait for each other several times a step: longer than other studies'
PARALLELS = ("loop", "tasks", "owner")
EARLY = "run.enclaves=on"  # messages early, work behind them


def seconds(run: Run) -> float:
    return run.values["seconds"]


# --- on the real cores


@dataclass
class Compared:
    """Medians over the turns, for one number of ranks."""

    ranks: int
    ours: float
    best: str            # stock's best with as many ranks
    stock: float         # its seconds
    ratio: float         # ours over that
    best_of_all: str
    ratio_of_all: float
    limit: float         # seconds: all cores busy with what one rank and thread does
    over_limit: float
    over_yielding: float  # ours over ranks of one thread that yield
    early: float         # seconds: ours with messages early
    early_ratio: float   # that over ours
    early_over_stock: float  # that over stock's best with as many ranks


def short(words: list[str], scale: float) -> list[str]:
    """A part of the run."""
    return [*words, f"time.end={20 * scale:g}"] if scale != 1 else words


def stock_runs(ctx: Context, words: list[str], shapes) -> dict[str, Run]:
    runs = {}
    for ranks, threads in shapes:
        for policy in POLICIES if threads > 1 and ranks * threads <= CORES else ("passive",):
            name = f"{ranks}x{threads}" + (f"-{policy}" if threads > 1 else "")
            runs[name] = ctx.stock(ctx.mpi(ranks, ctx.app("swe"), *words), threads,
                                   f"stock-{name}", OMP_WAIT_POLICY=policy)
    return runs


def yielding_run(ctx: Context, words: list[str], ranks: int) -> Run:
    library = compiled(ctx, LIBRARIES[0], "yield.c", "-shared", "-fPIC")
    return ctx.stock(ctx.mpi(ranks, ctx.app("swe"), *words), 1, f"yielding-{ranks}x1",
                     LD_PRELOAD=str(library))


def real(ctx: Context, ranks: tuple[int, ...], parallel: str = "loop",
         scale: float = 1) -> list[Compared]:
    """All shapes run in the first turn; those that are three times the best are left out then, but
    for the best one of each number of ranks that is asked for, and the limit's."""
    words = [*short(REAL, scale), f"run.parallel={parallel}"]
    shapes, turns = list(SHAPES), []
    ctx.timeout_s = max(ctx.timeout_s, 600)  # stock ranks that spin on too few cores
    for _ in range(ctx.pairs):
        stock = stock_runs(ctx, words, shapes)
        ours = {n: ctx.invade(ctx.mpi(n, ctx.app("swe"), *words), variant=f"invade-{n}")
                for n in ranks}
        early = {n: ctx.invade(ctx.mpi(n, ctx.app("swe"), *words, EARLY),
                               variant=f"invade-early-{n}") for n in ranks}
        yielding = {n: yielding_run(ctx, words, n) for n in ranks}
        turns.append((stock, ours, yielding, early))
        runs = [*stock.values(), *ours.values(), *yielding.values(), *early.values()]
        same_checksum(runs)
        if ctx.verbose:
            ctx.say("   ".join(f"{r.variant} {seconds(r):.2f} s" for r in runs))
        shapes = [s for s in shapes if worth_running(s, stock, ranks)]
    return [compared(n, turns) for n in ranks]


def of_ranks(names, ranks: int) -> list[str]:
    return [name for name in names if name.startswith(f"{ranks}x")]


def worth_running(shape: tuple[int, int], stock: dict[str, Run], ranks: tuple[int, ...]) -> bool:
    name = f"{shape[0]}x{shape[1]}"
    mine = min(seconds(run) for n, run in stock.items() if n.startswith(name))
    alike = min(seconds(stock[n]) for n in of_ranks(stock, shape[0]))
    best = min(map(seconds, stock.values()))
    return (shape == (1, 1) or mine <= 3 * best or
            (shape[0] in ranks and mine == alike))


def compared(ranks: int, turns: list) -> Compared:
    names = set.intersection(*(set(turn[0]) for turn in turns))

    def typical(name: str) -> float:
        return statistics.median(seconds(turn[0][name]) for turn in turns)

    def ratio(name: str, which: int = 1) -> float:
        return statistics.median(seconds(turn[which][ranks]) / seconds(turn[0][name])
                                 for turn in turns)

    best = min(of_ranks(names, ranks), key=typical)
    best_of_all = min(names, key=typical)
    over_yielding = statistics.median(seconds(ours[ranks]) / seconds(yielding[ranks])
                                      for _, ours, yielding, _ in turns)
    early_ratio = statistics.median(seconds(early[ranks]) / seconds(ours[ranks])
                                    for _, ours, _, early in turns)
    return Compared(ranks, statistics.median(seconds(turn[1][ranks]) for turn in turns), best,
                    typical(best), ratio(best), best_of_all, ratio(best_of_all),
                    typical("1x1") / CORES, CORES * ratio("1x1"), over_yielding,
                    statistics.median(seconds(turn[3][ranks]) for turn in turns), early_ratio,
                    ratio(best, 3))


# --- on emulated cores


@dataclass
class Replayed:
    cores: int
    ranks: int
    parallel: str
    stock: float   # s, medians
    ours: float
    ratio: float
    fixed: float   # s, limits
    moved: float
    ended: float
    words: list[str]  # of swe_replay
    model: dict[str, float]


def replayed(ctx: Context, run: model.Record, of: model.Model, cores: int, ranks: int,
             parallel: str) -> Replayed:
    scale = model.scale_for([run], of, TASK_MS)
    machine = run.prefix.parent
    words = [ctx.app("swe") + "_replay", f"record={run.prefix}", *of.words(scale),
             f"parallel={parallel}", f"machine={model.new_machine(machine)}", f"cpus={cores}"]

    def stock() -> Run:
        model.new_machine(machine)
        return ctx.stock(ctx.mpi(ranks, *words, "wait=sleep"), cores // ranks,
                         f"stock-{cores}/{ranks}-{parallel}", OMP_WAIT_POLICY="passive")

    def ours() -> Run:
        model.new_machine(machine)
        invade = [str(ctx.build / "invade"), f"--emulate-cores={cores}", "--"]
        return ctx.run(f"invade-{cores}/{ranks}-{parallel}", [*invade, *ctx.mpi(ranks, *words)], {})

    turns = ctx.turns(stock, ours)
    same_checksum([r for turn in turns for r in turn])
    limits = model.limits(run, of, scale, cores)
    medians = [statistics.median(seconds(t[i]) for t in turns) for i in (0, 1)]
    return Replayed(cores, ranks, parallel, *medians, median_ratio(turns, 1, 0), *limits,
                    words, of.columns(scale))


def emulated(ctx: Context, directory: Path, shapes=EMULATED_SHAPES, parallels=PARALLELS,
             scale: float = 1) -> tuple[list[Replayed], list[str]]:
    """And notes on the model."""
    words = [*EMULATED, f"time.steps={max(4, round(100 * scale))}"]
    of = model.measure(ctx, [*MODEL, f"time.steps={max(20, round(100 * scale))}"],
                       directory / "alone", 3 if scale == 1 else 1)
    records = {n: model.record(ctx, n, words, directory / f"ranks{n}")
               for n in sorted({ranks for _, ranks in shapes})}
    rows = [replayed(ctx, records[ranks], of, cores, ranks, parallel)
            for cores, ranks in shapes for parallel in parallels]
    scales = ", ".join(f"{model.scale_for([r], of, TASK_MS):.0f} with {n} ranks"
                       for n, r in records.items())
    return rows, [f"model, measured here: {of.text()}", f"times {scales}",
                  model.kernels(ctx, directory)]


# --- figure 8


def picture_of_cores(ctx: Context, ranks: int, words: list[str], file: Path,
                     emulate: int = 0) -> None:
    """The cores of each process over time, from a trace of a run under invade, which stays."""
    trace = file.with_suffix(".trace")
    options = [f"--trace={trace}"] + ([f"--emulate-cores={emulate}"] if emulate else [])
    ctx.run("traced", [str(ctx.build / "invade"), *options, "--", *ctx.mpi(ranks, *words)], {})
    draw_trace(ctx, trace, file)


def draw_trace(ctx: Context, trace: Path, file: Path) -> None:
    done = subprocess.run([str(ctx.build / "invade-trace"), "picture", "-o", str(file), str(trace)],
                          check=False, capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"invade-trace: {done.stderr[-500:]}")
    print(f"  {file}", flush=True)
