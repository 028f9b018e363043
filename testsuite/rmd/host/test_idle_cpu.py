# SPDX-License-Identifier: GPL-3.0-or-later
"""rmd learns that a CPU is idle from a thread that takes nothing from a busy one."""

from __future__ import annotations

import subprocess

import pytest

from lib.machine import two_cpus

pytestmark = [pytest.mark.sanitize, two_cpus]


@pytest.mark.parametrize("promise", ["finds", "one", "pauses", "ends"])
def test_a_watch_tells_of_an_idle_cpu_pauses_and_ends(build, promise):
    done = subprocess.run([build / "testsuite/rmd/programs/idle_cpu", promise], check=False,
                          capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr
