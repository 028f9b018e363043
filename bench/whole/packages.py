# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages by others as whole programs: what Debian and the Python package index have, with small
inputs of ours, in bench/packages/.

Packages of the Python index go into a virtual environment in the build directory, on first use.
Debian's are the user's to install: a program whose package is missing is left out, and the output
names it.  Each runs in a directory of its own, since some leave files.

NumPy finds OpenBLAS with OpenMP by LD_LIBRARY_PATH, so that the alternatives of the machine
stay as they are.  All packages with MPI are Debian's for Open MPI, but for LAMMPS's.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import lammps_half
from common import TOP, BenchError, Context, Run
from openmp_runtimes import make_virtual_environment
from whole_programs import CORES, Program, Shape, close, threads

INPUTS = TOP / "bench" / "packages"
PYPI = ["numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1", "lightgbm==4.7.0",
        "xgboost-cpu==3.2.0", "faiss-cpu==1.15.1", "numba==0.68.1",
        "pytest==9.1.1", "pytest-xdist==3.8.0"]
OPENBLAS = Path("/usr/lib/x86_64-linux-gnu/openblas-openmp")
# Without these Open MPI refuses to run as root, or with more ranks than cores.
OPENMPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def need(name: str, *found: tuple[str | Path, str]) -> None:
    """found: a command or a file, and Debian's package of it.  BenchError names what to install."""
    missing = [package for what, package in found
               if not (what.exists() if isinstance(what, Path) else shutil.which(what))]
    if missing:
        raise BenchError(f"{name}: apt-get install {' '.join(missing)}")


class Package(Program):
    """A program of another project.  result: the part of its output that is compared, by its first
    group as a number."""

    def __init__(self, name: str, tolerance: float = 0, result: str = r"^checksum (\S+)$"):
        super().__init__(name, tolerance=tolerance)
        self.result = re.compile(result, re.MULTILINE)

    def values(self, run: Run) -> dict:
        found = self.result.findall(run.output)
        return {"checksum": found[-1]} if found else {}

    def directory(self, ctx: Context) -> Path:
        place = ctx.work / "packages" / self.name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def one_process(self, command: list[str], **env: str) -> None:
        """Stock competes with a thread for each core, and with one."""
        self.shapes_stock = [Shape(f"1x{n}", command, {**threads(n), **env})
                             for n in sorted({CORES, 1}, reverse=True)]
        self.managed = [Shape("1", command, env)]


class Python(Package):
    """A script of bench/packages with packages of the Python index."""

    def __init__(self, name: str, *words: str, tolerance: float = 0, **env: str):
        super().__init__(name, tolerance)
        self.words = words
        self.env = env

    def install(self, ctx: Context) -> None:
        venv = ctx.work / "packages-python"
        try:
            make_virtual_environment(venv, PYPI)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{self.name}: pip took more than {error.timeout:g} s") from error
        script, *arguments = self.words
        self.one_process([str(venv / "bin" / "python"), str(INPUTS / script), *arguments],
                         **self.env)


class Numerics(Package):
    """Debian's NumPy on OpenBLAS with OpenMP, whose threads wait for each other by spinning."""

    def __init__(self, kind: str, size: int, repetitions: int):
        super().__init__(f"numpy-{kind}-{size}", tolerance=1e-7)
        self.arguments = [kind, str(size), str(repetitions)]

    def install(self, ctx: Context) -> None:
        numpy = Path("/usr/lib/python3/dist-packages/numpy")
        need(self.name, (numpy, "python3-numpy"), (OPENBLAS, "libopenblas0-openmp"))
        self.one_process(["/usr/bin/python3", str(INPUTS / "numerics.py"), *self.arguments],
                         LD_LIBRARY_PATH=str(OPENBLAS))


class Table(Package):
    """R's data.table."""

    def install(self, ctx: Context) -> None:
        need(self.name, (Path("/usr/lib/R/site-library/data.table"), "r-cran-data.table"),
             ("Rscript", "r-base-core"))
        self.one_process(["Rscript", str(INPUTS / "table.R"), "1000000", "8"])


