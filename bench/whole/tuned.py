# SPDX-License-Identifier: GPL-3.0-or-later
"""A command under `invade` in default settings, over stock in the best of some settings by hand.

Stock in default settings is shown.  All runs have the same result, or there is no figure.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from common import BenchError, Context, Figure, Run, median_wall_ratio, quickest

CLOSE = 1.25  # settings that are so close to the best in one run are run in each turn
LIMITED = 'timeout "$@"; end=$?; [ $end = 124 ] || exit $end'
DEFAULT = "default"


def hand_set(openmp: int, blas: int = 0) -> dict[str, str]:
    """So many threads of OpenMP; of OpenBLAS as many, or `blas`."""
    env = {"OMP_NUM_THREADS": str(openmp)}
    return {**env, "OPENBLAS_NUM_THREADS": str(blas)} if blas else env


@dataclass
class Contest:
    """settings: environments by name.  result: what has to be equal, or agree by `same`."""

    ctx: Context
    name: str
    command: list[str]
    settings: dict[str, dict[str, str]]
    goal: float
    result: Callable[[Run], object]
    same: Callable[[object, object], bool] = lambda one, other: one == other
    env: dict[str, str] = field(default_factory=dict)  # of all runs
    limit_s: int = 30  # for stock
    reference: object = None

    def check(self, run: Run) -> Run:
        result = self.result(run)
        if self.reference is None:
            self.reference = result
        if not result or not self.same(self.reference, result):
            raise BenchError(f"{self.name}: {run.variant} has the result {result}, "
                             f"a run before {self.reference}\n{run.output[-2000:]}")
        return run

    def stock(self, setting: str) -> Run:
        """Ended after limit_s: a run that took so long has no result."""
        limited = ["sh", "-c", LIMITED, "sh", str(self.limit_s), *self.command]
        run = self.ctx.run(setting, limited, {**self.env, **self.settings.get(setting, {})},
                           says_it=False)
        return run if run.wall_s >= self.limit_s else self.check(run)

    def ours(self) -> Run:
        return self.check(self.ctx.invade(self.command, **self.env))

    def figure(self) -> Figure:
        once = {setting: self.stock(setting).wall_s for setting in (*self.settings, DEFAULT)}
        best_s = min(once[setting] for setting in self.settings)
        if best_s >= self.limit_s:
            raise BenchError(f"{self.name}: no setting ends within {self.limit_s} s")
        close = [setting for setting in self.settings if once[setting] < CLOSE * best_s]
        turns = self.ctx.turns(*(lambda setting=setting: self.stock(setting) for setting in close),
                               self.ours)
        best = quickest(turns, len(close))
        ratio = median_wall_ratio(turns, -1, best)
        ours_s = statistics.median(turn[-1].wall_s for turn in turns)
        rows = ", ".join(f"{setting} {self.said(s)}" for setting, s in once.items())
        return Figure(self.name, ratio, "of the best hand-set time", "<=", self.goal,
                      f"ours {ours_s:.1f} s; best: {close[best]}; each once: {rows}")

    def said(self, seconds: float) -> str:
        return f"{seconds:.1f} s" if seconds < self.limit_s else f"more than {self.limit_s} s"
