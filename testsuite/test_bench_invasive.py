# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmarks of "rmd": their programs do what they say on any machine, in little time,
and the fuzzers of everything that reads bytes of others find nothing.  No time is looked at.
"""

import os
import re
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench"
sys.path.insert(0, str(BENCH))

import fuzz  # noqa: E402

CHECKSUM = re.compile(r"^checksum ([0-9a-f]{16})$", re.MULTILINE)


# Inputs, and edges that these reach at least: more than half of what they do.  A target that does
# not get to its parser any more finds nothing.
REACHED = {"config": (2000, 120), "socket": (2000, 800), "table": (2000, 700), "trace": (2000, 400),
           "state": (500, 500), "package": (2000, 100), "http": (2000, 40), "simulate": (2000, 120),
           "keeper": (2000, 110), "reply": (2000, 230)}


@pytest.fixture
def cells(build):
    if not (build / "lib/invasive/libgomp.so.1").exists():
        pytest.skip("libgomp-invasive is not built")
    return build / "apps/cells/cells"


def test_cells_have_the_same_result_however_they_invade(cells, build, run_program):
    words = ["steps=60", "cells=64", "least=0.3", "serial=0.1"]
    sums = CHECKSUM.findall(run_program([cells, *words], timeout=30).stdout)
    for how in ("off", "nonblocking", "blocking", "nonblocking-changing", "blocking-changing",
                "nonblocking-left"):
        ran = run_program([build / "invade", "--", cells, *words, f"invade={how}"], timeout=60)
        sums += CHECKSUM.findall(ran.stdout)
    assert len(sums) == 7
    assert len(set(sums)) == 1


def test_emulated_cells_take_the_cpus_of_the_emulated_machine_in_turn(
        cells, build, tmp_path, run_program):
    machine = tmp_path / "machine"
    machine.write_bytes(bytes(1 << 16))
    ran = run_program([build / "invade", "--emulate-cores=4", "--", cells, "steps=5", "cells=16",
                       "cell-us=500", "cpus=1", f"machine={machine}", "serial=0.1",
                       "invade=nonblocking"], {"OMP_WAIT_POLICY": "passive"}, timeout=60)
    assert CHECKSUM.search(ran.stdout)
    taken, given = (int.from_bytes(machine.read_bytes()[i:i + 4], sys.byteorder) for i in (0, 4))
    assert taken == given > 5


@pytest.mark.parametrize("name", ["invade-call", pytest.param("migrate", marks=pytest.mark.full),
                                  pytest.param("overhead", marks=pytest.mark.full)])
def test_bench_run_ends_with_the_figure_of(name, cells, top, build, tmp_path, run_program):
    if name == "migrate" and len(os.sched_getaffinity(0)) != 2:
        pytest.skip("a core for each of two processes")
    ran = run_program([sys.executable, top / "bench/run", name, "--turns", "1", "--build", build],
                      {"INVASIVE_BENCH_WORK": str(tmp_path)}, timeout=110, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    last = ran.stdout.splitlines()[-1]
    assert re.fullmatch(rf"{name}: -?[0-9.e+]+ .* \(goal (<=|>=) [0-9.]+\)", last), last


def test_a_small_emulated_study_runs_to_its_end_with_the_same_results(
        cells, top, build, tmp_path, run_program):
    ran = run_program([sys.executable, top / "bench/run", "study", "--turns", "1", "--scale",
                       "0.02", "--only", "emulated,at-once", "--build", build],
                      {"INVASIVE_BENCH_WORK": str(tmp_path)}, timeout=110, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    assert re.fullmatch(r"study-worst: [0-9.]+ x at-once \(goal <= 1\)",
                        ran.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def fuzzers(tmp_path_factory):
    return fuzz.programs(list(fuzz.LENGTH), tmp_path_factory.mktemp("fuzz"))


@pytest.mark.timeout(500)  # the first one compiles them all
@pytest.mark.parametrize("name", fuzz.LENGTH)
def test_arbitrary_bytes_break_no_parser_of(name, fuzzers, tmp_path, build):
    inputs, edges = REACHED[name]
    found = fuzz.search(name, fuzzers[name], inputs, 1, tmp_path, 100)
    assert found["failed"] == 0
    assert found["inputs"] >= inputs
    assert found["covered"] > edges


def test_trace_files_that_nobody_has_written_are_read_or_refused(build):
    found = fuzz.search_trace_files(build, 300, 1, 100)
    assert found["failed"] == 0
    assert found["inputs"] == 300
    assert 200 > found["taken"] > 60
    assert found["covered"] > found["edges"] * 0.7
