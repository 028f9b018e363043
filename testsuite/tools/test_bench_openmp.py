# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenMP benchmarks: their programs check their own results, with each runtime and in tiny
sizes here, and the verdicts on the measured numbers are right.  No time is looked at.
"""

import re
import subprocess
import sys

import openmp_compare
import pytest
from common import Figure

from lib.building.build import BENCH

WARNINGS = "-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror".split()
QUICK = ["--sample-us=1", "--budget-ms=1", "--warm-up-ms=0"]
TINY = {
    "sync": QUICK,
    "sched": QUICK,
    "tasks": ["--size=2", "--budget-ms=1", "--warm-up-ms=0"],
    "spinsync": ["--rounds=3", "--warm-up-ms=0"],
    "crowd": ["--rounds=3", "--warm-up-ms=0"],
}
KERNELS = {
    "sync": "parallel for parallel_for barrier single critical lock ordered ordered_dynamic atomic "
            "reduction region_barrier region_single region_critical region_lock region_ordered "
            "region_static region_guided region_dynamic region_tasks region_taskloop "
            "region_sections region_doacross",
    "sched": " ".join(f"{kind}_{2 ** k}" for kind in ("static", "dynamic", "guided")
                      for k in range(8)),
    "tasks": " ".join(f"{k} {k}_ms" for k in "fib queens tree taskloop chain wavefront grains "
                                             "grains_shared".split()),
    "spinsync": "pingpong pipeline meet yield",
    "crowd": "work_us barriers regions",
}


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """program(NAME) - the path of a compiled program of bench/openmp."""
    directory = tmp_path_factory.mktemp("bench-openmp")

    def compiled(name):
        binary = directory / name
        if not binary.exists():
            subprocess.run(["gcc", "-O2", "-std=gnu17", "-fopenmp", *WARNINGS,
                            BENCH / "openmp" / f"{name}.c", "-o", binary], check=True, timeout=60)
        return binary

    return compiled


@pytest.fixture
def under(build):
    """under(RUNTIME) -> (words before the command, environment)"""

    def prepare(runtime):
        library = build / "lib/invasive"
        if runtime != "stock" and not (library / "libgomp.so.1").exists():
            pytest.skip("libgomp-invasive is not built")
        return {"stock": ([], {}),
                "ours": ([], {"LD_LIBRARY_PATH": f"{library}:{library.parent}"}),
                "managed": ([build / "invade", "--"], {})}[runtime]

    return prepare


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("runtime", ["stock", "ours", "managed"])
@pytest.mark.parametrize("name", TINY)
def test_program_has_right_results_and_a_number_for_each_kernel(
        name, runtime, threads, program, under, run_program):
    if name == "spinsync":
        threads += 1  # threads that wait for each other
    words, env = under(runtime)
    # passive: threads that spin take turns of milliseconds with whatever else is on the cores
    ran = run_program([*words, program(name), *TINY[name]],
                      {"OMP_WAIT_POLICY": "passive", **env, "OMP_NUM_THREADS": str(threads)},
                      timeout=90)
    found = re.findall(r"^([a-z0-9_]+) -?[0-9.]+$", ran.stdout, re.MULTILINE)
    assert [row for row in found if not row.endswith("_handover")] == KERNELS[name].split()


@pytest.mark.parametrize("kernel", ["tasks", "dynamic", "static", "barriers"])
def test_malleable_program_has_the_same_result_with_any_runtime(
        kernel, program, under, run_program):
    sums = set()
    for runtime in ("stock", "ours", "managed"):
        words, env = under(runtime)
        ran = run_program([*words, program("malleable"), "--items=200", "--steps=10", kernel],
                          {**env, "OMP_NUM_THREADS": "16"}, timeout=60)
        sums.update(re.findall(r"^checksum ([0-9a-f]{16})$", ran.stdout, re.MULTILINE))
    assert len(sums) == 1


def test_program_says_what_is_wrong_with_an_option(program, run_program):
    ran = run_program([program("sync"), "--sample-us=often"], check=False)
    assert ran.returncode == 2
    assert "'--sample-us=often' is not a number" in ran.stderr


@pytest.mark.parametrize("name, options", [
    ("sync", ["--only", "critical", "--settings", "1"]),
    ("sched", ["--only", "dynamic_8", "--settings", "1"]),
    ("tasks", ["--only", "queens", "--settings", "2"]),
    ("oversubscribed", ["--only", "parallel"]),
    ("malleable", ["--only", "tasks"]),
    pytest.param("spin-sync", ["--only", "meet", "--settings", "2 on 2 cores"],
                 marks=pytest.mark.full),
])
def test_bench_run_ends_with_the_figure_of_the_benchmark(
        name, options, top, build, tmp_path, run_program):
    if not (build / "lib/invasive/libgomp.so.1").exists():
        pytest.skip("libgomp-invasive is not built")
    ran = run_program([sys.executable, top / "bench/run", name, "--turns", "1", "--build", build,
                       "--runtimes", "stock,ours,managed", *options],
                      {"INVASIVE_BENCH_WORK": str(tmp_path)}, timeout=110, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    last = ran.stdout.splitlines()[-1]
    assert re.fullmatch(rf"{name}: [0-9.e+]+ .* \(goal (<=|>=) [0-9.]+\)", last), last


def verdict(ours, best, resolution=5, rest=9999):
    results = openmp_compare.Results()
    for o, b in zip(ours, best):
        for runtime, value in (("ours", o), ("stock", rest), ("intel", b)):
            results.add("2", "barrier", runtime, value)
    return openmp_compare.judge(results, "2", "barrier", "ours", resolution)


def test_ours_is_judged_against_the_fastest_of_the_others():
    slower = verdict([300, 330, 290], [100, 110, 100])
    assert slower.best == "intel"
    assert slower.ratio == pytest.approx(3.0)
    assert slower.counted == slower.ratio


def test_a_difference_below_the_resolution_counts_as_equal():
    assert verdict([7, 8, 7], [3, 4, 3]).counted == 1.0
    assert verdict([17, 18, 17], [3, 4, 3]).counted > 3


def test_ours_counts_as_equal_when_it_is_faster_in_some_of_the_turns():
    assert verdict([90, 95, 130, 140, 150], [100] * 5).counted == 1.0
    assert verdict([110, 120, 130, 140, 150], [100] * 5).counted == pytest.approx(1.3)


def test_like_is_compared_with_like_when_the_host_moves_a_core_meanwhile():
    results = openmp_compare.Results()
    for ours, stock, ours_handover, stock_handover in ((400, 120, 250, 50), (80, 450, 51, 260),
                                                       (82, 118, 52, 49)):
        results.add("2", "barrier", "ours", ours, ours_handover)
        results.add("2", "barrier", "stock", stock, stock_handover)
    found = openmp_compare.judge(results, "2", "barrier", "ours", 5)
    assert found.ratio == pytest.approx(82 / 118)
    assert results.median("2", "barrier", "ours") == 81


def test_a_runtime_that_failed_is_not_compared_with():
    alone = verdict([300], [None])
    assert alone.best == "stock"


def test_figure_is_judged_as_it_is_printed():
    figure = Figure("sync", 1.0004, "x the best of the others", "<=", 1.0)
    assert figure.line() == "sync: 1.000 x the best of the others (goal <= 1)"
    assert figure.reached
