# SPDX-License-Identifier: GPL-3.0-or-later
"""Iterations are found in the sequence of calls, and scalability graphs in measurements, as phase.c
and measure.c say: random programs and random measurements (mpi-shim/tests/phases.c)."""


def test_iterations_and_graphs_are_found_in_random_programs(build, run_program):
    done = run_program([build / "mpi-shim/tests/phases", 200], check=False)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split()[-4]) > 100_000
