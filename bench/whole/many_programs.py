# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenMP programs without MPI that run at once, as many as cores and more.

Programs of bench/programs in turn, with as much work all together whatever their number.  Ours has
default settings, under one `invade`, over stock with the best of some OMP_NUM_THREADS, the same for
all programs.  Stock in default settings is shown.
"""

from __future__ import annotations

import statistics

from common import BenchError, Context, Figure, Run

COUNTS = (2, 8, 32)
THREADS = (1, 2)
GOAL = 1.05
LIMIT_S = 40  # for stock
CLOSE = 1.25  # settings that are so close to the best in one run are run in each turn
# Arguments of a run of which all programs together take some 12 s of a core.
PROGRAMS = {"amr": (4400,), "md": (5200, 10), "tree": (48000,)}

AT_ONCE = """
pids=; bad=0
for program; do $program >/dev/null & pids="$pids $!"; done
for pid in $pids; do wait $pid || bad=1; done
exit $bad"""
LIMITED = 'timeout "$@"; end=$?; [ $end = 124 ] || exit $end'


class Crowd:
    """So many programs at once."""

    def __init__(self, ctx: Context, count: int):
        self.ctx, self.count = ctx, count
        words = [self.program(*list(PROGRAMS.items())[i % len(PROGRAMS)]) for i in range(count)]
        self.command = ["sh", "-c", AT_ONCE, "sh", *words]

    def program(self, name: str, arguments: tuple[int, ...]) -> str:
        path = self.ctx.build / "bench" / "programs" / name
        if not path.exists():
            raise BenchError(f"{name} is not built: make bench/programs/{name}")
        work, *rest = arguments
        return " ".join(map(str, (path, work // self.count, *rest)))

    def stock(self, threads: int | None) -> Run:
        """Of so many threads a program, None: by default; ended after LIMIT_S."""
        limited = ["sh", "-c", LIMITED, "sh", str(LIMIT_S), *self.command]
        return self.ctx.stock(limited, threads=threads, variant=f"{threads or 'all'} a program")

    def figure(self) -> Figure:
        once = {threads: self.stock(threads).wall_s for threads in (*THREADS, None)}
        best_s = min(once[threads] for threads in THREADS)
        close = [threads for threads in THREADS if once[threads] < CLOSE * best_s]
        turns = self.ctx.turns(*(lambda threads=threads: self.stock(threads) for threads in close),
                               lambda: self.ctx.invade(self.command))
        best = min(range(len(close)), key=lambda i: statistics.median(t[i].wall_s for t in turns))
        ratio = statistics.median(turn[-1].wall_s / turn[best].wall_s for turn in turns)
        rows = ", ".join(f"{threads or 'default'} {said(s)}" for threads, s in once.items())
        return Figure(f"many-programs {self.count}", ratio, "of the best hand-set time", "<=", GOAL,
                      f"best: {close[best]} a program; each once: {rows}")


def said(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < LIMIT_S else f"more than {LIMIT_S} s"


def many_programs(ctx: Context) -> list[Figure]:
    ctx.check_only(*map(str, COUNTS))
    chosen = [count for count in COUNTS if not ctx.only or str(count) in ctx.only]
    return [Crowd(ctx, count).figure() for count in chosen]
