# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines larger than cpu_set_t and than our tables: kernels with thousands of possible CPUs, more
CPUs than a table has cores, more processes than it has slots.  A library that is preloaded makes
such a kernel: masks that are smaller than its own are refused, and our CPU k has another number."""

import contextlib
import re

import pytest

from lib.building.small_programs import SHARED, compile_text
from lib.machine import CPUS
from lib.manager.rmd import Rmd
from lib.report import rows

KERNEL = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : 0;
}

static long kernel(long n, long a, long b, long c, long d, long e, long f)
{
    static long (*call)(long, ...);
    if (!call)
        call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return call(n, a, b, c, d, e, f);
}

/* TEST_POSSIBLE CPUs, of which ours are from number TEST_FIRST on, and TEST_MORE after them. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    cpu_set_t ours;
    CPU_ZERO(&ours);
    if (8 * bytes < number("TEST_POSSIBLE")) {
        errno = EINVAL;
        return -1;
    }
    if (kernel(SYS_sched_getaffinity, pid, sizeof ours, (long)&ours, 0, 0, 0) < 0)
        return -1;
    CPU_ZERO_S(bytes, set);
    size_t past = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &ours)) {
            past = number("TEST_FIRST") + cpu + 1;
            CPU_SET_S(past - 1, bytes, set);
        }
    for (size_t more = number("TEST_MORE"); more; more--)
        CPU_SET_S(past++, bytes, set);
    return 0;
}

int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set)
{
    cpu_set_t ours;
    size_t first = number("TEST_FIRST");
    CPU_ZERO(&ours);
    for (size_t cpu = first; cpu < 8 * bytes; cpu++)
        if (CPU_ISSET_S(cpu, bytes, set))
            CPU_SET(cpu - first, &ours);
    return (int)kernel(SYS_sched_setaffinity, pid, sizeof ours, (long)&ours, 0, 0, 0);
}

/* Threads are pinned by system calls. */
long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_sched_setaffinity)
        return sched_setaffinity((pid_t)a[0], (size_t)a[1], (const cpu_set_t *)a[2]);
    return kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t *set)
{
    (void)thread;
    return sched_getaffinity(0, bytes, set) ? errno : 0;
}
"""


@pytest.fixture(scope="session")
def kernel_library(tmp_path_factory):
    return compile_text(tmp_path_factory.mktemp("kernel") / "kernel.so", KERNEL, *SHARED)


@pytest.fixture
def kernel(kernel_library):
    """kernel(POSSIBLE, FIRST, MORE=0) - the environment of a machine"""
    return lambda possible, first, more=0: {
        "LD_PRELOAD": str(kernel_library), "TEST_POSSIBLE": str(possible),
        "TEST_FIRST": str(first), "TEST_MORE": str(more)}




@pytest.mark.parametrize("possible, first", [(1025, 0), (4096, 2000), (8192, 8192 - 1 - CPUS[-1])])
def test_programs_share_cores_on_kernels_with_thousands_of_cpus(run_program, invade, build, kernel,
                                                                possible, first):
    done = run_program([invade, "--report", f"--cores={first + CPUS[0]}-{first + CPUS[-1]}", "--",
                        build / "apps/regions/regions", "--batch-ms=5"],
                       env=kernel(possible, first))
    line, = rows(done.stderr)
    assert line[2] == "regions" and "unmanaged" not in done.stderr and "us_per" in done.stdout


def test_ranks_of_mpi_share_cores_on_kernels_with_thousands_of_cpus(
        run_program, invade, mpi, kernel):
    done = run_program([invade, "--report", "--", *mpi.run(2, mpi.program(
        "apps/imbalance/imbalance"), "--loads=1:3", "--work-ms=2", "--regions=2")],
        env=kernel(4096, 2000))
    assert [line[0] for line in rows(done.stderr)] == ["0", "1"] and "unmanaged" not in done.stderr


def test_a_kernel_larger_than_any_is_told(run_program, invade, build, kernel):
    done = run_program([invade, "--", build / "apps/regions/regions", "--batch-ms=1"],
                       env=kernel(16384, 0))
    assert "us_per_region" in done.stdout and "Running unmanaged" in done.stderr
    assert "more than 8192 possible CPUs" in done.stderr


def test_more_cpus_than_a_table_has_cores_are_told_and_unused(run_program, invade, build, kernel):
    done = run_program([invade, "sh", "-c", '"$0" --socket=$INVASIVE_SOCKET status',
                        build / "bin/rmctl"], env=kernel(2048, 0, 1100 - len(CPUS)))
    assert "76 more stay unused" in done.stderr and "1024" in done.stdout


@pytest.mark.parametrize("list", ["8192", "0-8192", "99999999999"])
def test_a_cpu_that_no_kernel_has_is_no_cpu(run_program, invade, list):  # noqa: A002
    done = run_program([invade, f"--cores={list}", "true"], check=False)
    assert done.returncode == 125 and "is not a list of CPUs" in done.stderr


def test_rmctl_knows_no_core_beyond_those_of_a_table(build, run_program):
    with contextlib.closing(Rmd(build, "--emulate-cores=2")) as rmd:
        for core in (1024, 5000):
            done = run_program([build / "bin/rmctl", f"--socket={rmd.name}", "drain", core],
                               check=False)
            assert done.returncode == 64 and "is no list of cores" in done.stderr


def test_a_process_more_than_a_table_has_slots_runs_unmanaged(run_program, build):
    with contextlib.closing(Rmd(build, "--emulate-cores=2")) as rmd:
        members = [rmd.member() for _ in range(256)]
        for member in members:
            member.say(f"join {rmd.name} -1 -1 -1 -1")
        assert sorted(int(member.hear()) for member in members) == list(range(256))
        done = run_program([build / "bin/invade", f"--socket={rmd.name}", "--",
                            build / "apps/regions/regions", "--batch-ms=1"])
        assert "us_per_region" in done.stdout
        assert done.stderr.count("the domain has no slot left") == 1
        assert "Running unmanaged" in done.stderr
        assert len({member.ask("table") for member in members}) == 1
        members[7].close()
        done = run_program([build / "bin/invade", f"--socket={rmd.name}", "--",
                            build / "apps/regions/regions", "--batch-ms=1"])
        assert done.stderr == ""


def test_no_set_of_cpus_ends_where_cpu_set_t_does(top):
    """Only calls of the C library's functions use its type; ours is struct inv_cpus."""
    found = [f"{file}: {line.strip()}"
             for folder in ("libinvasive", "libgomp-invasive", "mpi-shim", "rmd", "client", "tools")
             for file in sorted((top / folder).rglob("*.[ch]"))
             for line in file.read_text().splitlines()
             if re.search(r"\bcpu_set_t \w+ *[;,=[]|\bCPU_SETSIZE\b|\bCPU_[A-Z]+\(", line)]
    assert found == []
