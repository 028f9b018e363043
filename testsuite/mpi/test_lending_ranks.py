# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank lends its core, or its token where ranks are more than cores, by inv_lend.  The program is
rmd/programs/lends.c."""

import time

import pytest

from lib.machine import two_cpus
from lib.manager.lending import compile_lends
from lib.waiting import eventually

pytestmark = two_cpus


@pytest.fixture
def mpi_lends(mpi, tmp_path):
    before, after = mpi.flags
    return compile_lends(tmp_path / "lends", (*before, "-DWITH_MPI"), after)


@pytest.mark.parametrize("how", ["reclaim", "region"])
def test_the_core_of_a_rank_that_lends_is_the_others_until_it_reclaims_or_computes(
        domain, mpi, mpi_lends, how):
    d = domain()
    job = d.blocked(*mpi.run(2, mpi_lends, how))
    d.comes_to_hold(0, 2)
    d.wakes(job)
    d.comes_to_hold(1, 1)
    d.ends_well(job)


def test_a_rank_that_lends_and_then_waits_in_mpi_has_a_core_after_the_wait(domain, mpi, mpi_lends):
    d = domain()
    job = d.blocked(*mpi.run(2, mpi_lends, "mpi"))
    d.comes_to_hold(0, 2)
    d.wake.write()
    assert job.stdout.readline() == "waits\n"
    time.sleep(0.5)
    d.ends_well(job)


def four_ranks(d, mpi, program, how):
    """Three of four ranks on two cores lend: the fourth gets another token."""
    d.env["OMP_NUM_THREADS"] = "4"  # by default so many ranks have one thread each
    job = d.blocked(*mpi.run(4, program, how))
    eventually(lambda: d.held()[3:], [2])
    assert d.status()["mode"] == "tokens"
    for _ in range(3):
        d.wake.write()
    return job


@pytest.mark.parametrize("how", ["reclaim", "region"])
def test_ranks_that_lend_give_their_tokens(domain, mpi, mpi_lends, how):
    d = domain()
    job = four_ranks(d, mpi, mpi_lends, how)
    eventually(d.held, [1, 1, 1, 1])
    d.ends_well(job)


def test_ranks_that_lend_their_tokens_and_then_wait_in_mpi_have_them_after_the_wait(
        domain, mpi, mpi_lends):
    d = domain()
    job = four_ranks(d, mpi, mpi_lends, "mpi")
    time.sleep(0.5)
    d.ends_well(job)