class Gromacs(Package):
    """GROMACS: OpenMP, and an MPI of its own between threads.  It binds its threads to cores."""

    def install(self, ctx: Context) -> None:
        need(self.name, ("gmx", "gromacs"), (Path("/usr/share/gromacs/top"), "gromacs-data"))
        place = self.directory(ctx)
        if not (place / "water.tpr").exists():
            self.prepare(place)
        run = f"cd {shlex.quote(str(place))} && rm -f *.edr && " \
              "gmx -quiet -nobackup mdrun -s water.tpr -noconfout {} && cat md.log"
        stock = {"1x1": f"-ntmpi 1 -ntomp {CORES}", "2x1": f"-ntmpi {CORES} -ntomp 1", "any": ""}
        self.shapes_stock = [Shape(name, ["sh", "-c", run.format(options)])
                             for name, options in stock.items()]
        self.managed = [Shape("1", ["sh", "-c", run.format("")]),
                        Shape("2", ["sh", "-c", run.format("-ntmpi 2")])]

    @staticmethod
    def prepare(place: Path) -> None:
        """Water molecules in a box."""
        (place / "water.top").write_text('#include "oplsaa.ff/forcefield.itp"\n'
                                         '#include "oplsaa.ff/spce.itp"\n'
                                         "[ system ]\nwater\n[ molecules ]\n")
        for words in (["solvate", "-cs", "spc216.gro", "-box", "4", "4", "4", "-o", "water.gro",
                       "-p", "water.top"],
                      ["grompp", "-f", str(INPUTS / "water.mdp"), "-c", "water.gro",
                       "-p", "water.top", "-o", "water.tpr", "-maxwarn", "2"]):
            made = subprocess.run(["gmx", "-quiet", "-nobackup", *words], cwd=place, check=False,
                                  capture_output=True, text=True)
            if made.returncode != 0:
                raise BenchError(f"gmx {words[0]}: {made.stderr[-1000:]}")


class OpenMPI(Package):
    """A program of Debian's for Open MPI, of ranks and threads.

    input: written into the program's directory.  after: a shell command that prints the result.
    """

    def __init__(self, name: str, package: str, command: list[str], result: str,
                 needed: tuple[str, str] = ("", ""), after: str = "true",
                 ranks: tuple[int, ...] = (1, 2, 4), openmp: bool = True):
        super().__init__(name, 1e-8, result)
        self.package, self.command, self.needed = package, command, needed
        self.after, self.ranks, self.openmp = after, ranks, openmp

    def input(self, place: Path) -> None:
        """Writes the program's input into place."""

    def install(self, ctx: Context) -> None:
        need(self.name, (self.command[0], self.package), ("mpirun.openmpi", "openmpi-bin"))
        if self.needed[0]:
            need(self.name, (Path(self.needed[0]), self.needed[1]))
        place = self.directory(ctx)
        self.input(place)
        stock = dict.fromkeys([(CORES, 1), *([(1, CORES)] if self.openmp else []),
                               *((r, 1) for r in self.ranks if r > 1)])
        self.shapes_stock = [Shape(f"{r}x{t}", self.mpi(place, r), {**OPENMPI, **threads(t)})
                             for r, t in stock]
        self.managed = [Shape(str(r), self.mpi(place, r), OPENMPI) for r in self.ranks]

    def mpi(self, place: Path, ranks: int) -> list[str]:
        # One rank with threads may use all cores; Open MPI would bind it to one.
        bind = ["--bind-to", "none"] if ranks == 1 else []
        run = shlex.join(["mpirun.openmpi", "-n", str(ranks), *bind, *self.command])
        return ["sh", "-c", f"cd {shlex.quote(str(place))} && {run} && {self.after}"]


class Cp2k(OpenMPI):
    def input(self, place: Path) -> None:
        molecules = []
        for i in range(8):
            x, y, z = (3.1 * (i >> axis & 1) + 0.02 * i for axis in range(3))
            molecules += [f"O {x:.4f} {y:.4f} {z:.4f}", f"H {x + .757:.4f} {y + .586:.4f} {z:.4f}",
                          f"H {x - .757:.4f} {y + .586:.4f} {z:.4f}"]
        text = (INPUTS / "water.cp2k").read_text().replace("MOLECULES", "\n".join(molecules))
        (place / "water.inp").write_text(text)


class Copied(OpenMPI):
    """Its input is a file of bench/packages, under the name that the program wants."""

    def __init__(self, name: str, source: str, target: str, *rest, **more):
        super().__init__(name, *rest, **more)
        self.source, self.target = source, target

    def input(self, place: Path) -> None:
        shutil.copy(INPUTS / self.source, place / self.target)


