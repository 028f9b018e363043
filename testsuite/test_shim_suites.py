# SPDX-License-Identifier: GPL-3.0-or-later
"""Test programs of others, built by Debian for either MPI, find the same under invade as without:
ScaLAPACK's (package scalapack-mpi-test), NetPIPE (netpipe-mpich2, netpipe-openmpi)."""

import re
import shutil
from pathlib import Path

import pytest
from machine import TWO_CORES

pytestmark = pytest.mark.full


@pytest.fixture
def both(build, mpi, run_program):
    """both(RANKS, COMMAND...): its standard output without and with us."""

    def run(ranks, *command, **more):
        env = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        line = mpi.run(ranks, *command)
        return (run_program(line, env=env, timeout=600, **more).stdout,
                run_program([build / "invade", TWO_CORES, "--", *line], env=env, timeout=600,
                            **more).stdout)

    return run


def verdicts(text):
    """What a ScaLAPACK tester says of each case, without its times."""
    cases = [re.sub(r"[\d.]+ *(?=PASSED|FAILED)", "", line).split()
             for line in text.splitlines() if re.search("PASSED|FAILED", line)]
    return [(words[0], words[-1]) for words in cases], re.findall(r"(?:\d+|None) tests? .*", text)


@pytest.mark.parametrize("program", ["xdlu", "xzllt", "xsqr", "xdsep"])
def test_scalapack_finds_the_same(both, mpi, program):
    found = list(Path("/usr/lib").glob(f"*/scalapack/{mpi.name}-tests/{program}"))
    if not found:
        pytest.skip("needs package scalapack-mpi-test")
    stock, managed = both(4, found[0], cwd=found[0].parent)
    assert "PASSED" in stock.upper()
    assert verdicts(managed) == verdicts(stock)


def test_netpipe_runs_to_its_end(both, mpi, tmp_path):
    program = shutil.which({"mpich": "NPmpich2", "openmpi": "NPopenmpi"}[mpi.name])
    if not program:
        pytest.skip("needs packages netpipe-mpich2, netpipe-openmpi")
    both(2, program, "-I", "-u", "65536", "-o", tmp_path / "out", cwd=tmp_path)
    sizes = [line.split()[0] for line in (tmp_path / "out").read_text().splitlines()]
    assert sizes and int(sizes[-1]) >= 65536
