# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rank uses that has nothing to do for seconds.  Its processor time, which depends little on
what else runs on the machine; how fast waits are is bench/run's."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.machine import TWO_CORES

SECONDS = 6
CALLS = ["recv", "barrier", "fence"]
OPTIONS = {"mpich": [], "openmpi": ["--oversubscribe", "--bind-to", "none"]}
MOST_PERCENT = 1.0  # of a core; 0.15 to 0.4 with us; without, as much as a busy machine gives


@pytest.fixture
def programs(make_variable, top, tmp_path, run_program):
    """The command that runs bench/mpi/idle.c with two ranks, by name of each MPI that there is."""
    found = {}
    for name, options in OPTIONS.items():
        if make_variable(f"{name.upper()}_MPIEXEC"):
            program = tmp_path / f"idle.{name}"
            run_program([make_variable(f"{name.upper()}_MPICC"), "-O1", "-std=gnu17",
                         top / "bench/mpi/idle.c", "-o", program])
            found[name] = [make_variable(f"{name.upper()}_MPIEXEC"), *options, "-n", 2, program]
    if not found:
        pytest.skip("configured without MPI")
    return found


def test_a_rank_that_waits_for_seconds_uses_next_to_nothing(programs, invade, run_program):
    """All jobs at once, each as if alone on its cores: a rank that waits keeps no core busy."""

    def percent(command, call):
        out = run_program([invade, TWO_CORES, "--", *command, SECONDS, "sleep", call],
                          timeout=90).stdout
        return float(out.removeprefix(f"{call}_percent "))

    with ThreadPoolExecutor() as pool:
        jobs = {(name, call): pool.submit(percent, programs[name], call)
                for name in programs for call in CALLS}
        used = {which: job.result() for which, job in jobs.items()}
    for name, call in used:
        for _ in range(2):  # a slow machine is slow now and then; a rank that spins always does
            if used[name, call] > MOST_PERCENT:
                used[name, call] = percent(programs[name], call)
    assert all(0 < value <= MOST_PERCENT for value in used.values()), used
