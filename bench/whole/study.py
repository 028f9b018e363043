# SPDX-License-Identifier: GPL-3.0-or-later
"""A parameter study: five programs of changing workload, started 2 s apart (the paper's 6.4).

Four ways to run them: one after the other with all cores; all as soon as they come, stock; the
same with Threading Building Blocks; and under one rmd, by `makespan`: before every step each
announces its number of cells times the square of the part of its steps that is left, and its
scalability graph.  Time is from the first start to the last end; the programs' results are the
same in all.

On this machine's two cores they compute.  On 40 emulated cores they sleep for the modelled time, on
an emulated CPU.  What is modelled: there are 40 CPUs for the threads of all programs; a thread that
finds none free waits in line, and one that computes goes to the end of the line after 3 ms if
another one waits.  So 200 threads of five stock programs share 40 CPUs, each five times as slow.
Not modelled: changes of threads and caches cost nothing, the line is one for all CPUs, so that none
is idle while a thread waits, and threads that wait for each other take no CPU (OMP_WAIT_POLICY=
passive; in TBB they do not by themselves).  All of that is better than any kernel for
programs with more threads than cores.  What the runtimes do themselves takes real time.

A step is SERIAL of its work in one thread, and the rest in parallel: alone a program uses
half of the 40 cores, as the paper's must have, for otherwise nothing can be as much faster than
one after the other.  The limit is all core time divided by the cores, and what the first program
leaves idle while it is alone.  --only takes machines (real, emulated) and ways; --scale takes a
part of the steps and of the time between the starts.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from common import TOP, BenchError, Context, Figure, Programs, Run, resource_manager

PROGRAMS = 5
APART_S = 2.0
SERIAL = 0.025
PEAKS = (0.2, 0.35, 0.5, 0.65, 0.8)
EMULATED = {"cores": 40, "steps": 200, "cells": 4000, "cell-us": 400, "least": 0.3}
REAL = {"cores": 2, "steps": 9000, "cells": 4000, "least": 0.3}
MACHINES = (("real", REAL, 1.0), ("emulated", EMULATED, 0.55))
WAYS = ("sequential", "at-once", "tbb", "invasive")


def tbb_program(ctx: Context) -> str:
    """Compiled on first use: Debian's libtbb-dev."""
    ctx.work.mkdir(parents=True, exist_ok=True)
    source, binary = TOP / "apps" / "cells" / "cells_tbb.cc", ctx.work / "cells_tbb"
    sources = (source, source.with_name("cells.h"), source.with_name("machine.h"))
    if not binary.exists() or binary.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        done = subprocess.run(["g++", "-std=c++17", "-O2", str(source), "-o", str(binary), "-ltbb"],
                              capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            raise BenchError(f"{source.name}: {done.stderr[-500:]} (package libtbb-dev)")
    return str(binary)


class Study:
    """One machine, real or emulated, and the programs on it."""

    def __init__(self, ctx: Context, shape: dict, directory: Path):
        self.ctx, self.shape, self.directory = ctx, shape, directory
        self.cores = shape["cores"]
        self.scale = getattr(ctx, "scale", 1)

    def words(self, number: int) -> list[str]:
        words = [f"{k}={self.shape[k]}" for k in ("cells", "least", "cell-us") if k in self.shape]
        words += [f"steps={round(self.shape['steps'] * self.scale)}"]
        words += [f"peak={PEAKS[number]}", f"serial={SERIAL}"]
        if "cell-us" in self.shape:
            machine = self.directory / "machine"
            words += [f"machine={machine}", f"cpus={self.cores}"]
        return words

    def programs(self, way: str, socket: str) -> tuple[list[list[str]], dict[str, str]]:
        openmp, env = self.ctx.app("cells"), {"OMP_NUM_THREADS": str(self.cores)}
        if way == "tbb":
            openmp, env = tbb_program(self.ctx), {}
        commands = [[openmp, *self.words(i)] for i in range(PROGRAMS)]
        if way == "at-once":
            env["OMP_WAIT_POLICY"] = "passive"  # more threads than cores: stock at its best
        if way == "invasive":
            invade = [str(self.ctx.build / "invade"), f"--socket={socket}", "--"]
            commands, env = [[*invade, *c, "invade=nonblocking-left"] for c in commands], {}
        if "cell-us" in self.shape:
            env["OMP_WAIT_POLICY"] = "passive"
        return commands, env

    def run_all(self, way: str, socket: str = "") -> tuple[float, list[str]]:
        commands, env = self.programs(way, socket)
        begin = time.monotonic()
        with Programs() as programs:
            if way == "sequential":
                sums = [self.ctx.checksum(way, programs.piped(c, env)) for c in commands]
                return time.monotonic() - begin, sums
            for i, command in enumerate(commands):
                time.sleep(max(0.0, begin + i * APART_S * self.scale - time.monotonic()))
                programs.piped(command, env)
            sums = [self.ctx.checksum(way, child) for child in programs.all]
            return time.monotonic() - begin, sums

    def under_rmd(self, way: str) -> tuple[float, list[str]]:
        machine = (f"--emulate-cores={self.cores}" if "cell-us" in self.shape
                   else f"--procs={PROGRAMS}")
        with resource_manager(self.ctx, "--policy=makespan", machine) as socket:
            return self.run_all(way, socket)

    def run(self, way: str) -> Run:
        if "cell-us" in self.shape:
            (self.directory / "machine").write_bytes(bytes(1 << 16))
        if way == "tbb":
            tbb_program(self.ctx)
        wall, sums = self.under_rmd(way) if way == "invasive" else self.run_all(way)
        run = Run(f"{way}-{self.cores}", wall, 0, {"seconds": wall, "checksum": ":".join(sums)}, "")
        self.ctx.runs.append(run)
        if self.ctx.verbose:
            self.ctx.say(f"{run.variant}: {wall:.2f} s")
        return run


def figures_of(ctx: Context, name: str, shape: dict, directory: Path,
               goal: float) -> list[Figure]:
    chosen = [w for w in WAYS if w in ctx.only] or list(WAYS)
    ways = [w for w in WAYS if w in chosen or w == "invasive"]
    study = Study(ctx, shape, directory)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    sums = set()
    for _ in range(ctx.pairs):
        for way in ways:
            run = study.run(way)
            seconds[way].append(run.values["seconds"])
            sums.add(run.values["checksum"])
    if len(sums) != 1:
        raise BenchError(f"{name}: checksums differ: {sums}")

    def over(way: str) -> float:
        return statistics.median(i / o for i, o in zip(seconds["invasive"], seconds[way]))

    text = ", ".join(f"{way} {statistics.median(seconds[way]):.1f} s" for way in ways)
    others = [way for way in ways if way != "invasive"]
    worst = max(others, key=over)
    limit = f"; limit {limit_s(shape) * study.scale:.1f} s" if "cell-us" in shape else ""
    figures = [Figure(f"{name}-worst", over(worst), f"x {worst}", "<=", 1.0,
                      f"{shape['cores']} cores: {text}{limit}")]
    if "sequential" in others:
        figures.append(Figure(name, over("sequential"), "x one after the other", "<=", goal))
    return figures


def limit_s(shape: dict) -> float:
    """Emulated, unscaled.  Of the real machine it is not known beforehand."""
    cells = shape["steps"] * shape["cells"] * (1 + shape["least"]) / 2
    all_busy = PROGRAMS * cells * shape["cell-us"] * 1e-6 * (1 + SERIAL) / shape["cores"]
    used_alone = (1 + SERIAL) / (1 + SERIAL * shape["cores"])
    return all_busy + APART_S * (1 - used_alone)


def study(ctx: Context) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        figures = []
        for name, shape, goal in MACHINES:
            if not {"real", "emulated"} & set(ctx.only) or name in ctx.only:
                figures += figures_of(ctx, "study-real" if name == "real" else "study", shape,
                                      Path(directory), goal)
        return figures
