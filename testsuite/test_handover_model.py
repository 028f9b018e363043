# SPDX-License-Identifier: GPL-3.0-or-later
"""How the threads of one managed process hand their cores to each other, checked with spin in every
interleaving; and that the model finds the faults that are put in on purpose."""

from __future__ import annotations

import shutil

import pytest

needs_spin = pytest.mark.skipif(shutil.which("spin") is None, reason="needs package spin")


def check(run_program, top, tmp_path, timeout, *options):
    result = run_program([top / "libgomp-invasive/model/check.sh", "handover", *options, tmp_path],
                         timeout=timeout, check=False)
    lines = [line for line in result.stdout.splitlines() if line.startswith(("PASS", "FAIL"))]
    assert result.returncode == 0, result.stdout + result.stderr
    assert lines and all(line.startswith("PASS") for line in lines)
    return lines


@needs_spin
@pytest.mark.timeout(300)
def test_every_ready_thread_runs_and_no_seat_is_lost_or_doubled(run_program, top, tmp_path):
    lines = check(run_program, top, tmp_path, 290)
    assert sum("finds" in line for line in lines) == 6


@needs_spin
@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_same_with_three_threads_from_the_start(run_program, top, tmp_path):
    lines = check(run_program, top, tmp_path, 1790, "--full")
    assert sum("3 threads" in line for line in lines) == 3
