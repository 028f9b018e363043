# SPDX-License-Identifier: GPL-3.0-or-later
"""Python programs with mpi4py, whose MPI is linked to a module that Python loads privately."""

import re

import pytest

from lib.machine import TWO_CORES

PROGRAM = """
import sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
status = MPI.Status()
for i in range(20):
    end = time.thread_time() + (0.01 if rank == 0 else 0)
    while time.thread_time() < end:
        pass
    total = comm.allreduce(rank + i)
    assert total == size * (size - 1) // 2 + size * i
    comm.send([rank, i], dest=(rank + 1) % size, tag=3)
    got = comm.recv(source=MPI.ANY_SOURCE, tag=3, status=status)
    assert got == [(rank - 1) % size, i] and status.source == (rank - 1) % size
    words = bytearray(8 * size)
    comm.Allgather(rank.to_bytes(8, "little"), words)
    assert words[8 * rank] == rank
    comm.Barrier()
half = comm.Split(rank % 2)
assert half.allreduce(1) == (size + 1 - rank % 2) // 2
half.Free()
try:
    comm.Send(bytearray(1), dest=size + 1)
except MPI.Exception as error:
    sys.stdout.write("rank %d of %d: error class %d\\n" % (rank, size, error.Get_error_class()))
"""


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_mpi4py_programs_run_managed_with_the_same_results(build, run_program, make_variable,
                                                           tmp_path, ranks):
    """Debian's mpi4py, which is for Open MPI."""
    mpiexec = make_variable("OPENMPI_MPIEXEC")
    python = "/usr/bin/python3"
    if not mpiexec or run_program([python, "-c", "import mpi4py"], check=False).returncode != 0:
        pytest.skip("packages python3-mpi4py and openmpi-bin are needed")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    stock = run_program([mpiexec, "--oversubscribe", "-n", ranks, python, program])
    done = run_program([build / "invade", TWO_CORES, "--report", "--", mpiexec, "-n", ranks, python,
                        program])
    assert stock.stdout.count("error class") == ranks
    assert sorted(done.stdout.splitlines()) == sorted(stock.stdout.splitlines())
    waiting = re.findall(r"^ *\d+ +\d+ +python3\S* +[\d.]+ +([\d.]+) ", done.stderr, re.M)
    assert len(waiting) == ranks
    assert ranks != 2 or float(waiting[1]) > 0.05
