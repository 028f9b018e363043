# SPDX-License-Identifier: GPL-3.0-or-later
"""One OpenMP program with one runtime after the other: which runtimes there are, and how to run it.

The programs of bench/openmp are compiled once, by plain gcc -O2 -fopenmp.  The runtime is chosen
by a directory with a libgomp.so.1 on LD_LIBRARY_PATH:

    stock     the system's libgomp
    llvm      LLVM's libomp 14 (package libomp5-14), through its GOMP symbols
    intel     Intel's, from the Python package index (intel-openmp), through its GOMP symbols
    ours      libgomp-invasive, unmanaged
    managed   the same under `invade`

One of the others that cannot be had is left out, and the figure says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from common import TOP, BenchError, Context, Run

SOURCES = TOP / "bench" / "openmp"
INTEL = "intel-openmp==2026.2.0"
OTHERS = ("stock", "llvm", "intel")
OURS = ("ours", "managed")
LLVM_PLACES = ("/usr/lib/llvm-14/lib/libomp.so.5", "/usr/lib/x86_64-linux-gnu/libomp.so.5")


def make_virtual_environment(directory: Path, packages: list[str], *options: str) -> None:
    """A virtual environment with just these packages; nothing is done when it is there."""
    done = directory / ".installed"
    if done.exists() and done.read_text() == "\n".join(packages):
        return
    # Debian's Python: a virtual environment needs the package python3-venv, on packages.txt.
    python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    for command in ([python, "-m", "venv", "--clear", str(directory)],
                    [str(directory / "bin" / "pip"), "install", "--quiet",
                     "--disable-pip-version-check", "--only-binary=:all:", *options, *packages]):
        made = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
        if made.returncode != 0:
            raise BenchError(f"{' '.join(command)}: {made.stdout[-1000:]}{made.stderr[-1000:]}")
    done.write_text("\n".join(packages))


def link(directory: Path, library: Path) -> Path:
    """A directory in which `library` is called libgomp.so.1."""
    directory.mkdir(parents=True, exist_ok=True)
    name = directory / "libgomp.so.1"
    if not name.is_symlink() or os.readlink(name) != str(library):
        name.unlink(missing_ok=True)
        name.symlink_to(library)
    return directory


def llvm_directory(work: Path) -> Path:
    found = [Path(place) for place in LLVM_PLACES if Path(place).exists()]
    if not found:
        raise BenchError("no LLVM libomp 14: install libomp5-14")
    return link(work / "llvm", found[0])


def intel_directory(work: Path) -> Path:
    venv = work / "intel-openmp"
    make_virtual_environment(venv, [INTEL], "--no-deps")
    found = sorted(venv.glob("**/libiomp5.so"))
    if not found:
        raise BenchError(f"no libiomp5.so in {INTEL}")
    return link(work / "intel", found[0])


class Runtimes:
    """The runtimes that can be compared, and the compiled programs."""

    def __init__(self, ctx: Context, others: tuple[str, ...] = OTHERS):
        self.ctx = ctx
        self.work = ctx.work
        self.work.mkdir(parents=True, exist_ok=True)
        self.missing: dict[str, str] = {}
        self.paths = {"stock": "", "ours": f"{ctx.build}/lib/invasive:{ctx.build}/lib"}
        for name, make in (("llvm", llvm_directory), ("intel", intel_directory)):
            if name not in others or not ctx.selected("runtimes", name):
                continue
            try:
                self.paths[name] = str(make(self.work))
            except (BenchError, OSError, subprocess.TimeoutExpired) as error:
                self.missing[name] = str(error).strip().splitlines()[0]
                print(f"    without {name}: {self.missing[name]}", file=sys.stderr)
        if not (ctx.build / "lib/invasive/libgomp.so.1").exists():
            raise BenchError(f"no libgomp-invasive in {ctx.build}")

    def names(self, wanted: tuple[str, ...] = OTHERS + OURS) -> list[str]:
        return [n for n in wanted if (n in self.paths or n == "managed")
                and self.ctx.selected("runtimes", n)]

    def note(self) -> str:
        return "".join(f"; without {n} ({why})" for n, why in self.missing.items())

    def program(self, name: str, *options: str) -> str:
        """Compiled when its source or measure.h is newer; with `options`, always."""
        source, binary = SOURCES / f"{name}.c", self.work / name
        newest = max(p.stat().st_mtime for p in (source, SOURCES / "measure.h"))
        if options or not binary.exists() or binary.stat().st_mtime < newest:
            command = ["gcc", "-O2", "-std=gnu17", "-fopenmp", str(source), *options,
                       "-o", f"{binary}.new"]
            made = subprocess.run(command, check=False, capture_output=True, text=True)
            if made.returncode != 0:
                raise BenchError(f"{' '.join(command)}: {made.stderr[-2000:]}")
            os.replace(f"{binary}.new", binary)
        return str(binary)

    def run(self, runtime: str, command: list[str], env: dict[str, str],
            before: tuple[str, ...] = ()) -> Run:
        """`before`: words in front of everything, such as taskset."""
        if runtime == "managed":
            words = [str(self.ctx.build / "invade"), "--", *command]
        else:
            words = command
            if self.paths[runtime]:
                env = {**env, "LD_LIBRARY_PATH": self.paths[runtime]}
        return self.ctx.run(runtime, [*before, *words], env)
