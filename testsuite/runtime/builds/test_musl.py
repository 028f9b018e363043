# SPDX-License-Identifier: GPL-3.0-or-later
"""libinvasive with another C library than glibc."""

import shutil
import subprocess
from pathlib import Path

import pytest

from lib.building.sources import sources

KERNEL = ("linux", "asm-generic")  # musl-gcc's headers are without the kernel's
WARNINGS = ("-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror "
            "-Wno-format-truncation").split()  # which depends on what is optimized


@pytest.fixture
def musl(top, tmp_path):
    """musl(WORD...) compiles and links; warnings are errors."""
    if not shutil.which("musl-gcc"):
        pytest.skip("needs package musl-tools")
    headers = tmp_path / "kernel"
    headers.mkdir()
    for name in KERNEL:
        (headers / name).symlink_to(f"/usr/include/{name}")
    machine = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
    (headers / "asm").symlink_to(Path("/usr/include", machine, "asm"))

    def run(*words):
        done = subprocess.run(["musl-gcc", "-std=gnu17", *WARNINGS, "-fPIC", "-pthread",
                               f"-I{top / 'include'}", f"-I{top}",
                               '-DINV_BINDIR="/usr/bin"', "-isystem", headers, *words],
                              check=False, cwd=tmp_path, capture_output=True, text=True,
                              timeout=200)
        assert done.returncode == 0, done.stderr

    return run


def test_the_core_table_needs_no_glibc(musl, top, tmp_path, run_program):
    musl(*sources(top, "libinvasive_core_sources"), top / "libinvasive/table/tests/test_core.c",
         "-o", "core")
    assert run_program([tmp_path / "core"]).stdout == "core: all transitions as documented\n"


def test_the_library_links_without_glibc_and_makes_claims(musl, top, tmp_path, run_program):
    musl("-shared", "-Wl,-z,defs", "-Wl,-soname,libinvasive-process.so",
         *sources(top, "lib_invasive_libinvasive_process_so_SOURCES"),
         *sources(top, "inv_interposed_sources"),
         "-o", "libinvasive-process.so")
    musl(top / "libinvasive/member/test_claim.c", "./libinvasive-process.so", "-o", "claim")
    ran = run_program([tmp_path / "claim", "unmanaged"], env={"LD_LIBRARY_PATH": tmp_path})
    assert ran.stdout == "claims: as documented\n"
