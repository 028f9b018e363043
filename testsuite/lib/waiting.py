# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for what must come true, on a loaded machine too."""

from __future__ import annotations

import time

PATIENCE_S = 30  # for what takes a moment on an idle machine


def until(condition, seconds=20):
    """The value of the condition as soon as it is true, or its last value when the time is over: a
    second evaluation by the caller may give another one."""
    end = time.monotonic() + seconds
    while not (said := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return said


def eventually(get, expected, patience=PATIENCE_S):
    """Waits until get() is what is expected."""
    end = time.monotonic() + patience
    while (got := get()) != expected:
        assert time.monotonic() < end, f"{got}, not {expected}, after {patience} s"
        time.sleep(0.005)


def comes_true(condition, what):
    """Waits for a condition that is true at once on an idle machine and later on a loaded one."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE_S} s"
        time.sleep(0.01)
