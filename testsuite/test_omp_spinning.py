# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that wait for each other in loops of their own, in a default team larger than the rank's
share of the cores: a line on standard error says which size is better, and only there."""

import os

from test_omp_programs import compiled  # noqa: F401 (a fixture)

TWO_RANKS = {"MPI_LOCALNRANKS": "2"}
SAYS = "invasive: 16 threads of a parallel region wait for each other in loops of their own"


def run(run_program, invade, program, **environment):
    two = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
    command = [invade, f"--cores={two}", "--", program]
    ran = run_program(command, {**TWO_RANKS, **environment}, timeout=90)
    assert ran.stdout == "OK\n"
    return ran.stderr


def test_a_default_team_that_spins_is_told_once(compiled, run_program, invade):  # noqa: F811
    said = run(run_program, invade, compiled("spin_rounds"))
    assert said.count(SAYS) == 1
    assert "--threads=1 of invade" in said


def test_a_team_that_the_user_has_asked_for_is_not(compiled, run_program, invade):  # noqa: F811
    said = run(run_program, invade, compiled("spin_rounds"), OMP_NUM_THREADS="16")
    assert "invasive:" not in said
