# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread number is the same thread to the program wherever it runs.  These tests need C++, or
processor numbers in the environment.  The other programs about it are programs/threads/thread_*.c.
"""

import os
import subprocess

import pytest

from lib.omp_programs import CONDITIONS, source_of

ALONE = [name for name, of in CONDITIONS.items() if not of or of[0] == 1]
FORMAT = "at %n of %N level %L"


@pytest.fixture(scope="module")
def compiled_cxx(tmp_path_factory):
    """compiled_cxx(NAME): such a program in C++."""
    directory = tmp_path_factory.mktemp("cxx")

    def compile_program(name):
        program = directory / name
        if not program.exists():
            subprocess.run(["g++", "-O2", "-std=gnu++17", "-Wall", "-Wextra", "-Werror", "-fopenmp",
                            source_of(name), "-o", program], check=True, timeout=60)
        return program

    return compile_program


@pytest.mark.parametrize("name", ["thread_object", "contexts_exceptions"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_thread_local_objects_and_exceptions_stay_with_their_thread_number(
        name, condition, compiled_cxx, in_condition, run_program):
    words, environment, count = in_condition(condition)
    ran = run_program([*words, compiled_cxx(name)], env=environment, timeout=90)
    assert ran.stdout == "OK\n" * count, ran.stderr


@pytest.mark.parametrize("condition", CONDITIONS)
def test_gomp_cpu_affinity_gives_each_thread_number_its_place(
        condition, omp_program, in_condition, run_program):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    words, environment, count = in_condition(condition)
    if condition == "one-core":
        cpus = cpus[:1]
    # The last processor of the list first: the order is the list's, not the machine's.
    environment["GOMP_CPU_AFFINITY"] = " ".join(str(cpu) for cpu in reversed(cpus))
    ran = run_program([*words, omp_program("thread_cpu_list")], env=environment, timeout=90)
    assert ran.stdout == "OK\n" * count, ran.stderr


@pytest.mark.parametrize("condition", CONDITIONS)
def test_more_places_than_processors_are_given_out_by_thread_number(
        condition, omp_program, in_condition, run_program):
    """Places may overlap: so there are enough for proc_bind on a machine with few processors."""
    cpus = sorted(os.sched_getaffinity(0))
    first, last = cpus[0], cpus[-1]
    if condition == "one-core":
        last = first
    words, environment, count = in_condition(condition)
    environment["OMP_PLACES"] = f"{{{first}}},{{{last}}},{{{first}}},{{{last}}},{{{first}}}"
    ran = run_program([*words, omp_program("thread_places")], env=environment, timeout=90)
    assert ran.stdout == "OK\n" * count, ran.stderr


@pytest.mark.parametrize("condition", ALONE)
def test_display_affinity_names_each_thread_once(
        condition, omp_program, in_condition, run_program):
    words, environment, _ = in_condition(condition)
    environment.update(OMP_DISPLAY_AFFINITY="true", OMP_AFFINITY_FORMAT=FORMAT)
    ran = run_program([*words, omp_program("thread_sizes")], env=environment, timeout=90)
    assert ran.stdout == "OK\n", ran.stderr
    told = [line for line in ran.stderr.splitlines() if line.startswith("at ")]
    # Regions of 5, 5 and 7 threads: told when the team is another one.
    expected = [f"at {i} of {n} level 1" for n in (5, 7) for i in range(n)]
    assert sorted(told) == sorted(expected)


DRIVER = """_Thread_local int state;
int open_driver(void);
int open_driver(void) { return ++state; }
"""
OPENCL_DRIVER = """_Thread_local int state;
int clIcdGetPlatformIDsKHR(void);
int clIcdGetPlatformIDsKHR(void) { return ++state; }
"""
PLUGIN = """int open_driver(void), open_plugin(void);
int open_plugin(void) { return open_driver(); }
"""
LOADS_PLUGIN = """#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int threads = -2;
    if (argc > 1 && !dlopen(argv[1], RTLD_NOW))
        return 1;
    for (int round = 0; round < 20; round++)
#pragma omp parallel num_threads(48)
        {
#pragma omp barrier
        }
    DIR *tasks = opendir("/proc/self/task");
    while (readdir(tasks))
        threads++;
    printf("%d\\n", threads);
    return 0;
}
"""


@pytest.fixture
def kernel_threads(tmp_path, invade, run_program):
    """kernel_threads(PLUGIN, DRIVER, BETWEEN): those of a program that meets in a team of 48, and
    has loaded PLUGIN, a library that is linked with DRIVER, which has thread-local data, or with
    BETWEEN, a library that is."""

    def compile_c(name, text, *words):
        (tmp_path / f"{name}.c").write_text(text)
        subprocess.run(["gcc", "-O2", f"{name}.c", *words, "-o", name], cwd=tmp_path, check=True,
                       timeout=60)

    def count(plugin, driver="libdriver.so", between=None):
        needed = driver
        compile_c(driver, DRIVER, "-shared", "-fPIC")
        for library in filter(None, (between, plugin)):
            compile_c(library, PLUGIN, "-shared", "-fPIC", "-L.", "-Wl,--no-as-needed",
                      f"-l:{needed}", "-Wl,-rpath,$ORIGIN", "-Wl,--allow-shlib-undefined")
            needed = library
        compile_c("program", LOADS_PLUGIN, "-fopenmp", "-ldl")
        return int(run_program([invade, tmp_path / "program", tmp_path / plugin]).stdout)

    return count


@pytest.mark.machine(len(os.sched_getaffinity(0)) <= 12, "a team of 48 is no large one here")
@pytest.mark.parametrize("plugin, tied", [("hwloc_driver.so", False), ("libpocl.so.2", False),
                                          ("renderer.so", True)])
@pytest.mark.parametrize("between", [None, "libcompiler.so"])
def test_a_driver_that_only_a_plugin_uses_ties_no_implicit_task(
        kernel_threads, plugin, tied, between):
    """Another object of the program may keep something there."""
    assert (kernel_threads(plugin, between=between) >= 48) == tied


@pytest.mark.machine(len(os.sched_getaffinity(0)) <= 12, "a team of 48 is no large one here")
@pytest.mark.parametrize("more", range(4))
def test_an_opencl_driver_of_any_name_ties_no_implicit_task(
        kernel_threads, more, tmp_path, invade, run_program):
    """It is known by a function, in hash tables of any size."""
    kernel_threads("renderer.so")
    others = "".join(f"int more_{i}(void);\nint more_{i}(void) {{ return {i}; }}\n"
                     for i in range(10 ** more))
    (tmp_path / "driver.c").write_text(OPENCL_DRIVER + others)
    subprocess.run(["gcc", "-shared", "-fPIC", "driver.c", "-o", "libnew.so"], cwd=tmp_path,
                   check=True, timeout=60)
    assert int(run_program([invade, tmp_path / "program", tmp_path / "libnew.so"]).stdout) < 48


@pytest.mark.machine(len(os.sched_getaffinity(0)) <= 12, "a team of 48 is no large one here")
def test_thread_local_data_of_the_compiler_s_library_ties_no_implicit_task(kernel_threads):
    """libgcc has such data since GCC 14, on every system."""
    assert kernel_threads("renderer.so", "libgcc_s.so.14") < 48
