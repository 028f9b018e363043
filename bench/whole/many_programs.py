# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs without MPI that run at once, as many as cores and more.

    2, 8, 32     OpenMP programs of bench/programs in turn
    torch        PyTorch at inference, with the threads that it takes, 2 and 4 programs
    torch-cores  the same, where the program asks for a thread for each core
    numpy        products of matrices with NumPy, on OpenBLAS with OpenMP
    products-*   parallel loops that call OpenBLAS inside, on OpenMP or with threads of its own

All programs of a row have as much work whatever their number.  Ours has default settings, under one
`invade`, over stock with the best of some settings by hand, the same for all programs.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from common import TOP, BenchError, Context, Figure, Run
from packages import INPUTS, OPENBLAS, need
from tuned import Contest, hand_set
from whole_programs import CORES, close

GOAL = 1.05
# Arguments of a run of which all programs together take some 12 s of a core.
PROGRAMS = {"amr": (4400,), "md": (5200, 10), "tree": (48000,)}
PROGRAMS_SETTINGS = {"1 a program": hand_set(1), "2 a program": hand_set(2)}
BLAS_SETTINGS = {"1": hand_set(1), "1, BLAS 1": hand_set(1, 1), "2, BLAS 1": hand_set(2, 1),
                 "2": hand_set(2)}

AT_ONCE = """
pids=; bad=0
for program; do sh -c "$program" & pids="$pids $!"; done
for pid in $pids; do wait $pid || bad=1; done
exit $bad"""


def checksums(run: Run) -> list[str]:
    """Of all programs; in no order, since the programs end in none.  One may write between the
    number and the end of line of another."""
    return sorted(re.findall(r"checksum ([-+.\de]+)", run.output))


def alike(one: list[str], other: list[str]) -> bool:
    """The order of sums may differ with the number of threads."""
    return len(one) == len(other) and all(
        a == b or close(a, b, 1e-4) for a, b in zip(one, other))


@dataclass
class Crowd:
    """Programs at once.  commands: of so many, what each does."""

    commands: Callable[[Context, int], list[list[str]]]
    count: int
    settings: dict[str, dict[str, str]]
    env: dict[str, str] = field(default_factory=dict)

    def figure(self, ctx: Context, name: str) -> Figure:
        words = [shlex.join(command) for command in self.commands(ctx, self.count)]
        return Contest(ctx, f"many-programs {name}", ["sh", "-c", AT_ONCE, "sh", *words],
                       self.settings, GOAL, checksums, alike, self.env).figure()


def own_programs(ctx: Context, count: int) -> list[list[str]]:
    commands = []
    for i in range(count):
        name, (work, *rest) = list(PROGRAMS.items())[i % len(PROGRAMS)]
        path = ctx.build / "bench" / "programs" / name
        if not path.exists():
            raise BenchError(f"{name} is not built: make bench/programs/{name}")
        commands.append([str(path), *map(str, (work // count, *rest))])
    return commands


def torch(*threads: str) -> Callable[[Context, int], list[list[str]]]:
    def commands(_: Context, count: int) -> list[list[str]]:
        need("torch", (Path("/usr/lib/python3/dist-packages/torch"), "python3-torch"))
        script = [str(INPUTS / "inference.py"), str(480 // count), *threads]
        return count * [["/usr/bin/python3", *script]]
    return commands


def numpy(_: Context, count: int) -> list[list[str]]:
    need("numpy", (Path("/usr/lib/python3/dist-packages/numpy"), "python3-numpy"),
         (OPENBLAS, "libopenblas0-openmp"))
    script = [str(INPUTS / "numerics.py"), "matmul", "700", str(160 // count)]
    return count * [["/usr/bin/python3", *script]]


def products(ctx: Context, count: int) -> list[list[str]]:
    """The program is linked with the OpenBLAS that is found at run time."""
    need("products", (OPENBLAS, "libopenblas0-openmp"),
         (pthread_openblas(), "libopenblas0-pthread"))
    source, program = TOP / "bench/programs/products.c", ctx.work / "products"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        ctx.work.mkdir(parents=True, exist_ok=True)
        made = subprocess.run(["gcc", "-O2", "-fopenmp", "-o", program, source, f"-L{OPENBLAS}",
                               "-l:libopenblas.so.0", "-lm"], check=False, capture_output=True,
                              text=True, timeout=60)
        if made.returncode != 0:
            raise BenchError(f"{source}: {made.stderr[-1000:]}")
    return count * [[str(program), "16", "192", str(800 // count)]]


def pthread_openblas() -> Path:
    return OPENBLAS.with_name("openblas-pthread")


def found_by(directory: Path) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(directory)}


ROWS = {str(count): Crowd(own_programs, count, PROGRAMS_SETTINGS) for count in (2, 8, 32)}
for many in (2, 4):
    ROWS[f"torch-{many}"] = Crowd(torch(), many, BLAS_SETTINGS)
    ROWS[f"torch-cores-{many}"] = Crowd(torch(str(CORES)), many, BLAS_SETTINGS)
    ROWS[f"numpy-{many}"] = Crowd(numpy, many, BLAS_SETTINGS, found_by(OPENBLAS))
    for kind in (OPENBLAS, pthread_openblas()):
        ROWS[f"products-{kind.name.removeprefix('openblas-')}-{many}"] = \
            Crowd(products, many, BLAS_SETTINGS, found_by(kind))


def many_programs(ctx: Context) -> list[Figure]:
    """The last figure is the worst.  A row whose package is missing is left out, and said."""
    ctx.check_only(*ROWS)
    figures = []
    for name, crowd in ROWS.items():
        if ctx.only and name not in ctx.only:
            continue
        try:
            figures.append(crowd.figure(ctx, name))
        except BenchError as error:
            if "apt-get install" not in str(error) or ctx.only:
                raise
            ctx.say(f"left out: {error}")
    worst = max(figures, key=lambda figure: figure.value)
    return [*figures, Figure("many-programs", worst.value, worst.unit, "<=", GOAL,
                             "the worst of them")]
