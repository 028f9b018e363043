# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol of the MPI shim's doorbells, checked with spin in every interleaving; and that the
model finds the faults that are put in on purpose."""

from __future__ import annotations

import pytest


@pytest.mark.timeout(300)
def test_no_rank_sleeps_long_beside_a_message(check_model):
    lines = check_model("mpi-shim/model/check.sh", timeout=290)
    assert sum("finds" in line for line in lines) == 8
