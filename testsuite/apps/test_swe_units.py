# SPDX-License-Identifier: GPL-3.0-or-later
"""The promises of the parts of apps/swe: a test each (apps/swe/tests/)."""

import re
import subprocess

import pytest

from lib.building.build import BUILD

PROGRAMS = ("bathymetry bed galerkin gauges grid kernels okada scenarios simulations steps "
            "symmetry").split()


def program_of(name):
    return BUILD / "apps/swe/tests" / name


def promises(programs):
    """Each with its program; one that says so where a program is missing."""
    cases = []
    for name in programs:
        listed = ["all"]
        if program_of(name).exists():
            listed = subprocess.run([program_of(name), "--list"], stdout=subprocess.PIPE,
                                    text=True, check=True, timeout=20).stdout.split()
        cases += [pytest.param(name, promise, id=f"{name}-{promise}") for promise in listed]
    return cases


def check(run_program, name, words, env=None):
    if not program_of(name).exists():
        pytest.skip(f"{program_of(name)} is not built here")
    done = run_program(words, env={"OMP_WAIT_POLICY": "passive", **(env or {})}, timeout=100,
                       check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name, promise", promises(PROGRAMS))
def test_the_simulation_computes_what_its_equations_say(run_program, name, promise):
    check(run_program, name, [program_of(name), promise], {"OMP_NUM_THREADS": "3"})


@pytest.mark.parametrize("ranks", [2, 4])
def test_promises_of_the_grid_are_kept_by_many_ranks(start_ranks, run_program, ranks):
    listed = check(run_program, "grid", [program_of("grid"), "--list"]).split()
    out = check(run_program, "grid", [*start_ranks(ranks), program_of("grid")],
                {"OMP_NUM_THREADS": "1"})
    assert sorted(re.findall(r"^(\w+): kept$", out, re.M)) == sorted(ranks * listed)


@pytest.mark.parametrize("n", [2, 3])
def test_water_that_is_no_number_ends_all_ranks(start_ranks, run_program, n):
    for promise in ("water_that_is_no_number_stops_all_ranks",
                    "water_that_gets_no_number_stops_all_ranks",
                    "cell_that_stops_a_run_is_the_one_that_is_named"):
        out = check(run_program, "steps", [*start_ranks(n), program_of("steps"), promise],
                    {"OMP_NUM_THREADS": "1"})
        assert out.count(f"{promise}: kept") == n


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_promise_of_another_name_is_none(run_program, name):
    if not program_of(name).exists():
        pytest.skip(f"{program_of(name)} is not built here")
    assert run_program([program_of(name), "nothing_of_the_kind"], check=False).returncode != 0
