# SPDX-License-Identifier: GPL-3.0-or-later
"""Short regions do not need the watchdog to get on: it would take milliseconds, where a round takes
tens of microseconds.  However the threads wait."""

import pytest

TURNS, ATTEMPTS = 2, 4  # other load meets one and not the other
MOST = 8  # times what it takes unmanaged; waiting for the watchdog takes 25 times as long


def keeps_pace(command, run_program, how):
    def best(environment):
        return min(float(run_program(command, environment).stdout) for _ in range(TURNS))

    return any(best(how) < MOST * best({"INVASIVE": "off"}) for _ in range(ATTEMPTS))


@pytest.mark.parametrize("how", [{}, {"INVASIVE_CONTEXTS": "off"}, {"INVASIVE_BIND": "strict"}],
                         ids=["contexts", "kernel-threads", "strict"])
@pytest.mark.parametrize("region, serial", [(5, 30), pytest.param(2, 100, marks=pytest.mark.full)])
def test_short_regions_are_not_found_by_the_watchdog(omp_program, run_program, invade, how,
                                                     region, serial):
    assert keeps_pace([invade, "--", omp_program("pace"), region, serial], run_program, how)


def test_regions_whose_threads_spin_are_not_left_to_one_core(omp_program, run_program,
                                                             invade):
    assert keeps_pace([invade, "--", omp_program("meets_by_hand")], run_program, {})
