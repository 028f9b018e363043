# SPDX-License-Identifier: GPL-3.0-or-later
"""Test suites as continuous integration runs them: more processes at once than cores.

    pytest   `pytest -n 4` of scikit-learn's own tests of a module, from its wheel
    mpi4py   mpi4py's own tests with five ranks, of MPICH and of Open MPI
    ctest    `ctest -j4` of bench/ci_project, whose tests use OpenMP, most of them MPI as well

Ours has no variable set, under one `invade`, over stock with the best of some settings by hand.
The same tests pass in all runs.
"""

from __future__ import annotations

import re
import shutil
import subprocess

from common import TOP, BenchError, Context, Figure, Run, median_wall_ratio, quickest
from mpi4py_suite import Suite, get_source
from mpi_programs import libraries
from openmp_runtimes import make_virtual_environment
from packages import PYPI, need
from tuned import Contest, hand_set

GOAL = 1.10
MODULE = "sklearn.cluster.tests.test_k_means"
PROJECT = TOP / "bench" / "ci_project"
RANKS = 5
LIMIT_S = 100


def pytest_figures(ctx: Context) -> list[Figure]:
    venv = ctx.work / "packages-python"
    make_virtual_environment(venv, PYPI)
    # In a directory of its own, so that pytest finds no settings of this project's.
    command = ["env", "-C", str(venv), str(venv / "bin" / "python"), "-m", "pytest", "-q", "-p",
               "no:cacheprovider", "-n", "4", "--pyargs", MODULE]
    settings = {"1": hand_set(1), "1, BLAS 1": hand_set(1, 1), "2, BLAS 1": hand_set(2, 1)}

    def result(run: Run):
        return re.findall(r"(\d+) (passed|failed|error)", run.output)

    return [Contest(ctx, "ci pytest", command, settings, GOAL, result, limit_s=LIMIT_S).figure()]


def built_project(ctx: Context) -> str:
    """The build directory of bench/ci_project."""
    need("ctest", ("cmake", "cmake"), ("mpicc.mpich", "libmpich-dev"))
    place = ctx.work / "ci_project"
    mpi = [f"-DMPI_{language}_COMPILER={shutil.which(f'mpi{compiler}.mpich')}"
           for language, compiler in (("C", "cc"), ("CXX", "cxx"))]
    mpi.append(f"-DMPIEXEC_EXECUTABLE={shutil.which('mpiexec.mpich')}")
    for words in (["-S", str(PROJECT), "-B", str(place), *mpi], ["--build", str(place), "-j2"]):
        made = subprocess.run(["cmake", *words], check=False, capture_output=True, text=True,
                              timeout=600)
        if made.returncode != 0:
            raise BenchError(f"cmake {' '.join(words)}: {made.stderr[-2000:]}")
    return str(place)


def ctest_figures(ctx: Context) -> list[Figure]:
    command = ["ctest", "--test-dir", built_project(ctx), "-j4", "--timeout", str(LIMIT_S)]
    settings = {"1": hand_set(1), "2": hand_set(2)}

    def result(run: Run):
        return re.findall(r"tests passed, (\d+) tests failed out of (\d+)", run.output)

    return [Contest(ctx, "ci ctest", command, settings, GOAL, result, limit_s=LIMIT_S).figure()]


def mpi4py_figures(ctx: Context) -> list[Figure]:
    """Hand-set stock yields while it waits, where the library can."""
    source = get_source(ctx.work / "mpi4py")
    figures = []
    for library in libraries(ctx):
        suite = Suite(ctx, library, source, RANKS)
        yielding = Suite(ctx, library, source, RANKS)
        yielding.env.update(library.yielding)
        turns = ctx.turns(suite.stock, yielding.stock, suite.ours)
        best = quickest(turns, 2)
        figures.append(Figure(f"ci mpi4py-{library.name}", median_wall_ratio(turns, 2, best),
                              "of the best hand-set time", "<=", GOAL,
                              f"{library.name}, {RANKS} ranks, {len(suite.cases[0])} cases"))
    return figures


PARTS = {"pytest": pytest_figures, "mpi4py": mpi4py_figures, "ctest": ctest_figures}


def ci(ctx: Context) -> list[Figure]:
    """The last figure is the worst."""
    ctx.check_only(*PARTS)
    ctx.timeout_s = 3 * LIMIT_S
    figures = [figure for name, part in PARTS.items() if not ctx.only or name in ctx.only
               for figure in part(ctx)]
    worst = max(figures, key=lambda figure: figure.value)
    return [*figures, Figure("ci", worst.value, worst.unit, "<=", GOAL, "the worst of them")]
