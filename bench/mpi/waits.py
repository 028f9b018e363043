# SPDX-License-Identifier: GPL-3.0-or-later
"""What waiting costs: MPI calls with a core for each rank and with too few, and idle ranks."""

from __future__ import annotations

import math
import statistics

from common import BenchError, Context, Figure, median_ratio
from mpi_programs import Programs, libraries

CALLS = ("barrier", "allreduce", "alltoall", "ring", "ring_large")
IDLE_CALLS = ("recv", "barrier", "fence", "waitall", "test", "iprobe")
LIMIT_OF_STOCK = 1.03
IDLE_S = 5


def check(run):
    if run.values["wrong"]:
        raise BenchError(f"{run.variant}: wrong data")
    return run


def medians(turns, index: int, call: str, which: str = "us") -> float:
    return statistics.median(turn[index].values[f"{call}_{which}"] for turn in turns)


def alike(turn, call: str, which: str) -> bool:
    """Were the two cores as near to each other in all runs of the turn?  Virtual cores move, and
    a line takes 0.06 to 0.11 us there and back within one, 0.25 to 0.33 between two, and a short
    message three times as long (bench/mpi/calls.c).  Runs of more ranks than two do not say."""
    lines = [run.values.get(f"{call}_{which.removesuffix('us')}line_us", 1) for run in turn]
    return max(lines) <= 2 * min(lines)


def like_turns(turns, call: str, which: str, *runs: int):
    return [t for t in turns if alike([t[r] for r in runs], call, which)]


def like_ratio(turns, over: int, under: int, call: str, which: str = "us") -> float:
    """median_ratio of the turns that can be compared; of all when there are none."""
    chosen = like_turns(turns, call, which, over, under) or turns
    return median_ratio(chosen, over, under, f"{call}_{which}")


def enclosed_ratio(turns, call: str) -> float:
    """Ours (1) over stock before it (0) and after it (3), which cancels what drifts meanwhile."""
    def us(turn, index):
        return turn[index].values[f"{call}_us"]

    chosen = like_turns(turns, call, "us", 0, 1, 3) or turns
    return statistics.median(us(t, 1) / math.sqrt(us(t, 0) * us(t, 3)) for t in chosen)


def enough_alike(pairs: int, calls, which: str):
    """A condition for Context.turns_until: as many turns can be compared as were asked for."""
    return lambda turns: all(len(like_turns(turns, call, which, 1, 0)) >= pairs for call in calls)


def table(ctx: Context, name: str, turns, calls, variants) -> None:
    """One line a call: the medians in microseconds."""
    if ctx.verbose:
        print(f"    {name + ', us a call':<24}" + "".join(f"{v:>12}" for v in variants))
        for call in calls:
            print(f"    {call:<24}"
                  + "".join(f"{medians(turns, i, call):>12.2f}" for i in range(len(variants))),
                  flush=True)


def oversubscribed(ctx: Context, ranks: int) -> list[Figure]:
    """Stock, ours, the library's best yielding mode, and stock again.  The worst call of each
    library counts; the worst of stock against itself in the same turns says what that is worth."""
    name, calls = f"oversubscribed-{ranks}", [c for c in CALLS if not ctx.only or c in ctx.only]
    seconds = "0.2" if ranks <= 4 else "0.1"
    figures = []
    for library in libraries(ctx):
        program = Programs(ctx, library, "calls.c")
        arguments = (ranks, seconds, *calls)
        turns = ctx.turns_until(enough_alike(ctx.pairs, calls, "us"),
                                lambda p=program, a=arguments: check(p.stock(*a)),
                                lambda p=program, a=arguments: check(p.ours(*a)),
                                lambda p=program, a=arguments: check(p.yielding(*a)),
                                lambda p=program, a=arguments: check(p.stock(*a)))
        table(ctx, library.name, turns, calls, ("stock", "invade", "yielding"))

        over_stock, call = max((enclosed_ratio(turns, c), c) for c in calls)
        itself = max(max(r, 1 / r) for r in (like_ratio(turns, 3, 0, c) for c in calls))
        figures.append(Figure(f"{name}-{library.name}-stock", over_stock, "x stock", "<=",
                              LIMIT_OF_STOCK, f"{library.name}, worst against stock: {call}; "
                              f"stock against itself: {itself:.3f}"))
        over_yield, call = max((like_ratio(turns, 1, 2, c), c) for c in calls)
        figures.append(Figure(f"{name}-{library.name}-yield", over_yield, "x yielding", "<=", 2.0,
                              f"{library.name}, worst against yielding: {call}"))
        if library.name == "mpich" and ranks == 8 and "allreduce" in calls:
            figures.append(Figure(f"{name}-mpich", median_ratio(turns, 0, 1, "allreduce_us"),
                                  "x faster than stock", ">=", 500, "MPI_Allreduce of 8 bytes"))
    # The line that sums it up: how near the worst of them all is to its goal.
    parts = [f.value / f.goal if f.op == "<=" else f.goal / f.value for f in figures]
    figures.append(Figure(name, max(parts), "of what the goals allow, the worst", "<=", 1.0))
    return figures


