# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPI shim changes nothing that a program can see: data, statuses, errors, exit codes."""

import re
import shutil

import pytest

RANKS = [1, 2, 3]  # alone; pinned cores; more ranks than cores


@pytest.fixture
def calls(mpi):
    return mpi.program("mpi-shim/tests/calls")


@pytest.fixture
def scenes(mpi):
    return mpi.program("mpi-shim/tests/scenes")


OF_STOCK = {}


@pytest.fixture
def stock(mpi, run_program):
    """stock(RANKS, WORD...) - once for all tests: more ranks than cores that spin take long"""

    def run(ranks, *command, **more):
        key = mpi.name, ranks, *map(str, command), repr(more)
        if key not in OF_STOCK:
            OF_STOCK[key] = run_program(mpi.run(ranks, *command), **more)
        return OF_STOCK[key]

    return run


def report_of(process):
    """{rank: seconds of waiting} as invade --report gives it."""
    rows = re.findall(r"^ *(\d+) +\d+ +\S+ +([\d.]+) +([\d.]+) ", process.stderr, re.M)
    return {int(rank): float(waiting) for rank, _, waiting in rows}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.timeout(300)
def test_every_wrapped_call_gives_what_it_gives_without_us(managed, stock, calls, ranks):
    with_us, without = managed(ranks, calls, timeout=140), stock(ranks, calls, timeout=140)
    assert without.stdout.count("---") >= 7 * ranks
    assert with_us.stdout == without.stdout
    assert sorted(report_of(with_us)) == list(range(ranks)), "a rank was not managed"


@pytest.mark.timeout(300)
def test_calls_are_the_same_with_a_core_for_each_of_four_ranks(managed, calls):
    """A rank may leave a collective that exchanges nothing while others still wake up in it.  With
    more ranks than cores they give what they give without us: see the tests beside this one."""
    with_us = managed(4, calls, cores="--emulate-cores=4", timeout=140)
    assert with_us.stdout == managed(4, calls, timeout=140).stdout


@pytest.mark.timeout(300)
def test_calls_are_the_same_with_non_blocking_forms_of_collectives(managed, stock, calls):
    """More ranks than cores, and the library does not call us, as with MPI_THREAD_MULTIPLE."""
    with_us = managed(3, calls, timeout=140, env={"INVASIVE_MPI_TASKS": "1"})
    assert with_us.stdout == stock(3, calls, timeout=140).stdout


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("scene", ["poll", "compute", "threads", "uneven", "owned"])
def test_waits_of_every_kind_end(managed, scenes, scene, ranks):
    assert managed(ranks, scenes, scene).stdout == "done\n"


def test_a_rank_that_waits_is_seen_to_wait(managed, scenes):
    """Rank 0 computes 9 ms an iteration, rank 1 one: the wrappers are in force."""
    waiting = report_of(managed(2, scenes, "uneven"))
    assert waiting[1] > 0.1
    assert waiting[1] > waiting[0]


def test_a_polling_rank_is_seen_to_wait(managed, scenes):
    waiting = report_of(managed(2, scenes, "poll"))
    assert waiting[1] > 0.05


# Rank 1 has two implicit tasks without a scheduling point; how often are they on two cores, while
# rank 0 tests?
LONG_TASKS = r"""
#define _GNU_SOURCE
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
static volatile int cpu[2] = {-1, -1};
static void compute(int self, double until, int *apart, int *all)
{
    while (omp_get_wtime() < until) {
        for (volatile int i = 0; i < 20000; i++)
            ;
        cpu[self] = sched_getcpu();
        if (self == 0)
            ++*all, *apart += cpu[1] >= 0 && cpu[1] != cpu[0];
    }
}
int main(int argc, char **argv)
{
    int rank, flag = 0, x = 0, apart = 0, all = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Irecv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        double until = omp_get_wtime() + 1;
#pragma omp parallel num_threads(2) shared(apart, all)
        compute(omp_get_thread_num(), until, &apart, &all);
        MPI_Send(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        printf("apart %.3f\n", (double)apart / all);
    }
    MPI_Finalize();
    return 0;
}
"""


