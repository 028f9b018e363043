# SPDX-License-Identifier: GPL-3.0-or-later
"""apps/swe under sanitizers: all scenarios for some steps, and the ways to run them.  With
ThreadSanitizer on the project's OpenMP runtime, which then says what synchronises what; see
test_sanitized_runtime.py."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_sanitized_runtime import sanitized  # noqa: F401

pytestmark = pytest.mark.full

PARTS = ". grid output parallel scenario solver studies".split()
PROGRAMS = ("roofline.cc", "replay.cc")  # of their own
SHORT = ["time.steps=24", "grid.every=2", "grid.split=100", "grid.join=40", "run.cut=1"]
RUNS = {
    "dam": ["dam_break", "grid.max_depth=11"],
    "dam-augmented": ["dam_break", "grid.max_depth=11", "solver.flux=augmented"],
    "dam-order-1": ["dam_break", "grid.max_depth=11", "solver.order=1", "solver.stepping=ssp_rk2"],
    "dam-local": ["dam_break", "grid.max_depth=11", "solver.local_steps=true"],
    "dam-single": ["dam_break", "grid.max_depth=11", "solver.precision=single"],
    "planar": ["dam_break_planar", "grid.max_depth=11", "--error"],
    "lake": ["lake", "grid.max_depth=12", "grid.wander=true", "--error"],
    "lake-order-1": ["lake", "grid.max_depth=12", "grid.wander=true", "solver.order=1"],
    "thacker": ["thacker", "grid.max_depth=11", "solver.stepping=ssp_rk2"],
    "beach": ["beach", "grid.max_depth=10"],
    "tsunami": ["tsunami", "grid.min_depth=5", "grid.max_depth=11"],
}


def compile_swe(top, make_variable, where, flags, more=()):
    """apps/swe with these flags, as the Makefile makes it but in one go."""
    sources = [file for part in PARTS for file in sorted((top / "apps/swe" / part).glob("*.cc"))
               if file.name not in PROGRAMS]
    sources += more
    if not make_variable("SWE_LIBS"):
        pytest.skip("apps/swe is not built: no toml++ or NetCDF")
    options = ["-std=c++17", "-O1", "-g", "-fopenmp", "-ffp-contract=off", f"-I{top / 'include'}",
               "-DMPICH_SKIP_MPICXX", "-DOMPI_SKIP_MPICXX", "-Wno-psabi", *flags,
               *make_variable("SWE_CPPFLAGS").split(), *make_variable("MPI_CPPFLAGS").split()]

    def one(source):
        target = where / (source.parent.name + "-" + source.stem + ".o")
        subprocess.run(["g++", *options, "-c", source, "-o", target], check=True, timeout=600)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(one, sources))
    subprocess.run(["g++", *flags, "-fopenmp", *objects, *make_variable("MPI_LIBS").split(),
                    *make_variable("SWE_LIBS").split(), "-lm", "-o", where / "swe"],
                   check=True, timeout=100)
    return where / "swe"


@pytest.fixture(scope="module")
def memory_checked(top, make_variable, tmp_path_factory):
    where = tmp_path_factory.mktemp("asan")
    # Plugins of the MPI libraries stay: of those that are gone, nobody knows what they left.
    (where / "stay.cc").write_text('extern "C" int dlclose(void *) { return 0; }\n')
    return compile_swe(top, make_variable, where,
                       ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
                       [where / "stay.cc"])


@pytest.fixture(scope="module")
def threads_checked(top, make_variable, tmp_path_factory):
    return compile_swe(top, make_variable, tmp_path_factory.mktemp("tsan"),
                       ["-fsanitize=thread", "-Wno-tsan"])


@pytest.fixture
def words(top):
    def make(scenario, *more):
        return ["--quiet", top / f"apps/swe/scenarios/{scenario}.toml", *SHORT, *more]

    return make


@pytest.fixture
def address_env(tmp_path):
    """What MPI libraries do not give back is theirs."""
    (tmp_path / "theirs").write_text("\n".join(f"leak:{name}" for name in (
        "libmpich", "libmpi.so", "libopen-pal", "libopen-rte", "libfabric", "libucs", "libucp",
        "libuct", "libhwloc", "libpmix", "libze_loader", "libpsm")))
    return {"LSAN_OPTIONS": f"suppressions={tmp_path / 'theirs'}:print_suppressions=0",
            "UBSAN_OPTIONS": "print_stacktrace=1", "OMP_NUM_THREADS": "3",
            "OMP_WAIT_POLICY": "passive"}


@pytest.mark.parametrize("run", RUNS.values(), ids=[*RUNS])
def test_no_wrong_address_and_nothing_undefined(mpiexec, run_program, memory_checked, words,
                                                address_env, run):
    for ranks in ([], [mpiexec, "-n", "2"]):
        done = run_program([*ranks, memory_checked, *words(*run)], address_env, timeout=300)
        assert "checksum" in done.stdout
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


def test_no_wrong_address_in_what_is_written_and_read(run_program, memory_checked, words,
                                                      address_env, tmp_path):
    out = [f"output.directory={tmp_path / 'out'}", "output.vtu_every=1", "output.raster_every=1",
           "output.raster_nx=50", "output.raster_ny=40", "output.checkpoint_every=1"]
    for more in ([], ["--restart", "time.steps=40"]):
        done = run_program([memory_checked, *words("tsunami", "grid.max_depth=9", *out), *more],
                           address_env, timeout=300)
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


@pytest.mark.parametrize("kind", ["tasks", "owner"])
@pytest.mark.parametrize("run", RUNS.values(), ids=[*RUNS])
def test_no_thread_reads_what_another_is_writing(run_program, threads_checked, sanitized,  # noqa: F811
                                                 words, run, kind):
    # without randomized addresses: some kernels place mappings where ThreadSanitizer has its own;
    # without UCX's hooks of memory calls, in which any program of MPICH crashes under it
    done = run_program(["setarch", "-R", sanitized / "bin/invade", "--threads=4", "--",
                        threads_checked, *words(*run), f"run.parallel={kind}"],
                       {"UCX_MEM_EVENTS": "no", "OMP_WAIT_POLICY": "passive"}, timeout=300)
    assert "checksum" in done.stdout
    assert "ThreadSanitizer" not in done.stdout + done.stderr
