# SPDX-License-Identifier: GPL-3.0-or-later
"""invade-trace, and Python with its modules."""

import re
import subprocess

import pytest


@pytest.fixture(scope="session")
def reader(build):
    """The python that invade-trace runs with, and its modules."""
    python = re.search(r"^TRACE_PYTHON = (.*)$", (build / "Makefile").read_text(), re.M).group(1)
    if subprocess.run([python, "-c", "import matplotlib"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs package python3-matplotlib")
    return python


@pytest.fixture
def trace_tool(build, reader, run_program):
    """trace_tool(VERB, FILE, ...) - invade-trace"""

    def run(*words, **more):
        return run_program([build / "bin/invade-trace", *words], **more)

    return run


@pytest.fixture
def ask_python(top, reader, run_program):
    """ask_python(CODE, ARGUMENT...) - what a script with invade-trace's modules prints"""

    def run(code, *arguments, **more):
        return run_program([reader, "-B", "-c", code, *arguments],
                           env={"PYTHONPATH": str(top / "tools")}, **more).stdout

    return run


def proven(result):
    """invade-trace check finds no fault in the trace; returns the number of changes."""
    assert result.returncode == 0, result.stdout + result.stderr
    return sum(int(n) for n in re.findall(r"(\d+) changes", result.stdout))
