# SPDX-License-Identifier: GPL-3.0-or-later
"""The claiming of chunks of split loops, alone and with the sanitizers on.  Compiled here, so that
it needs no build."""

from __future__ import annotations

import os
import subprocess

import pytest


@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_every_chunk_is_claimed_once_whoever_comes_or_leaves(
        top, tmp_path, run_program, sanitizers):
    program = tmp_path / "split"
    source = top / "libgomp-invasive" / "test_split_stress.c"
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-std=gnu17", "-O1", "-g", "-pthread",
                    "-Wall", "-Wextra", "-Werror", f"-fsanitize={sanitizers}",
                    "-fno-sanitize-recover=all", source, "-o", program], check=True, timeout=100)
    # without randomized addresses: some kernels place mappings where ThreadSanitizer has its own
    result = run_program(["setarch", "-R", program, "2000"], timeout=100,
                         env={"TSAN_OPTIONS": "halt_on_error=1"})
    assert result.stdout.startswith("split: ") and result.stderr == ""
