# SPDX-License-Identifier: GPL-3.0-or-later
"""What the other tests rely on (conftest.py): commands that run beside them, and what
becomes of those that cannot be run."""

from __future__ import annotations

import sys
import time

import pytest

TESTS = """
import pytest


@pytest.mark.skipif(True, reason="needs package nosuch")
def test_a_tool():
    pass


@pytest.mark.machine(False, "no such cores")
def test_a_core():
    raise AssertionError


@pytest.mark.machine(True, "no cores at all")
def test_any_core():
    pass
"""


@pytest.fixture
def several(commands_beside, stock_env):
    """several(SHELL...) - the same as runs beside these tests, with other commands"""
    started = []

    def start(*texts):
        commands = {text: (["sh", "-c", text], {}, 30) for text in texts}
        started.append(type(commands_beside)(commands, stock_env))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_commands_beside_the_tests_run_in_turn_and_it_is_told_how_they_end(several, tmp_path):
    first, second = f"sleep 0.1; touch {tmp_path}/a; echo one; exit 3", f"ls {tmp_path}/a"
    some = several(first, second)
    assert some.results[second].result() == (0, f"{tmp_path}/a\n")
    assert some.results[first].result() == (3, "one\n")


def test_commands_beside_the_tests_end_with_them(several, tmp_path):
    first, second = f"touch {tmp_path}/a; exec sleep 60", f"touch {tmp_path}/b"
    some = several(first, second)
    while not (tmp_path / "a").exists():
        time.sleep(0.01)
    some.close()
    assert some.process.poll() is not None
    assert some.results[first].result()[0] != 0
    assert not (tmp_path / "b").exists()


def test_in_ci_a_tool_is_never_missing_and_the_machine_is_what_it_is(top, tmp_path, run_program):
    (tmp_path / "test_some.py").write_text(TESTS)
    done = run_program(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conftest",
         f"--rootdir={tmp_path}", tmp_path],
        env={"CI": "true", "PYTHONPATH": top / "testsuite"}, check=False)
    assert "1 passed, 1 skipped, 1 error in " in done.stdout, done.stdout + done.stderr
    assert "test_some.py:10: this machine: no such cores\n" in done.stdout
    assert "skipped, which CI takes as a failure" in done.stdout
    assert done.returncode == 1
