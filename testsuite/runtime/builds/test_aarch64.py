# SPDX-License-Identifier: GPL-3.0-or-later
"""All parts, built for aarch64 and run under qemu-user: unit and stress tests, OpenMP and MPI
programs, managed and not.

qemu carries atomic operations out by those of this machine's processor, and loses an order of the
other's, which the assembler of aarch64/build.sh restores.  On x86 these tests say that the code for
aarch64 is right, not that its memory orders are: those are argued at each atomic, by its partner.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time

import pytest

from lib.building.sources import LIBGOMP_H, runtime_file, runtime_includes
from lib.building.thread_addresses import audit
from lib.omp_programs import source_of, tags
from lib.processes import TIME_IS_UP, at_most

HOST = "aarch64-linux-gnu"
TOOLS = (f"{HOST}-gcc", f"{HOST}-g++", f"{HOST}-gfortran", "qemu-aarch64", "dpkg-deb", "apt-get")
STRESS_MS = 2000
# Programs of runtime/programs that are run: each checks itself and says OK.
OMP = ("barriers", "barriers 40 200", "barriers_in_regions", "cancellation", "contexts",
       "few_regions", "fork_alone", "locks", "loop_schedules", "nested",
       "nested_waits constructs", "nested_waits tasks", "ordered_turns dynamic",
       "ordered_turns guided", "signals", "stacks", "static_reduction", "task_chain",
       "task_constructs", "task_many_dependences", "tasks", "thread_data", "worksharing")
MPI_TRIES = 3  # one of some runs of MPICH under qemu-user hangs, without us too
PRELOAD = "libinvasive-process.so:libgomp.so.1:libinvasive-mpi.so"

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="session")
def arm(build, top):
    """The build for aarch64, which is kept beside the ordinary one."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found: packages.txt, section [full]")
    where = build / "aarch64"
    where.mkdir(exist_ok=True)
    with open(where / "build.log", "w", encoding="utf-8") as log:
        made = subprocess.run([top / "testsuite/runtime/builds/aarch64/build.sh", where],
                              check=False, stdout=log,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=1500)
    if made.returncode != 0:
        pytest.fail((where / "build.log").read_text(errors="replace")[-4000:])
    return where


@pytest.fixture
def run_arm(arm, run_program):
    """run_arm(COMMAND, env={}): the completed process of a program for aarch64."""

    def run(command, env=None, timeout=300, **more):
        given = [word for name, value in (env or {}).items() for word in ("-E", f"{name}={value}")]
        return run_program([arm / "run", *given, *command], timeout=timeout, **more)

    return run


