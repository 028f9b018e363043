# SPDX-License-Identifier: GPL-3.0-or-later
"""What the other tests rely on: commands that run beside them (conftest.py)."""

from __future__ import annotations

import time

import pytest


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
