# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the processor keeps shadow stacks (CET, GCS) implicit tasks are kernel threads.  Hardly a
machine has them: a build with assertions lets a variable give the processor's answer."""

import json
import os

import pytest

THREADS = 16  # of kernel_thread_each
HAS_CONTEXTS = os.uname().machine in ("x86_64", "aarch64")
PRETENDED = {"INVASIVE_TEST_SHADOW_STACK": "1"}
CONDITIONS = ["unmanaged", "managed", "changing"]


@pytest.fixture
def asserting(make_variable):
    if "INV_ASSERTIONS" not in make_variable("ASSERTION_CPPFLAGS"):
        pytest.skip("the build has no assertions (configure --enable-assertions)")


@pytest.mark.skipif(not HAS_CONTEXTS, reason="no contexts on this processor")
@pytest.mark.parametrize("condition", CONDITIONS)
def test_with_shadow_stacks_threads_that_wait_are_kernel_threads(
        asserting, omp_program, in_condition, run_program, condition):
    words, environment, _ = in_condition(condition)
    kernel_threads = {}
    for name, more in (("without", {}), ("with", PRETENDED)):
        done = run_program([*words, omp_program("kernel_thread_each")], {**environment, **more})
        kernel_threads[name] = int(done.stdout)
        assert done.stderr == ""
    assert kernel_threads["with"] == THREADS
    assert kernel_threads["without"] < THREADS or len(os.sched_getaffinity(0)) >= THREADS


@pytest.mark.parametrize("more, by", [
    ({}, None if HAS_CONTEXTS else "the processor"), (PRETENDED, "shadow stacks"),
    ({**PRETENDED, "INVASIVE_CONTEXTS": "off"}, "INVASIVE_CONTEXTS")])
def test_the_report_says_that_shadow_stacks_are_why(
        asserting, invade, omp_program, run_program, tmp_path, more, by):
    report = tmp_path / "report.json"
    run_program([invade, f"--report={report}", "--", omp_program("kernel_thread_each")], more)
    (job,) = json.loads(report.read_text())["jobs"]
    assert [process["kernel_threads_by"] for process in job["processes"]] == [by]
