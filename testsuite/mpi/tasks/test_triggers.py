# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenMP tasks that become ready when MPI messages arrive (invasive-tasks.h), with `invade` and
without, at every thread level."""

import shutil
import subprocess

import pytest

from lib.machine import TWO_CORES

LEVELS = ["0", "1", "2", "3"]


@pytest.fixture(params=["stock", "managed", "more ranks than cores"])
def trigger(request, build, mpi, run_program, stock_env):
    """trigger(ARGUMENT...): the completed process of two ranks."""
    program = mpi.program("mpi-shim/tests/triggers")

    def run(*arguments, **more):
        if request.param == "stock":
            return run_program([*mpi.run(2, program), *arguments], env=stock_env, **more)
        cores = TWO_CORES if request.param == "managed" else TWO_CORES.split(",", maxsplit=1)[0]
        return run_program([build / "invade", cores, "--", mpi.mpiexec, "-n", "2", program,
                            *arguments], env=stock_env, **more)
    return run


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("scene", ["one", "all", "late", "wrong"])
def test_a_task_runs_when_its_messages_have_come_and_not_before(trigger, level, scene):
    """Each rank's threads sleep meanwhile, in taskwait."""
    assert trigger(level, scene, timeout=60).stdout == "ok\n"


@pytest.mark.parametrize("level", LEVELS)
def test_an_error_is_in_the_status_where_the_handler_returns(trigger, level):
    assert trigger(level, "truncated", timeout=60).stdout == "ok\n"


@pytest.mark.parametrize("level", LEVELS)
def test_a_handler_of_errors_may_give_another_request_to_a_task(trigger, level):
    assert trigger(level, "handler", timeout=60).stdout == "ok\n"


def test_an_error_ends_the_job_where_the_handler_does(trigger):
    done = trigger("3", "truncated", "fatal", timeout=60, check=False)
    assert done.returncode != 0
    assert "ok" not in done.stdout


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("cores", [TWO_CORES, "--emulate-cores=1", "--emulate-cores=4"])
def test_a_thread_that_waits_in_mpi_runs_tasks_whose_messages_have_come(
        build, mpi, run_program, stock_env, level, cores):
    """The program hangs otherwise: it waits for an answer to what the tasks send."""
    done = run_program([build / "invade", "--mpi-tasks", cores, "--", mpi.mpiexec, "-n", "2",
                        mpi.program("mpi-shim/tests/triggers"), level, "answer"],
                       env=stock_env, timeout=60)
    assert done.stdout == "ok\n"


@pytest.mark.parametrize("level", ["0", "3"])
def test_tasks_run_where_no_resource_manager_answers(build, mpi, run_program, stock_env, level):
    """The OpenMP runtime and the shim are there, and the ranks are unmanaged."""
    env = {**stock_env, "INVASIVE_SOCKET": "@invasive-test-none"}
    libraries = " ".join(str(build / f"lib/invasive/{name}") for name in (
        "libinvasive-process.so", "libgomp.so.1", "libinvasive-mpi.so"))
    command = mpi.run(2, "env", f"LD_PRELOAD={libraries}", mpi.program("mpi-shim/tests/triggers"))
    assert run_program([*command, level, "one"], env=env, timeout=60).stdout == "ok\n"


# --- Fortran

@pytest.fixture(scope="module")
def compiled(mpi, top, build, tmp_path_factory):
    """compiled(INTERFACE) - triggers.F90 with this interface and the MPI in turn."""
    compiler = shutil.which(f"mpif90.{mpi.name}")
    if not compiler or not shutil.which("gfortran"):
        pytest.skip(f"mpif90.{mpi.name} and gfortran are needed")

    def program(interface):
        where = tmp_path_factory.mktemp(f"{mpi.name}-{interface}")
        made = subprocess.run(
            [compiler, f"-D{interface}", "-fopenmp", "-O1", "-o", "triggers",
             top / "include/invasive.f90", top / "mpi-shim/tests/triggers.F90",
             f"-L{build / 'lib'}", f"-linvasive-tasks-{mpi.name}", "-linvasive",
             f"-Wl,-rpath,{build / 'lib'}"],
            check=False, cwd=where, capture_output=True, text=True, timeout=100)
        assert made.returncode == 0, made.stderr
        return where / "triggers"

    return program


@pytest.mark.parametrize("interface", ["USE_MPIF_H", "USE_MPI", "USE_MPI_F08"])
def test_a_fortran_program_has_the_same(compiled, build, mpi, run_program, stock_env, interface):
    program = compiled(interface)
    for level in LEVELS:
        for managed in ([], [build / "invade", TWO_CORES, "--"]):
            done = run_program([*managed, *mpi.run(2, program, level)], env=stock_env, timeout=60)
            assert done.stdout.split() == ["ok"], (level, managed)


# --- the example of invasive-tasks(7)

def test_the_example_of_the_manual_is_what_it_prints(top, build, mpi, run_program, stock_env,
                                                     tmp_path):
    page = (top / "doc/man/invasive-tasks.7").read_text()
    example = (top / "doc/examples/message_tasks.c").read_text()
    assert page.split("indent\n")[1].split(".Ed")[0].replace("\\e", "\\") in example
    command = [mpi.mpicc, "-fopenmp", "-Wall", "-Werror", "-O2",
               f"-I{top / 'include'}", top / "doc/examples/message_tasks.c", "-o",
               tmp_path / "example", f"-L{build / 'lib'}", f"-linvasive-tasks-{mpi.name}",
               f"-Wl,-rpath,{build / 'lib'}"]
    subprocess.run(command, check=True, timeout=60)
    for managed in ([], [build / "invade", TWO_CORES, "--"]):
        done = run_program([*managed, *mpi.run(2, tmp_path / "example")], env=stock_env)
        assert done.stdout == "sum 20000\n"