@pytest.fixture
def compile_arm(arm, tmp_path):
    """compile_arm(NAME, WORD...) - the program that the compiler makes with these words, whose
    atomic operations qemu keeps in order (aarch64/build.sh)."""

    def compile_program(name, *words, compiler="gcc"):
        program = tmp_path / name
        command = [f"{HOST}-{compiler}", f"-B{arm / 'as'}", "-O2", "-g", *map(str, words)]
        done = subprocess.run([*command, "-o", program], check=False, capture_output=True,
                              text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        return program

    return compile_program


@pytest.fixture
def socket(arm, tmp_path, short_path, stock_env):
    """The socket of an rmd for aarch64, which ends with the test."""
    where = short_path / "socket"
    with open(tmp_path / "rmd.log", "w", encoding="utf-8") as log:
        rmd = subprocess.Popen([arm / "run", arm / "bin/rmd", f"--socket={where}"], stdout=log,
                               stderr=log, stdin=subprocess.DEVNULL, env=stock_env,
                               start_new_session=True)
    end = time.monotonic() + 60
    while not where.exists() and rmd.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    assert where.exists(), (tmp_path / "rmd.log").read_text()
    yield where
    rmd.send_signal(signal.SIGTERM)
    try:
        rmd.wait(60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(rmd.pid, signal.SIGKILL)


def test_a_load_does_not_pass_a_sequentially_consistent_store(top, compile_arm, run_arm):
    source = top / "testsuite/runtime/builds/aarch64/store_load.c"
    program = compile_arm("store_load", "-pthread", source)
    assert run_arm([program]).stdout == "OK\n"


def test_each_transition_of_a_core_is_as_documented(top, compile_arm, run_arm):
    ours = top / "libinvasive/table"
    program = compile_arm("test_core", f"-I{top / 'include'}", f"-I{top}", "-pthread",
                          *(ours / name for name in ("table.c", "core.c", "arrival_board.c",
                                                     "trace.c", "tests/test_core.c")))
    assert run_arm([program]).stdout == "core: all transitions as documented\n"


def test_no_core_has_two_holders_and_no_wake_up_is_lost_under_fire(top, compile_arm, run_arm):
    ours = top / "libinvasive/table"
    program = compile_arm("test_core_stress", f"-I{top / 'include'}", f"-I{top}", "-pthread",
                          *(ours / name for name in ("table.c", "core.c", "arrival_board.c",
                                                     "trace.c",
                                                     "tests/test_core_stress.c")))
    lines = run_arm([program, STRESS_MS]).stdout.splitlines()
    assert lines[-1] == "anonymous: all tokens are back"


@pytest.mark.parametrize("name, files", [
    ("handover", ["parking.c", "ready.c", "sleepers.c", "park.c", "work_source.c"]),
    ("tickets", ["tickets.c"]), ("unheld", ["unheld.c"]),
    ("taskqueue", ["taskqueue.c", "taskpool.c"]), ("split", [])])
def test_what_threads_of_the_runtime_share_holds_under_fire(name, files, top, tmp_path, compile_arm,
                                                            run_arm):
    (tmp_path / "libgomp.h").write_text(LIBGOMP_H)
    ours = top / "libgomp-invasive"
    program = compile_arm(name, "-std=gnu17", "-pthread", "-Wall", "-Wextra", "-Werror",
                          "-I", tmp_path, *runtime_includes(top), "-I", top,
                          "-I", top / "include", ours / f"test_{name}_stress.c",
                          *(runtime_file(top, file) for file in files))
    assert run_arm([program, STRESS_MS]).stdout.startswith(f"{name}: ")


@pytest.mark.parametrize("program", ["mpi-shim/tests/phases", "testsuite/rmd/programs/rmd_policy"])
def test_phases_and_policies_are_as_their_own_tests_say(program, arm, run_arm):
    run_arm([arm / program])


@pytest.mark.parametrize("managed", [False, True], ids=["unmanaged", "managed"])
@pytest.mark.parametrize("name", OMP)
def test_openmp_programs_keep_their_promises_on_aarch64(
        name, managed, top, request, compile_arm, run_arm):
    name, *arguments = name.split()
    source = source_of(name)
    program = compile_arm(name, "-fopenmp", source, "-lm")
    env = dict(text.split("=", 1) for text in tags(source).get("env", []))
    if managed:
        env["INVASIVE_SOCKET"] = request.getfixturevalue("socket")
    ran = run_arm([program, *arguments], env={"LD_PRELOAD": PRELOAD.rpartition(":")[0], **env})
    assert ran.stdout == "OK\n" and ran.stderr == ""


@pytest.mark.parametrize("managed", [False, True], ids=["unmanaged", "managed"])
def test_implicit_tasks_that_wait_have_exceptions_of_their_own(managed, top, request, compile_arm,
                                                               run_arm):
    program = compile_arm("contexts_exceptions", "-std=gnu++17", "-fopenmp",
                          source_of("contexts_exceptions"), compiler="g++")
    env = {"INVASIVE_SOCKET": request.getfixturevalue("socket")} if managed else {}
    ran = run_arm([program], env={"LD_PRELOAD": PRELOAD.rpartition(":")[0], **env})
    assert ran.stdout == "OK\n" and ran.stderr == ""


def test_no_address_of_a_thread_s_variable_is_kept_across_a_switch_of_contexts(arm):
    assert audit(arm / "lib/invasive/libgomp.so.1", f"{HOST}-objdump") == []


def test_claims_are_what_rmd_decided(arm, top, socket, compile_arm, run_arm):
    program = compile_arm("claim", top / "libinvasive/member/test_claim.c", f"-I{top / 'include'}",
                          f"-I{top}", f"-L{arm / 'lib/invasive'}",
                          "-l:libinvasive-process.so", "-lm", "-pthread")
    ran = run_arm([program, "managed"], env={"INVASIVE_SOCKET": socket})
    assert ran.stdout == "claims: as documented\n"


@pytest.fixture
def mpi_arm(arm, mpiexec, socket, run_program):
    """mpi_arm(RANKS, WORD...): what a managed program for aarch64 says, under this machine's
    mpiexec, in any order."""
    if "mpich" not in str(mpiexec):
        pytest.skip("MPICH's mpiexec is needed")

    def run(ranks, *command):
        for _ in range(MPI_TRIES):
            ran = run_program(at_most(60, mpiexec, "-n", ranks, arm / "run", "-E",
                                      f"INVASIVE_SOCKET={socket}", "-E", f"LD_PRELOAD={PRELOAD}",
                                      *command), check=False, timeout=80)
            if ran.returncode != TIME_IS_UP:
                break
        assert ran.returncode == 0, ran.stderr
        return sorted(ran.stdout.splitlines())

    return run


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_wrapped_mpi_call_gives_what_it_gives_on_this_processor(ranks, arm, build, mpiexec,
                                                                      mpi_arm, run_program):
    program = "mpi-shim/tests/calls"
    here = run_program([mpiexec, "-n", ranks, build / program], timeout=140)
    assert mpi_arm(ranks, arm / program) == sorted(here.stdout.splitlines()) != []


@pytest.mark.parametrize("interface", ["USE_MPIF_H", "USE_MPI", "USE_MPI_F08"])
def test_fortran_programs_see_through_our_entries_what_they_see_here(
        interface, arm, top, tmp_path, mpiexec, compile_arm, mpi_arm, run_program):
    root, source = arm / "sysroot/usr", top / "mpi-shim/tests/waits.F90"
    subprocess.run(["mpif90.mpich", f"-D{interface}", "-O1", source, "-o", "here"], check=True,
                   cwd=tmp_path, timeout=200)
    here = run_program([mpiexec, "-n", 2, tmp_path / "here", "all", 1, 4])
    program = compile_arm("waits", f"-D{interface}", source,
                          f"-J{tmp_path}", f"-I{root}/include/{HOST}/mpich",
                          f"-I{root}/lib/{HOST}/fortran/gfortran-mod-15/mpich",
                          f"-L{root}/lib/{HOST}", "-lmpichfort", "-lmpich",
                          "-Wl,--allow-shlib-undefined", compiler="gfortran")
    assert mpi_arm(2, program, "all", 1, 4) == sorted(here.stdout.splitlines()) != []
