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

from lib.machine import TWO_CORES
from lib.waiting import until

LOADER = """
import ctypes, sys
print(ctypes.CDLL(sys.argv[1], mode=int(sys.argv[2])).plugin())
"""
OPEN_MPI = {"OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_MCA_hwloc_default_binding_policy": "none",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
CALLS = """
extern int MPI_Barrier(int);
int call(void) { return MPI_Barrier(0) == 0; }
"""


@pytest.fixture
def preload(build):
    """The environment of a launch, without a launch."""
    library = build / "lib/invasive/libinvasive-mpi.so"
    return {"LD_PRELOAD": f"{build}/lib/invasive/libinvasive-process.so {library}"}


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


LOADER_IN_C = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | atoi(argv[2])) : NULL;
    int (*plugin)(void) = library ? (int (*)(void))dlsym(library, "plugin") : NULL;
    return !plugin || printf("%d\n", plugin()) < 0;
}
"""


@pytest.fixture
def plugin(run_program, make_variable, mpi, top, tmp_path):
    """plugin(MODE, LIBRARY...) - the command that loads a shared library with MPI in it so, and
    calls it; it is linked with others before MPI's."""
    library, loader = tmp_path / "plugin.so", tmp_path / "load.py"
    loader.write_text(LOADER)

    def command(mode, *more):
        run_program([*make_variable("CC").split(), "-shared", "-fPIC", "-o", library,
                     top / "testsuite/mpi/programs/plugin.c", *mpi.flags[0],
                     "-Wl,--no-as-needed", *more,
                     *mpi.flags[1]])
        return [sys.executable, loader, library, mode]

    return command


@pytest.mark.parametrize("mode", [0, os.RTLD_GLOBAL])
def test_mpi_that_was_loaded_late_is_managed(build, run_program, mpi, plugin, mode):
    done = run_program([build / "invade", TWO_CORES, "--report", "--", mpi.mpiexec, "-n", 2,
                        *plugin(mode)])
    assert done.stdout.count("1") == 2
    waiting = re.findall(r"^ *1 +\d+ +\S+ +[\d.]+ +([\d.]+) ", done.stderr, re.M)
    assert waiting and float(waiting[0]) > 0.1


def test_a_profiler_that_was_loaded_privately_with_mpi_is_called(build, run_program, top, mpi,
                                                                 make_variable, plugin, tmp_path):
    profiler, counts = tmp_path / "libcount.so", tmp_path / "counts"
    run_program([*make_variable("CC").split(), "-shared", "-fPIC", "-o", profiler,
                 top / "testsuite/mpi/programs/count_calls.c"])
    done = run_program([build / "invade", TWO_CORES, "--report", "--", mpi.mpiexec, "-n", 2,
                        *plugin(0, profiler)], env={"COUNT_CALLS": str(counts)})
    assert done.stdout.count("1") == 2
    assert counts.read_text().count(" Allreduce=1 ") == 2
    waiting = re.findall(r"^ *1 +\d+ +\S+ +[\d.]+ +([\d.]+) ", done.stderr, re.M)
    assert waiting and float(waiting[0]) > 0.1


def test_mpi_that_looks_into_its_own_libraries_first_works_unmanaged(
        build, run_program, mpi, plugin, make_variable, tmp_path):
    """Loaded by a program that has no `environ` of its own, as Debian's Python has: such a library
    does not see that one, and MPICH ends there, stock too."""
    *_, library, mode = plugin(os.RTLD_DEEPBIND)
    loader = tmp_path / "load"
    loader.with_suffix(".c").write_text(LOADER_IN_C)
    run_program([*make_variable("CC").split(), loader.with_suffix(".c"), "-o", loader, "-ldl"])
    done = run_program([build / "invade", TWO_CORES, "--", mpi.mpiexec, "-n", 2, loader, library,
                        mode])
    assert done.stdout.count("1") == 2


def test_what_the_user_tells_open_mpi_is_left_alone(build, run_program):
    def seen(env):
        lines = run_program([build / "invade", "env"], env=env).stdout.splitlines()
        return {k: v for k, _, v in (line.partition("=") for line in lines) if k in OPEN_MPI}

    assert seen({}) == OPEN_MPI
    theirs = {"OMPI_MCA_rmaps_base_oversubscribe": "0"}
    assert seen(theirs) == {**OPEN_MPI, **theirs}
    off = run_program([build / "invade", "--off", "env"]).stdout
    assert "_MCA_" not in off


@pytest.mark.parametrize("binding", ["now", "lazy"])
def test_a_library_that_calls_mpi_without_an_mpi_library_ends_the_program_as_without_us(
        run_program, preload, make_variable, tmp_path, binding):
    cc = [*make_variable("CC").split(), "-Wl,--no-as-needed"]
    (tmp_path / "calls.c").write_text(CALLS)
    (tmp_path / "main.c").write_text("extern int call(void); int main(void) { return call(); }")
    run_program([*cc, "-shared", "-fPIC", f"-Wl,-z,{binding}", "-o", tmp_path / "libcalls.so",
                 tmp_path / "calls.c"])
    program = tmp_path / "main"
    run_program([*cc, "-o", program, tmp_path / "main.c", tmp_path / "libcalls.so",
                 "-Wl,--unresolved-symbols=ignore-all", f"-Wl,-rpath,{tmp_path}"])
    for env in ({}, preload):
        done = run_program([program], env=env, check=False)
        assert (done.returncode, done.stdout) == (127, "")
        assert re.fullmatch(r".*\bMPI_Barrier\b.*\n", done.stderr)


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
