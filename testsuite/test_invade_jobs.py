# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenMP and MPI jobs under invade end as they do stock, whatever way they end, and --report
tells about every process.  Results and speed of such jobs are tested elsewhere."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

PATIENCE_S = 30

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
def programs(make_variable, tmp_path_factory):
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
def omp(programs):
    return programs["omp"]


@pytest.fixture
def mpi(programs, mpiexec):
    if "mpi" not in programs:
        pytest.skip("configured without MPICH")
    return [mpiexec, "-n", "2", programs["mpi"]]


def rows(report):
    """The lines of a report on a process each, as words."""
    return [line.split() for line in report.splitlines() if re.match(r" +(\d+|-) +\d+ ", line)]


def descendants(pid):
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                parents[int(entry.name)] = (int(fields[1]), fields[0])
    found = [pid]
    for one in found:
        found += [p for p, (parent, state) in parents.items() if parent == one and state != "Z"]
    return found[1:]


def gone(pids):
    end = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in status(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def status(pid):
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "\nState:\tZ"


@contextlib.contextmanager
def running(*command, env, **more):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, env=env, **more)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)


# --- OpenMP

@pytest.mark.smoke
@pytest.mark.parametrize("how", ["plain", "xec"])
def test_an_openmp_program_ends_as_stock(run_program, invade, omp, how):
    for command in ([omp, how], [invade, "--", omp, how]):
        done = run_program(command, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (11, "good\n", "")


def test_the_child_of_a_fork_can_use_openmp(run_program, invade, omp):
    """With the stock library it hangs in its first region."""
    done = run_program([invade, "--", omp, "fork"], check=False)
    assert (done.returncode, done.stdout, done.stderr) == (11, "good\n", "")


def test_an_openmp_program_that_aborts_ends_as_stock(run_program, invade, omp):
    done = run_program([invade, "--", omp, "abort"], check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGABRT, "", "")


def test_the_report_has_a_line_for_an_openmp_program(run_program, invade, omp, tmp_path):
    report = tmp_path / "report"
    run_program([invade, f"--report={report}", omp], check=False)
    line, = rows(report.read_text())
    assert line[0] == "-" and line[2] == "omp" and "parallel efficiency" in report.read_text()


def test_programs_side_by_side_are_all_reported(run_program, invade, omp, tmp_path):
    report = tmp_path / "report"
    cores = len(os.sched_getaffinity(0))
    script = " ".join(f"{omp} &" for _ in range(min(cores, 4))) + " wait"
    done = run_program([invade, f"--report={report}", "sh", "-c", script])
    assert done.stdout == "good\n" * min(cores, 4)
    assert len(rows(report.read_text())) == min(cores, 4)


def test_a_killed_program_leaves_nothing_to_the_next_one(run_program, invade, omp):
    done = run_program([invade, "bash", "-c", f"coproc {{ exec {omp} loop; }}; "
                        "read -u ${COPROC[0]} x; kill -9 $COPROC_PID; "
                        f"wait $COPROC_PID; {omp}; echo $?"])
    assert done.stdout == "good\n11\n"


def test_the_cores_of_a_killed_program_are_the_others(invade, build, omp, stock_env):
    """Ten programs, one after the other, are killed in the middle of their regions beside one
    that lives on; it owns all cores again each time, and it still works."""
    script = ("echo $INVASIVE_SOCKET; $0 loop & kept=$!; for i in 1 2 3 4 5 6 7 8 9 10; do "
              "$0 loop & read x; kill -9 $!; wait $!; echo killed; read x; done; "
              "kill -9 $kept; wait $kept; echo end")

    def owners(socket):
        done = subprocess.run([build / "bin" / "rmctl", f"--socket={socket}"], check=True,
                              capture_output=True, text=True, timeout=PATIENCE_S)
        words = [line.split() for line in done.stdout.splitlines()]
        processes = [line[:5] for line in words if len(line) == 8 and line[3] == "omp"]
        return [int(line[4]) for line in processes]

    def eventually(socket, expected):
        end = time.monotonic() + PATIENCE_S
        while (got := owners(socket)) != expected:
            assert time.monotonic() < end, got
            time.sleep(0.01)

    cores = len(os.sched_getaffinity(0))
    with running(invade, "--", "bash", "-c", script, omp, env=stock_env,
                 stdin=subprocess.PIPE) as process:
        socket = process.stdout.readline().strip()
        assert process.stdout.readline() == "ready\n"
        for _ in range(10):
            assert process.stdout.readline() == "ready\n"
            eventually(socket, [cores - cores // 2, cores // 2])
            process.stdin.write("kill\n")
            process.stdin.flush()
            assert process.stdout.readline() == "killed\n"
            eventually(socket, [cores])
            process.stdin.write("next\n")
            process.stdin.flush()
        assert process.stdout.readline() == "end\n"
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("sanitizer", ["address", "undefined", "thread"])
def test_a_sanitized_program_ends_as_stock(run_program, invade, make_variable, tmp_path, sanitizer):
    """Teams are larger than the cores, and meet in barriers.  An OpenMP runtime that is not built
    with ThreadSanitizer makes it report races that are none, here as in stock."""
    (tmp_path / "omp.c").write_text(OMP)
    run_program([*(make_variable("CC") or "cc").split(), "-fopenmp", f"-fsanitize={sanitizer}",
                 "-o", tmp_path / "omp", tmp_path / "omp.c"])
    done = run_program([invade, "--", tmp_path / "omp"], check=False,
                       env={"OMP_NUM_THREADS": "16", "TSAN_OPTIONS": "report_bugs=0"})
    assert (done.returncode, done.stdout, done.stderr) == (11, "good\n", "")


# --- MPI

@pytest.mark.smoke
def test_an_mpi_program_ends_as_stock(run_program, invade, mpi):
    stock = run_program(mpi, check=False)
    managed = run_program([invade, "--", *mpi], check=False)
    assert stock.returncode == managed.returncode == 3
    assert sorted(stock.stdout.splitlines()) == sorted(managed.stdout.splitlines())


@pytest.mark.parametrize("how", ["abort", "killed"])
def test_a_job_that_fails_fails_as_stock(run_program, invade, mpi, how):
    """When a rank is killed the exit code of mpiexec varies, without us too."""
    stock = run_program([*mpi, how], check=False)
    managed = run_program([invade, "--", *mpi, how], check=False)
    assert 0 not in (stock.returncode, managed.returncode)
    assert how == "killed" or stock.returncode == managed.returncode == 17
    assert managed.stdout.count("sum") == stock.stdout.count("sum") == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_told_to_end_leaves_nothing(invade, mpi, stock_env, number):
    with running(invade, "--", *mpi, "long", env=stock_env) as process:
        assert process.stdout.readline() == "ready\n"
        family = descendants(process.pid)
        # Stock mpiexec ends with one code or another, depending on the rank that ends first.
        # Now and then it does not end before a second signal.
        for _ in range(5):
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
                break
        assert process.returncode is not None
        assert gone(family)


def test_a_killed_invade_takes_the_whole_job_with_it(invade, mpi, stock_env):
    with running(invade, "--", *mpi, "long", env=stock_env) as process:
        assert process.stdout.readline() == "ready\n"
        family = descendants(process.pid)
        assert len(family) >= 4  # rmd, mpiexec, its proxy, the ranks
        process.kill()
        assert gone(family)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_the_report_has_a_line_for_every_rank(run_program, invade, mpi, tmp_path, ranks):
    report = tmp_path / "report"
    run_program([invade, f"--report={report}", mpi[0], "-n", ranks, mpi[3]], check=False)
    lines = rows(report.read_text())
    assert [line[0] for line in lines] == [str(rank) for rank in range(ranks)]
    assert {line[2] for line in lines} == {"mpi"}


def test_jobs_of_other_sizes_follow_each_other(run_program, invade, mpi):
    jobs = "; ".join(f"{mpi[0]} -n {n} {mpi[3]} | wc -l" for n in (2, 5, 1, 2))
    assert run_program([invade, "sh", "-c", jobs]).stdout.split() == ["2", "5", "1", "2"]
