# SPDX-License-Identifier: GPL-3.0-or-later
"""The build that is tested, and what configure found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
BENCH = TOP / "bench"
BUILD = Path(os.environ.get("INVASIVE_BUILD") or TOP / "build/checked").resolve()


# Random examples: a fifth with a sanitizer, half without --full.
FEWER = 5 if BUILD.name in ("asan", "tsan") else 1 if os.environ.get("INVASIVE_FULL") else 2


def variable_of(build, name):
    """A variable of a build's Makefile: what configure found."""
    for line in (build / "Makefile").read_text().splitlines():
        if line.startswith(f"{name} = "):
            return line.split(" = ", 1)[1].strip()
    return ""


@pytest.fixture(scope="session")
def top() -> Path:
    """The source tree."""
    return TOP


@pytest.fixture(scope="session")
def build() -> Path:
    """The build tree."""
    if not (BUILD / "config.status").exists():
        pytest.fail(f"no build in {BUILD}: run ./run-tests, or set INVASIVE_BUILD")
    return BUILD


@pytest.fixture(scope="session")
def swe_program(build):
    """swe_program(NAME): a program of apps/swe, which is built where its libraries are."""

    def find(name: str) -> Path:
        path = build / "apps/swe" / name
        if not path.exists():
            pytest.skip(f"{path} is not built here")
        return path

    return find


@pytest.fixture(scope="session")
def make_variable(build):
    """make_variable(NAME) - what configure found: CC, MPIEXEC, GCC_SOURCE, SANITIZER_CFLAGS, ..."""

    return lambda name: variable_of(build, name)


@pytest.fixture
def invade(build) -> Path:
    return build / "bin" / "invade"
