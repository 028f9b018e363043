# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a job goes on when one of its ranks is killed: as long as without us.

The last rank kills itself; the time is from there to the end of the command, mpiexec or invade.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from common import BenchError, Context, Figure, Run, all_managed, clean_environment
from mpi_programs import Library, compiled, libraries

RANKS = (2, 4)
OTHERS = ("waiting", "working")
LATER_MS = 20  # too little to notice, and hidden by the noise of a busy machine


def die(ctx: Context, variant: str, command: list[str], env: dict[str, str], file: Path) -> Run:
    file.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        done = subprocess.run(command, env=clean_environment(env), check=False, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{variant}: {' '.join(command)}: no end after 60 s") from error
    end = time.monotonic()
    if done.returncode == 0 or not file.exists():
        raise BenchError(f"{variant}: {' '.join(command)}: no rank was killed\n{done.stderr}")
    all_managed(variant, done.stderr)
    run = Run(variant, end - start, 0.0, {"ms": 1000 * (end - float(file.read_text()))}, "")
    ctx.runs.append(run)
    return run


def rows(ctx: Context, library: Library, file: Path) -> list[Figure]:
    program, found = compiled(ctx, library, "killed.c"), []
    for ranks in RANKS:
        for others in OTHERS:
            command = [library.launcher, *library.options, "-n", str(ranks), str(program),
                       str(file), others]
            ours = [str(ctx.build / "invade"), "--", *command]
            turns = ctx.turns(lambda c=command: die(ctx, "stock", c, library.env, file),
                              lambda c=ours: die(ctx, "invade", c, library.env, file))
            stock = statistics.median(s.values["ms"] for s, _ in turns)
            later = statistics.median(i.values["ms"] - s.values["ms"] for s, i in turns)
            found.append(Figure(f"killed-{library.name}-{ranks}-{others}", later, "ms later", "<=",
                                LATER_MS, f"{library.name}, {ranks} ranks, the others {others}: "
                                f"stock {stock:.1f} ms"))
    return found


def killed(ctx: Context) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        figures = [figure for library in libraries(ctx)
                   for figure in rows(ctx, library, Path(directory, "moment"))]
    worst = max(figure.value for figure in figures)
    return [*figures, Figure("killed", worst, "ms later than stock, the worst", "<=", LATER_MS)]
