# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that were to be managed and cannot be: each computes on its share of the cores."""

import os
import signal
import subprocess

import pytest

from lib.building.small_programs import compile_text
from lib.machine import TWO_CORES, two_cpus
from lib.processes import children
from lib.waiting import PATIENCE_S

pytestmark = two_cpus

RANK_C = r"""
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    int rank, threads = 0, early = 0;
    if (argc > 1)
        early = omp_get_max_threads();
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#pragma omp parallel reduction(+ : threads)
    threads++;
    printf("rank %d: %d of %d, told %d\n", rank, threads, omp_get_max_threads(), early);
    return MPI_Finalize();
}
"""


@pytest.fixture
def rank(mpi, tmp_path):
    return compile_text(tmp_path / "rank", RANK_C, "-fopenmp", compiler=mpi.mpicc)


@pytest.fixture
def beside_a_stopped_rmd(invade, stock_env):
    """beside_a_stopped_rmd(COMMAND...): the command's lines, and what is said on stderr."""

    def run(*command):
        script = 'echo begun; read go; "$@"; echo "status $?"; read end'
        words = [invade, TWO_CORES, "--", "sh", "-c", script, "sh", *command]
        with subprocess.Popen([str(word) for word in words], env=stock_env, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True) as process:
            try:
                assert process.stdout.readline() == "begun\n"
                (rmd,) = children(process.pid, "rmd")
                os.kill(rmd, signal.SIGSTOP)
                try:
                    process.stdin.write("go\n")
                    process.stdin.flush()
                    lines = []
                    while not lines or not lines[-1].startswith("status"):
                        lines.append(process.stdout.readline().strip())
                        assert lines[-1], "the command has ended"
                finally:
                    os.kill(rmd, signal.SIGCONT)
                said = process.communicate(timeout=PATIENCE_S)[1]
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        return lines, said

    return run


def test_ranks_that_rmd_does_not_answer_share_the_cores(rank, mpi, beside_a_stopped_rmd):
    lines, said = beside_a_stopped_rmd(*mpi.run(2, rank))
    assert sorted(lines) == ["rank 0: 1 of 1, told 0", "rank 1: 1 of 1, told 0", "status 0"]
    assert said.count("has not answered for 5 s: is it stopped? Running unmanaged.") == 2


def test_ranks_that_were_told_a_size_before_keep_it(rank, mpi, beside_a_stopped_rmd):
    lines, _ = beside_a_stopped_rmd(*mpi.run(2, rank, "early"))
    assert sorted(lines) == ["rank 0: 16 of 16, told 16", "rank 1: 16 of 16, told 16", "status 0"]


def test_a_rank_beside_one_that_is_unmanaged_has_its_share_of_the_cores(
        rank, mpi, invade, run_program):
    done = run_program([invade, TWO_CORES, "--", *mpi.run(1, rank), ":", "-n", 1, "env",
                        "INVASIVE=off", "OMP_NUM_THREADS=1", rank])
    assert sorted(done.stdout.splitlines()) == ["rank 0: 1 of 1, told 0", "rank 1: 1 of 1, told 0"]
    assert done.stderr.count("MPI rank 1 is not managed: running unmanaged") == 1


def test_a_size_that_the_user_has_chosen_is_kept(rank, mpi, invade, run_program):
    done = run_program([invade, TWO_CORES, "--threads=3", "--", *mpi.run(1, rank), ":", "-n", 1,
                        "env", "INVASIVE=off", "OMP_NUM_THREADS=1", rank])
    assert sorted(done.stdout.splitlines()) == ["rank 0: 3 of 3, told 0", "rank 1: 1 of 1, told 0"]
