# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenMP programs whose cores another process of the domain takes in the middle of their work."""

import subprocess

import pytest

from lib.waiting import eventually


@pytest.mark.timeout(60)
def test_a_thread_that_lost_its_core_finds_a_free_one_for_a_thread_that_waits(
        build, rmd, omp_program):
    domain = rmd(3)
    (robber,) = domain.joined(1, 0)
    program = subprocess.Popen(
        [build / "invade", f"--socket={domain.name}", omp_program("core_lost")], text=True,
        bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with program:
        assert program.stdout.readline() == "locked\n"
        (slot,) = set(robber.states()) - {robber.slot}
        eventually(lambda: robber.holders().count(slot), 1)
        # Then no thread holds a core, all are free, and no free core will be offered.
        assert robber.ask(f"rob {slot}") == "1"
        program.stdin.write("unlock\n")
        assert program.stdout.readline() == "runs\n"
        eventually(lambda: robber.holders().count(slot), 1)
        program.stdin.write("end\n")
        assert program.wait(20) == 0
