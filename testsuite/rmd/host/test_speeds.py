# SPDX-License-Identifier: GPL-3.0-or-later
"""Cores of several speeds: what rmd finds, and what teams do with them."""

from __future__ import annotations

import json
import subprocess

import pytest

from lib.building.build import TOP
from lib.machine import TWO_CPUS
from lib.manager.fake_system import put
from lib.manager.rmd import Rmd, rmctl

CAPACITY = "/sys/devices/system/cpu/cpu{}/cpu_capacity"

# Each implicit task takes as long as its core needs for it.
PROGRAM = r"""
#include <invasive.h>
#include <omp.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    int fast = 0, slow = 0, wrong = 0;
    for (int region = 0; region < 5; region++) {
#pragma omp parallel reduction(+ : fast, slow, wrong)
        {
            double speed = inv_core_speed();
            usleep((useconds_t)(2000 / speed));
            fast += speed == 1;
            slow += speed == 0.1;
            wrong += speed != 1 && speed != 0.1;
        }
    }
    return printf("%d %d %d %d\n", omp_get_max_threads(), fast, slow, wrong) < 0;
}
"""


def speeds_of(r):
    """What rmctl status tells of the cores."""
    code, text, error = rmctl(r.build, f"--socket={r.name}", "status", "--json")
    assert (code, error) == (0, "")
    return [core["speed"] for core in json.loads(text)["domains"][0]["cores"]]


@pytest.fixture
def counts_tasks(build, tmp_path):
    source, program = tmp_path / "counts.c", tmp_path / "counts"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-fopenmp", f"-I{TOP}/include", source, "-o", program,
                    f"-L{build}/lib", "-linvasive", f"-Wl,-rpath,{build}/lib"], check=True,
                   timeout=60)
    return program


def shown(build, *options):
    """Speeds, with a member, and what rmd said to its launcher."""
    r = Rmd(build, *options)
    try:
        r.joined(1, 0)
        return speeds_of(r), r.ready.split()[2:]
    finally:
        r.close()


def test_emulated_cores_have_the_speeds_that_they_are_given(build):
    assert shown(build, "--emulate-cores=2x1.0,1x0.6,1") == ([1.0, 1.0, 0.6, 1.0], ["uneven"])
    assert shown(build, "--emulate-cores=3") == ([1.0, 1.0, 1.0], [])


@pytest.mark.parametrize("capacities, speeds", [
    ((1024, 512), [1.0, 0.5]), ((400, 400), [1.0, 1.0]), ((1024, None), [1.0, 1.0]),
    ((1024, 0), [1.0, 1.0]), ((1024, "much"), [1.0, 1.0]), ((1, 4000000), [0.001, 1.0])])
def test_cores_have_the_speeds_that_the_kernel_tells(build, tmp_path, capacities, speeds):
    for cpu, capacity in zip(TWO_CPUS, capacities):
        if capacity is not None:
            put(tmp_path, CAPACITY.format(cpu), capacity)
    found, more = shown(build, f"--sys-root={tmp_path}", f"--cores={','.join(map(str, TWO_CPUS))}")
    assert found == speeds
    assert more == (["uneven"] if len(set(speeds)) > 1 else [])


@pytest.mark.parametrize("machine", ["2x", "2x0", "2x1.5", "2x0.5,", "x0.5", "2x0.5,1022x1,1x1",
                                     "0x0.5", "2x-1", "2xnan", "2x0.5;2"])
def test_speeds_that_are_none_are_refused(build, run_program, machine):
    for command in (["bin/rmd"], ["invade", "true"]):
        done = run_program([build / command[0], f"--emulate-cores={machine}", *command[1:]],
                           check=False)
        assert done.returncode != 0
        assert "emulate-cores" in done.stderr and machine in done.stderr


def test_a_fast_core_takes_more_of_a_static_region(build, run_program, counts_tasks):
    ran = run_program([build / "invade", "--emulate-cores=2x1.0,2x0.1", counts_tasks])
    team, fast, slow, wrong = map(int, ran.stdout.split())
    assert (team, fast + slow, wrong) == (16, 5 * 16, 0)
    assert fast > slow


def test_cores_of_several_speeds_have_four_implicit_tasks_each(build, run_program, counts_tasks):
    ran = run_program([build / "invade", "--emulate-cores=4x1.0,4x0.1", counts_tasks])
    assert ran.stdout.split()[0] == "32"


def test_a_team_has_the_size_of_cores_that_are_alike(build, run_program, counts_tasks):
    ran = run_program([build / "invade", "--emulate-cores=4x0.1", counts_tasks])
    assert ran.stdout.split() == ["4", "0", "20", "0"]


def test_a_core_has_full_speed_without_a_resource_manager(run_program, counts_tasks):
    assert run_program([counts_tasks]).stdout.split()[2:] == ["0", "0"]
