# SPDX-License-Identifier: GPL-3.0-or-later
"""Each folder of the OpenMP runtime compiles without the folders above it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from lib.house import OWN_FOLDERS

# overlay/ is above all of these, but for the headers that stand for upstream's: they come to each
# file with upstream's libgomp.h.
UPSTREAM = ("bar.h", "simple-bar.h")


@pytest.fixture(scope="module")
def syntax(build, top, make_variable, tmp_path_factory):
    """syntax(FILE, FOLDERS) - what the compiler has against the file, with headers of those folders
    and upstream's."""
    if make_variable("GCC_SOURCE") in ("", "no"):
        pytest.skip("configured without the source of libgomp")
    work, source = build / "libgomp-invasive/libgomp-build", build / "libgomp-invasive/src"
    configured = re.search("^config_path = (.*)$", (work / "Makefile").read_text(), re.MULTILINE)
    upstream = tmp_path_factory.mktemp("upstream")
    for name in UPSTREAM:
        shutil.copy(top / "libgomp-invasive/overlay" / name, upstream)
    last = [work, upstream, *(source / "libgomp/config" / part for part in configured[1].split()),
            source / "libgomp", source / "include", source, top]

    def compile_only(file, folders):
        includes = [*(top / "libgomp-invasive" / folder for folder in folders), *last]
        done = subprocess.run(
            [*make_variable("CC").split(), "-DHAVE_CONFIG_H", "-DINV_ASSERTIONS", "-pthread",
             "-Wall", "-Werror", "-fsyntax-only", "-x", "c",
             *(word for folder in includes for word in ("-I", folder)), file],
            capture_output=True, text=True, check=False, timeout=100)
        return done.stderr

    return compile_only


def test_the_folders_are_all_that_there_are(top):
    there = {path.parent.name for path in (top / "libgomp-invasive").glob("*/*.[ch]")}
    assert there == {*OWN_FOLDERS, "overlay"}


@pytest.mark.parametrize("folder", OWN_FOLDERS)
def test_a_folder_compiles_without_those_above_it(syntax, top, folder):
    below = OWN_FOLDERS[:OWN_FOLDERS.index(folder) + 1]
    files = sorted((top / "libgomp-invasive" / folder).glob("*.c"))
    assert files
    assert [said for file in files if (said := syntax(file, below))] == []


def test_what_includes_a_header_of_a_higher_folder_does_not_compile(syntax, tmp_path):
    (tmp_path / "up.c").write_text('#include "spin.h"\n#include "region.h"\n')
    below = OWN_FOLDERS[:OWN_FOLDERS.index("region")]
    assert "region.h: No such file" in syntax(tmp_path / "up.c", below)
    assert syntax(tmp_path / "up.c", (*below, "region")) == ""