def oversubscribed_2(ctx: Context) -> list[Figure]:
    return oversubscribed(ctx, 2)


def oversubscribed_4(ctx: Context) -> list[Figure]:
    return oversubscribed(ctx, 4)


def oversubscribed_8(ctx: Context) -> list[Figure]:
    return oversubscribed(ctx, 8)


def oversubscribed_16(ctx: Context) -> list[Figure]:
    return oversubscribed(ctx, 16)


def two_ranks(ctx: Context, calls: tuple[str, ...]) -> dict:
    """{library: turns of (stock, ours)} of two ranks on two cores.  What counts is the fastest of
    each run's batches of some milliseconds: what else runs on the machine slows the others."""
    result = {}
    for library in libraries(ctx):
        program = Programs(ctx, library, "calls.c")
        turns = ctx.turns_until(enough_alike(ctx.pairs, calls, "best_us"),
                                lambda p=program: check(p.stock(2, "0.3", *calls)),
                                lambda p=program: check(p.ours(2, "0.3", *calls)))
        table(ctx, library.name, turns, calls, ("stock", "invade"))
        result[library.name] = turns
    return result


def latency(ctx: Context) -> list[Figure]:
    """Two ranks on two cores: what interposition adds when no rank has anything to gain."""
    calls = ("pingpong", "allreduce")
    figures = []
    for name, turns in two_ranks(ctx, calls).items():
        for call in calls:
            like = like_turns(turns, call, "best_us", 1, 0)
            stock, ours = (medians(like or turns, i, call, "best_us") for i in (0, 1))
            figures.append(Figure(f"latency-{name}-{call}",
                                  like_ratio(turns, 1, 0, call, "best_us"),
                                  "x stock", "<=", 1.05,
                                  f"{name} {call}: stock {stock:.3f} us, invade {ours:.3f} us; "
                                  f"{len(like)} of {len(turns)} turns with like cores"))
    figures.append(Figure("latency", max(f.value for f in figures), "x stock", "<=", 1.05,
                          "the worst of them; limit 1.0"))
    return figures


def bandwidth(ctx: Context) -> list[Figure]:
    """A ping-pong of 1 MiB."""
    figures = []
    for name, turns in two_ranks(ctx, ("pingpong_large",)).items():
        stock, ours = (2 * 2 ** 20 / medians(turns, i, "pingpong_large", "best_us") / 1000
                       for i in (0, 1))
        figures.append(Figure(f"bandwidth-{name}",
                              like_ratio(turns, 0, 1, "pingpong_large", "best_us"),
                              "x stock", ">=", 0.98,
                              f"{name}: stock {stock:.2f} GB/s, invade {ours:.2f} GB/s"))
    figures.append(Figure("bandwidth", min(f.value for f in figures), "x stock", ">=", 0.98,
                          "the worst of them; limit 1.0"))
    return figures


def wait_cost(ctx: Context) -> list[Figure]:
    """Processor time of a rank that waits for seconds while the other computes, and sleeps."""
    calls = [c for c in IDLE_CALLS if not ctx.only or c in ctx.only]
    figures = []
    for library in libraries(ctx):
        program = Programs(ctx, library, "idle.c")
        for other in ("compute", "sleep"):
            turns = ctx.turns(lambda p=program, o=other: p.ours(2, str(IDLE_S), o, *calls))
            for call in calls:
                percent = statistics.median(t[0].values[f"{call}_percent"] for t in turns)
                figures.append(Figure(f"wait-cost-{library.name}-{other}-{call}", percent,
                                      "% of a core", "<=", 2.0))
    figures.append(Figure("wait-cost", max(f.value for f in figures), "% of a core", "<=", 2.0,
                          f"the worst of them, waits of {IDLE_S} s; stock 100 %"))
    return figures
