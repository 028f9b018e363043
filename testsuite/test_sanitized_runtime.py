# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenMP runtime as a whole under ThreadSanitizer, with upstream's files and libinvasive, in
managed programs.  The stress programs check each structure alone; this checks that the runtime
keeps to what they are built for."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from makefiles import sources

pytestmark = pytest.mark.full

CC = "gcc -fsanitize=thread -Wno-tsan"
LIBINVASIVE = ("lib_invasive_libinvasive_process_so_SOURCES", "inv_interposed_sources")
# Not here: what meets races of upstream's own (nest locks, the lists of work shares, doacross,
# whose fences the sanitizer does not know), and what counts threads or their stacks.
PROGRAMS = ("barriers barriers_in_regions busy_neighbours few_regions many_regions nested "
            "regions_from_threads runtimes spin_between_tasks static_reduction task_chain "
            "task_constructs tasks thread_data").split()


@pytest.fixture(scope="module")
def sanitized(top, build, make_variable, tmp_path_factory):
    """A tree with the tools of the ordinary build and sanitized libraries."""
    if not make_variable("GCC_SOURCE"):
        pytest.skip("the runtime is not built: no source of libgomp")
    tree = tmp_path_factory.mktemp("sanitized")
    (tree / "lib" / "invasive").mkdir(parents=True)
    shutil.copytree(build / "bin", tree / "bin")
    shutil.copy(build / "lib/invasive/libinvasive-mpi.so", tree / "lib/invasive")
    subprocess.run(
        [*CC.split(), "-std=gnu17", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-DHAVE_CONFIG_H",
         '-DINV_BINDIR="/nowhere"',
         *(f"-I{path}" for path in (build, top, top / "include")),
         *(path for name in LIBINVASIVE for path in sources(top, name)), "-ldl", "-Wl,-z,defs",
         "-Wl,-soname,libinvasive-process.so", "-o",
         tree / "lib/invasive/libinvasive-process.so"],
        check=True, timeout=200)
    subprocess.run(
        [top / "libgomp-invasive/build.sh", f"--source={make_variable('GCC_SOURCE')}",
         f"--overlay={top / 'libgomp-invasive/overlay'}", f"--libinvasive={tree / 'lib/invasive'}",
         f"--include={top}", f"--builddir={tree / 'libgomp'}", "--cflags=-O1 -g",
         f"--out={tree / 'lib/invasive/libgomp.so.1'}"],
        check=True, timeout=1000, env={**os.environ, "CC": CC})
    return tree


def compile_sanitized(top, tmp_path, name):
    subprocess.run([*CC.split(), "-O1", "-g", "-fopenmp", top / f"testsuite/omp/{name}.c", "-lm",
                    "-o", tmp_path / name], check=True, timeout=100)
    return tmp_path / name


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_thread_reads_what_another_is_writing(top, tmp_path, sanitized, run_program, name):
    program = compile_sanitized(top, tmp_path, name)
    # without randomized addresses: some kernels place mappings where ThreadSanitizer has its own
    result = run_program(["setarch", "-R", sanitized / "bin/invade", "--threads=8", "--", program],
                         timeout=300)
    assert "ThreadSanitizer" not in result.stdout + result.stderr


@pytest.mark.parametrize("case", "dynamic static guided runtime task meet".split())
def test_turns_of_ordered_loops_need_no_more_than_their_atomics(top, tmp_path, sanitized,
                                                                run_program, case):
    """ordered.c's ring, in which a chunk's turn is passed on without a lock."""
    (tmp_path / "upstream").write_text("race:work.c\n")  # the lists of work shares
    program = compile_sanitized(top, tmp_path, "ordered_turns")
    result = run_program(["setarch", "-R", sanitized / "bin/invade", "--threads=8", "--", program,
                          case], timeout=300,
                         env={"TSAN_OPTIONS": f"suppressions={tmp_path / 'upstream'}"})
    assert "ThreadSanitizer" not in result.stdout + result.stderr


def test_the_sanitizer_watches(tmp_path, sanitized, run_program):
    (tmp_path / "race.c").write_text("""int x;
        int main (void) {
        for (int round = 0; round < 20; round++)
        #pragma omp parallel
            for (int i = 0; i < 1000000; i++) x++;
        }""")
    subprocess.run([*CC.split(), "-O0", "-fopenmp", tmp_path / "race.c", "-o", tmp_path / "race"],
                   check=True, timeout=100)
    result = run_program(["setarch", "-R", sanitized / "bin/invade", "--threads=8", "--",
                          tmp_path / "race"], check=False)
    assert "ThreadSanitizer: data race" in result.stderr
