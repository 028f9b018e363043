# SPDX-License-Identifier: GPL-3.0-or-later
"""The fork can stand in for the system's libgomp.so.1 in every program that was linked to it."""

import re
import subprocess

import pytest


def system_library():
    path = subprocess.run(["gcc", "-print-file-name=libgomp.so.1"], capture_output=True, text=True,
                          check=True, timeout=30).stdout.strip()
    if path != "libgomp.so.1":
        return path
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True,
                           timeout=30).stdout
    return re.search(r"libgomp\.so\.1 .*=> (\S+)", cache)[1]


def exported(path):
    """{name@@version: (type, binding)} of the symbols that a library defines for others."""
    text = subprocess.run(["readelf", "-W", "--dyn-syms", path], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    symbols = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) < 8 or not words[0].rstrip(":").isdigit():
            continue
        kind, binding, section, name = words[3], words[4], words[6], words[7]
        # ABS: the names of the versions themselves.
        if section not in ("UND", "ABS") and binding in ("GLOBAL", "WEAK"):
            symbols[name] = kind
    return symbols


@pytest.fixture
def library(build):
    path = build / "lib/invasive/libgomp.so.1"
    if not path.exists():
        pytest.skip("libgomp-invasive is not built")
    return path


def test_fork_exports_every_versioned_symbol_of_the_system_library(library):
    system, ours = exported(system_library()), exported(library)
    assert len(system) > 300, "readelf's output was not understood"
    missing = {name: kind for name, kind in system.items() if ours.get(name) != kind}
    assert not missing


def test_fork_adds_no_unversioned_symbol(library):
    """The fork is loaded into every program: a stray name could replace one of the program."""
    stray = [name for name in exported(library) if "@" not in name]
    assert not stray


def test_fork_keeps_soname_and_stays_loaded(library):
    """A dlclose() must not unmap code that parked threads are in."""
    text = subprocess.run(["readelf", "-W", "-d", library], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    assert re.search(r"\(SONAME\).*\[libgomp\.so\.1\]", text)
    assert "NODELETE" in text


def test_tasks_of_old_compilers_keep_what_lies_behind_their_arguments(library):
    """Compilers pass GOMP_task 7 to 10 arguments; flags say which.  What is behind the last one is
    the caller's own.  A jump to a function with the same arguments would write them there again."""
    text = subprocess.run(["objdump", "--no-show-raw-insn", "--disassemble=GOMP_task", library],
                          capture_output=True, text=True, check=True, timeout=60).stdout
    if "x86-64" not in text:
        pytest.skip("looks for instructions of x86-64")
    assert re.search(r"\bcall +\w+ <queue_or_run\b", text)
    assert not re.search(r"\bjmp +\w+ <queue_or_run\b", text)
