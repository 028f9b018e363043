# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPI shim as a preloaded library: harmless where there is no MPI, passed through where it
is not wanted, and in force where MPI was loaded privately."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TWO_CORES = "--cores=" + ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[:2])
PLUGIN = """
#include <mpi.h>
int plugin(void);
int plugin(void)
{
    int rank, size, sum = 0;
    MPI_Init(0, 0);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double until = MPI_Wtime() + (rank == 0 ? 0.2 : 0);
    while (MPI_Wtime() < until)
        ;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum;
}
"""
LOADER = """
import ctypes, sys
print(ctypes.CDLL(sys.argv[1], mode=0).plugin())
"""
WEAK = """
extern int MPI_Barrier(int);
int main(void) { return MPI_Barrier(0) == 0; }
"""


@pytest.fixture
def preload(build):
    """The environment of a launch, without a launch."""
    library = build / "lib/invasive/libinvasive-mpi.so"
    return {"LD_PRELOAD": f"{build}/lib/libinvasive.so.0 {library}"}


@pytest.mark.parametrize("now", [{}, {"LD_BIND_NOW": "1"}])
@pytest.mark.parametrize("command", [["sh", "-c", "echo $((6*7)); exit 5"], ["true"],
                                     [sys.executable, "-c", "print(1)"]])
def test_a_process_without_mpi_behaves_as_ever(run_program, preload, command, now):
    with_us = run_program(command, env={**preload, **now}, check=False)
    without = run_program(command, check=False)
    assert (with_us.returncode, with_us.stdout, with_us.stderr) == (
        without.returncode, without.stdout, without.stderr)


@pytest.mark.parametrize("unmanaged", [{}, {"INVASIVE_SOCKET": "@nobody", "INVASIVE": "off"}])
def test_an_unmanaged_program_gets_the_librarys_own_functions(mpi, run_program, preload, unmanaged):
    program = mpi.program("mpi-shim/tests/scenes")
    done = run_program(mpi.run(2, program, "uneven"), env={**preload, **unmanaged})
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_without_a_manager_the_program_runs_and_it_is_said_once_a_process(mpi, run_program,
                                                                          preload):
    program = mpi.program("mpi-shim/tests/scenes")
    done = run_program(mpi.run(2, program, "uneven"),
                       env={**preload, "INVASIVE_SOCKET": "@invasive-test-no-such-manager"})
    assert done.stdout == "done\n"
    assert 1 <= done.stderr.count("unmanaged") <= 2


def test_mpi_that_was_loaded_privately_is_managed(build, run_program, make_variable, mpi, tmp_path):
    source, plugin, loader = tmp_path / "p.c", tmp_path / "plugin.so", tmp_path / "load.py"
    source.write_text(PLUGIN)
    loader.write_text(LOADER)
    run_program([*make_variable("CC").split(), "-shared", "-fPIC", "-o", plugin, source,
                 *mpi.flags[0], *mpi.flags[1]])
    done = run_program([build / "invade", TWO_CORES, "--report", "--", mpi.mpiexec, "-n", 2,
                        sys.executable, loader, plugin])
    assert done.stdout.count("1") == 2
    waiting = re.findall(r"^ *1 +\d+ +\S+ +[\d.]+ +([\d.]+) ", done.stderr, re.M)
    assert waiting and float(waiting[0]) > 0.1


def test_an_mpi_call_without_an_mpi_library_is_an_error_and_no_crash(build, run_program,
                                                                     make_variable, tmp_path):
    """A program may see MPI_* in our library and take it for MPI's."""
    source, program = tmp_path / "weak.c", tmp_path / "weak"
    source.write_text(WEAK)
    library = build / "lib/invasive/libinvasive-mpi.so"
    run_program([*make_variable("CC").split(), "-o", program, source, library,
                 f"-Wl,-rpath,{library.parent}:{build}/lib", f"-Wl,-rpath-link,{build}/lib"])
    done = run_program([program], check=False)
    assert done.returncode == 0
    assert "no MPI library that has it is loaded" in done.stderr


def processes_of_session(session):
    """pids of the processes that are left of a session, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("ranks", [2, 5])
def test_a_rank_killed_while_it_waits_ends_the_job_and_leaves_nothing(build, mpi, stock_env,
                                                                      ranks):
    command = [build / "invade", TWO_CORES, "--", mpi.mpiexec, "-n", str(ranks),
               mpi.program("mpi-shim/tests/scenes"), "hang"]
    with subprocess.Popen([str(c) for c in command], env=stock_env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          start_new_session=True) as launch:
        try:
            victim = int(launch.stdout.readline())
            time.sleep(0.2)  # it sleeps in the wait by now, or it spins: either is a case
            os.kill(victim, signal.SIGKILL)
            assert launch.wait(timeout=60) != 0
            assert until(lambda: not processes_of_session(launch.pid), 20)
        finally:
            for pid in processes_of_session(launch.pid):
                os.kill(pid, signal.SIGKILL)
