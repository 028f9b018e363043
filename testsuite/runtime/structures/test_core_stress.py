# SPDX-License-Identifier: GPL-3.0-or-later
"""The C code of the core table: each transition alone, and all of them under fire with the
sanitizers on.  Compiled here, so that it needs no build."""

from __future__ import annotations

import os
import subprocess

import pytest

SOURCES = ("table.c", "core.c", "arrival_board.c", "trace.c")


@pytest.fixture
def compile_core(top, tmp_path):
    """compile_core(TEST, SANITIZERS) - the test program linked with the core table's code."""

    def compile_program(test, sanitizers):
        program = tmp_path / test
        sources = [str(top / "libinvasive/table" / name) for name in (*SOURCES, f"tests/{test}.c")]
        command = [*os.environ.get("CC", "gcc").split(), "-std=gnu17", "-O1", "-g", "-pthread",
                   "-DINV_ASSERTIONS",
                   "-Wall", "-Wextra", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all",
                   f"-I{top / 'include'}", f"-I{top}", *sources,
                   "-o", str(program)]
        subprocess.run(command, check=True, timeout=100)
        return program

    return compile_program


@pytest.mark.smoke
def test_each_transition_is_as_documented(compile_core, run_program):
    program = compile_core("test_core", "address,undefined")
    assert run_program([program]).stdout == "core: all transitions as documented\n"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_no_core_has_two_holders_and_no_wake_up_is_lost_under_fire(
        compile_core, run_program, sanitizers):
    program = compile_core("test_core_stress", sanitizers)
    # without randomized addresses: some kernels place mappings where ThreadSanitizer has its own
    result = run_program(["setarch", "-R", program, "2000"], timeout=150,
                         env={"TSAN_OPTIONS": "halt_on_error=1"})
    lines = result.stdout.splitlines()
    assert "pinned: 0 lends" not in lines[0] and lines[-1] == "anonymous: all tokens are back"
    assert "pinned, moving" in lines[2] and " 0 moves" not in lines[2]
    assert result.stderr == ""


@pytest.mark.full
@pytest.mark.parametrize("seed", range(5))
def test_no_core_has_two_holders_and_no_wake_up_is_lost_for_longer(compile_core, run_program, seed):
    program = compile_core("test_core_stress", "undefined")
    run_program([program, "20000", str(seed)], timeout=200)
