# SPDX-License-Identifier: GPL-3.0-or-later
"""How well a region that is running uses a core that comes and goes.

The program owns one of two cores; another process (openmp/occupant.c) computes on the second,
lends it after 25 % of the time that the work would take at best, and takes it back after 75 %.
The figure is work done / core-time that the program could have: its own core all the time, and
the other one from when it was lent to when its owner had it back.  (If it computed for longer
than that, it took time from the other process: then that is what the work is divided by.)  How
much work a core does in a second is measured before and after, while both cores are busy.
"""

from __future__ import annotations

import statistics

from common import TOP, BenchError, Context, Figure, Run
from openmp_runtimes import Runtimes

KERNELS = ("tasks", "dynamic", "static", "barriers")
THREADS = 16
BEST_S = 0.8  # with 1 core for half of it and 2 for the other half
ITEM_STEPS = 20000  # some 20 us


def occupant(runtimes: Runtimes) -> str:
    library = runtimes.ctx.build / "lib/invasive"
    return runtimes.program("occupant", f"-I{TOP}", f"-I{TOP}/include",
                            f"-L{library}", "-l:libinvasive-process.so", f"-Wl,-rpath,{library}")


def core_time_held(run: Run) -> float:
    seconds, lent, back = (run.values[k] for k in ("seconds", "lend_s", "back_s"))
    return seconds + max(0.0, min(back, seconds) - min(lent, seconds))


def steps_per_second(runtimes: Runtimes) -> float:
    command = [runtimes.program("malleable"), "--calibrate"]
    return runtimes.run("stock", command, {"OMP_NUM_THREADS": "2"}).values["steps_per_second"]


def one(ctx: Context, runtimes: Runtimes, kernel: str) -> tuple[float, Run]:
    before = steps_per_second(runtimes)
    items = int(1.5 * BEST_S * before / ITEM_STEPS)
    command = [str(ctx.build / "invade"), "--", occupant(runtimes),
               f"{250 * BEST_S:g}", f"{750 * BEST_S:g}", runtimes.program("malleable"),
               f"--items={items}", f"--steps={ITEM_STEPS}", kernel]
    run = ctx.run(kernel, command, {"OMP_NUM_THREADS": str(THREADS)})
    if not {"seconds", "lend_s", "back_s"} <= run.values.keys():
        raise BenchError(f"{kernel}: no result:\n{run.output}")
    rate = (before + steps_per_second(runtimes)) / 2
    # Time on a core that it did not have, which was the other process's, does not make it better.
    core_s = max(core_time_held(run), run.values["cpu_seconds"])
    used = 100 * items * ITEM_STEPS / rate / core_s
    run.values["used_percent"] = round(used, 2)
    return used, run


def malleable(ctx: Context) -> list[Figure]:
    runtimes = Runtimes(ctx, others=())
    kernels = [k for k in KERNELS if not ctx.only or k in ctx.only]
    used: dict[str, list[float]] = {k: [] for k in kernels}
    for _ in range(ctx.pairs):
        for kernel in kernels:
            percent, run = one(ctx, runtimes, kernel)
            used[kernel].append(percent)
            if ctx.verbose:
                v = run.values
                print(f"    {kernel:<8} {percent:5.1f} % of the core-time used; "
                      f"{v['seconds']:.3f} s (best {BEST_S} s); core-time had "
                      f"{core_time_held(run):.3f} s, computed {v['cpu_seconds']:.3f} s; core lent "
                      f"from {v['lend_s']:.3f} to {v['back_s']:.3f} s", flush=True)
    figures = [Figure(f"malleable-{k}", statistics.median(v), "% of the core-time", ">=", 95,
                      f"{k}: lowest {min(v):.1f}, highest {max(v):.1f}; limit 100")
               for k, v in used.items()]
    figures.append(Figure("malleable", min(f.value for f in figures), "% of the core-time", ">=",
                          95))
    return figures
