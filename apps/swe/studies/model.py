# SPDX-License-Identifier: GPL-3.0-or-later
"""What a simulation costs, measured from the real program, and what that says of other machines.

The model is three numbers: ns a cell of a time step (of one stage), and of an adaption what threads
share and what one does.  They are from runs of `swe` with one rank and one thread, the record of
which (recording.h) says how long the steps and the adaptions of each grid took.  Replays
(replay.cc) sleep for so long, times a scale which makes a task as long as TASK_MS on the mean.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

from common import BenchError, Context

TASK_MS = 4.0  # many times what a sleep is late by when 40 of them end on two cores
SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"


@dataclass
class Stretch:
    """Steps with one grid, and the adaption after them, if there is one: one that changes nothing
    has no sweeps, and takes its time all the same."""

    clusters: list[int]
    steps: int = 0
    seconds: float = 0
    adapts: bool = False
    sweeps: int = 0
    adapting: float = 0
    serial: float = 0

    @property
    def cells(self) -> int:
        return sum(self.clusters)


@dataclass
class Record:
    """The work of all ranks of a run."""

    prefix: Path
    stages: int
    ranks: list[list[Stretch]] = field(repr=False)

    def moments(self):
        """The stretches of all ranks that go on at the same time."""
        return zip(*self.ranks)


@dataclass(frozen=True)
class Model:
    cell_ns: float
    adaption_ns: float
    serial_ns: float

    def words(self, scale: float) -> list[str]:
        return [f"ns-per-cell={self.cell_ns:.4g}", f"adaption-ns={self.adaption_ns:.4g}",
                f"serial-ns={self.serial_ns:.4g}", f"scale={scale:.4g}"]

    def columns(self, scale: float) -> dict[str, float]:
        """For a table, so that its seconds can be worked out again."""
        return {"model ns/cell": self.cell_ns, "model ns/cell adaption": self.adaption_ns,
                "model ns/cell serial": self.serial_ns, "model times": scale}

    def text(self) -> str:
        return (f"{self.cell_ns:.1f} ns a cell and step, {self.adaption_ns:.1f} ns a cell and "
                f"adaption, {self.serial_ns:.2f} of it serial" if self.adaption_ns else
                f"{self.cell_ns:.1f} ns a cell and step")


def read_rank(file: Path) -> tuple[int, list[Stretch]]:
    lines = file.read_text().splitlines()
    if len(lines) < 3 or lines[0] != "swe-record 1" or lines[-1] != "end":
        raise BenchError(f"{file}: no record of swe, or cut off")
    stretches: list[Stretch] = []
    for line in lines[2:-1]:
        kind, *words = line.split()
        if kind == "clusters":
            stretches.append(Stretch([int(w) for w in words]))
        elif kind == "steps":
            stretches[-1].steps, stretches[-1].seconds = int(words[0]), float(words[2])
        else:
            _, sweeps, _, seconds, _, serial = words
            stretches[-1].adapts, stretches[-1].sweeps = True, int(sweeps)
            stretches[-1].adapting, stretches[-1].serial = float(seconds), float(serial)
    return int(lines[1].split()[5]), stretches


def read_record(prefix: Path, ranks: int) -> Record:
    files = [read_rank(Path(f"{prefix}.{rank}")) for rank in range(ranks)]
    return Record(prefix, files[0][0], [stretches for _, stretches in files])


def record(ctx: Context, ranks: int, words: list[str], prefix: Path) -> Record:
    """Runs the simulation; how long it takes says nothing, more ranks than cores do not matter."""
    run = [str(ctx.build / "invade"), "--"] if ranks > 1 else []
    command = [*run, *ctx.mpi(ranks, ctx.app("swe"), *words, f"run.record={prefix}")]
    ctx.run(f"record-{ranks}", command, {"OMP_NUM_THREADS": "1"})
    return read_record(prefix, ranks)


def measured(alone: Record) -> Model:
    """From a record with one rank and one thread."""
    stretches = alone.ranks[0]
    cell_steps = sum(s.cells * s.steps for s in stretches) * alone.stages
    adapted = sum(s.cells for s in stretches if s.adapts) or 1
    adapting, serial = (sum(s.adapting for s in stretches), sum(s.serial for s in stretches))
    return Model(1e9 * sum(s.seconds for s in stretches) / cell_steps,
                 1e9 * (adapting - serial) / adapted, 1e9 * serial / adapted)


def measure(ctx: Context, words: list[str], prefix: Path, runs: int = 3) -> Model:
    """The median of some runs; of fewer than three the quicker one."""
    models = [measured(record(ctx, 1, words, prefix)) for _ in range(runs)]
    return min(models, key=lambda m: m.cell_ns) if runs < 3 else Model(
        *(statistics.median(getattr(m, name) for m in models)
          for name in ("cell_ns", "adaption_ns", "serial_ns")))


def kernels(ctx: Context, directory: Path) -> str:
    """The two Riemann solvers on a uniform grid, for the reader."""
    words = [str(SCENARIOS / "dam_break.toml"), "-q", "grid.min_depth=14", "grid.max_depth=14",
             "grid.every=100000", "time.steps=40"]
    texts = []
    for flux in ("rusanov", "augmented"):
        model = measure(ctx, [*words, f"solver.flux={flux}"], directory / "kernel", 2)
        texts.append(f"{flux} {model.cell_ns:.1f}")
    return f"order 0 on a uniform grid, ns a cell and step: {', '.join(texts)}"


def scale_for(records: list[Record], model: Model, task_ms: float = TASK_MS) -> float:
    """That makes a task so long on the mean."""
    cells = [s.cells for r in records for rank in r.ranks for s in rank]
    clusters = [len(s.clusters) for r in records for rank in r.ranks for s in rank]
    return task_ms * 1e6 / (model.cell_ns * sum(cells) / sum(clusters))


def costs(stretch: Stretch, stages: int, model: Model, scale: float) -> tuple[float, float]:
    """Seconds of a core: what threads share, and what one does."""
    shared = stretch.cells * (stretch.steps * stages * model.cell_ns +
                              stretch.adapts * model.adaption_ns)
    return shared * scale * 1e-9, stretch.adapts * stretch.cells * model.serial_ns * scale * 1e-9


def whole(clusters: list[int], cores: int) -> int:
    """Cells of one core at least, when a core that has begun a cluster ends it: of the k * cores
    + 1 largest ones one core has k + 1, and at best those are the smallest of them."""
    sizes = sorted(clusters, reverse=True)
    return max(sum(sizes[last - last // cores:last + 1]) for last in range(0, len(sizes), cores))


def least(moment: tuple[Stretch, ...], stages: int, model: Model, scale: float,
          cores: float, ended: bool = False) -> float:
    """Seconds of these ranks on so many cores, if the cores were wherever there is work: it is all
    shared out, but a cluster, or the serial part of an adaption, is one core's.  A core may leave
    one for another and come back, as a kernel's threads would, or it has `ended` it before."""
    cells, largest = sum(s.cells for s in moment), max(max(s.clusters) for s in moment)
    if ended:
        largest = whole([c for s in moment for c in s.clusters], int(cores))
    steps = moment[0].steps * stages * model.cell_ns * max(cells / cores, largest)
    adapting = 0.0
    if moment[0].adapts:
        alone = max(s.cells * model.serial_ns + max(s.clusters) * model.adaption_ns for s in moment)
        adapting = max(alone, cells * (model.adaption_ns + model.serial_ns) / cores,
                       largest * model.adaption_ns)
    return (steps + adapting) * scale * 1e-9


def limits(run: Record, model: Model, scale: float, cores: int) -> tuple[float, float, float]:
    """Seconds on so many cores at least: when each rank has its share for good, and all wait for
    the slowest in each step; when cores move; and when they end each cluster before."""
    share = cores / len(run.ranks)
    fixed = sum(max(least((s,), run.stages, model, scale, share) for s in moment)
                for moment in run.moments())
    moved, ended = (sum(least(moment, run.stages, model, scale, cores, ended)
                        for moment in run.moments()) for ended in (False, True))
    return fixed, moved, ended


def new_machine(directory: Path) -> Path:
    """For machine= of replays (apps/cells/machine.h): no thread is on it."""
    file = directory / "machine"
    file.write_bytes(bytes(1 << 16))
    return file


def work_seconds(run: Record, model: Model, scale: float) -> float:
    return sum(sum(costs(s, run.stages, model, scale)) for rank in run.ranks for s in rank)
