# SPDX-License-Identifier: GPL-3.0-or-later
"""What the other tests rely on (conftest.py, lib/beside.py): commands that run beside them, and
what becomes of those that cannot be run; and a second pytest (lib/alongside.py)."""

import sys
import time

import pytest

from lib import alongside

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


FIRST = """
def test_of_the_first_pytest():
    pass
"""

SECOND = """
import atexit
import os
import pytest


@pytest.fixture
def in_teardown():
    yield
    raise AssertionError


def test_that_errs(in_teardown):
    pass


def test_that_passes():
    pass


def test_that_fails():
    assert 1 + 1 == 3, "told by the second"


@pytest.mark.machine(False, "no such cores")
def test_a_core():
    raise AssertionError


@pytest.mark.xfail
def test_expected_to_fail():
    raise AssertionError


def test_that_may_end_the_second_pytest():
    if os.environ.get("END") == "at once":
        os._exit(7)
    if os.environ.get("END") == "late":
        atexit.register(os._exit, 9)
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


def test_commands_beside_the_tests_run_two_at_once_when_these_are_over(several, tmp_path):
    first, second = f"while [ ! -e {tmp_path}/a ]; do sleep 0.1; done", f"touch {tmp_path}/a"
    some = several(first, second)
    some.run_more()
    assert some.results[first].result() == some.results[second].result() == (0, "")


def test_cases_of_one_test_never_run_at_once(commands_beside, stock_env, tmp_path):
    """Each fails if the other one runs, and removes what says so."""
    text = f"mkdir {tmp_path}/one && sleep 0.3 && rmdir {tmp_path}/one"
    some = type(commands_beside)({f"test[{i}]": (["sh", "-c", text], {}, 30) for i in range(3)},
                                 stock_env)
    some.run_more()
    assert [result.result()[0] for result in some.results.values()] == [0, 0, 0]
    some.close()


def test_commands_beside_the_tests_end_with_them(several, tmp_path):
    first, second = f"touch {tmp_path}/a; exec sleep 60", f"touch {tmp_path}/b"
    some = several(first, second)
    while not (tmp_path / "a").exists():
        time.sleep(0.01)
    some.close()
    assert not some.running
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


@pytest.fixture
def two_pytests(top, tmp_path, run_program):
    """two_pytests() - the output on FIRST in a pytest and SECOND in another one beside it"""
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_swe_units.py").write_text(SECOND)

    def run(*options, **env):
        return run_program(
            [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "--alongside",
             f"--basetemp={tmp_path / 'tmp'}", f"--rootdir={tmp_path}", *options, tmp_path],
            env={"CI": "true", "PYTHONPATH": top / "testsuite", "PYTEST_ADDOPTS": "-p conftest",
                 **env}, check=False)

    return run


def test_the_first_pytest_tells_what_came_of_the_seconds_tests(two_pytests):
    done = two_pytests()
    assert "1 failed, 4 passed, 1 skipped, 1 xfailed, 1 error in " in done.stdout, done.stdout
    assert "told by the second" in done.stdout
    assert "test_swe_units.py:25: this machine: no such cores\n" in done.stdout
    assert done.returncode == 1


def test_the_second_pytest_runs_what_was_chosen(two_pytests):
    done = two_pytests("-k", "passes or first")
    assert "2 passed, 5 deselected in " in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_what_the_second_pytest_does_not_come_to_has_failed(two_pytests):
    done = two_pytests(END="at once")
    assert "2 failed, 3 passed, 1 skipped, 1 xfailed, 1 error in " in done.stdout, done.stdout
    assert "the second pytest has ended with 7 before:" in done.stdout
    assert done.returncode == 1


def test_a_second_pytest_that_breaks_when_it_ends_is_told(two_pytests):
    done = two_pytests("-k", "first or end", END="late")
    assert "2 passed, 5 deselected, 1 error in " in done.stdout, done.stdout + done.stderr
    assert "the second pytest has ended with 9 before" in done.stdout
    assert done.returncode == 1


def test_the_files_of_the_second_pytest_are_there(top):
    there = {path.name for path in (top / "testsuite").rglob("test_*.py")}
    assert not {*alongside.FILES} - there
