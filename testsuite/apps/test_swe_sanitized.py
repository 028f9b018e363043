# SPDX-License-Identifier: GPL-3.0-or-later
"""apps/swe under sanitizers: all scenarios for some steps, and the ways to run them.  With
ThreadSanitizer on the project's OpenMP runtime, which then says what synchronises what; see
test_sanitized_runtime.py.  Messages are under it, too: ranks of a job, with the MPI shim."""

import pytest

from lib.building.simulations import FOR_MEMORY, Simulation

pytestmark = pytest.mark.full
SIMULATION = "swe"

SHORT = ["time.steps=24", "grid.every=2", "grid.split=100", "grid.join=40", "run.cut=1"]
RUNS = {
    "dam": ["dam_break", "grid.max_depth=11"],
    "dam-augmented": ["dam_break", "grid.max_depth=11", "solver.flux=augmented"],
    "dam-order-1": ["dam_break", "grid.max_depth=11", "solver.order=1"],
    "dam-local": ["dam_break", "grid.max_depth=11", "solver.local_steps=true", "grid.every=16"],
    "dam-single": ["dam_break", "grid.max_depth=11", "solver.precision=single"],
    "planar": ["dam_break_planar", "grid.max_depth=11", "--error"],
    "lake": ["lake", "grid.max_depth=12", "grid.wander=true", "--error"],
    "lake-order-1": ["lake", "grid.max_depth=12", "grid.wander=true", "solver.order=1"],
    "thacker": ["thacker", "grid.max_depth=11", "solver.stepping=ssp_rk2"],
    "beach": ["beach", "grid.max_depth=10"],
    "tsunami": ["tsunami", "grid.min_depth=5", "grid.max_depth=11"],
}


PARTS_TESTS = ("bathymetry bed galerkin gauges grid kernels okada output scenarios simulations "
               "steps symmetry").split()


@pytest.fixture(scope="module")
def memory_checked_over_tbb(top, make_variable, staying, tmp_path_factory):
    if not make_variable("TBB_LIBS"):
        pytest.skip("needs package libtbb-dev")
    return Simulation("swe", top, make_variable, tmp_path_factory.mktemp("tbb"),
                      [*FOR_MEMORY, "-DSWE_TBB"],
                      make_variable("TBB_LIBS").split()).program(staying)


@pytest.fixture
def words(top):
    def make(scenario, *more):
        return ["--quiet", top / f"apps/swe/scenarios/{scenario}.toml", *SHORT, *more]

    return make


@pytest.mark.parametrize("run", RUNS.values(), ids=[*RUNS])
def test_no_wrong_address_and_nothing_undefined(mpiexec, run_program, memory_checked, words,
                                                address_env, run):
    for ranks in ([], [mpiexec, "-n", "2"]):
        done = run_program([*ranks, memory_checked, *words(*run)], address_env, timeout=300)
        assert "checksum" in done.stdout
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


@pytest.mark.parametrize("run", ["dam", "dam-order-1", "dam-local", "tsunami"])
def test_no_wrong_address_over_tbb(mpiexec, run_program, memory_checked_over_tbb, words,
                                   address_env, run):
    """ThreadSanitizer does not see the ordering of this library, which is not compiled for it."""
    for ranks in ([], [mpiexec, "-n", "2"]):
        done = run_program([*ranks, memory_checked_over_tbb, *words(*RUNS[run])], address_env,
                           timeout=300)
        assert "checksum" in done.stdout
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


@pytest.mark.parametrize("name", PARTS_TESTS)
def test_no_wrong_address_in_a_part(run_program, compiled_for_memory, staying, address_env, name):
    program = compiled_for_memory.compile_test_of(name, staying)
    for promise in run_program([program, "--list"], address_env).stdout.split():
        done = run_program([program, promise], address_env, timeout=600)
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


@pytest.mark.parametrize("words", [["config_fuzz", 10000, 2], ["netcdf_fuzz", 2000, 2],
                                   ["netcdf_fuzz", 300, 2, "netcdf4"]],
                         ids=["config", "netcdf", "netcdf4"])
def test_no_wrong_address_in_what_reads_damaged_files(run_program, compiled_for_memory, staying,
                                                      address_env, tmp_path, words):
    program = compiled_for_memory.compile_test_of(words[0], staying)
    run_program([program, *words[1:]], address_env, timeout=600, cwd=tmp_path)


def test_no_wrong_address_in_what_is_written_and_read(run_program, memory_checked, words,
                                                      address_env, tmp_path):
    out = [f"output.directory={tmp_path / 'out'}", "output.vtu_every=1", "output.raster_every=1",
           "output.maxima_every=1",
           "output.raster_nx=50", "output.raster_ny=40", "output.checkpoint_every=1"]
    for more in ([], ["--restart", "time.steps=40"]):
        done = run_program([memory_checked, *words("tsunami", "grid.max_depth=9", *out), *more],
                           address_env, timeout=300)
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


def test_no_wrong_address_in_a_replay(run_program, mpiexec, compiled_for_memory, memory_checked,
                                      staying, words, address_env, tmp_path):
    ranks, prefix = [mpiexec, "-n", "2"], tmp_path / "record"
    run_program([*ranks, memory_checked, *words(*RUNS["dam"], f"run.record={prefix}")],
                address_env, timeout=300)
    program = compiled_for_memory.other("studies/replay.cc", staying)
    for parallel in ("tasks", "owner", "loop"):
        run_program([*ranks, program, f"record={prefix}", f"parallel={parallel}"], address_env,
                    timeout=300)


def test_no_wrong_address_in_the_roofline(run_program, compiled_for_memory, address_env):
    run_program([compiled_for_memory.other("solver/roofline.cc"), "2", "6", "0.01"], address_env,
                timeout=300)


def test_no_wrong_address_in_bathymetry(run_program, compiled_for_memory, memory_checked, staying,
                                        words, address_env, top, tmp_path):
    file = tmp_path / "gebco.nc"
    run_program([compiled_for_memory.other("tools/make_bathymetry.cc", staying),
                 top / "apps/swe/scenarios/tsunami.toml", file, "600"], address_env)
    done = run_program([memory_checked, *words("tsunami", "grid.max_depth=10",
                                               f"scenario.bathymetry={file}")],
                       address_env, timeout=300)
    assert "checksum" in done.stdout
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


@pytest.mark.parametrize("kind", ["tasks", "owner", "loop"])
@pytest.mark.parametrize("run", RUNS.values(), ids=[*RUNS])
def test_no_thread_reads_what_another_is_writing(no_race, words, run, kind):
    no_race(*words(*run), f"run.parallel={kind}")


@pytest.mark.parametrize("kind", ["tasks", "owner", "loop"])
@pytest.mark.parametrize("run", ["dam", "dam-order-1", "dam-local", "tsunami"])
def test_no_thread_reads_what_another_is_writing_when_it_goes_to_another_rank(
        no_race, words, run, kind):
    no_race(*words(*RUNS[run]), f"run.parallel={kind}", ranks=2)


@pytest.mark.parametrize("ranks", [0, 2])
def test_no_thread_reads_what_another_is_writing_while_files_are_written(
        no_race, words, tmp_path, ranks):
    no_race(*words("tsunami", "grid.max_depth=9", f"output.directory={tmp_path}",
                   "output.vtu_every=1", "output.raster_every=1", "output.maxima_every=1",
                   "output.raster_nx=50", "output.raster_ny=40", "output.checkpoint_every=1"),
            ranks=ranks)
