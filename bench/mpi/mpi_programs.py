# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of bench/mpi with one MPI library after the other: compiling and running them.

    mpich      Debian's; it has no yielding mode, so that of bench/mpi/yield.c is the reference
    openmpi    Debian's; its yielding mode is mpi_yield_when_idle, which it takes by itself with
               more ranks than cores

A library that is not installed is left out, and the figures say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from common import TOP, BenchError, Context, Run

SOURCES = TOP / "bench" / "mpi"
SHARED = TOP / "bench" / "two.h"


@dataclass
class Library:
    """One MPI library, and its own best way to yield."""

    name: str
    launcher: str
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    yielding: dict[str, str] = field(default_factory=dict)  # the environment; {}: yield.c

    def installed(self) -> bool:
        return bool(shutil.which(f"mpicc.{self.name}") and shutil.which(self.launcher))


LIBRARIES = (
    Library("mpich", "mpiexec.mpich"),
    Library("openmpi", "mpiexec.openmpi", ("--oversubscribe", "--bind-to", "none"),
            {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
            {"OMPI_MCA_mpi_yield_when_idle": "1"}),
)


def compiled(ctx: Context, library: Library, source: str, *options: str) -> Path:
    """The program or, with -shared, the library; made anew when a source or header is newer."""
    path, binary = SOURCES / source, ctx.work / f"{Path(source).stem}-{library.name}"
    ctx.work.mkdir(parents=True, exist_ok=True)
    newest = max(file.stat().st_mtime for file in (path, *SOURCES.glob("*.h"), SHARED))
    if not binary.exists() or binary.stat().st_mtime < newest:
        command = [f"mpicc.{library.name}", "-O2", "-std=gnu17", f"-I{TOP}", str(path),
                   *options, "-o", f"{binary}.new"]
        made = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        if made.returncode != 0:
            raise BenchError(f"{' '.join(command)}: {made.stderr[-2000:]}")
        os.replace(f"{binary}.new", binary)
    return binary


def libraries(ctx: Context) -> list[Library]:
    found = [lib for lib in LIBRARIES if lib.installed() and ctx.selected("runtimes", lib.name)]
    if not found:
        raise BenchError("no MPI library: install mpich or openmpi-bin libopenmpi-dev")
    return found


class Programs:
    """One program of bench/mpi with one library."""

    def __init__(self, ctx: Context, library: Library, source: str, *options: str):
        self.ctx, self.mpi = ctx, library
        self.program = compiled(ctx, library, source, *options)

    def command(self, ranks: int, *arguments: str) -> list[str]:
        return self.ctx.mpi(ranks, *self.mpi.options, str(self.program), *arguments,
                            mpiexec=self.mpi.launcher)

    def stock(self, ranks: int, *arguments: str) -> Run:
        return self.ctx.run(f"{self.mpi.name}-stock", self.command(ranks, *arguments),
                            self.mpi.env)

    def ours(self, ranks: int, *arguments: str) -> Run:
        words = [str(self.ctx.build / "invade"), "--", *self.command(ranks, *arguments)]
        return self.ctx.run(f"{self.mpi.name}-invade", words, self.mpi.env)

    def yielding(self, ranks: int, *arguments: str) -> Run:
        env = {**self.mpi.env, **self.mpi.yielding}
        if not self.mpi.yielding:
            env["LD_PRELOAD"] = str(compiled(self.ctx, self.mpi, "yield.c", "-shared", "-fPIC"))
        return self.ctx.run(f"{self.mpi.name}-yield", self.command(ranks, *arguments), env)
