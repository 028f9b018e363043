# SPDX-License-Identifier: GPL-3.0-or-later
"""The deque of tasks and the free lists behind it: under fire with the sanitizers on, compiled here
without libgomp, and the deque's protocol in every interleaving."""

from __future__ import annotations

import os
import subprocess

import pytest


@pytest.fixture
def compile_stress(top, tmp_path):
    """compile_stress(SANITIZERS) - the path of the stress program"""

    def compile_program(sanitizers):
        ours = top / "libgomp-invasive"
        program = tmp_path / "stress"
        sources = [ours / "test_taskqueue_stress.c", ours / "overlay/taskqueue.c",
                   ours / "overlay/taskpool.c"]
        subprocess.run(
            [*os.environ.get("CC", "gcc").split(), "-std=gnu17", "-O1", "-g", "-pthread", "-Wall",
             "-Wextra", "-Wno-tsan", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all",
             "-I", ours / "overlay", *sources, "-o", program],
            check=True, timeout=100,
        )
        return program

    return compile_program


@pytest.mark.sanitize
@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_every_task_is_taken_once_under_fire(compile_stress, run_program, sanitizers):
    # without randomized addresses: some kernels place mappings where ThreadSanitizer has its own
    result = run_program(["setarch", "-R", compile_stress(sanitizers), "2000"], timeout=60,
                         env={"TSAN_OPTIONS": "halt_on_error=1"})
    assert result.stdout == "taskqueue: all tasks taken once, some stolen\n"
    assert result.stderr == ""


@pytest.mark.timeout(300)
def test_no_task_is_taken_twice_and_no_sleeper_missed(check_model):
    lines = check_model("libgomp-invasive/model/check.sh", "deque", timeout=290)
    assert sum("finds" in line for line in lines) == 5
