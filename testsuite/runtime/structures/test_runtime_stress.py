# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock-free data that threads of the OpenMP runtime share: each alone and under load, with the
sanitizers on.  Compiled here, without libgomp, so that it needs no build."""

from __future__ import annotations

import os
import subprocess

import pytest

from lib.building.sources import LIBGOMP_H, runtime_file, runtime_includes

pytestmark = pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])


@pytest.fixture
def stress(top, tmp_path, run_program, sanitizers):
    """stress(PROGRAM, FILE...) - what test_PROGRAM_stress.c, linked with those files of
    the runtime, says after two seconds"""

    def run(program, *files):
        (tmp_path / "libgomp.h").write_text(LIBGOMP_H)
        ours = top / "libgomp-invasive"
        subprocess.run(
            [*os.environ.get("CC", "gcc").split(), "-std=gnu17", "-O1", "-g", "-pthread",
             "-DINV_ASSERTIONS", "-Wall", "-Wextra", "-Werror", "-Wno-tsan",
             f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all",
             "-I", tmp_path, *runtime_includes(top), "-I", top, "-I", top / "include",
             ours / f"test_{program}_stress.c", *(runtime_file(top, name) for name in files),
             "-o", tmp_path / program],
            check=True, timeout=100)
        # without randomized addresses: some kernels place mappings where the sanitizer has its own
        result = run_program(["setarch", "-R", tmp_path / program, "2000"], timeout=60,
                             env={"TSAN_OPTIONS": "halt_on_error=1"})
        assert result.stderr == ""
        return result.stdout

    return run


def test_cores_are_handed_over_one_by_one_and_none_is_lost(stress):
    said = stress("handover", "parking.c", "ready.c", "sleepers.c", "park.c", "work_source.c")
    assert said == "handover: every thread came through, both cores are free\n"


def test_every_implicit_task_runs_once_and_the_master_leaves_last(stress):
    assert stress("tickets", "tickets.c").startswith("tickets: ")


def test_no_core_that_unheld_threads_are_given_is_lost(stress):
    assert stress("unheld", "unheld.c").startswith("unheld: ")


def test_every_task_is_taken_once(stress):
    said = stress("taskqueue", "taskqueue.c", "taskpool.c")
    assert said == "taskqueue: all tasks taken once, some stolen\n"


def test_every_chunk_is_claimed_once_while_threads_come_and_leave(stress):
    assert stress("split").startswith("split: ")
