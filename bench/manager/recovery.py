# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the cores of a process that is killed stay away from the others.

A hundred processes are killed with SIGKILL while they hold, lend, borrow, wait or block; the figure
is how many of them the survivor had all cores from within 10 ms.
"""

from __future__ import annotations

from common import Context, Figure


def recovery(ctx: Context) -> list[Figure]:
    run = ctx.invade([str(ctx.build / "bench" / "recovery_program" / "recovery")],
                     threads=16, variant="recovery")
    v = run.values
    return [Figure("recovery", v["deaths"] - v["late"], "of 100 within 10 ms", ">=", 100,
                   f"median {v['median_ms']:.2f} ms, longest {v['longest_ms']:.2f} ms")]
