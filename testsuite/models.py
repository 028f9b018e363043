# SPDX-License-Identifier: GPL-3.0-or-later
"""The check.sh of each directory of models, for tests marked `beside`."""

import shutil
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def check(script, *arguments):
    """The command of a test: check.sh, which works in a temporary directory."""
    return lambda build: ([TOP / script, *arguments], {}) if shutil.which("spin") else None
