# SPDX-License-Identifier: GPL-3.0-or-later
"""The time limit of a test, and programs that end with it."""

import os
import signal
import subprocess

import pytest

TIMEOUT_S = 120  # of a machine that is as quick as ours
SLOWER = 2  # it may be; limits end what hangs, and say nothing of speed
FULL_TIMEOUT_S = 3600


def time_limit(item):
    marker = item.get_closest_marker("timeout")
    if marker:
        return SLOWER * marker.args[0]
    return SLOWER * (FULL_TIMEOUT_S if item.get_closest_marker("full") else TIMEOUT_S)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """The time limit of the whole test, fixtures included."""
    seconds = time_limit(item)

    def expired(signum, frame):
        raise TimeoutError(f"no end after {seconds} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.alarm(int(seconds))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def run_program(stock_env):
    """run_program(COMMAND, env={}, timeout=60, check=True): runs it in its own session, so that
    nothing of it is left when twice the time is over, and returns the completed process (text)."""

    def run(command, env=None, timeout=60, check=True, **more):
        with subprocess.Popen([str(word) for word in command], env={**stock_env, **(env or {})},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, start_new_session=True,
                              **more) as process:
            try:
                out, err = process.communicate(timeout=SLOWER * timeout)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if check and process.returncode != 0:
            pytest.fail(f"{command}: exit code {process.returncode}\n{out}\n{err}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    return run
