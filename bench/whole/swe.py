# SPDX-License-Identifier: GPL-3.0-or-later
"""The tsunami simulation's studies (apps/swe/studies) as benchmarks with goals.

swe: a dam that breaks off the centre, 4 and 2 ranks on this machine's cores, over the best stock
run with as many ranks, whatever their threads and how these wait; and, as swe-any, over the best
stock run of any shape.  That is one rank with all cores, which has no imbalance and sends no
messages: below the limit, work / cores, no goal can be reached there.  swe-enclaves: with
run.enclaves=on, over without; and, as swe-enclaves-stock, over the best stock run.

swe-40: the same on 40 and 20 emulated cores.  The paper's figure 7 has no numbers that could be
compared with; its text says that every combination is faster, and 20 cores with 4 ranks most.

study-swe: five tsunami simulations with different parameters, sizes E and F on 40 emulated cores
(the paper says 45 % less for E and F), and F on the real ones.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from common import BenchError, Context, Figure
from studies import balance, parameters

GOALS = {4: 0.90, 2: 0.75}  # over the best stock run with as many ranks
EARLY_GOALS = {4: 0.10, 2: 0.75}  # the same with enclaves
SIZES = "EF"
MACHINES = {"real": parameters.REAL, "emulated": parameters.EMULATED}
MEASURED = {"real": "F", "emulated": SIZES}  # sizes


def needs(ctx: Context, *names: str) -> None:
    for name in names:
        if not (ctx.build / "apps" / "swe" / name).exists():
            raise BenchError(f"{name} is not built: packages libtomlplusplus-dev, libnetcdf-dev")


def chosen(ctx: Context) -> str:
    """How clusters are shared out: --only loop (if nothing is said), tasks, owner."""
    ctx.check_only(*balance.PARALLELS)
    return next((p for p in balance.PARALLELS if p in ctx.only), "loop")


def swe(ctx: Context) -> list[Figure]:
    needs(ctx, "swe")
    parallel = chosen(ctx)
    figures = []
    for c in balance.real(ctx, (4, 2), parallel, getattr(ctx, "scale", 1)):
        figures += [
            Figure(f"swe-any-{c.ranks}", c.ratio_of_all, "x the best stock run of any shape", "<=",
                   GOALS[c.ranks], f"{c.ranks} ranks, stock {c.best_of_all}; "
                   f"{c.ratio_of_all / c.over_limit:.3f} at the limit"),
            Figure(f"swe-enclaves-{c.ranks}", c.early_ratio, "x the same without enclaves", "<=",
                   0.95, f"{c.ranks} ranks: {c.early:.2f} s"),
            Figure(f"swe-enclaves-stock-{c.ranks}", c.early_over_stock,
                   f"x the best stock run with {c.ranks} ranks", "<=", EARLY_GOALS[c.ranks],
                   f"{c.early:.2f} s; stock {c.best}"),
            Figure("swe" if c.ranks == 2 else f"swe-{c.ranks}", c.ratio,
                   f"x the best stock run with {c.ranks} ranks", "<=", GOALS[c.ranks],
                   f"{c.ranks} ranks: {c.ours:.2f} s; stock's best with {c.ranks} ranks is "
                   f"{c.best}; {c.over_yielding:.3f} of ranks that yield; {c.over_limit:.3f} of "
                   f"the limit, what one rank and thread takes over {balance.CORES} cores")]
    return figures


def swe_40(ctx: Context) -> list[Figure]:
    needs(ctx, "swe", "swe_replay")
    with tempfile.TemporaryDirectory() as directory:
        rows, notes = balance.emulated(ctx, Path(directory), ((20, 4), (40, 4)),
                                       (chosen(ctx),),
                                       getattr(ctx, "scale", 1))
    for note in notes:
        print(f"    {note}", flush=True)
    figures = []
    for r in rows:
        name = "swe-40" if r.cores == 40 else f"swe-{r.cores}"
        figures.append(Figure(
            name, r.ratio, f"x stock, {r.cores} cores and {r.ranks} ranks", "<=", 1.0,
            f"stock {r.stock:.2f} s (limit of fixed shares {r.fixed:.2f}), ours {r.ours:.2f} "
            f"(limit of cores that move {r.moved:.2f}: {r.ours / r.moved:.2f} of it; that end "
            f"clusters before {r.ended:.2f}: {r.ours / r.ended:.2f})"))
    return figures


def machines_of(ctx: Context) -> dict[str, str]:
    """The sizes that each machine has, of what --only asks for: machines, ways and sizes."""
    ctx.check_only(*MACHINES, *parameters.WAYS, *SIZES)
    asked = {kind: "".join(s for s in sizes if s in ctx.only or not set(SIZES) & set(ctx.only))
             for kind, sizes in MEASURED.items()
             if kind in ctx.only or not set(MACHINES) & set(ctx.only)}
    if not any(asked.values()):
        raise BenchError("--only: " + "; ".join(f"{kind} has the sizes {', '.join(sizes)}"
                                                for kind, sizes in MEASURED.items()))
    if parameters.ways_of(ctx) == ["invasive"]:
        raise BenchError("--only: no way beside invasive, which the others are compared with")
    return {kind: sizes for kind, sizes in asked.items() if sizes}


def study_swe(ctx: Context) -> list[Figure]:
    needs(ctx, "swe", "swe_replay")
    scale, figures = getattr(ctx, "scale", 1), []
    machines = machines_of(ctx)
    with tempfile.TemporaryDirectory() as name:
        for kind, sizes in machines.items():
            found, notes = parameters.study(ctx, MACHINES[kind], Path(name), scale, sizes)
            for note in notes:
                print(f"    {note}", flush=True)
            for f in found:
                figures += of_size(f, kind)
    return figures


def of_size(found: parameters.Found, kind: str) -> list[Figure]:
    """The last figure of the last size: the ratio to runs one after the other, if any."""
    name = f"study-swe-{kind}-{found.size}"
    text = ", ".join(f"{way} {found.typical(way):.2f} s" for way in found.seconds)
    limit = f"; work / cores {found.limit:.2f} s" if found.limit else ""
    others = [way for way in found.seconds if way != "invasive"]
    worst = max(others, key=found.over)
    figures = [Figure(f"{name}-worst", found.over(worst), f"x {worst}", "<=", 1.0,
                      f"size {found.size}, {kind}: {text}{limit}")]
    if "sequential" in others and kind == "emulated":
        last = "study-swe" if found.size == SIZES[-1] else name
        figures.append(Figure(last, found.over("sequential"), "x one after the other", "<=", 0.55))
    return figures
