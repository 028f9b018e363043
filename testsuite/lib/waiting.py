# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for what must come true, on a loaded machine too."""

import time

PATIENCE_S = 30  # for what takes a moment on an idle machine
STEP_S = 0.5     # a look counts for no more: on a machine that stood still nothing could come true


class Patience:
    """So many seconds, in looks at what is waited for."""

    def __init__(self, seconds):
        self.left, self.last = seconds, time.monotonic()

    def lasts(self):
        """Is there time for one more look?"""
        now = time.monotonic()
        self.left -= min(now - self.last, STEP_S)
        self.last = now
        return self.left > 0


def until(condition, seconds=20):
    """The value of the condition as soon as it is true, or its last value when the time is over: a
    second evaluation by the caller may give another one."""
    patience = Patience(seconds)
    while not (said := condition()) and patience.lasts():
        time.sleep(0.02)
    return said


def eventually(get, expected, patience=PATIENCE_S):
    """Waits until get() is what is expected."""
    left = Patience(patience)
    while (got := get()) != expected:
        assert left.lasts(), f"{got}, not {expected}, after {patience} s"
        time.sleep(0.005)


def comes_true(condition, what):
    """Waits for a condition that is true at once on an idle machine and later on a loaded one."""
    patience = Patience(PATIENCE_S)
    while not condition():
        assert patience.lasts(), f"{what}: not within {PATIENCE_S} s"
        time.sleep(0.01)
