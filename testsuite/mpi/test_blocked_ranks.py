# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank that blocks in the kernel, outside MPI, lends its core, or its token where ranks are more
than cores, while others want one.  The program is rmd/programs/blocks.cpp."""

import pytest

from lib.machine import two_cpus
from lib.manager.blocked import calls_can_be_slow, compile_blocks
from lib.waiting import eventually

pytestmark = two_cpus


@pytest.fixture
def mpi_blocks(mpi, tmp_path):
    before, after = mpi.flags
    return compile_blocks(tmp_path / "blocks", *before, "-DWITH_MPI", "-DOMPI_SKIP_MPICXX", *after)


@pytest.mark.parametrize("how", ["sleep", "poll", "read", "waitpid", "join", "future", "tcp",
                                 *(("fsync", "mpi-io") if calls_can_be_slow() else ())])
def test_the_core_of_a_rank_that_blocks_is_the_others_until_it_computes(
        domain, mpi, mpi_blocks, how):
    d = domain()
    job = d.blocked(*mpi.run(2, mpi_blocks, how))
    d.comes_to_hold(0, 2)
    d.wakes(job)
    d.comes_to_hold(1, 1)
    d.ends_well(job)


def test_ranks_that_block_lend_their_tokens(domain, mpi, mpi_blocks):
    """Each of four ranks on two cores has a token.  Three of them block: the fourth gets another
    one, which it gives back when they compute."""
    d = domain()
    d.env["OMP_NUM_THREADS"] = "4"  # by default so many ranks have one thread each
    job = d.blocked(*mpi.run(4, mpi_blocks, "read"))
    eventually(lambda: d.held()[3:], [2])
    assert d.status()["mode"] == "tokens"
    for _ in range(3):
        d.wake.write()
    eventually(d.held, [1, 1, 1, 1])
    d.ends_well(job)
