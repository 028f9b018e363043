# SPDX-License-Identifier: GPL-3.0-or-later
"""Test programs of others, built by Debian for either MPI, find the same under invade as without:
hpcc, NetPIPE (netpipe-mpich2, netpipe-openmpi), ScaLAPACK's (scalapack-mpi-test)."""

import re
import shutil
from pathlib import Path

import pytest

from lib.machine import TWO_CORES

HPCC_INPUT = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")


ENV = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def managed(invade, mpi, run_program):
    """managed(RANKS, COMMAND..., timeout=S): a run under invade, as of subprocess."""

    def run(ranks, *command, **more):
        return run_program([invade, TWO_CORES, "--", *mpi.run(ranks, *command)], env=ENV, **more)

    return run


def verdicts(text):
    """The verdict of a ScaLAPACK tester on each case, without times."""
    cases = [re.sub(r"[\d.]+ *(?=PASSED|FAILED)", "", line).split()
             for line in text.splitlines() if re.search("PASSED|FAILED", line)]
    return [(words[0], words[-1]) for words in cases], re.findall(r"(?:\d+|None) tests? .*", text)


# An uninitialised variable decides whether estimates of condition numbers go on: EST in p?lacon,
# up to 2.2.2 (github.com/Reference-ScaLAPACK/scalapack/pull/122).  Ranks may take different ways
# there, by what is on their stacks, and then hang, in stock runs too.
NO_ESTIMATES = {"(T or F) Test Cond": "F"}
FEW = {"number of problems sizes": "1", "values of M": "23", "values of N": "23",
       "number of NB's": "1"}


def scalapack(mpi, program, where, changes):
    """The program; its input is in directory `where` then, with other values before such words."""
    found = list(Path("/usr/lib").glob(f"*/scalapack/{mpi.name}-tests/{program}"))
    if not found:
        pytest.skip("needs package scalapack-mpi-test")
    for data in found[0].parent.glob("*.dat"):
        text = data.read_text()
        for words, values in changes.items():
            text = re.sub(rf"^.*?([ \t]+{re.escape(words)}\b)", rf"{values}\1", text, flags=re.M)
        (where / data.name).write_text(text)
    return found[0]


# With more ranks than cores stock takes minutes with MPICH.
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.full)])
@pytest.mark.parametrize("program", ["xdlu", "xzllt", "xsqr", "xdtrd"])
def test_scalapack_finds_with_us_what_it_finds_without(
        managed, run_program, mpi, program, ranks, tmp_path):
    path = scalapack(mpi, program, tmp_path, NO_ESTIMATES)
    where = {"cwd": tmp_path, "timeout": 100 if ranks == 2 else 900}
    stock = run_program(mpi.run(ranks, path), env=ENV, **where)
    ours = managed(ranks, path, **where)
    assert "PASSED" in stock.stdout
    assert verdicts(ours.stdout) == verdicts(stock.stdout)


# Stock is no reference here: with MPICH it takes minutes.
def test_scalapack_passes_with_more_ranks_than_cores(managed, mpi, tmp_path):
    path = scalapack(mpi, "xdlu", tmp_path, {**FEW, **NO_ESTIMATES})
    said = managed(4, path, cwd=tmp_path, timeout=100).stdout
    assert re.search(r"^ *0 tests completed and failed residual checks", said, re.M)
    assert re.search(r"^ *36 tests completed and passed residual checks", said, re.M)


def test_netpipe_runs_to_its_end(managed, mpi, tmp_path):
    """Messages of all sizes up to 64 KiB, by one, and around the powers of two."""
    program = shutil.which({"mpich": "NPmpich2", "openmpi": "NPopenmpi"}[mpi.name])
    if not program:
        pytest.skip("needs packages netpipe-mpich2, netpipe-openmpi")
    managed(2, program, "-n", "10", "-u", "65536", "-o", tmp_path / "out", cwd=tmp_path,
            timeout=100)
    sizes = [line.split()[0] for line in (tmp_path / "out").read_text().splitlines()]
    assert sizes and int(sizes[-1]) >= 65536


def small_hpcc(ranks):
    """The input of hpcc: a matrix of 200, on a row of all ranks."""
    lines = HPCC_INPUT.read_text().splitlines()
    lines[5], lines[7], lines[10], lines[11] = "200 Ns", "32 NBs", "1 Ps", f"{ranks} Qs"
    return "\n".join(lines) + "\n"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("ranks", [2, pytest.param(5, marks=pytest.mark.full)])
@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)  # Debian builds it for that one
def test_hpcc_passes_its_checks(managed, mpi, tmp_path, ranks):
    """Residuals and errors of HPL, PTRANS, DGEMM, RandomAccess, STREAM, FFT."""
    if not shutil.which("hpcc") or not HPCC_INPUT.exists():
        pytest.skip("needs package hpcc")
    (tmp_path / "hpccinf.txt").write_text(small_hpcc(ranks))
    managed(ranks, "hpcc", cwd=tmp_path, timeout=280)
    text = (tmp_path / "hpccoutf.txt").read_text()
    assert "PASSED" in text and "FAILED" not in text
    assert re.findall("^(Success=.*|MPIRandomAccess_Errors=.*)", text, re.M) == [
        "Success=1", "MPIRandomAccess_Errors=0"]
