# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that lends its core by inv_lend (rmd/programs/lends.c), what programs with the public
interface are linked with, and how those in Fortran are compiled."""

import shutil
import subprocess

import pytest

from lib.building.build import BUILD, TOP, variable_of

SOURCE = TOP / "testsuite/rmd/programs/lends.c"
LIBRARY = (f"-L{BUILD / 'lib'}", "-linvasive", f"-Wl,-rpath,{BUILD / 'lib'}")


def compile_lends(path, before=(), after=()):
    compiler = (variable_of(BUILD, "CC") or "cc").split()
    subprocess.run([*compiler, "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", "-fopenmp",
                    f"-I{TOP / 'include'}", *before, SOURCE, "-o", path, *LIBRARY, *after,
                    "-pthread"], check=True, timeout=100)
    return path


def compile_fortran(folder, text):
    """Compiles this text with `include/invasive.f90`, and returns the program's path."""
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is needed")
    source, program = folder / "program.f90", folder / "program"
    source.write_text(text)
    subprocess.run(["gfortran", "-std=f2018", "-Wall", "-Wextra", "-Werror", f"-J{folder}",
                    TOP / "include/invasive.f90", source, "-o", program, *LIBRARY], check=True,
                   timeout=60)
    return program


@pytest.fixture(scope="session")
def lends(tmp_path_factory):
    return compile_lends(tmp_path_factory.mktemp("lends") / "lends")
