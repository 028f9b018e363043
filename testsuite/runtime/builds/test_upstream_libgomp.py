# SPDX-License-Identifier: GPL-3.0-or-later
"""The fork passes every test of libgomp's own testsuite that the unmodified library passes."""

import sys
from pathlib import Path

import pytest

from lib.building.build import variable_of

RUN = Path(__file__).parent / "upstream/run"


def upstream(subset):
    """The command of a test: compiles the tests on first use, then replays them."""

    def command(build, condition):
        if not (build / "lib/invasive/libgomp.so.1").exists():
            return None
        source = variable_of(build, "GCC_SOURCE")
        words = [sys.executable, RUN, "--subset", subset, "--workdir", build / "upstream",
                 "--library", build / "lib/invasive", "--launcher", build / "invade",
                 "--condition", condition]
        return words + (["--source", source] if source else []), {}

    return command


@pytest.fixture(autouse=True)
def runtime(build):
    if not (build / "lib/invasive/libgomp.so.1").exists():
        pytest.skip("libgomp-invasive is not built")


CONDITIONS = ["unmanaged", "one-core", "two-cores", "changing"]


@pytest.mark.timeout(1200)
@pytest.mark.beside(command=upstream("quick"))
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_fork_passes_a_part_of_libgomps_testsuite(beside, condition):
    beside()


@pytest.mark.full
@pytest.mark.beside(command=upstream("full"))
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_fork_passes_all_of_libgomps_testsuite(beside, condition):
    beside()
