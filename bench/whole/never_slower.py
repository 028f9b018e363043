# SPDX-License-Identifier: GPL-3.0-or-later
"""What `invade` before a command gains: whole programs in default settings, over the best that
stock can do.

Each program has several stock shapes.  All are run once or twice; the fastest then runs beside the
managed one, and beside itself, in turns, and so does the fastest of those with as many ranks as the
managed one: that ratio is what `invade` before a command changes.  A ratio is of the wall clock of
the whole command, with the start and end of MPI and of the resource manager in it.  Results are
compared in each turn.

sweep is one of the rows, with a goal of its own.  learned is the same with --learn, after the runs
that it needs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import dataclass

import own_programs
from common import BenchError, Context, Figure, NoEnd, Run
from whole_programs import Program, Shape

try:
    import packages
except ModuleNotFoundError as error:  # there is no such module
    if error.name != "packages":
        raise
    packages = None

LEAST_S = 1.0  # a run; what takes less says more of starts than of programs
TRIALS = 2  # of each stock shape, to find the best
LEARNING = 6  # runs of invade --learn: the default team and two others, each of them twice
HOPELESS = 4  # times the best so far: a shape that takes longer is not waited for
GOAL_EACH, GOAL_MEAN, GOAL_SWEEP = 1.03, 0.90, 0.92


@dataclass
class Row:
    """A program in one shape under invade, over the best stock shape."""

    program: str
    shape: str
    stock: str  # the best shape
    stock_s: float
    ours_s: float
    ratios: list[float]  # ours over stock, by turns
    stock_ratios: list[float]  # stock over itself
    alike: float | None  # over stock's best shape with as many ranks; None: not to be waited for
    cpu: float  # CPU time, ours over stock's
    seconds: float | None  # the program's own time, ours over stock's

    @property
    def name(self) -> str:
        return f"{self.program}-{self.shape}"

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def line(self) -> str:
        own = "" if self.seconds is None else f", its own time {self.seconds:.3f}"
        alike = "" if self.alike is None else f"; {self.alike:.3f} x stock with as many ranks"
        short = "" if self.stock_s >= LEAST_S else "; TOO SHORT"
        return (f"{self.name}: {spread(self.ratios)} x stock {self.stock}, "
                f"{self.ours_s:.2f} over {self.stock_s:.2f} s; stock over itself "
                f"{spread(self.stock_ratios)}{alike}; CPU time {self.cpu:.3f}{own}{short}")


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def all_programs() -> list[Program]:
    return [*own_programs.PROGRAMS, *(packages.PROGRAMS if packages else [])]


def run_stock(ctx: Context, program: Program, shape: Shape, variant: str = "") -> Run:
    return ctx.run(variant or f"{program.name}-stock-{shape.name}", shape.command, dict(shape.env))


def run_managed(ctx: Context, program: Program, shape: Shape, options: tuple = ()) -> Run:
    return ctx.run(f"{program.name}-invade-{shape.name}",
                   [str(ctx.build / "invade"), *options, "--", *shape.command], dict(shape.env))


def ranks(shape: Shape) -> str:
    return shape.name.partition("x")[0]


def find_best(ctx: Context, program: Program) -> tuple[Shape, dict[str, Shape]]:
    """The stock shape with the shortest run, and that for each number of ranks.  Shapes with more
    ranks than cores may take minutes: they are ended as soon as they cannot be the best."""
    best: tuple[Shape, Run] | None = None
    best_of: dict[str, tuple[float, Shape]] = {}
    patience_s, first = ctx.timeout_s, None
    try:
        for shape in program.shapes_stock * TRIALS:
            if best:
                ctx.timeout_s = min(patience_s, max(2.0, HOPELESS * best[1].wall_s))
            try:
                run = run_stock(ctx, program, shape)
            except NoEnd:
                ctx.say(f"{program.name}: stock {shape.name}: more than {ctx.timeout_s:.1f} s")
                continue
            first = first or run
            program.same(first, run)
            known = best_of.get(ranks(shape))
            if not known or run.wall_s < known[0]:
                best_of[ranks(shape)] = run.wall_s, shape
            if not best or run.wall_s < best[1].wall_s:
                best = shape, run
    finally:
        ctx.timeout_s = patience_s
    if not best:
        raise BenchError(f"{program.name}: no stock shape ended in {patience_s:g} s")
    ctx.say(f"{program.name}: best stock shape {best[0].name}, {best[1].wall_s:.2f} s")
    return best[0], {name: shape for name, (_, shape) in best_of.items()}


def row(ctx: Context, program: Program, shape: Shape, best: Shape, best_of: dict[str, Shape],
        options: tuple = ()) -> Row:
    same = best if ranks(best) == ranks(shape) else best_of.get(ranks(shape))
    runs = [lambda: run_stock(ctx, program, best),
            lambda: run_managed(ctx, program, shape, options),
            lambda: run_stock(ctx, program, best, f"{program.name}-stock-again")]
    if same and same is not best:
        runs.append(lambda: run_stock(ctx, program, same))
    all_turns = ctx.turns(*runs)
    turns = [turn[:3] for turn in all_turns]
    for turn in all_turns:
        for run in turn[1:]:
            program.same(turns[0][0], run)
    # A machine that becomes busy in a turn meets what is run last: stock is taken from both sides.
    pairs = [((a.wall_s + c.wall_s) / 2, b.wall_s) for a, b, c in turns]
    alike = None if not same else [ours / stock for stock, ours in pairs] if same is best else [
        turn[1].wall_s / turn[3].wall_s for turn in all_turns]
    inner = [[program.values(run).get("seconds") for run in turn[:2]] for turn in turns]
    return Row(program.name, shape.name, best.name,
               statistics.median(stock for stock, _ in pairs),
               statistics.median(ours for _, ours in pairs),
               [ours / stock for stock, ours in pairs],
               [c.wall_s / a.wall_s for a, _, c in turns],
               statistics.median(alike) if alike else None,
               statistics.median(2 * b.cpu_s / (a.cpu_s + c.cpu_s) for a, b, c in turns),
               statistics.median(b / a for a, b in inner) if all(map(all, inner)) else None)


def rows_of(ctx: Context, programs: list[Program],
            learn: str = "") -> tuple[list[Row], list[str], list[str]]:
    """The rows, what could not be had, and what failed: the other programs are measured all the
    same.  learn: a file; shapes with a number of threads are left out then."""
    options = (f"--learn={learn}",) if learn else ()
    rows, missing, failed = [], [], []
    for program in programs:
        try:
            program.install(ctx)
        except BenchError as error:
            missing.append(f"without {program.name}: {str(error).splitlines()[0]}")
            print(f"    {missing[-1]}", file=sys.stderr)
            continue
        try:
            best, best_of = find_best(ctx, program)
            for shape in program.managed:
                if learn and shape.env:
                    continue
                for _ in range(LEARNING if learn else 0):
                    run_managed(ctx, program, shape, options)
                rows.append(row(ctx, program, shape, best, best_of, options))
                ctx.say(rows[-1].line())
        except BenchError as error:
            failed.append(f"{program.name} failed: " + str(error).partition("\n")[0])
            print(f"    {failed[-1]}", file=sys.stderr)
    if not rows:
        raise BenchError("; ".join([*missing, *failed]) or "no programs")
    return rows, missing, failed


def chosen(ctx: Context, known: list[Program]) -> list[Program]:
    ctx.check_only(*(program.name for program in known))
    return [p for p in known if not ctx.only or p.name in ctx.only]


def figures(name: str, rows: list[Row], missing: list[str], failed: list[str]) -> list[Figure]:
    worst = max(rows, key=lambda r: r.ratio)
    mean = statistics.geometric_mean(r.ratio for r in rows)
    alike = [r for r in rows if r.alike]
    worst_alike = max(alike, key=lambda r: r.alike, default=None)
    of_alike = [] if not worst_alike else [
        Figure(f"{name}-alike", worst_alike.alike,
               f"x stock's best with as many ranks, the worst ({worst_alike.name})", "<=",
               GOAL_EACH, f"{sum(r.alike <= GOAL_EACH for r in alike)} of {len(alike)} rows")]
    note = "; ".join([f"{len(rows)} rows", *missing])
    not_measured = [Figure(f"{name}-failed", len(failed), "programs", "<=", 0, "; ".join(failed))]
    extra = (not_measured if failed else []) + of_alike
    return [Figure(f"{name}-{r.name}", r.ratio, f"x stock's best ({r.stock})", "<=",
                   GOAL_EACH, r.line()) for r in rows] + extra + [
        Figure(f"{name}-mean", mean, "x stock's best, geometric mean", "<=", GOAL_MEAN, note),
        Figure(name, worst.ratio, f"x stock's best, the worst ({worst.name})", "<=", GOAL_EACH)]


def never_slower(ctx: Context) -> list[Figure]:
    return figures("never-slower", *rows_of(ctx, chosen(ctx, all_programs())))


def learned(ctx: Context) -> list[Figure]:
    programs = chosen(ctx, own_programs.PROGRAMS)
    with tempfile.TemporaryDirectory() as folder:
        return figures("learned", *rows_of(ctx, programs, f"{folder}/learnt.json"))


def sweep(ctx: Context) -> list[Figure]:
    ctx.check_only()
    program = own_programs.SWEEP
    program.install(ctx)
    best, best_of = find_best(ctx, program)
    found = row(ctx, program, program.managed[-1], best, best_of)
    return [Figure("sweep", found.ratio, f"x stock's best ({best.name})", "<=", GOAL_SWEEP,
                   found.line())]
