# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CPUs a managed process has, and which it sees: where its launcher has bound it, and where
threads compute that are none of the runtime's."""

import os
import re

import pytest

from lib.machine import TWO_CORES, TWO_CPUS


def test_a_rank_that_its_launcher_has_bound_sees_its_own_core_and_computes_on_all(
        build, make_variable, run_program, top, tmp_path):
    """Libraries make as many threads as they see CPUs."""
    mpicc, mpiexec = make_variable("OPENMPI_MPICC"), make_variable("OPENMPI_MPIEXEC")
    if not mpicc:
        pytest.skip("configured without openmpi")
    program = tmp_path / "bound"
    run_program([mpicc, "-O1", "-fopenmp", "-o", program, top / "testsuite/mpi/programs/bound.c"])
    job = [mpiexec, "-n", 2, program]
    seen = re.findall(r"rank \d: (\d+) (\d+)", run_program(job).stdout)
    done = run_program([build / "invade", TWO_CORES, "--", *job])
    assert re.findall(r"rank \d: (\d+) (\d+)", done.stdout) == seen, "not what it is without us"
    assert "2 at once" in done.stdout and done.stderr == ""


def test_a_rank_without_openmp_that_its_launcher_has_bound_runs_on_the_core_that_it_holds(
        build, make_variable, run_program, top, tmp_path):
    """Otherwise the kernel wakes one that slept for a file where another one waits by spinning."""
    mpicc, mpiexec = make_variable("OPENMPI_MPICC"), make_variable("OPENMPI_MPIEXEC")
    if not mpicc:
        pytest.skip("configured without openmpi")
    program = tmp_path / "one_cpu"
    run_program([mpicc, "-O1", "-o", program, top / "testsuite/mpi/programs/one_cpu.c"])
    done = run_program([build / "invade", TWO_CORES, "--", mpiexec, "-n", 2, program])
    assert sorted(done.stdout.splitlines()) == [f"cpus {cpu}" for cpu in sorted(TWO_CPUS)]


LOOK = ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"]


@pytest.fixture
def ranks_begin(make_variable, run_program):
    """ranks_begin(BEFORE, OPTION...) - on which CPUs, sorted lines, with Open MPI's launcher."""
    mpiexec = make_variable("OPENMPI_MPIEXEC")
    if not mpiexec:
        pytest.skip("configured without openmpi")
    return lambda before, *options: sorted(
        run_program([*before, mpiexec, *options, *LOOK]).stdout.splitlines())


def test_open_mpis_launcher_takes_more_ranks_than_cores_and_binds_none_of_them(
        build, run_program, ranks_begin):
    ranks = os.cpu_count() + 1
    lines = ranks_begin([build / "invade", "--"], "-n", ranks)
    assert lines == run_program(LOOK).stdout.splitlines() * ranks


def test_a_binding_that_the_user_has_chosen_is_kept_by_what_is_no_openmp(build, ranks_begin):
    stock, managed = (ranks_begin(before, "--bind-to", "core", "-n", 2)
                      for before in ([], [build / "invade", "--"]))
    assert stock == managed and len(set(stock)) == 2


SHOW = """
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
int shown(void);
int shown(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}
#ifdef MAIN
int other(void);
int main(void) { return printf("%d %d\\n", other(), shown()) < 0; }
#endif
"""


@pytest.fixture
def shows(make_variable, run_program, tmp_path):
    """A program that prints how many CPUs a library sees that is called OpenBLAS, and itself."""
    source, program = tmp_path / "shows.c", tmp_path / "shows"
    source.write_text(SHOW)
    compiler = make_variable("CC").split()
    library = tmp_path / "libopenblas-of-a-test.so"
    run_program([*compiler, "-shared", "-fPIC", "-Dshown=other", "-o", library, source])
    run_program([*compiler, "-DMAIN", "-o", program, source, library])
    return program


@pytest.mark.parametrize("before, ranks, seen", [
    ([], 2, "1 2"), ([], 3, "1 2"), ([], 1, "2 2"), (["taskset", "-c", str(TWO_CPUS[0])], 2, "1 1"),
    (["env", "INVASIVE=off"], 2, "2 2")], ids=["fill", "more", "one", "bound", "off"])
def test_openblas_sees_one_cpu_in_ranks_that_fill_the_cores(
        build, make_variable, run_program, shows, before, ranks, seen):
    launcher = [make_variable("MPIEXEC"), "-n", ranks]
    done = run_program([build / "invade", TWO_CORES, "--", *launcher, *before, shows])
    assert done.stdout.splitlines() == [seen] * ranks


@pytest.fixture
def openmp_program(build, make_variable, run_program, top, tmp_path):
    """openmp_program(NAME) - the program of that source, for our OpenMP runtime."""
    if not (build / "lib/invasive/libgomp.so.1").exists():
        pytest.skip("libgomp-invasive is not built")

    def compiled(name):
        run_program([*make_variable("CC").split(), "-O1", "-fopenmp", "-o", tmp_path / name,
                     top / f"testsuite/mpi/programs/{name}.c"])
        return tmp_path / name
    return compiled


def test_the_kernel_places_threads_while_others_of_the_process_compute(
        build, run_program, openmp_program):
    program = openmp_program("strangers")
    wanted = ["alone 1", "beside one that sleeps 1", "beside one that computes 2",
              "between them 1", "beside one that yields 2", "between them 1",
              "beside one that yields, in one region 2", "afterwards 1"]
    for _ in range(8):  # on a busy machine a thread that wakes up often may look as if it computed
        done = run_program([build / "invade", TWO_CORES, "--", program])
        assert done.stderr == ""
        if done.stdout.splitlines() == wanted:
            break
    assert done.stdout.splitlines() == wanted


@pytest.mark.timeout(300)
def test_a_thread_beside_another_program_is_pulled_to_the_core_of_one_that_sleeps(
        build, run_program, openmp_program):
    program = openmp_program("pull")
    done = run_program([build / "invade", TWO_CORES, "--", program, str(TWO_CPUS[1])])
    assert (done.stdout, done.stderr) == ("pulled 5, settled 10\n", "")
