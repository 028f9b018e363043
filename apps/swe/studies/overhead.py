# SPDX-License-Identifier: GPL-3.0-or-later
"""What telling the resource manager costs, on a grid so small that it shows (the paper's 6.1).

128 cells on a regular grid, one process, which looks at its grid after each step: with threads
only; telling the manager its number of cells each time; and waiting for the answer.  The paper did
25 runs of each.  They take turns, and the ratios are of neighbours in time; stock is the quicker
one of its threads bound to cores and not.  `bench/run overhead` measures the same with care
in one process; this is what a user's program sees.

On 40 emulated cores the run's record is replayed without what adaptions cost: for so few cells
nearly all of that is serial.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

from common import Context, Run, same_checksum

from . import model

THREADS = 2
CELLS = [str(model.SCENARIOS / "dam_break.toml"), "-q", "grid.min_depth=5", "grid.max_depth=5",
         "grid.every=1", "time.end=1e6", "run.parallel=loop"]
STEPS = 20000
EMULATED = [*CELLS, "grid.split=2", "grid.join=0", "time.steps=100"]
CORES = 40
FORMS = {"threads only": [], "non-blocking": ["run.announce=true"],
         "blocking": ["run.announce=true", "run.blocking=true"]}
PAPER = {"threads only": "", "non-blocking": "5 % at most", "blocking": "15 % at most"}


@dataclass
class Found:
    """All runs: microseconds a step in each form, and the ratios to stock in the same turn."""

    stock: dict[str, list[float]] = field(default_factory=dict)
    ours: dict[str, list[float]] = field(default_factory=dict)
    model: dict[str, float] = field(default_factory=dict)  # of emulated runs

    def best(self) -> str:
        return min(self.stock, key=lambda name: statistics.median(self.stock[name]))

    def ratios(self, form: str) -> list[float]:
        return sorted(o / s for o, s in zip(self.ours[form], self.stock[self.best()]))

    def add(self, stock: dict[str, Run], ours: dict[str, Run]) -> None:
        same_checksum([*stock.values(), *ours.values()])
        for runs, lists in ((stock, self.stock), (ours, self.ours)):
            for name, run in runs.items():
                lists.setdefault(name, []).append(
                    1e6 * run.values["seconds"] / run.values.get("steps", 1))


def real(ctx: Context, runs: int, scale: float = 1) -> Found:
    words = [ctx.app("swe"), *CELLS, f"time.steps={max(10, round(STEPS * scale))}"]
    found = Found()
    for _ in range(runs):
        stock = {bind: ctx.stock(words, THREADS, f"stock {bind}", OMP_PROC_BIND=value)
                 for bind, value in (("unbound", "false"), ("bound", "true"))}
        ours = {form: ctx.invade([*words, *extra], THREADS, form) for form, extra in FORMS.items()}
        found.add(stock, ours)
    return found


def emulated(ctx: Context, runs: int, directory: Path, scale: float = 1) -> tuple[Found, str]:
    of = model.measure(ctx, EMULATED, directory / "cells128")
    run = model.read_record(directory / "cells128", 1)
    of = model.Model(of.cell_ns, 0, 0)
    factor = model.scale_for([run], of)
    words = [ctx.app("swe") + "_replay", f"record={run.prefix}", *of.words(factor),
             f"stretches={max(2, round(100 * scale))}", "parallel=loop"]
    forms = {"threads only": [], "non-blocking": ["announce=on"], "blocking": ["announce=wait"]}
    invade = [str(ctx.build / "invade"), f"--emulate-cores={CORES}", "--"]
    found = Found(model=of.columns(factor))
    for _ in range(runs):
        stock = {"sleeping": ctx.stock(words, CORES, "stock", OMP_WAIT_POLICY="passive")}
        ours = {form: ctx.run(form, [*invade, *words, *extra], {"OMP_NUM_THREADS": str(CORES)})
                for form, extra in forms.items()}
        found.add(stock, ours)
    return found, f"model, measured here: {of.text()}; times {factor:.0f}"
