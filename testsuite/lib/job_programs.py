# SPDX-License-Identifier: GPL-3.0-or-later
"""Two small programs, of OpenMP and of MPI, that end in the way that they are told."""

import subprocess

import pytest

OMP = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
static int team(void)
{
    int n = 0;
#pragma omp parallel reduction(+ : n)
    {
#pragma omp barrier
        n++;
    }
    return n == omp_get_max_threads();
}
int main(int argc, char **argv)
{
    int good = team();
    switch (argc > 1 ? argv[1][0] : ' ') {
    case 'f': /* a child that goes on with OpenMP */
        if (fork() == 0)
            _exit(!team());
        wait(&argc);
        good &= argc == 0;
        break;
    case 'x':
        execl(argv[0], argv[0], "plain", (char *)0);
        break;
    case 'a':
        abort();
    case 'l': /* until it is killed */
        puts("ready");
        fflush(stdout);
        for (;;)
            team();
    }
    puts(good ? "good" : "bad");
    return 10 + good;
}
"""


MPI = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 3; step++) {
        int one = 0;
#pragma omp parallel for reduction(+ : one)
        for (int i = 0; i < 100; i++)
            one++;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    switch (argc > 1 ? argv[1][0] : ' ') {
    case 'a':
        if (rank == 1)
            MPI_Abort(MPI_COMM_WORLD, 17);
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 'k':
        if (rank == 1)
            raise(SIGKILL);
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 'l':
        if (rank == 0) {
            puts("ready");
            fflush(stdout);
            sleep(60);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    }
    printf("rank %d sum %d\n", rank, sum);
    MPI_Finalize();
    return rank == 1 ? 3 : 0;
}
"""


@pytest.fixture(scope="session")
def job_programs(make_variable, tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    found = {}
    for name, source, compiler in (("omp", OMP, make_variable("CC") or "cc"),
                                   ("mpi", MPI, make_variable("MPICH_MPICC"))):
        if not compiler:
            continue
        (folder / f"{name}.c").write_text(source)
        subprocess.run([*compiler.split(), "-O1", "-fopenmp", "-o", folder / name,
                        folder / f"{name}.c"], check=True, timeout=60)
        found[name] = folder / name
    return found


@pytest.fixture
def omp_job(job_programs):
    return job_programs["omp"]
