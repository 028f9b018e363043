# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole once more in other builds: from the archive, and with sanitizers."""

import os
import shutil
import sys

import pytest

from lib.building.build import TOP


def distcheck(build):
    return ["make", "-C", build, "distcheck"], {"MAKEFLAGS": "", "MAKELEVEL": "", "CI": ""}


@pytest.mark.timeout(1800)
@pytest.mark.beside(command=distcheck)
def test_make_distcheck_passes(beside):
    """The archive has all that is needed to build, check, install and uninstall elsewhere."""
    if not shutil.which("xz"):
        pytest.skip("no xz (package xz-utils)")
    beside()


# How much processor time rmd takes says nothing with a sanitizer.
UNTIMED = "not takes_little"
# Their programs have one thread: ThreadSanitizer has nothing to say about them.
SINGLE = ("rmctl", "config", "placement", "policies", "policy", "rmctl_simulate")
# Nor much about these: it is one thread of rmd that they test.
NEARLY = () if os.environ.get("INVASIVE_FULL") else ("clients", "subuid", "survival")


def sanitized_tests(build, name):
    directory = build / name
    if not (directory / "config.status").exists():
        return None
    env = {"INVASIVE_BUILD": str(directory), "CI": "", "INVASIVE_FULL": "",
           "TSAN_OPTIONS": "halt_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    files = [path for path in sorted((TOP / "testsuite").rglob("test_*.py"))
             if "mark.sanitize" in path.read_text()
             and not (name == "tsan" and path.stem[len("test_"):] in (*SINGLE, *NEARLY))]
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
            f"--basetemp={directory / 'pytest-tmp'}", *files, "-m", "sanitize", "-k", UNTIMED], env


@pytest.mark.timeout(1800)
@pytest.mark.beside(command=sanitized_tests)
@pytest.mark.parametrize("name", ["asan", "tsan"])
def test_no_sanitizer_complains_in_the_tests_of_libinvasive_rmd_and_invade(build, beside, name):
    if not (build / name / "config.status").exists():
        pytest.skip(f"no sanitized build in {build / name}: ./run-tests makes it")
    beside()
