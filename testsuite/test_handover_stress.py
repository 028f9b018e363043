# SPDX-License-Identifier: GPL-3.0-or-later
"""Parking and the queues of the ready under fire with the sanitizers on.  Compiled here, without
libgomp."""

from __future__ import annotations

import os
import subprocess

import pytest

LIBGOMP_H = """#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define MEMMODEL_RELAXED __ATOMIC_RELAXED
"""


@pytest.mark.full  # hangs now and then with the address sanitizer, not understood yet
@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_cores_are_handed_over_one_by_one_and_none_is_lost(top, tmp_path, run_program, sanitizers):
    (tmp_path / "libgomp.h").write_text(LIBGOMP_H)
    ours, program = top / "libgomp-invasive", tmp_path / "stress"
    subprocess.run(
        [*os.environ.get("CC", "gcc").split(), "-std=gnu17", "-O1", "-g", "-pthread", "-Wall",
         "-Wextra", "-Wno-tsan", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all",
         "-I", tmp_path, "-I", ours / "overlay", "-I", top, "-I", top / "include",
         ours / "test_handover_stress.c", ours / "overlay/parking.c", ours / "overlay/ready.c",
         "-o", program], check=True, timeout=100)
    # without randomized addresses: some kernels place mappings where ThreadSanitizer has its own
    result = run_program(["setarch", "-R", program, "2000"], timeout=60,
                         env={"TSAN_OPTIONS": "halt_on_error=1"})
    assert result.stdout == "handover: every thread came through, both cores are free\n"
    assert result.stderr == ""
