# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocols of the core table, checked with spin: 3 processes on 2 cores, or 2 that count
tokens, every interleaving; a process dies, is stopped or sleeps, or rmd is killed, at any step;
and that the models find the faults that are put in on purpose."""

from __future__ import annotations

import pytest

from lib.building.models import check

SCRIPT = "libinvasive/model/check.sh"


@pytest.mark.timeout(1200)
@pytest.mark.beside(command=check(SCRIPT, "--quick"))
def test_no_wake_up_is_lost_and_every_owner_gets_its_core(checked):
    lines = checked()
    assert sum("finds" in line for line in lines) == 28


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.beside(command=check(SCRIPT))
def test_death_at_any_step_loses_no_core(checked):
    lines = checked()
    assert sum("stopped at any step" in line or "rmd is killed" in line for line in lines) == 16
    assert sum("dies at any step" in line for line in lines) == 16
    assert sum("finds" in line for line in lines) == 45
