# SPDX-License-Identifier: GPL-3.0-or-later
"""The promises of the parts of apps/swe: a test each (apps/swe/tests/)."""

import re
import subprocess

import pytest
from conftest import BUILD

PROGRAMS = "bathymetry bed galerkin gauges grid kernels okada scenarios symmetry".split()


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
def test_promise_is_kept(run_program, name, promise):
    check(run_program, name, [program_of(name), promise], {"OMP_NUM_THREADS": "3"})


def test_promises_of_the_grid_are_kept_by_two_ranks(mpiexec, run_program):
    more = ["--oversubscribe"] if "openmpi" in mpiexec else []
    out = check(run_program, "grid", [mpiexec, *more, "-n", 2, program_of("grid")],
                {"OMP_NUM_THREADS": "1"})
    assert len(re.findall(r"^\w+: kept$", out, re.M)) >= 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_promise_of_another_name_is_none(run_program, name):
    if not program_of(name).exists():
        pytest.skip(f"{program_of(name)} is not built here")
    assert run_program([program_of(name), "nothing_of_the_kind"], check=False).returncode != 0
