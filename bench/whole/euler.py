# SPDX-License-Identifier: GPL-3.0-or-later
"""Gas flows with enclave tasks (apps/euler) as benchmarks with goals.

euler: order 6 in three dimensions on three levels, where the grid follows a sphere in each step.
On this machine's cores two ranks, enclaves over loops, both managed.  On 40 emulated cores
(apps/cells/machine.h) four ranks, managed and with enclaves, over stock ranks of one thread, the
paper's comparison of codes with and without threads.

euler-shared: one process on 40 emulated cores, enclaves over the paper's loops, which go over the
cells of one level after the other and do cells where levels meet one by one (subgrids); and over
plain loops over all cells, which the paper does not have.

Emulated cells sleep; a predictor and a corrector take as long as measured here, times what brings
a predictor to PREDICTOR_MS: shorter sleeps would measure the sleeping.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from common import TOP, BenchError, Context, Figure, Run, median_ratio, same_checksum
from studies import model

PULSE = [str(TOP / "apps/euler/scenarios/pulse.toml"), "-q", "domain.dimensions=3",
         "domain.border=periodic", "scenario.velocity=1", "solver.order=6", "time.end=1"]
LEVELS = [*PULSE, "grid.min_level=1", "grid.max_level=3", "grid.wander=0.01", "time.steps=6"]
SHARED = [*PULSE, "grid.min_level=2", "grid.max_level=3", "grid.wander=0.01", "time.steps=6"]
SMALL = [*PULSE, "grid.min_level=1", "grid.max_level=1", "time.steps=20"]
PREDICTOR_MS = 3.0
CORES = 40
LOOK_US = 50  # ranks that sleep must not spin in waits


class Emulation:
    """Runs on an emulated machine, with measured times of the kernels."""

    def __init__(self, ctx: Context, directory: Path):
        self.ctx, self.directory = ctx, directory
        alone = [ctx.stock([ctx.app("euler"), *SMALL], 1, "kernels") for _ in range(3)]
        self.predictor_us, self.corrector_us = (
            statistics.median(run.values[name] for run in alone)
            for name in ("predictor-us", "corrector-us"))
        self.scale = PREDICTOR_MS * 1e3 / self.predictor_us

    def text(self) -> str:
        return (f"kernels, measured here: predictor {self.predictor_us:.0f} us, faces and "
                f"corrector {self.corrector_us:.0f} us; times {self.scale:.1f}")

    def words(self, ranks: int, variant: str) -> list[str]:
        grid = LEVELS if ranks > 1 else SHARED
        return [self.ctx.app("euler"), *grid, f"run.variant={variant}",
                f"emulate.predictor_us={self.predictor_us * self.scale:.1f}",
                f"emulate.corrector_us={self.corrector_us * self.scale:.1f}",
                f"emulate.machine={model.new_machine(self.directory)}", f"emulate.cpus={CORES}"]

    def limit(self, run: Run) -> float:
        """Seconds: all cores busy with what each step does, without the first and last half."""
        cells = run.values["cell-steps"] - run.values["cells"]
        return cells * (self.predictor_us + self.corrector_us) * self.scale * 1e-6 / CORES

    def start(self, ranks: int, words: list[str]) -> list[str]:
        return self.ctx.mpi(ranks, *words) if ranks > 1 else words

    def stock(self, ranks: int, threads: int, variant: str) -> Run:
        words = [*self.words(ranks, variant), f"emulate.look_us={LOOK_US}"]
        return self.ctx.stock(self.start(ranks, words), threads,
                              f"stock-{ranks}x{threads}-{variant}", OMP_WAIT_POLICY="passive")

    def ours(self, ranks: int, variant: str) -> Run:
        command = [str(self.ctx.build / "invade"), f"--emulate-cores={CORES}", "--",
                   *self.start(ranks, self.words(ranks, variant))]
        return self.ctx.run(f"invade-{ranks}-{variant}", command, {})


def needs(ctx: Context) -> None:
    if not Path(ctx.app("euler")).exists():
        raise BenchError("euler is not built: packages libtomlplusplus-dev, zlib1g-dev")
    ctx.timeout_s = max(ctx.timeout_s, 600)


def seconds(turns, which: int) -> float:
    return statistics.median(turn[which].values["seconds"] for turn in turns)


def same(turns) -> None:
    same_checksum([run for turn in turns for run in turn])


def real(ctx: Context) -> list[Figure]:
    def run(variant: str) -> Run:
        return ctx.invade(ctx.mpi(2, ctx.app("euler"), *LEVELS, f"run.variant={variant}"),
                          variant=f"invade-{variant}")

    turns = ctx.turns(lambda: run("none"), lambda: run("skeleton-first"),
                      lambda: run("arithmetic-aware"))
    same(turns)
    note = (f"2 ranks on this machine's cores, managed: loops {seconds(turns, 0):.2f} s, "
            f"skeleton first {seconds(turns, 1):.2f}, arithmetic-aware {seconds(turns, 2):.2f}")
    unit = "x loops, both managed"
    return [Figure("euler-aware", median_ratio(turns, 2, 0), unit, "<=", 0.9, note),
            Figure("euler", median_ratio(turns, 1, 0), unit, "<=", 0.9)]


def many_cores(emulation: Emulation) -> list[Figure]:
    turns = emulation.ctx.turns(lambda: emulation.stock(4, 1, "none"),
                                lambda: emulation.stock(4, CORES // 4, "none"),
                                lambda: emulation.ours(4, "none"),
                                lambda: emulation.ours(4, "skeleton-first"))
    same(turns)
    note = (f"4 ranks, {CORES} emulated cores: stock with one thread a rank "
            f"{seconds(turns, 0):.2f} s, with {CORES // 4} {seconds(turns, 1):.2f}; ours, loops "
            f"{seconds(turns, 2):.2f}, skeleton first {seconds(turns, 3):.2f}; work / cores "
            f"{emulation.limit(turns[0][3]):.2f}")
    return [Figure("euler-40-loops", median_ratio(turns, 3, 2), "x loops, both managed", "<=", 0.9,
                   note),
            Figure("euler-40", median_ratio(turns, 3, 0), "x stock, one thread a rank", "<=",
                   0.33)]


def euler(ctx: Context) -> list[Figure]:
    ctx.check_only("real", "emulated")
    needs(ctx)
    figures = []
    with tempfile.TemporaryDirectory() as directory:
        if not ctx.only or "emulated" in ctx.only:
            emulation = Emulation(ctx, Path(directory))
            print(f"    {emulation.text()}", flush=True)
            figures += many_cores(emulation)
        if not ctx.only or "real" in ctx.only:
            figures += real(ctx)
    return figures


def euler_shared(ctx: Context) -> list[Figure]:
    needs(ctx)
    with tempfile.TemporaryDirectory() as directory:
        emulation = Emulation(ctx, Path(directory))
        print(f"    {emulation.text()}", flush=True)
        turns = ctx.turns(lambda: emulation.stock(1, CORES, "subgrids"),
                          lambda: emulation.stock(1, CORES, "none"),
                          lambda: emulation.stock(1, CORES, "skeleton-first"),
                          lambda: emulation.ours(1, "skeleton-first"))
    same(turns)
    note = (f"one process, {CORES} emulated cores: the paper's loops {seconds(turns, 0):.2f} s, "
            f"plain loops {seconds(turns, 1):.2f}, enclaves stock {seconds(turns, 2):.2f}, ours "
            f"{seconds(turns, 3):.2f}; work / cores {emulation.limit(turns[0][3]):.2f}")
    return [Figure("euler-shared-plain", median_ratio(turns, 3, 1), "x plain loops over all cells",
                   "<=", 1.0, note),
            Figure("euler-shared", median_ratio(turns, 3, 0), "x the paper's loops", "<=", 0.5)]
