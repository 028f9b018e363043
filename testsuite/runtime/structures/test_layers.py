# SPDX-License-Identifier: GPL-3.0-or-later
"""Each folder of the OpenMP runtime compiles without the folders above it, and what is linked of it
needs nothing of them that upstream's libgomp has not."""

from __future__ import annotations

import re
import subprocess

import pytest

from lib.building.house import OWN_FOLDERS, REPLACING
from lib.building.runtime_parts import up_to

# Functions and variables of overlay/, in files that replace upstream's, which lower folders name.
NAMED = {"gomp_barrier_arrived", "gomp_barrier_open", "gomp_decide_default_team",
         "gomp_settle_default_team", "gomp_settle_teams", "gomp_task_run_undeferred",
         "gomp_team_is_default", "gomp_team_settings",
         # public functions of overlay/task.c
         "gomp_ialias_GOMP_task", "gomp_ialias_omp_in_explicit_task"}


@pytest.fixture(scope="module")
def syntax(part_headers, make_variable):
    """syntax(FILE, FOLDERS) - what the compiler has against the file, with headers of those folders
    and upstream's."""

    def compile_only(file, folders):
        done = subprocess.run(
            [*make_variable("CC").split(), *part_headers(folders), "-Wall", "-Werror",
             "-fsyntax-only", "-x", "c", file],
            capture_output=True, text=True, check=False, timeout=100)
        return done.stderr

    return compile_only


def test_the_folders_are_all_that_there_are(top):
    runtime = top / "libgomp-invasive"
    there = {path.parent.relative_to(runtime).as_posix() for path in runtime.glob("*/**/*.[ch]")}
    assert there == {*OWN_FOLDERS, *REPLACING}


@pytest.mark.parametrize("folder", OWN_FOLDERS)
def test_a_folder_compiles_without_those_above_it(syntax, top, folder):
    files = sorted((top / "libgomp-invasive" / folder).glob("*.c"))
    assert files
    assert [said for file in files if (said := syntax(file, up_to(folder)))] == []


def test_what_includes_a_header_of_a_higher_folder_does_not_compile(syntax, tmp_path):
    (tmp_path / "up.c").write_text('#include "spin.h"\n#include "region.h"\n')
    below = OWN_FOLDERS[:OWN_FOLDERS.index("region")]
    assert "region.h: No such file" in syntax(tmp_path / "up.c", below)
    assert syntax(tmp_path / "up.c", (*below, "region")) == ""


def symbols(file, kinds):
    listed = subprocess.run(["nm", file], capture_output=True, text=True, check=True, timeout=60)
    words = (line.split()[-2:] for line in listed.stdout.splitlines())
    return {name for kind, name in words if kind in kinds}


@pytest.fixture(scope="module")
def linked(build, top, make_variable):
    """For each folder what its objects define, and what they need."""
    if make_variable("GCC_SOURCE") in ("", "no"):
        pytest.skip("configured without the source of libgomp")
    objects = build / "libgomp-invasive/libgomp-build/.libs"

    def of_folder(folder, kinds):
        return set().union(*(symbols(objects / f"{file.stem}.o", kinds)
                             for file in (top / "libgomp-invasive" / folder).glob("*.c")))

    return {folder: (of_folder(folder, "TDBRV"), of_folder(folder, "Uw"))
            for folder in (*OWN_FOLDERS, *REPLACING)}


@pytest.mark.parametrize("folder", OWN_FOLDERS)
def test_a_folder_is_linked_without_those_above_it(linked, build, folder):
    above = set().union(*(linked[f][0] for f in linked
                          if f not in up_to(folder)))
    upstream = build / "libgomp-invasive/src/libgomp"
    declared = "".join((upstream / name).read_text()
                       for name in ("libgomp.h", "libgomp_g.h", "config/linux/bar.h",
                                    "config/linux/mutex.h", "config/linux/proc.h"))
    of_upstream = set(re.findall(r"\w+", declared))
    assert (linked[folder][1] & above) - of_upstream - NAMED == set()


def test_the_scheduler_of_cores_names_nothing_of_regions_and_tasks(linked):
    for folder in up_to("sched"):
        assert not linked[folder][1] & NAMED
