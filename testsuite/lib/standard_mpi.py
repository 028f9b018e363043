# SPDX-License-Identifier: GPL-3.0-or-later
"""An MPI library with the standard interface of MPI 5.0."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = "mpich==5.0.2"


@pytest.fixture(scope="session")
def standard_mpi(build) -> Path:
    """The directory of an MPI with the standard interface, from the Python package index: no
    release of Debian has one yet.  Where the index cannot be reached, its tests are xfailed."""
    directory = build / "mpi-abi"
    if not (directory / ".installed").exists():
        python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
        for command in ([python, "-m", "venv", "--clear", directory],
                        [directory / "bin/pip", "install", "--quiet", "--only-binary=:all:",
                         "--disable-pip-version-check", "--no-deps", PACKAGE]):
            try:
                made = subprocess.run(command, check=False, capture_output=True, text=True,
                                      timeout=50)
            except subprocess.TimeoutExpired:
                pytest.xfail(f"{PACKAGE} cannot be had in time: {command}")
            if made.returncode != 0:
                pytest.xfail(f"{PACKAGE} cannot be had: {made.stderr[-200:]}")
        (directory / ".installed").write_text(PACKAGE)
    return directory
