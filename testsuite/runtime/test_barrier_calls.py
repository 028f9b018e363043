# SPDX-License-Identifier: GPL-3.0-or-later
"""A barrier in which no thread sleeps makes no system call. Stock libgomp makes one for each."""

import re
import shutil
import subprocess

import pytest

from lib.omp_programs import source_of

SOURCE = source_of("barriers")
BARRIERS = 5000
SOME = 200  # calls of a run that have nothing to do with its barriers


@pytest.fixture
def futex_calls(build, tmp_path, run_program):
    """futex_calls(THREADS, BEFORE) -> (waits, wake-ups that woke no thread, all)"""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    program = tmp_path / "barriers"
    subprocess.run(["gcc", "-O2", "-fopenmp", SOURCE, "-o", program], check=True, timeout=60)

    def count(threads, before, environment):
        trace = tmp_path / "trace"
        run_program(
            ["strace", "-f", "-qq", "-e", "trace=futex", "-o", trace]
            + [*before, program, str(threads), str(BARRIERS)],
            env={"OMP_WAIT_POLICY": "active", **environment}, timeout=100,
        )
        text = trace.read_text()
        waits = len(re.findall(r"futex\([^\n]*FUTEX_WAIT", text))
        # Completed in one line, or after "<... futex resumed>", which only sleepers' calls need.
        useless = len(re.findall(r"futex\([^\n]*FUTEX_WAKE[^\n]*\) = 0\b", text))
        return waits, useless, text.count("futex(")

    return count


@pytest.fixture(params=["unmanaged", "managed"])
def condition(request, build):
    library = build / "lib/invasive"
    if not (library / "libgomp.so.1").exists():
        pytest.skip("libgomp-invasive is not built")
    if request.param == "unmanaged":
        return [], {"LD_LIBRARY_PATH": f"{library}:{library.parent}"}
    if not (build / "invade").exists():
        pytest.skip("invade is not built")
    return [build / "invade", "--"], {}


def test_barrier_of_one_thread_makes_no_futex_call(futex_calls, condition):
    total = futex_calls(1, *condition)[2]
    assert total < SOME


def test_barrier_wakes_only_threads_that_sleep(futex_calls, condition):
    """However busy the machine is: only threads that slept may be woken."""
    waits, useless, total = futex_calls(2, *condition)
    assert useless <= waits + SOME, f"{useless} useless wake-ups, {waits} waits, {total} calls"
