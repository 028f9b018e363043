# SPDX-License-Identifier: GPL-3.0-or-later
"""apps/euler under sanitizers, as test_swe_sanitized.py has apps/swe."""

import pytest

pytestmark = pytest.mark.full
SIMULATION = "euler"

VARIANTS = ("none", "subgrids", "skeleton-first", "arithmetic-aware")
RUNS = {
    "pulse": ["pulse", "solver.order=2", "time.steps=40"],
    "vortex": ["vortex", "solver.order=3", "grid.wander=0.03", "time.steps=20"],
    "space": ["wave", "solver.order=2", "grid.max_level=2", "grid.wander=0.03", "time.steps=6"],
    "sleeping": ["wave", "solver.order=1", "grid.max_level=2", "grid.wander=0.03", "time.steps=6",
                 "emulate.predictor_us=20", "emulate.corrector_us=5", "emulate.look_us=30"],
}


@pytest.fixture
def words(top):
    def make(scenario, *more):
        return ["--quiet", top / f"apps/euler/scenarios/{scenario}.toml", *more]

    return make


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("run", RUNS.values(), ids=[*RUNS])
def test_no_wrong_address_and_nothing_undefined_in_gas(
        mpiexec, run_program, memory_checked, words, address_env, tmp_path, run, variant):
    more = [] if "emulate.predictor_us=20" in run else [
        f"output.directory={tmp_path}", "output.vtu_every=0.01"]
    for ranks in ([], [mpiexec, "-n", "2"]):
        done = run_program([*ranks, memory_checked, *words(*run, f"run.variant={variant}"), *more],
                           address_env, timeout=300)
        assert "checksum" in done.stdout
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


@pytest.mark.parametrize("name", ["element", "mesh"])
def test_no_wrong_address_in_a_part_of_euler(run_program, compiled_for_memory, staying,
                                             address_env, name):
    done = run_program([compiled_for_memory.compile_test_of(name, staying)], address_env,
                       timeout=600)
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


@pytest.mark.parametrize("ranks", [0, 2])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("run", RUNS.values(), ids=[*RUNS])
def test_no_thread_reads_a_cell_that_another_is_writing(no_race, words, run, variant, ranks):
    no_race(*words(*run, f"run.variant={variant}"), ranks=ranks)
