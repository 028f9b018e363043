# SPDX-License-Identifier: GPL-3.0-or-later
"""Our libgomp.so.1 has the versions of GCC 13's: a running program can load a library that needs
them, and a program that needs them is managed.  What the functions do:
programs/regions/newer_functions.c."""

import json
import sys

import pytest

from lib.building.small_programs import Programs

# What the library below needs of the libgomp of GCC 13, by version.
VERSIONS = {
    "GOMP_1.0": ["GOMP_barrier", "GOMP_single_start"],
    "GOMP_2.0": ["GOMP_task", "GOMP_taskwait"],
    "GOMP_4.0": ["GOMP_parallel"],
    "GOMP_5.1.1": ["GOMP_taskwait_depend_nowait"],
    "OMP_1.0": ["omp_get_max_threads"],
    "OMP_5.1.1": ["omp_get_mapped_ptr", "omp_target_is_accessible", "omp_target_memcpy_async",
                  "omp_target_memcpy_rect_async"],
    "OMP_5.2": ["omp_in_explicit_task", "omp_in_explicit_task_"],
}
LIBRARY_C = """
#include <stddef.h>
int omp_in_explicit_task(void), omp_in_explicit_task_(void);
void *omp_get_mapped_ptr(const void *, int);
int omp_target_is_accessible(const void *, size_t, int);
int omp_target_memcpy_async(void *, const void *, size_t, size_t, size_t, int, int, int, void *);
int omp_target_memcpy_rect_async(void *, const void *, size_t, int, const size_t *, const size_t *,
                                 const size_t *, const size_t *, const size_t *, int, int, int,
                                 void *);
void GOMP_taskwait_depend_nowait(void **);
static int in_tasks(int n)
{
    int explicit = 0;
#pragma omp parallel shared(explicit)
#pragma omp single
    for (int i = 0; i < n; i++) {
#pragma omp task shared(explicit)
        {
#pragma omp atomic
            explicit += omp_in_explicit_task() + omp_in_explicit_task_();
        }
    }
    return explicit + omp_in_explicit_task();
}
static int copied(void)
{
    const size_t volume[1] = {1}, offset[1] = {0};
    char from[2] = "ab", to[2] = "";
    void *depend[3] = {(void *)1, (void *)1, to};
    omp_target_memcpy_async(to, from, 1, 0, 0, -1, -1, 0, NULL);
    omp_target_memcpy_rect_async(to + 1, from + 1, 1, 1, volume, offset, offset, volume, volume,
                                 -1, -1, 0, NULL);
    GOMP_taskwait_depend_nowait(depend);
#pragma omp taskwait
    return to[0] == 'a' && to[1] == 'b' && omp_get_mapped_ptr(to, -1) == to &&
           omp_target_is_accessible(to, 2, -1);
}
int use(void) { return 10 * in_tasks(50) + copied(); }
"""
RESULT = 1001
HOST_C = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int started = 0, (*use)(void) = NULL;
    void *library;
#pragma omp parallel
#pragma omp atomic
    started++;
    library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&use = dlsym(library, "use");
    if (!use)
        return fprintf(stderr, "%s\\n", dlerror()), 1;
    printf("%d\\n", use());
    return started < 1;
}
"""
PYTHON = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).use())"
MAIN_C = """
#include <stdio.h>
int omp_in_explicit_task(void);
int omp_get_max_threads(void);
int main(void)
{
    int started = 0;
#pragma omp parallel
#pragma omp atomic
    started++;
    printf("%d %d\\n", omp_in_explicit_task(), started == omp_get_max_threads());
    return 0;
}
"""


@pytest.fixture(scope="module")
def newer(tmp_path_factory, make_variable):
    """The libgomp.so.1 of a newer compiler, which has the names only; a library and a program that
    find it by RPATH, as those of conda and Spack do; a program with OpenMP, and one without, that
    load the library."""
    p = Programs(tmp_path_factory.mktemp("newer"), (make_variable("CC") or "cc").split())
    names = [name for names in VERSIONS.values() for name in names]
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in names)
    versions = "".join(f"{version} {{ global: {'; '.join(names)}; }};\n"
                       for version, names in VERSIONS.items())
    libgomp = p.make("libgomp.so.1", source, "-w", "-fno-builtin", "-shared", "-fPIC",
                     "-Wl,-soname,libgomp.so.1",
                     f"-Wl,--version-script={p.write('map', versions)}")
    here = f"-Wl,-rpath,{p.directory}"
    # -fopenmp when compiling only: they are linked with the newer libgomp.
    library, program = (p.make(f"{name}.o", source, "-O2", "-fopenmp", "-fPIC", "-c")
                        for name, source in (("library", LIBRARY_C), ("main", MAIN_C)))
    p.plugin = p.make("libnewer.so", "", "-shared", library, libgomp, here)
    p.program = p.make("program", "", program, libgomp, here)
    p.openmp = p.make("openmp", HOST_C, "-fopenmp", "-ldl")
    p.plain = p.make("plain", HOST_C, "-ldl")
    return p


@pytest.fixture
def started(build, invade, run_program):
    """started(HOW, COMMAND): the completed process of a command that has our libgomp.so.1."""
    ours = build / "lib/invasive"
    if not (ours / "libgomp.so.1").exists():
        pytest.skip("libgomp-invasive is not built")

    def run(how, *command):
        libraries = {"LD_LIBRARY_PATH": f"{ours}:{build / 'lib'}"}
        preload = {"LD_PRELOAD": str(ours / "libgomp.so.1")}
        return {"invade": lambda: run_program([invade, *command]),
                "preloaded": lambda: run_program(command, env=preload),
                "linked": lambda: run_program(command, env=libraries)}[how]()

    return run


@pytest.mark.parametrize("host, how", [
    ("python", "invade"), ("python", "preloaded"), ("plain", "invade"), ("plain", "preloaded"),
    ("openmp", "invade"), ("openmp", "preloaded"), ("openmp", "linked")])
def test_a_running_program_loads_a_library_that_needs_the_versions_of_gcc_13(newer, started, host,
                                                                            how):
    program = [sys.executable, "-c", PYTHON] if host == "python" else [getattr(newer, host)]
    done = started(how, *program, newer.plugin)
    assert (done.stdout, done.stderr) == (f"{RESULT}\n", "")


def test_the_library_needs_all_versions_that_gcc_13_has_added(newer, run_program):
    needed = run_program(["objdump", "-p", newer.plugin]).stdout
    assert all(f" {version}\n" in needed for version in VERSIONS if version != "OMP_1.0")


def test_a_program_that_needs_the_versions_of_gcc_13_is_managed(newer, invade, run_program,
                                                                tmp_path):
    report = tmp_path / "report.json"
    done = run_program([invade, f"--report={report}", newer.program])
    assert (done.stdout, done.stderr) == ("0 1\n", "")
    assert [job["program"] for job in json.loads(report.read_text())["jobs"]] == ["program"]
