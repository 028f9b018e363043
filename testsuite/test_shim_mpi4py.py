# SPDX-License-Identifier: GPL-3.0-or-later
"""mpi4py's own test suite, from its source, passes under invade what it passes without.

The module is Debian's for Open MPI (python3-mpi4py); for MPICH it is built from the same source."""

import re
import subprocess
import sys

import pytest
from machine import TWO_CORES

pytestmark = [pytest.mark.full, pytest.mark.timeout(3000)]
VERSION = "3.1.4"
# They start processes of their own, which Comm_spawn places by rules of the launcher.
LEFT_OUT = ["-e", "spawn", "-e", "dynproc"]


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
    """The environment to run the suite in, and its directory."""
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    if mpi.name == "mpich":
        run_program([sys.executable, "setup.py", "-q", "build", f"--mpicc={mpi.mpicc}",
                     f"--build-base={tmp_path}/build"], cwd=mpi4py_source, timeout=900)
        env["PYTHONPATH"] = str(next((tmp_path / "build").glob("lib*")))
    return env, mpi4py_source


def passes(text):
    """How many tests were ok, over all ranks, whose lines may be mixed; and the verdicts."""
    return len(re.findall(r"\.\.\. ok\b", text)), re.findall(r"^(?:FAILED.*|OK.*)$", text, re.M)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_mpi4pys_suite_passes_the_same(suite, mpi, build, run_program, ranks):
    env, source = suite
    command = mpi.run(ranks, sys.executable, "test/runtests.py", "--no-builddir", "-v", *LEFT_OUT)
    ends = []
    for launcher in [], [build / "invade", TWO_CORES, "--"]:
        process = run_program([*launcher, *command], env=env, cwd=source, timeout=1200, check=False)
        ends.append((process.returncode, passes(process.stderr)))
    assert ends[0] == ends[1]
