# SPDX-License-Identifier: GPL-3.0-or-later
"""Static loops on cores of unlike speed: the time over what the cores deliver together.

A co-runner, a program that only computes, is bound to one of two cores, and so halves it: the
limit is the time of the same work on a core alone, divided by 1.5.  One rank, whose team has as
many implicit tasks as cores, and two ranks, in default settings; and one rank with 16 tasks.
Emulated: four cores of full speed and four of 0.6, on which work sleeps, for one rank and for two;
the limit is arithmetic.
"""

from __future__ import annotations

import os
import statistics
import sys

from common import BenchError, Context, Figure, Programs, Run
from loads import units_per_ms

GOAL = 1.05
WORK_MS, ITERATIONS = 60, 20
CORUNNER = ("import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\n"
            "while True: pass")
SHARE = 1.5  # cores that a co-runner on one of two leaves
MACHINE, SPEED = "4x1.0,4x0.6", 4 * 1.0 + 4 * 0.6
EMULATED_MS, EMULATED_ITERATIONS = 640, 10
KINDS = ("co-runner", "emulated")


def command(ctx: Context, ranks: int, work_ms: float, iterations: int, units: str,
            *more: str) -> list[str]:
    return ctx.mpi(ranks, ctx.app("imbalance"), "--loads=1", f"--units-per-ms={units}",
                   f"--work-ms={work_ms}", f"--iterations={iterations}", *more)


def beside_a_corunner(ctx: Context, core: int, run) -> Run:
    with Programs() as programs:
        corunner = programs.start([sys.executable, "-c", CORUNNER, str(core)], {})
        done = run()
        if corunner.poll() is not None:
            raise BenchError(f"the co-runner has ended: exit code {corunner.returncode}")
        return done


def corunner_figure(ctx: Context, units: str) -> Figure:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        raise BenchError("slow-core: this machine has one core")
    bound = ["taskset", "-c", str(cpus[0])]
    one, two = (command(ctx, ranks, WORK_MS, ITERATIONS, units) for ranks in (1, 2))
    cores = f"--cores={cpus[0]},{cpus[1]}"

    def managed(name: str, program: list[str], *options: str):
        words = [str(ctx.build / "invade"), cores, *options, "--", *program]
        return lambda: beside_a_corunner(ctx, cpus[1], lambda: ctx.run(name, words, {}))

    turns = ctx.turns(lambda: ctx.stock([*bound, *one], variant="one core"),
                      managed("one rank", one), managed("two ranks", two),
                      managed("16 tasks", one, "--threads=16"),
                      lambda: beside_a_corunner(ctx, cpus[1], lambda: ctx.stock(
                          one, threads=2, variant="stock")))

    def over_limit(which: int) -> float:
        return statistics.median(turn[which].values["seconds"] * SHARE / turn[0].values["seconds"]
                                 for turn in turns)

    rank, ranks, tasks, stock = (over_limit(which) for which in (1, 2, 3, 4))
    return Figure("slow-core co-runner", max(rank, ranks), "x the time of what is left", "<=", GOAL,
                  f"one rank {rank:.3f}, two {ranks:.3f}; one with 16 implicit tasks {tasks:.3f}; "
                  f"stock, one rank of two threads, {stock:.3f}")


def emulated_figure(ctx: Context) -> Figure:
    def managed(ranks: int):
        program = command(ctx, ranks, EMULATED_MS, EMULATED_ITERATIONS, "100", "--emulate")
        words = [str(ctx.build / "invade"), f"--emulate-cores={MACHINE}", "--", *program]
        return lambda: ctx.run(f"emulated, {ranks} ranks", words, {})

    turns = ctx.turns(managed(1), managed(2))
    limit = EMULATED_MS * EMULATED_ITERATIONS * 1e-3 / SPEED
    one, two = (statistics.median(turn[i].values["seconds"] for turn in turns) / limit
                for i in (0, 1))
    return Figure("slow-core", max(one, two), "x the work over the speed of all cores", "<=", GOAL,
                  f"{MACHINE}: one rank {one:.3f}, two {two:.3f}; limit {limit:.3f} s")


def slow_core(ctx: Context) -> list[Figure]:
    ctx.check_only(*KINDS)
    chosen = [kind for kind in KINDS if kind in ctx.only] or list(KINDS)
    figures = []
    if "co-runner" in chosen:
        figures.append(corunner_figure(ctx, units_per_ms(ctx)))
    if "emulated" in chosen:
        figures.append(emulated_figure(ctx))
    return figures
