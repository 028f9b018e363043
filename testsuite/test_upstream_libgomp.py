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
        if "--managed" in options and not (build / "invade").exists():
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


@pytest.mark.timeout(600)
def test_part_of_libgomps_testsuite_unmanaged(upstream):
    upstream("quick", "--unmanaged")


@pytest.mark.timeout(600)
def test_part_of_libgomps_testsuite_under_a_claim(upstream):
    upstream("quick", "--managed")


@pytest.mark.full
def test_all_of_libgomps_testsuite_unmanaged(upstream):
    upstream("full", "--unmanaged")


@pytest.mark.full
def test_all_of_libgomps_testsuite_under_a_claim(upstream):
    upstream("full", "--managed")
