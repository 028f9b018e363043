# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol of the core table, checked with spin: 3 processes on 2 cores, every interleaving,
death at any step; and that the model finds the faults that are put in on purpose."""

from __future__ import annotations

import shutil

import pytest

needs_spin = pytest.mark.skipif(shutil.which("spin") is None, reason="needs package spin")


def check(run_program, top, tmp_path, timeout, *options):
    result = run_program([top / "libinvasive/model/check.sh", *options, tmp_path],
                         timeout=timeout, check=False)
    lines = [line for line in result.stdout.splitlines() if line.startswith(("PASS", "FAIL"))]
    assert result.returncode == 0, result.stdout + result.stderr
    assert lines and all(line.startswith("PASS") for line in lines)
    return lines


@needs_spin
@pytest.mark.timeout(580)
def test_no_wake_up_is_lost_and_every_owner_gets_its_core(run_program, top, tmp_path):
    lines = check(run_program, top, tmp_path, 570, "--quick")
    assert sum("finds" in line for line in lines) == 6


@needs_spin
@pytest.mark.full
@pytest.mark.timeout(1800)
def test_death_at_any_step_loses_no_core(run_program, top, tmp_path):
    lines = check(run_program, top, tmp_path, 1790)
    assert sum("dies at any step" in line for line in lines) == 6
    assert sum("finds" in line for line in lines) == 11
