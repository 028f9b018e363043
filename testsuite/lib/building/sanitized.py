# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenMP runtime and libinvasive under ThreadSanitizer."""

import os
import shutil
import subprocess

import pytest

from lib.building.sources import sources

CC = "gcc -fsanitize=thread -Wno-tsan"
LIBINVASIVE = ("lib_invasive_libinvasive_process_so_SOURCES", "inv_interposed_sources")


@pytest.fixture(scope="module")
def sanitized(top, build, make_variable, tmp_path_factory):
    """A tree with the tools of the ordinary build and sanitized libraries."""
    if not make_variable("GCC_SOURCE"):
        pytest.skip("the runtime is not built: no source of libgomp")
    tree = tmp_path_factory.mktemp("sanitized")
    (tree / "lib" / "invasive").mkdir(parents=True)
    shutil.copytree(build / "bin", tree / "bin")
    shutil.copy(build / "lib/invasive/libinvasive-mpi.so", tree / "lib/invasive")
    subprocess.run(
        [*CC.split(), "-std=gnu17", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-DHAVE_CONFIG_H",
         '-DINV_BINDIR="/nowhere"',
         *(f"-I{path}" for path in (build, top, top / "include")),
         *(path for name in LIBINVASIVE for path in sources(top, name)), "-ldl", "-Wl,-z,defs",
         "-Wl,-soname,libinvasive-process.so", "-o",
         tree / "lib/invasive/libinvasive-process.so"],
        check=True, timeout=200)
    subprocess.run(
        [top / "libgomp-invasive/build.sh", f"--source={make_variable('GCC_SOURCE')}",
         f"--overlay={top / 'libgomp-invasive/overlay'}", f"--libinvasive={tree / 'lib/invasive'}",
         f"--include={top}", f"--builddir={tree / 'libgomp'}", "--cflags=-O1 -g",
         f"--out={tree / 'lib/invasive/libgomp.so.1'}"],
        check=True, timeout=1000, env={**os.environ, "CC": CC})
    return tree