def test_a_rank_evicted_from_a_core_computes_there_while_its_owner_tests(
        managed, mpi, run_program, tmp_path):
    source, program = tmp_path / "long.c", tmp_path / "long"
    source.write_text(LONG_TASKS)
    run_program([mpi.mpicc, "-O1", "-fopenmp", "-o", program, source])
    apart = re.search(r"apart (\S+)", managed(2, program).stdout)
    assert float(apart.group(1)) > 0.3


# How busy rank 0 is while it waits in a call that rank 1 comes late for.
LATE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
enum { LONG = 4000000 };
static char *data, room[2 * LONG];
static int rank;
static MPI_Request posted;
static MPI_Info info;
static MPI_Win win;
static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
/* What the late one has begun before. */
static void begin(const char *call)
{
    if (!strcmp(call, "Buffer_detach") && rank == 0)
        MPI_Bsend(data, LONG, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    else if (!strcmp(call, "Rsend") && rank == 1)
        MPI_Irecv(data, LONG, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &posted);
}
static void wait_in(const char *call)
{
    char *detached;
    int size;
    if (!strcmp(call, "Win_set_info"))
        MPI_Win_set_info(win, info);
    else if (!strcmp(call, "Rsend") && rank == 0)
        MPI_Rsend(data, LONG, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    else if (!strcmp(call, "Rsend"))
        MPI_Wait(&posted, MPI_STATUS_IGNORE);
    else if (rank == 1)
        MPI_Recv(data, LONG, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Buffer_detach(&detached, &size);
}
int main(int argc, char **argv)
{
    int *memory;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&info);
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    data = calloc(1, LONG);
    MPI_Buffer_attach(room, sizeof room);
    begin(argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        usleep(600000);
    double start = MPI_Wtime(), before = cpu();
    wait_in(argv[1]);
    if (rank == 0)
        printf("waited %.3f busy %.3f\n", MPI_Wtime() - start, cpu() - before);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("call", ["Win_set_info", "Buffer_detach", "Rsend"])
def test_a_rank_that_waits_in_a_call_that_others_seldom_come_late_for_keeps_no_core_busy(
        managed, mpi, run_program, tmp_path, call):
    source, program = tmp_path / "late.c", tmp_path / "late"
    source.write_text(LATE)
    run_program([mpi.mpicc, "-o", program, source])
    waited, busy = re.search(r"waited (\S+) busy (\S+)", managed(2, program, call).stdout).groups()
    if call != "Win_set_info":
        assert float(waited) > 0.2
    assert float(busy) < 0.1


@pytest.mark.parametrize("ranks", [2, 5])
def test_abort_ends_the_job_with_its_code_while_others_wait(managed, stock, scenes, ranks):
    assert managed(ranks, scenes, "abort", check=False).returncode == 7
    assert stock(ranks, scenes, "abort", check=False).returncode == 7


def test_the_exit_code_of_main_is_passed_on(managed, scenes):
    assert managed(2, scenes, "exit", check=False).returncode == 3


def test_every_function_of_the_table_is_exported_and_none_is_wanted(build, table, run_program):
    """No MPI library is needed to load the shim, and nothing but MPI functions is shown."""
    if not shutil.which("nm"):
        pytest.skip("nm is missing: install package binutils")
    library = build / "lib/invasive/libinvasive-mpi.so"
    defined = run_program(["nm", "-D", "--defined-only", library]).stdout.split()
    names = {word.split("@")[0] for word in defined if word.startswith(("MPI_", "PMPI_", "shim_"))}
    assert names == {level + f.name for f in table if f.kind not in ("use", "list")
                     for level in ("MPI_", "PMPI_")}
    undefined = run_program(["nm", "-D", "--undefined-only", library]).stdout
    assert "MPI_" not in undefined


def test_the_variants_call_no_mpi_function_by_its_name(build, run_program):
    """They would get our own entries.  Open MPI's handles are addresses of its data."""
    variants = sorted((build / "lib/invasive").glob("libinvasive-mpi-*.so"))
    assert variants
    for variant in variants:
        undefined = run_program(["nm", "-D", "--undefined-only", variant]).stdout.split()
        wanted = {word for word in undefined if "mpi_" in word.lower()}
        assert all(re.fullmatch("ompi_[a-z0-9_]+", word) for word in wanted)
        defined = run_program(["nm", "-D", "--defined-only", variant]).stdout.split()
        assert {word for word in defined if "shim" in word.lower()} == {"shim_variant"}
