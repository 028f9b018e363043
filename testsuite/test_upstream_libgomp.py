# SPDX-License-Identifier: GPL-3.0-or-later
"""The fork passes every test of libgomp's own testsuite that the unmodified library passes."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "upstream/run"


@pytest.fixture
def upstream(build, make_variable, run_program):
    """upstream(SUBSET, OPTION...): compiles the tests on first use, then replays them."""

    def run(subset, *options):
        if not (build / "lib/invasive/libgomp.so.1").exists():
            pytest.skip("libgomp-invasive is not built")
        if not (build / "invade").exists():
            pytest.skip("invade is not built")
        source = make_variable("GCC_SOURCE")
        command = [sys.executable, RUN, "--subset", subset, "--workdir", build / "upstream"]
        command += ["--library", build / "lib/invasive", "--launcher", build / "invade", *options]
        command += ["--source", source] if source else []
        try:
            ran = run_program(command, timeout=3000, check=False)
        except subprocess.TimeoutExpired as expired:
            pytest.fail(f"{expired}")
        assert ran.returncode == 0, f"\n{ran.stdout}\n{ran.stderr}"

    return run


CONDITIONS = ["unmanaged", "one-core", "two-cores", "changing"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_part_of_libgomps_testsuite(upstream, condition):
    upstream("quick", "--condition", condition)


@pytest.mark.full
@pytest.mark.parametrize("condition", CONDITIONS)
def test_all_of_libgomps_testsuite(upstream, condition):
    upstream("full", "--condition", condition)
