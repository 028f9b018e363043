# SPDX-License-Identifier: GPL-3.0-or-later
"""Five tsunami simulations with different adaptivity parameters, started some time after each other
(the paper's 6.4).

Six sizes A to F, by the depth of the finest cells.  Four ways to run the five: under one resource
manager, each telling it its number of cells; one after the other, with OpenMP and all cores; all as
soon as they come, with stock OpenMP; the same with Threading Building Blocks.  Time is from the
first start to the last end, and their results are the same in all ways.

On the real cores they compute.  On 40 emulated ones their records are replayed (model.py) on
CPUs that the threads of all programs share: a thread that finds none free waits in line, and
goes to the end of it after 3 ms if another one waits.  Changes of threads and caches cost nothing
there, and waiting threads take no CPU: better than any kernel for more threads than cores
(apps/cells/machine.h).  Each cluster stands for one of 16 times as many cells: F has some 20 of
256 at its end, as a tsunami on depth 15 has of 4096, the default; the costs are measured with
such.  So a simulation alone uses little more than a third of the 40 cores, and the smaller ones
less; larger ones use more, and there is less to be gained.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from common import BenchError, Context, Programs, Run, resource_manager

from . import model

WAYS = ("sequential", "tbb", "at-once", "invasive")
SIZES = "ABCDEF"
TSUNAMI = [str(model.SCENARIOS / "tsunami.toml"), "-q", "run.parallel=loop", "time.end=3600"]
MODEL = [*TSUNAMI, "grid.max_depth=16"]
REFINE = (0.03, 0.04, 0.055, 0.075, 0.1)  # m, one for each simulation
POLICY = "makespan"


@dataclass(frozen=True)
class Machine:
    cores: int
    depths: dict[str, int]  # of the sizes
    apart_s: float
    words: tuple[str, ...] = ()
    emulated: bool = False


REAL = Machine(len(os.sched_getaffinity(0)), dict(zip(SIZES, range(11, 17))), 0.5,
               ("grid.min_depth=8",))
EMULATED = Machine(40, dict(zip(SIZES, range(6, 12))), 0.5,
                   ("grid.min_depth=5", "grid.split=256", "grid.join=128"), True)


@dataclass
class Found:
    """A size: seconds of each way in all turns, and when known the limit."""

    size: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    limit: float = 0
    model: dict[str, float] = field(default_factory=dict)

    def typical(self, way: str) -> float:
        return statistics.median(self.seconds[way])

    def over(self, way: str) -> float:
        return statistics.median(i / o for i, o in zip(self.seconds["invasive"],
                                                       self.seconds[way]))


class Study:
    """Programs of one size on one machine."""

    def __init__(self, ctx: Context, machine: Machine, size: str, scale: float, directory: Path):
        self.ctx, self.machine, self.size, self.scale = ctx, machine, size, scale
        self.directory = directory
        self.simulations = [[*TSUNAMI, *machine.words, f"grid.max_depth={machine.depths[size]}",
                             f"grid.refine={r}", f"grid.coarsen={r / 5:g}",
                             f"time.end={3600 * scale:g}"] for r in REFINE]

    def prepare(self, of: model.Model | None, factor: float) -> None:
        """Of emulated ones: records, and what they cost."""
        if of is None:
            return
        self.records = [model.record(self.ctx, 1, words, self.directory / f"{self.size}{i}")
                        for i, words in enumerate(self.simulations)]
        self.model, self.factor = of, factor

    def limit(self) -> float:
        """All work, shared out evenly.  But the first cannot use all cores, the last start late."""
        work = sum(model.work_seconds(r, self.model, self.factor) for r in self.records)
        return work / self.machine.cores

    def command(self, way: str, number: int) -> list[str]:
        suffix = "_tbb" if way == "tbb" else ""
        if not self.machine.emulated:
            extra = ["run.announce=true"] if way == "invasive" else []
            return [self.ctx.app("swe") + suffix, *self.simulations[number], *extra]
        extra = ["announce=on"] if way == "invasive" else []
        return [self.ctx.app("swe") + f"_replay{suffix}", f"record={self.records[number].prefix}",
                *self.model.words(self.factor), f"machine={self.directory / 'machine'}",
                f"cpus={self.machine.cores}", "parallel=loop", *extra]

    def environment(self, way: str) -> dict[str, str]:
        env = {} if way in ("tbb", "invasive") else {"OMP_NUM_THREADS": str(self.machine.cores)}
        if way == "at-once" or self.machine.emulated:
            env["OMP_WAIT_POLICY"] = "passive"  # more threads than cores: stock at its best
        return env

    def run_all(self, way: str, before: list[str], names: list[Path],
                programs: Programs) -> list[str]:
        """Starts the five and waits for them; their checksums.  names: by which to call them."""
        begin, sums, children = time.monotonic(), [], programs.all
        for number in range(len(REFINE)):
            if way == "sequential" and children:
                sums.append(self.ctx.checksum(way, children[-1]))
            start = begin + number * self.machine.apart_s * self.scale
            time.sleep(max(0.0, start - time.monotonic()))
            program, *words = self.command(way, number)
            if names:
                names[number].symlink_to(program)
                program = str(names[number])
            programs.piped([*before, program, *words], self.environment(way))
        left = children[-1:] if way == "sequential" else children
        return sums + [self.ctx.checksum(way, child) for child in left]

    def run(self, way: str, trace: Path | None = None) -> Run:
        if self.machine.emulated:
            model.new_machine(self.directory)
        with manager(self.ctx, self.machine, way, trace) as before, \
                tempfile.TemporaryDirectory() as links, Programs() as programs:
            names = [Path(links) / f"simulation-{i + 1}" for i in range(len(REFINE))]
            begin = time.monotonic()
            sums = self.run_all(way, before, names if trace else [], programs)
            wall = time.monotonic() - begin
        run = Run(f"{way}-{self.machine.cores}-{self.size}", wall, 0,
                  {"seconds": wall, "checksum": ":".join(sums)}, "")
        self.ctx.runs.append(run)
        return run


@contextlib.contextmanager
def manager(ctx: Context, machine: Machine, way: str, trace: Path | None = None):
    """One resource manager for the five; the words before their command."""
    if way != "invasive":
        yield []
        return
    cores = f"--emulate-cores={machine.cores}" if machine.emulated else f"--procs={len(REFINE)}"
    with resource_manager(ctx, f"--policy={POLICY}", cores) as socket:
        rmctl = [str(ctx.build / "rmctl"), f"--socket={socket}", "trace"]
        if trace:
            subprocess.run([*rmctl, "start", str(trace)], check=True, capture_output=True)
        yield [str(ctx.build / "invade"), f"--socket={socket}", "--"]
        if trace:
            subprocess.run([*rmctl, "stop"], check=True, capture_output=True)


def ways_of(ctx: Context) -> list[str]:
    chosen = [w for w in WAYS if w in ctx.only] or list(WAYS)
    ways = [w for w in WAYS if w in chosen or w == "invasive"]
    if "tbb" in ways and not Path(ctx.app("swe") + "_tbb").exists():
        ctx.say("no swe_tbb here (package libtbb-dev, and make extra-programs)")
        ways.remove("tbb")
    return ways


def costs(ctx: Context, machine: Machine, directory: Path,
          scale: float) -> tuple[model.Model, float]:
    """Of a cell, and how much longer sleeps are, which is one number for all sizes."""
    of = model.measure(ctx, [*MODEL, f"time.steps={max(20, round(200 * scale))}"],
                       directory / "alone", 3 if scale == 1 else 1)
    words = [*TSUNAMI, *machine.words, f"grid.max_depth={machine.depths['F']}", "time.end=900"]
    return of, model.scale_for([model.record(ctx, 1, words, directory / "sizes")], of)


def study(ctx: Context, machine: Machine, directory: Path, scale: float = 1,
          sizes: str = SIZES) -> tuple[list[Found], list[str]]:
    """All sizes, each in all ways, in turns; and notes on the model."""
    sizes = "".join(s for s in sizes if s in ctx.only) or sizes
    of, factor, notes = None, 1.0, []
    if machine.emulated:
        of, factor = costs(ctx, machine, directory, scale)
        notes = [f"model, measured here: {of.text()}; times {factor:.0f}",
                 model.kernels(ctx, directory)]
    found = []
    for size in sizes:
        here = Study(ctx, machine, size, scale, directory)
        here.prepare(of, factor)
        found.append(measured(ctx, here))
        if machine.emulated:
            found[-1].limit = here.limit()
            found[-1].model = of.columns(factor)
    return found, notes


def measured(ctx: Context, here: Study) -> Found:
    result, sums = Found(here.size), set()
    for _ in range(ctx.pairs):
        runs = {way: here.run(way) for way in ways_of(ctx)}
        for way, run in runs.items():
            result.seconds.setdefault(way, []).append(run.wall_s)
            sums.add(run.values["checksum"])
        if ctx.verbose:
            ctx.say("   ".join(f"{r.variant} {r.wall_s:.2f} s" for r in runs.values()))
    if len(sums) != 1 or "None" in str(sums):
        raise BenchError(f"size {here.size}: checksums differ: {sums}")
    return result
