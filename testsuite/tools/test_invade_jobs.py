# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenMP and MPI jobs under invade end as they do stock, whatever way they end, and --report
tells about every process.  Results and speed of such jobs are tested elsewhere."""

import contextlib
import os
import signal
import subprocess
import time

import pytest

from lib.job_programs import OMP
from lib.processes import descendants, gone, running
from lib.report import rows
from lib.waiting import PATIENCE_S


@pytest.fixture
def mpi(job_programs, mpiexec):
    if "mpi" not in job_programs:
        pytest.skip("configured without MPICH")
    return [mpiexec, "-n", "2", job_programs["mpi"]]


# --- OpenMP

@pytest.mark.smoke
@pytest.mark.parametrize("how", ["plain", "xec"])
def test_an_openmp_program_ends_as_stock(run_program, invade, omp_job, how):
    for command in ([omp_job, how], [invade, "--", omp_job, how]):
        done = run_program(command, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (11, "good\n", "")


def test_the_child_of_a_fork_can_use_openmp(run_program, invade, omp_job):
    """With the stock library it hangs in its first region."""
    done = run_program([invade, "--", omp_job, "fork"], check=False)
    assert (done.returncode, done.stdout, done.stderr) == (11, "good\n", "")


def test_an_openmp_program_that_aborts_ends_as_stock(run_program, invade, omp_job):
    done = run_program([invade, "--", omp_job, "abort"], check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGABRT, "", "")


def test_the_report_has_a_line_for_an_openmp_program(run_program, invade, omp_job, tmp_path):
    report = tmp_path / "report"
    run_program([invade, f"--report={report}", omp_job], check=False)
    line, = rows(report.read_text())
    assert line[0] == "-" and line[2] == "omp" and "parallel efficiency" in report.read_text()


def test_programs_side_by_side_are_all_reported(run_program, invade, omp_job, tmp_path):
    report = tmp_path / "report"
    cores = len(os.sched_getaffinity(0))
    script = " ".join(f"{omp_job} &" for _ in range(min(cores, 4))) + " wait"
    done = run_program([invade, f"--report={report}", "sh", "-c", script])
    assert done.stdout == "good\n" * min(cores, 4)
    assert len(rows(report.read_text())) == min(cores, 4)


def test_a_killed_program_leaves_nothing_to_the_next_one(run_program, invade, omp_job):
    done = run_program([invade, "bash", "-c", f"coproc {{ exec {omp_job} loop; }}; "
                        "read -u ${COPROC[0]} x; kill -9 $COPROC_PID; "
                        f"wait $COPROC_PID; {omp_job}; echo $?"])
    assert done.stdout == "good\n11\n"


def test_the_cores_of_a_killed_program_are_the_others(invade, build, omp_job, stock_env):
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
    with running(invade, "--", "bash", "-c", script, omp_job, env=stock_env,
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


@pytest.mark.parametrize("where", ["managed", "unmanaged"])
@pytest.mark.parametrize("sanitizer", ["address", "undefined", "thread"])
def test_a_sanitized_program_ends_as_stock(run_program, build, invade, make_variable, tmp_path,
                                           sanitizer, where):
    """Teams are larger than the cores, and meet in barriers.  An OpenMP runtime that is not built
    with ThreadSanitizer makes it report races that are none, here as in stock."""
    (tmp_path / "omp.c").write_text(OMP)
    run_program([*(make_variable("CC") or "cc").split(), "-fopenmp", f"-fsanitize={sanitizer}",
                 "-o", tmp_path / "omp", tmp_path / "omp.c"])
    env = {"OMP_NUM_THREADS": "16", "TSAN_OPTIONS": "report_bugs=0"}
    command = [tmp_path / "omp"]
    if where == "managed":
        command = [invade, "--", *command]
    else:
        env["LD_LIBRARY_PATH"] = f"{build / 'lib/invasive'}:{build / 'lib'}"
    done = run_program(command, check=False, env=env)
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
