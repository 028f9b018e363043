# SPDX-License-Identifier: GPL-3.0-or-later
"""mpi4py's own test suite, from its source, passes under invade what it passes without.

The module is Debian's for Open MPI (python3-mpi4py); for MPICH it is built from the same source.
Where stock is too slow with more ranks than cores, what it gets through in the time counts."""

import re
import subprocess
import sys

import pytest
from machine import TWO_CORES

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]
VERSION = "3.1.4"
FILE_S = 60  # for a file of tests; with us the longest takes 10 on an idle machine


@pytest.fixture(scope="session")
def mpi4py_source(tmp_path_factory):
    """The unpacked source package."""
    where = tmp_path_factory.mktemp("mpi4py")
    got = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary",
                          ":all:", f"mpi4py=={VERSION}"], cwd=where, timeout=600, check=False,
                         capture_output=True, text=True)
    if got.returncode != 0:
        pytest.skip(f"cannot download mpi4py's source: {got.stderr[-500:]}")
    subprocess.run(["tar", "xf", f"mpi4py-{VERSION}.tar.gz"], cwd=where, check=True)
    return where / f"mpi4py-{VERSION}"


@pytest.fixture
def suite(mpi, mpi4py_source, run_program, tmp_path):
    """The interpreter, the environment to run the suite in, and its directory."""
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    python = "/usr/bin/python3"  # which has Debian's module
    if mpi.name == "mpich":
        python = sys.executable
        run_program([python, "setup.py", "-q", "build", f"--mpicc={mpi.mpicc}",
                     f"--build-base={tmp_path}/build"], cwd=mpi4py_source, timeout=900)
        env["PYTHONPATH"] = str(next((tmp_path / "build").glob("lib*")))
    elif run_program([python, "-c", "import mpi4py"], check=False).returncode != 0:
        pytest.skip("needs package python3-mpi4py")
    return python, env, mpi4py_source


def files(source):
    """Its test files, without those that start processes of their own, which Comm_spawn places by
    rules of the launcher."""
    names = sorted(path.stem for path in (source / "test").glob("test_*.py"))
    return [name for name in names if name not in ("test_spawn", "test_dynproc")]


def verdicts(text):
    """What the ranks say at their ends, how many tests failed or were skipped; in any order."""
    return sorted(re.findall(r"^(?:FAILED.*|OK.*)$", text, re.M))


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_mpi4pys_suite_passes_the_same(suite, mpi, invade, run_program, ranks):
    python, env, source = suite
    differ = {}
    for name in files(source):
        command = mpi.run(ranks, python, "test/runtests.py", "--no-builddir", "-i", f"^{name}$")
        ends = []
        for launcher in [invade, TWO_CORES, "--"], []:
            try:
                process = run_program([*launcher, *command], env=env, cwd=source, timeout=FILE_S,
                                      check=False)
                ends.append((process.returncode, verdicts(process.stderr)))
            except subprocess.TimeoutExpired:
                ends.append("no end")
        if ends[0] == "no end" or ends[1] not in ("no end", ends[0]):
            differ[name] = ends
    assert not differ
