# SPDX-License-Identifier: GPL-3.0-or-later
"""The public interface, include/invasive.h: what it promises, and the example that shows it."""

import os
import subprocess

import pytest

from lib.building.small_programs import SHARED, compile_text


@pytest.fixture
def compile_with_library(build, top, tmp_path, make_variable):
    """compile_with_library(SOURCE, FLAG...) - a program linked with the library of the build; one
    of libinvasive's own tests with what libgomp and the MPI shim link."""

    def compile_program(source, *flags):
        program = tmp_path / source.stem
        directory, name = build / "lib", "-linvasive"
        if source.parent.parent.name == "libinvasive":
            directory, name = build / "lib/invasive", "-l:libinvasive-process.so"
        libraries = [f"-L{directory}", name, f"-Wl,-rpath,{directory}"]
        command = [*(make_variable("CC") or "cc").split(), "-std=gnu17", "-O1", "-Wall", "-Werror",
                   *make_variable("SANITIZER_CFLAGS").split(), *flags, str(source),
                   f"-I{top / 'include'}", *libraries, "-lm", "-o", str(program)]
        subprocess.run(command, check=True, timeout=60)
        return program

    return compile_program


def numbers(line):
    """'when managed, owns 2, holds 1' -> (2, 1)"""
    words = line.replace(",", "").split()
    return int(words[3]), int(words[5])


def test_the_example_runs_without_a_resource_manager(compile_with_library, run_program, top):
    program = compile_with_library(top / "doc/examples/claim.c", "-fopenmp")
    lines = run_program([program]).stdout.splitlines()
    assert "unmanaged" in lines[0] and "unmanaged" in lines[1]
    owned, held = numbers(lines[0])
    assert owned == held >= 1
    assert lines[2] == "sum 353915"


def test_the_example_is_managed_under_invade(compile_with_library, run_program, top, build):
    program = compile_with_library(top / "doc/examples/claim.c", "-fopenmp")
    lines = run_program([build / "invade", program]).stdout.splitlines()
    assert lines[0].split()[1] == "managed,"
    owned, held = numbers(lines[0])
    assert owned >= 1 and held >= 1
    assert lines[2] == "sum 353915"


def test_claims_without_a_resource_manager_are_the_affinity_mask(compile_with_library, run_program,
                                                                 top):
    program = compile_with_library(top / "libinvasive/member/test_claim.c", f"-I{top}")
    assert run_program([program, "unmanaged"]).stdout == "claims: as documented\n"


def test_claims_under_invade_are_what_rmd_decided(compile_with_library, run_program, top, build):
    program = compile_with_library(top / "libinvasive/member/test_claim.c", f"-I{top}")
    result = run_program([build / "invade", program, "managed"])
    assert result.stdout == "claims: as documented\n"


def test_invasive_off_is_unmanaged_under_invade(compile_with_library, run_program, top, build):
    program = compile_with_library(top / "doc/examples/claim.c", "-fopenmp")
    result = run_program([build / "invade", program], env={"INVASIVE": "off"})
    assert "unmanaged" in result.stdout.splitlines()[0]


def test_a_child_forked_while_its_parent_joins_can_make_claims(compile_with_library, run_program,
                                                               top):
    program = compile_with_library(top / "libinvasive/member/test_join_fork.c",
                                   f"-I{top}", "-pthread")
    assert run_program([program], timeout=60).stdout == "claims in parent and child: made\n"


@pytest.mark.machine(len(os.sched_getaffinity(0)) > 1, "one CPU is all that there are")
@pytest.mark.parametrize("threads", ["pinned", "free"])
def test_only_a_thread_that_is_pinned_loses_a_cpu_with_its_core(
        compile_with_library, run_program, top, build, threads):
    program = compile_with_library(top / "libinvasive/hold/test_evicted.c", f"-I{top}")
    cores = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
    result = run_program([build / "invade", f"--cores={cores}", program, threads])
    assert result.stdout == "evicted: as documented\n"


# Looks for the current CPU fail, so that a thread is moved to its core.  As soon as it is there, it
# is given another CPU, as by taskset.  A library: the dynamic linker relocates the program last.
MOVING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
cpu_set_t cpus, one;
int moves;
int sched_getcpu(void) { return -1; }
long syscall(long number, ...)
{
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"), a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    long result = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    for (int cpu = 0; number == SYS_sched_setaffinity && cpu < CPU_SETSIZE && moves == 0; cpu++)
        if (CPU_ISSET(cpu, &cpus) && !CPU_ISSET_S(cpu, (size_t)a[1], (cpu_set_t *)a[2])) {
            CPU_SET(cpu, &one);
            next(SYS_sched_setaffinity, a[0], sizeof one, &one);
            moves++;
        }
    return result;
}
"""

# Joins without OpenMP.
MOVED = r"""
#define _GNU_SOURCE
#include <invasive.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
extern cpu_set_t cpus, one;
extern int moves;
int main(void)
{
    cpu_set_t now;
    CPU_ZERO(&now);
    syscall(SYS_sched_getaffinity, 0, sizeof cpus, &cpus);
    inv_announce_workload(1);
    syscall(SYS_sched_getaffinity, 0, sizeof now, &now);
    return printf("%s, %d, %s\n", inv_claim_now().managed ? "managed" : "unmanaged", moves,
                  CPU_EQUAL(&now, &one) ? "kept" : "lost") < 0;
}
"""


@pytest.mark.machine(len(os.sched_getaffinity(0)) > 1, "one CPU is all that there are")
def test_a_thread_that_is_moved_to_its_core_keeps_the_cpus_that_it_is_given_meanwhile(
        compile_with_library, run_program, build, tmp_path):
    library = compile_text(tmp_path / "moving.so", MOVING, *SHARED)
    (tmp_path / "moved.c").write_text(MOVED)
    program = compile_with_library(tmp_path / "moved.c", "-fPIE", "-Wl,--no-as-needed",
                                   str(library))
    assert run_program([build / "invade", program]).stdout == "managed, 1, kept\n"
