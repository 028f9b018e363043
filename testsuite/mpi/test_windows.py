# SPDX-License-Identifier: GPL-3.0-or-later
"""Data that the library moves by messages back and forth while all ranks wait in it: no rank may
sleep from one message to the next."""

import pytest

from lib.machine import TWO_CORES

GETS = 20000
SLOWER, SLACK_S = 10, 2.0  # than stock, on a busy machine; 4 to 30 s where ranks sleep


@pytest.fixture
def seconds(mpi, run_program):
    """seconds(RANKS, HOW..., before=COMMAND) - the time that the gets took, all of them right."""

    def measured(ranks, *how, before=()):
        command = mpi.run(ranks, mpi.program("mpi-shim/tests/gets"), GETS, *how)
        out = run_program([*before, *command], timeout=90).stdout.split()
        values = dict(zip(out[::2], out[1::2], strict=True))
        assert values["wrong"] == "0"
        return float(values["seconds"])

    return measured


@pytest.mark.parametrize("how", ["fence", "flush"])
@pytest.mark.parametrize("threads", ["single", "multiple"])
def test_many_gets_in_a_row_do_not_wait_for_sleepers(seconds, invade, how, threads):
    for _ in range(3):  # sleepers are slow each time
        stock = seconds(2, how, threads)
        ours = seconds(2, how, threads, before=(invade, TWO_CORES, "--"))
        if ours < SLOWER * stock + SLACK_S:
            break
    assert ours < SLOWER * stock + SLACK_S, f"{stock} s without us"


def test_many_gets_in_a_row_do_not_wait_for_sleepers_on_fewer_cores_than_ranks(seconds, invade):
    """Stock is no measure here: its ranks spin on each other's cores."""
    assert any(seconds(4, "fence", "single", before=(invade, TWO_CORES, "--")) < 20
               for _ in range(3))  # sleepers are slow each time
