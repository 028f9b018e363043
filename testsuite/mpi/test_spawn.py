# SPDX-License-Identifier: GPL-3.0-or-later
"""MPI_Comm_spawn: what the ranks do while they wait for processes of another job.

Debian's MPICH is built without it.  Debian's PMIx 4.2 now and then leaves one of several processes
that start at once without an answer, and all wait for that one for ever, without us too
(github.com/openpmix/openpmix/issues/2967); so what does not end is tried again."""

import re

import pytest

from lib.machine import TWO_CORES
from lib.processes import TIME_IS_UP, at_most

pytestmark = pytest.mark.usefixtures("what_mpi_leaves_when_it_is_killed_goes")

TRIES, TRY_S = 5, 40
MOST_PERCENT = 25
# A child comes late to each of some collectives; how busy its parents were meanwhile.
LATE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void together(int how, MPI_Comm all, MPI_Comm others, int root)
{
    int value = 1, sum = 0;
    MPI_Comm made;
    if (how == 0)
        MPI_Barrier(others);
    if (how == 1)
        MPI_Bcast(&value, 1, MPI_INT, root, others);
    if (how == 2)
        MPI_Barrier(all);
    if (how == 3)
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all);
    if (how < 4)
        return;
    if (how == 4)
        MPI_Comm_dup(all, &made);
    else
        MPI_Comm_split(all, 0, 0, &made);
    MPI_Comm_free(&made);
}
int main(int argc, char **argv)
{
    MPI_Comm parents, others, all;
    int rank, count = argc > 1 ? atoi(argv[1]) : 1;
    char *none[] = {NULL};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parents);
    int child = (others = parents) != MPI_COMM_NULL;
    if (!child)
        MPI_Comm_spawn(argv[0], none, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                       MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(others, child, &all);
    for (int how = 0; how < 6; how++) {
        MPI_Barrier(all);
        double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), start = seconds(CLOCK_MONOTONIC);
        if (child)
            usleep(500000);
        together(how, all, others, !child ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL);
        cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
        double took = seconds(CLOCK_MONOTONIC) - start;
        if (!child)
            printf("%d %d: busy %.0f%%\n", rank, how, 100 * cpu / took);
    }
    MPI_Barrier(all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&others);
    printf("%s %d well\n", child ? "child" : "parent", rank);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture
def late(invade, mpi, run_program, tmp_path):
    """late(CHILDREN): the program with two ranks that start so many children."""
    source, program = tmp_path / "late.c", tmp_path / "late"
    source.write_text(LATE)
    run_program([mpi.mpicc, "-o", program, source])

    def run(children):
        for _ in range(TRIES):
            command = at_most(TRY_S, invade, TWO_CORES, "--", *mpi.run(2, program, children))
            process = run_program(command, check=False, timeout=TRY_S + 30)
            if process.returncode != TIME_IS_UP:
                break
        assert process.returncode == 0, process.stderr
        return process

    return run


@pytest.mark.timeout(3 * TRIES * (TRY_S + 30) + 30)
@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
@pytest.mark.parametrize("children", [1, 2, 3])
def test_a_rank_that_waits_in_a_collective_for_spawned_processes_keeps_no_core_busy(late, children):
    for _ in range(3):  # a rank that keeps a core busy does so each time
        process = late(children)
        assert len(re.findall(r"parent \d well", process.stdout)) == 2
        assert len(re.findall(r"child \d well", process.stdout)) == children
        busy = [int(part) for part in re.findall(r"busy (\d+)%", process.stdout)]
        assert len(busy) == 2 * 6
        if max(busy) < MOST_PERCENT:
            break
    assert max(busy) < MOST_PERCENT
