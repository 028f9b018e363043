# SPDX-License-Identifier: GPL-3.0-or-later
"""The check.sh of each directory of models, for tests marked `beside`."""

import shutil

import pytest

from lib.building.build import TOP


def check(script, *arguments):
    """The command of a test: check.sh, which works in a temporary directory."""
    return lambda build: ([TOP / script, *arguments], {}) if shutil.which("spin") else None


@pytest.fixture
def checked(beside):
    """checked() - the lines of the check.sh of models that runs beside the tests (models.py), all
    of which must pass"""

    def lines():
        if shutil.which("spin") is None:
            pytest.skip("needs package spin")
        said = [line for line in beside().splitlines() if line.startswith(("PASS", "FAIL"))]
        assert said and all(line.startswith("PASS") for line in said)
        return said

    return lines