class Lammps(Package):
    """LAMMPS's wheel.  half: one of two ranks has nearly all atoms; else both have as many."""

    RANKS = (2, 4)

    def __init__(self, name: str, half: bool, *options: str):
        super().__init__(name, 1e-6, r"^ +[0-9]+ +(-?[0-9.]+ .*)$")
        self.half = half
        self.options = options

    def install(self, ctx: Context) -> None:
        lammps = lammps_half.Lammps(ctx)
        self.lmp, self.mpiexec = lammps.lmp, str(lammps.venv / "bin" / "mpiexec")
        env = {"LD_LIBRARY_PATH": str(lammps.venv / "lib")}
        stock = [(2, 1), (1, CORES), (2, 2) if self.half else (4, 1)]
        self.shapes_stock = [Shape(f"{r}x{t}", self.mpi(ctx, r, t), {**env, **threads(t)})
                             for r, t in stock]
        self.managed = [Shape(str(r), self.mpi(ctx, r, 0), env)
                        for r in ((2,) if self.half else self.RANKS)]

    def mpi(self, ctx: Context, ranks: int, count: int) -> list[str]:
        """count: of threads; 0: as many as OpenMP has."""
        even = [] if self.half and ranks > 1 else ["-var", "px", "1", "-var", "py", "*"]
        return ctx.mpi(ranks, self.lmp, "-in", str(lammps_half.INPUT), "-log", "none", "-sf",
                       "omp", "-pk", "omp", str(count), *even, *self.options,
                       mpiexec=self.mpiexec)

    def same(self, one: Run, other: Run) -> None:
        """The numbers of the last line of the thermodynamic output."""
        a, b = (str(self.values(run).get("checksum", "")).split() for run in (one, other))
        if not a or len(a) != len(b) or not all(close(*pair, 1e-3) for pair in zip(a, b)):
            raise BenchError(f"{self.name}: {one.variant} ends with {a}, {other.variant} with {b}")


ENERGY = r"(-[0-9]+\.[0-9]+)"

PROGRAMS = [
    Numerics("matmul", 200, 8000),
    Numerics("matmul", 1000, 90),
    Numerics("eigh", 100, 1800),
    Numerics("eigh", 600, 50),
    Numerics("solve", 100, 30000),
    Numerics("solve", 1500, 45),
    Numerics("svd", 300, 260),
    Python("lightgbm", "learning.py", "lightgbm", "100000", "100"),
    Python("xgboost", "learning.py", "xgboost", "100000", "60"),
    Python("scikit-boosting", "learning.py", "boosting", "100000", "60"),
    Python("scikit-kmeans", "learning.py", "kmeans", "100000", "80"),
    Python("faiss-flat", "search.py", "flat", "50000", "25"),
    # The order of sums in its training depends on the number of threads, and with it which of two
    # near vectors is found: stock differs from itself by 0.2 % between one and two threads.
    Python("faiss-ivf", "search.py", "ivf", "50000", "110", tolerance=0.01),
    Python("numba", "stencil.py", "500", "7000", tolerance=1e-9, NUMBA_THREADING_LAYER="omp"),
    Table("data-table"),
    Gromacs("gromacs", 1e-2, r"Potential +Kinetic En\. *\n +\S+ +\S+ +\S+ +(\S+)"),
    Cp2k("cp2k", "cp2k", ["cp2k.psmp", "water.inp"], rf"ENERGY\| Total FORCE_EVAL.*: +{ENERGY}",
         ("/usr/share/cp2k/GTH_BASIS_SETS", "cp2k-data")),
    Copied("elk", "aluminium.elk", "elk.in", "elk-lapw", ["elk-lapw"],
           rf"^ *{ENERGY} *$", after="tail -n 1 TOTENERGY.OUT"),
    Copied("quantum-espresso", "silicon.pw", "silicon.in", "quantum-espresso",
           ["pw.x", "-in", "silicon.in"], rf"^! +total energy += +{ENERGY}",
           ("/usr/share/espresso/pseudo/Si.pz-vbc.UPF", "quantum-espresso-data"),
           ranks=(2, 4), openmp=False),
    Lammps("lammps-half", True, "-var", "steps", "220"),
    Lammps("lammps-even", False, "-var", "steps", "300"),
]
