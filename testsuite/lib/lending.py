# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that lends its core by inv_lend (rmd/programs/lends.c), and what it is linked with."""

from __future__ import annotations

import subprocess

import pytest

from lib.build import BUILD, TOP, variable_of

SOURCE = TOP / "testsuite/rmd/programs/lends.c"
LIBRARY = (f"-L{BUILD / 'lib'}", "-linvasive", f"-Wl,-rpath,{BUILD / 'lib'}")


def compile_lends(path, before=(), after=()):
    compiler = (variable_of(BUILD, "CC") or "cc").split()
    subprocess.run([*compiler, "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", "-fopenmp",
                    f"-I{TOP / 'include'}", *before, SOURCE, "-o", path, *LIBRARY, *after,
                    "-pthread"], check=True, timeout=100)
    return path


@pytest.fixture(scope="session")
def lends(tmp_path_factory):
    return compile_lends(tmp_path_factory.mktemp("lends") / "lends")
