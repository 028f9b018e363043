# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtime beside other software: other OpenMP runtimes in the same process, Python's
numerical libraries, debuggers.  The programs are in programs/.
"""

import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.building.small_programs import compile_text
from lib.omp_programs import source_of
from lib.processes import debugged

PYTHON = "/usr/bin/python3"  # Debian's, whose packages use Debian's libgomp
OPENBLAS = Path("/usr/lib/x86_64-linux-gnu/openblas-openmp")
MANY = ["unmanaged", "managed", "one-core", "pair"]


def tool(name, *alternatives):
    for candidate in (name, *alternatives):
        if shutil.which(candidate):
            return candidate
    return pytest.skip(f"{name} is not installed")


def gdb(*commands):
    """Words before a program: gdb stops it, looks at it, and lets it go on to its end."""
    return [tool("gdb"), "-q", "-nx", "-batch",
            *(word for command in ("set breakpoint pending on", *commands, "delete", "continue")
              for word in ("-ex", command))]


# --- other runtimes


@pytest.fixture(scope="session")
def libgomp_copy(tmp_path_factory):
    """A copy of the system's libgomp under another name, as Python wheels bring one along."""
    path = subprocess.run(["gcc", "-print-file-name=libgomp.so.1"], check=True, timeout=60,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    image = Path(path).read_bytes()
    copy = tmp_path_factory.mktemp("copy") / "libgomq.so.1"
    copy.write_bytes(image.replace(b"libgomp.so.1\0", b"libgomq.so.1\0"))
    return copy


@pytest.fixture(scope="session")
def plugins(tmp_path_factory, libgomp_copy):
    """The same plugin for libgomp, for the copy of it, and for LLVM's runtime."""
    directory = tmp_path_factory.mktemp("plugins")
    clang = tool("clang", *(f"clang-{version}" for version in range(20, 10, -1)))
    ways = {
        "libgomp": ["gcc", "-fopenmp"],
        # Without -nodefaultlibs -fopenmp would add the system's as well.
        "copy": ["gcc", "-fopenmp", "-nodefaultlibs", libgomp_copy, "-lc",
                 f"-Wl,-rpath,{libgomp_copy.parent}"],
        "llvm": [clang, "-fopenmp"],
    }
    for name, words in ways.items():
        source = source_of("plugin")
        command = [words[0], "-O2", "-shared", "-fPIC", words[1], source, *words[2:]]
        subprocess.run([*command, "-o", directory / f"{name}.so"], check=True, timeout=60)
    return [directory / f"{name}.so" for name in ways]


@pytest.mark.parametrize("condition", ["stock", *MANY])
def test_other_openmp_runtimes_work_beside_ours(
        condition, plugins, omp_program, in_condition, run_program):
    words, environment, count = in_condition(condition)
    ran = run_program([*words, omp_program("runtimes"), *plugins], env=environment, timeout=90)
    assert ran.stdout == "OK\n" * count, ran.stderr


@pytest.mark.parametrize("ranks", [1, 2])
def test_an_mpi_program_on_llvms_runtime_has_the_threads_that_it_has_without_us(
        mpi, managed, run_program, tmp_path, ranks):
    """LLVM's runtime asks the kernel where its thread may run: the launcher alone binds it."""
    clang = tool("clang", *(f"clang-{version}" for version in range(20, 10, -1)))
    program = tmp_path / "program"
    run_program([clang, "-O1", "-fopenmp", *mpi.flags[0], source_of("llvm_mpi"), "-o", program,
                 *mpi.flags[1]])
    stock = sorted(run_program(mpi.run(ranks, program, bound=True)).stdout.splitlines())
    done = managed(ranks, program)
    assert len(stock) == ranks
    assert sorted(done.stdout.splitlines()) == stock
    assert done.stderr.count(" program ") >= ranks


# --- Python


@pytest.fixture(scope="session")
def numerics(stock_env):
    """numerics(WORDS, ENVIRONMENT, *ARGUMENTS) - what numerics.py prints, once for each process"""
    available = subprocess.run([PYTHON, "-c", "import numpy, sklearn"], check=False, timeout=60,
                               env=stock_env, stderr=subprocess.DEVNULL)
    if available.returncode or not OPENBLAS.exists():
        pytest.skip("no NumPy with OpenBLAS for OpenMP, or no scikit-learn")

    def run(run_program, words, environment, *arguments):
        path = f"{environment.get('LD_LIBRARY_PATH', '')}:{OPENBLAS}".strip(":")
        environment = {**environment, "LD_LIBRARY_PATH": path, "OMP_NUM_THREADS": "4"}
        ran = run_program([*words, PYTHON, source_of("numerics"), *arguments],
                          env=environment, timeout=100)
        return [json.loads(line) for line in ran.stdout.splitlines()]

    return run


def assert_same(results, stock):
    """The same numbers, except the last digits: sums are in the order in which threads arrive."""
    assert len(results) == len(stock)
    for one, other in zip(results, stock):
        assert math.isclose(one, other, rel_tol=1e-8, abs_tol=1e-10), f"{one} is not {other}"


# A library of OpenBLAS's name in which threads pass a baton, each after the one before.
BATON = r"""
#include <omp.h>
#include <sched.h>
long baton(int rounds)
{
    static int kept;
#pragma omp threadprivate(kept)
    int turn = 0;
    long sum = 0;
#pragma omp parallel num_threads(3)
    for (int round = 0; round < rounds; round++) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) % 3 != omp_get_thread_num())
            sched_yield();
        sum += ++kept;
        __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
    }
    return sum;
}
"""
BATON_USER = r"""
#include <stdio.h>
long baton(int rounds);
int main(void)
{
    printf("%ld\n", baton(1000));
    return 0;
}
"""


@pytest.mark.parametrize("condition", MANY)
def test_threads_of_openblas_that_wait_by_sched_yield_take_turns(
        condition, in_condition, run_program, tmp_path):
    library = compile_text(tmp_path / "libopenblas-baton.so", BATON, "-fopenmp", "-shared", "-fPIC")
    program = compile_text(tmp_path / "user", BATON_USER, library, f"-Wl,-rpath,{tmp_path}")
    words, environment, count = in_condition(condition)
    done = run_program([*words, program], env=environment, timeout=90)
    assert done.stdout.split() == count * [str(3 * sum(range(1, 1001)))]


# Another library, of a name that is not known, in whose threads a third one calls sched_yield: that
# one has data of each thread, which no other thread finds in the midst of a change.
PAUSE = r"""
#include <sched.h>
#include <stdlib.h>
static __thread int inside;
void pause_once(void)
{
    if (inside++)
        abort();
    sched_yield();
    inside--;
}
"""
TURNS = r"""
#include <omp.h>
void pause_once(void);
long turns(int rounds, long *pauses)
{
    int turn = 0;
    long sum = 0, paused = 0;
#pragma omp parallel num_threads(3) reduction(+ : paused)
    for (int round = 0; round < rounds; round++) {
        for (; __atomic_load_n(&turn, __ATOMIC_ACQUIRE) % 3 != omp_get_thread_num(); paused++)
            pause_once();
        sum += round;
        __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
    }
    *pauses += paused;
    return sum;
}
"""
TURNS_USER = r"""
#include <stdio.h>
long turns(int rounds, long *pauses);
int main(void)
{
    long sum = 0, before = 0, pauses = 0;
    for (int region = 0; region < 10; region++)
        turns(100, &before);
    for (int region = 0; region < 100; region++)
        sum += turns(100, &pauses);
    printf("%ld %ld\n", sum, pauses);
    return 0;
}
"""


@pytest.mark.parametrize("condition", MANY)
def test_threads_that_wait_by_sched_yield_hand_over_their_core(
        condition, in_condition, run_program, tmp_path):
    pause = compile_text(tmp_path / "libpause.so", PAUSE, "-shared", "-fPIC")
    turns = compile_text(tmp_path / "libturns.so", TURNS, "-fopenmp", "-shared", "-fPIC")
    program = compile_text(tmp_path / "user", TURNS_USER, turns, pause, f"-Wl,-rpath,{tmp_path}")
    words, environment, count = in_condition(condition)
    lines = run_program([*words, program], env=environment, timeout=90).stdout.splitlines()
    assert [line.split()[0] for line in lines] == count * [str(100 * 3 * sum(range(100)))]
    if condition == "one-core":
        (line,) = lines
        assert int(line.split()[1]) < 10 * 100 * 300, "pauses for each turn"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("condition", MANY)
def test_numpy_and_scikit_learn_compute_what_they_do_with_the_stock_library(
        condition, numerics, build, in_condition, run_program):
    (stock,) = numerics(run_program, [], {})
    assert any("openblas-openmp" in path for path in stock["libraries"]), stock["libraries"]
    words, environment, count = in_condition(condition)
    results = numerics(run_program, words, environment)
    assert len(results) == count
    for result in results:
        assert str(build / "lib/invasive/libgomp.so.1") in result["libraries"]
        assert_same(result["values"], stock["values"])


@pytest.mark.timeout(240)
@pytest.mark.parametrize("condition", ["unmanaged", "managed"])
def test_children_of_multiprocessing_compute_what_they_do_with_the_stock_library(
        condition, numerics, in_condition, run_program):
    (stock,) = numerics(run_program, [], {})
    words, environment, _ = in_condition(condition)
    (forked,) = numerics(run_program, words, environment, "fork")
    assert_same(forked["values"][: len(stock["values"])], stock["values"])


# --- BLAS libraries


BLAS = """
static int threads = 4;
int NAME(get_parallel)(void);
int NAME(get_num_threads)(void);
void NAME(set_num_threads)(int);
int NAME(get_parallel)(void) { return KIND; }
int NAME(get_num_threads)(void) { return threads; }
void NAME(set_num_threads)(int n) { threads = n; }
"""
SHOW_BLAS = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int before = 0, inside = 0, nested = 0, changed = 0;
    /* A function whose first region is before the library is there, and one whose is not. */
    #pragma omp parallel reduction(+ : before)
    before++;
    void *blas = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    char name[2][64];
    snprintf(name[0], sizeof name[0], "%sget_num_threads%s", argv[2], argc > 3 ? argv[3] : "");
    snprintf(name[1], sizeof name[1], "%sset_num_threads%s", argv[2], argc > 3 ? argv[3] : "");
    int (*get)(void) = (int (*)(void))dlsym(blas, name[0]);
    void (*set)(int) = (void (*)(int))dlsym(blas, name[1]);
    if (!blas || !get || !set || before == 0)
        return 1;
    #pragma omp parallel reduction(max : inside, nested)
    {
        inside = get();
        #pragma omp parallel num_threads(2) reduction(max : nested)
        nested = get();
    }
    int after = get();
    #pragma omp parallel
    #pragma omp single
    set(3);
    changed = get();
    dlclose(blas);
    #pragma omp parallel /* the library is still there */
    after += before < 0;
    printf("%d %d %d %d\\n", inside, nested, after, changed);
}
"""


@pytest.fixture
def blas_threads(tmp_path, run_program, make_variable, in_condition):
    """blas_threads(CONDITION, FILE, NAMES, KIND, **VARIABLES) - how many threads a library has
    in a region, in a nested one, after it, and after one in which the program has asked for three;
    it has four at first."""
    compiler = make_variable("CC").split()

    def run(condition, file, names, kind, **variables):
        (tmp_path / "blas.c").write_text(BLAS)
        (tmp_path / "show.c").write_text(SHOW_BLAS)
        library, program = tmp_path / file, tmp_path / "show"
        macro = f"-DNAME(f)={names[0]}##f" + "".join(f"##{name}" for name in names[1:])
        run_program([*compiler, "-shared", "-fPIC", f"-DKIND={kind}", macro, "-o", library,
                     tmp_path / "blas.c"])
        run_program([*compiler, "-fopenmp", "-o", program, tmp_path / "show.c", "-ldl"])
        words, environment, _ = in_condition(condition)
        done = run_program([*words, program, library, *names], env={**environment, **variables})
        assert done.stderr == ""
        return done.stdout.split()

    return run


POSIX_THREADS, OPENMP = 1, 2


@pytest.mark.parametrize("file, names", [
    ("libopenblas.so.0", ["openblas_"]), ("libopenblas64_p-r0-1.so", ["openblas_", "64_"]),
    ("libscipy_openblas64_-1.so", ["scipy_openblas_", "64_"])], ids=["debian", "numpy", "scipy"])
def test_openblas_on_posix_threads_has_one_thread_inside_of_regions(blas_threads, file, names):
    assert blas_threads("managed", file, names, POSIX_THREADS) == ["1", "1", "4", "3"]


@pytest.mark.parametrize("condition, file, kind, variables", [
    ("managed", "libopenblas.so.0", POSIX_THREADS, {"OPENBLAS_NUM_THREADS": "4"}),
    ("managed", "libopenblas.so.0", OPENMP, {}), ("managed", "libother.so.0", POSIX_THREADS, {}),
    ("unmanaged", "libopenblas.so.0", POSIX_THREADS, {})],
    ids=["chosen", "openmp", "other", "unmanaged"])
def test_other_blas_libraries_keep_their_threads(blas_threads, condition, file, kind, variables):
    found = blas_threads(condition, file, ["openblas_"], kind, **variables)
    assert found == ["4", "4", "4", "3"]


# --- tools that look into the process


@pytest.mark.timeout(240)
@pytest.mark.parametrize("condition", ["unmanaged", "managed"])
def test_valgrind_finds_no_errors(condition, omp_program, in_condition, run_program):
    words, environment, _ = in_condition(condition)
    memcheck = [tool("valgrind"), "-q", "--error-exitcode=9", "--fair-sched=yes"]
    ran = run_program([*words, *memcheck, omp_program("few_regions")], env=environment, timeout=200,
                      check=False)
    assert ran.returncode == 0 and ran.stdout == "OK\n", ran.stderr


@pytest.mark.parametrize("condition", ["unmanaged", "managed"])
def test_a_debugger_shows_the_stack_of_an_implicit_task_that_has_waited(
        condition, omp_program, in_condition, run_program):
    words, environment, _ = in_condition(condition)
    line = 1 + next(i for i, text in enumerate(source_of("contexts").read_text().splitlines())
                    if "byte %zu of %d" in text)
    debugger = gdb(f"break contexts.c:{line} if me == 3", "run", "info threads", "backtrace")
    ran = debugged(run_program, [*words, *debugger, omp_program("contexts", "-g")], timeout=100,
                   env={**environment, "OMP_NUM_THREADS": "48", "OMP_STACKSIZE": "4M"})
    assert "hit Breakpoint 1" in ran.stdout and "exited normally" in ran.stdout, ran.stdout
    threads, stack = ran.stdout.split("#0 ", 1)
    assert len(re.findall(r"^\*? +\d+ +(?:Thread|LWP) ", threads, re.MULTILINE)) > 1, threads
    assert "alloca_is_kept._omp_fn" in stack and "Backtrace stopped" not in stack, stack


@pytest.mark.parametrize("condition", ["unmanaged", "managed"])
def test_a_debugger_stops_in_a_region_and_goes_on(
        condition, omp_program, in_condition, run_program):
    words, environment, _ = in_condition(condition)
    debugger = gdb("break stop_here", "run", "thread apply all backtrace")
    ran = debugged(run_program, [*words, *debugger, omp_program("few_regions", "-g")],
                   env=environment, timeout=100)
    assert "hit Breakpoint 1" in ran.stdout and "stop_here (" in ran.stdout, ran.stdout
    assert "exited normally" in ran.stdout, ran.stdout
