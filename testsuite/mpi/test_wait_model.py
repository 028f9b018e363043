# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol of the MPI shim's doorbells, checked with spin in every interleaving; and that the
model finds the faults that are put in on purpose."""

import pytest

from lib.building.models import check

SCRIPT = "mpi-shim/model/check.sh"


@pytest.mark.timeout(1200)
@pytest.mark.beside(command=check(SCRIPT))
def test_no_rank_sleeps_long_beside_a_message(checked):
    lines = checked()
    assert sum("finds" in line for line in lines) == 8
