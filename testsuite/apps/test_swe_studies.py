# SPDX-License-Identifier: GPL-3.0-or-later
"""The studies with the tsunami simulation: records of its work, replays, and each study at a small
size, to its end.  No time is looked at."""

import csv
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from common import parse_values
from studies import model

from lib.processes import with_argument_below

pytestmark = [pytest.mark.timeout(240),
              pytest.mark.usefixtures("what_mpi_leaves_when_it_is_killed_goes")]

SMALL = ["grid.min_depth=4", "grid.max_depth=10", "grid.split=64", "grid.join=32", "time.steps=20",
         "output.progress=false"]
MODEL = ["ns-per-cell=10", "adaption-ns=20", "serial-ns=1", "scale=10"]


@pytest.fixture
def swe(build):
    program = build / "apps/swe/swe"
    if not program.exists():
        pytest.skip("apps/swe is not built")
    if not (build / "lib/invasive/libgomp.so.1").exists():
        pytest.skip("libgomp-invasive is not built")
    return program


def checksum(ran):
    return parse_values(ran.stdout)["checksum"]


def beside(program, suffix):
    return program.with_name(program.name + suffix)


@pytest.fixture
def dam(top):
    return [top / "apps/swe/scenarios/dam_break.toml", *SMALL]


@pytest.fixture
def recorded(swe, dam, start_ranks, tmp_path, run_program):
    """recorded(RANKS) - what the run said, and its record."""

    def run(ranks):
        prefix = tmp_path / f"record{ranks}"
        ran = run_program([*start_ranks(ranks), swe, *dam, f"run.record={prefix}"],
                          {"OMP_NUM_THREADS": "1"})
        return parse_values(ran.stdout), model.read_record(prefix, ranks)

    return run


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_record_has_all_steps_and_cells_of_the_run(recorded, ranks):
    said, record = recorded(ranks)
    cell_steps = sum(s.steps * s.cells for rank in record.ranks for s in rank)
    assert cell_steps == said["cell-steps"]
    for rank in record.ranks:
        assert sum(s.steps for s in rank) == said["steps"] == 20
    assert sum(rank[-1].cells for rank in record.ranks) == said["cells"]
    assert max(len(s.clusters) for rank in record.ranks for s in rank) > 1


def test_a_record_changes_nothing_of_the_result(swe, dam, recorded, run_program):
    said, _ = recorded(1)
    assert said["checksum"] == checksum(run_program([swe, *dam]))


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_replay_has_the_phases_of_its_record(recorded, swe, start_ranks, run_program, ranks):
    said, record = recorded(ranks)
    ran = run_program([*start_ranks(ranks), beside(swe, "_replay"), f"record={record.prefix}",
                       *MODEL], {"OMP_NUM_THREADS": "2"})
    replayed = parse_values(ran.stdout)
    mine = record.ranks[0]
    assert replayed["phases"] == sum(s.steps + s.adapts for s in mine)
    assert replayed["cell-steps"] == said["cell-steps"]
    assert replayed["work-seconds"] == pytest.approx(
        model.work_seconds(record, model.Model(10, 20, 1), 10), rel=1e-3)


def test_replays_do_the_same_in_all_ways(recorded, swe, build, mpiexec, tmp_path, run_program):
    _, record = recorded(2)
    machine = tmp_path / "machine"
    machine.write_bytes(bytes(1 << 16))
    words = [mpiexec, "-n", 2, beside(swe, "_replay"), f"record={record.prefix}", *MODEL]
    emulate = [build / "invade", "--emulate-cores=8", "--"]
    runs = [(["parallel=tasks"], []), (["parallel=owner"], []), (["parallel=loop"], []),
            (["wait=sleep"], []), ([f"machine={machine}", "cpus=3"], []),
            (["announce=on"], emulate), (["announce=wait", "parallel=loop"], emulate)]
    sums = {checksum(run_program([*before, *words, *extra], {"OMP_NUM_THREADS": "4"}))
            for extra, before in runs}
    if beside(swe, "_replay_tbb").exists():
        words[3] = beside(swe, "_replay_tbb")
        sums.add(checksum(run_program([*words, "cpus=4"])))
    assert len(sums) == 1
    taken, given = (int.from_bytes(machine.read_bytes()[i:i + 4], sys.byteorder) for i in (0, 4))
    assert taken == given > 0  # a late rank owes time, and computes less often


@pytest.mark.full
def test_the_simulation_has_the_same_result_over_tbb_and_however_it_is_shared_out(
        swe, build, dam, run_program):
    if not beside(swe, "_tbb").exists():
        pytest.skip("needs package libtbb-dev")
    commands = [[beside(swe, "_tbb"), *dam], *([swe, *dam, f"run.parallel={parallel}"]
                                              for parallel in ("tasks", "owner", "loop")),
                [build / "invade", "--", swe, *dam, "run.announce=true", "run.blocking=true"]]
    assert len({checksum(run_program(c, {"OMP_NUM_THREADS": "3"})) for c in commands}) == 1


@pytest.mark.parametrize("words", [["cpus"], ["frobnicate=1"], []])
def test_wrong_words_of_a_replay_are_told(swe, run_program, words):
    ran = run_program([beside(swe, "_replay"), *words], check=False)
    assert ran.returncode == 2 and "usage" in ran.stderr


HEADER = "swe-record 1\nrank 0 of 1 stages 1 neighbours\n"


@pytest.mark.parametrize("text, said", [
    ("", "no record of swe"), ("swe-record 1\n", "no record of swe"),
    (f"{HEADER}clusters 3 4\nsteps 2 seconds 1\n", "cut off"),
    (f"{HEADER}clusters 3 x\nend\n", "line 3: not understood"),
    (f"{HEADER}steps 2 seconds 1\nend\n", "line 3: not understood"),
    (f"{HEADER}clusters 3\nlater\nend\n", "line 4: not understood"),
    ("swe-record 1\nrank 0 of 2 stages 1 neighbours 1\nend\n", "of 2 ranks, not 1")])
def test_a_broken_record_is_refused_with_its_name(swe, tmp_path, run_program, text, said):
    (tmp_path / "broken.0").write_text(text)
    ran = run_program([beside(swe, "_replay"), f"record={tmp_path}/broken"], check=False)
    assert ran.returncode != 0
    assert re.search(rf"swe_replay: rank 0: {tmp_path}/broken.*: {said}", ran.stderr)


def test_the_limits_of_a_record_are_those_that_are_worked_out_by_hand():
    """Two ranks of 30 and 10 cells in clusters of 10, four cores, 1 s a cell: each rank has two."""
    work = [model.Stretch([10, 10, 10], steps=1), model.Stretch([10], steps=1)]
    record = model.Record(Path(), 1, [[s] for s in work])
    assert model.limits(record, model.Model(1e9, 0, 0), 1, 4) == pytest.approx((15, 10, 10))
    assert model.work_seconds(record, model.Model(1e9, 0, 0), 1) == pytest.approx(40)


@pytest.mark.parametrize("clusters, cores, cells", [
    ([5], 4, 5), ([5, 4], 1, 9), ([5, 4, 3], 2, 7), ([6, 5, 4, 4, 3], 2, 11), ([9, 1, 1], 2, 9)])
def test_the_limit_of_whole_clusters_is_no_more_than_the_best_distribution(clusters, cores, cells):
    """Of the last but one: 3, 4 and 4 of the five largest share a core."""
    assert model.whole(clusters, cores) == cells
    best = min(max(sum(c for c, at in zip(clusters, places) if at == core)
                   for core in range(cores))
               for places in itertools.product(range(cores), repeat=len(clusters)))
    assert cells <= best


def test_an_adaption_without_sweeps_counts_in_model_limit_and_replay(swe, tmp_path, run_program):
    """It changed nothing, and has looked at all cells.  Here each costs 10 ns a cell, 2 serial."""
    adaption = ("clusters 600 400\nsteps 1 seconds 0.001\n"
                "adaption sweeps {} seconds 1e-5 serial 2e-6\n")
    (tmp_path / "r.0").write_text(f"{HEADER}{adaption.format(0)}{adaption.format(2)}"
                                  "clusters 1000\nsteps 0 seconds 0\nend\n")
    record = model.read_record(tmp_path / "r", 1)
    of = model.measured(record)
    assert (of.cell_ns, of.adaption_ns, of.serial_ns) == pytest.approx((1000, 8, 2))
    assert model.work_seconds(record, of, 1) == pytest.approx(2 * 1e-3 + 2 * 1e-5)
    assert model.limits(record, of, 1, 1) == pytest.approx((2.02e-3,) * 3)
    ran = run_program([beside(swe, "_replay"), f"record={record.prefix}", *of.words(1)])
    assert parse_values(ran.stdout)["phases"] == 4
    assert parse_values(ran.stdout)["work-seconds"] == pytest.approx(2.02e-3)


FULL = pytest.mark.full
STUDIES = [("overhead", "real", "0.005", ["overhead-real.csv", "overhead-real.png"]),
           ("overhead", "emulated", "0.03", ["overhead-emulated.csv", "overhead-emulated.png"]),
           pytest.param("balance", "real", "0.01", [
               "balance-real.csv", "balance-real.png", "balance-real-cores.png"], marks=FULL),
           pytest.param("balance", "emulated", "0.04", [
               "balance-emulated.csv", "balance-emulated.png", "balance-emulated-cores.png"],
                        marks=FULL),
           pytest.param("parameters", "real", "0.01", [
               "parameters-real.csv", "parameters-real.png", "parameters-real-cores.png"],
                        marks=FULL),
           ("parameters", "emulated", "0.05", ["parameters-emulated.csv", "parameters-emulated.png",
                                               "parameters-emulated-cores.png"])]


@pytest.mark.parametrize("name, machine, scale, files", STUDIES)
def test_a_small_study_leaves_table_and_pictures(
        swe, top, build, tmp_path, run_program, name, machine, scale, files):
    ran = run_program([top / "apps/swe/studies/run", name, "--machine", machine, "--turns", 1,
                       "--scale", scale, "--output", tmp_path, "--build", build,
                       *(["--only", "B,C"] if name == "parameters" else [])], timeout=200)
    for file in files:
        assert (tmp_path / file).stat().st_size > 100
        assert str(tmp_path / file) in ran.stdout
    wrong = re.findall(r"^    \S.*", ran.stdout, re.M)
    assert wrong == [] and " said: " not in ran.stdout + ran.stderr  # stdout: the tables alone
    rows = list(csv.DictReader((tmp_path / files[0]).open()))
    assert rows and all(len(row) == len(rows[0]) and None not in row for row in rows)
    assert machine == "real" or all(float(row["model ns/cell"]) > 0 for row in rows)
    if name == "overhead":  # a turn that was asked for is one
        assert "1 runs;" in ran.stdout
    if name == "parameters" and machine == "emulated":  # runs of either machine are told apart
        assert "invasive-40-B " in ran.stderr
    for file in tmp_path.glob("*.png"):
        assert file.read_bytes().startswith(b"\x89PNG")
    traces = [Path(file).stem + ".trace" for file in files if file.endswith("-cores.png")]
    assert {file.name for file in tmp_path.iterdir()} == {*files, *traces}


@pytest.mark.parametrize("name, only, said", [
    ("parameters", "F,tbc", "there is no tbc; there are sequential, tbb, at-once, invasive, A, B"),
    ("parameters", "G", "there is no G;"), ("parameters", ",F", "there is no "),
    ("balance", "tasks", "balance is one whole"), ("overhead", "F", "overhead is one whole")])
def test_a_part_of_a_study_that_is_none_is_told(top, build, tmp_path, run_program, name, only,
                                                said):
    ran = run_program([top / "apps/swe/studies/run", name, "--only", only, "--output",
                       tmp_path / "out", "--build", build], check=False)
    assert ran.returncode == 2 and f"--only: {said}" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_study_without_a_build_leaves_nothing(top, tmp_path, run_program):
    ran = run_program([top / "apps/swe/studies/run", "overhead", "--output", tmp_path / "out",
                       "--build", tmp_path], check=False)
    assert ran.returncode == 2 and f"no build in {tmp_path}" in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name, scale, only, unit", [
    ("swe", "0.01", "loop", "x"), ("swe-40", "0.04", "owner", "x"),
    ("swe-adapting", "0.02", None, "of the"),
    pytest.param("study-swe", "0.03", "emulated,at-once,sequential", "x", marks=FULL)])
def test_bench_run_ends_with_the_figure_of_the_benchmark(
        swe, top, build, run_program, name, scale, only, unit):
    ran = run_program([sys.executable, top / "bench/run", name, "--turns", 1, "--scale", scale,
                       *(["--only", only] if only else []), "--build", build], timeout=200,
                      check=False)
    assert ran.returncode in (0, 1), ran.stderr
    last = ran.stdout.splitlines()[-1]
    assert re.fullmatch(rf"{name}: [0-9.e+]+ {unit} .* \(goal <= [0-9.]+\)", last), last


@pytest.mark.parametrize("name, only, said", [
    ("swe-40", "loops", "loops is none of loop, tasks, owner"),
    ("study-swe", "tbc,F,G", "G, tbc is none of real, emulated, sequential, tbb, at-once, "
                             "invasive, E, F"),
    ("study-swe", "real,E", "real has the sizes F; emulated has the sizes E, F"),
    ("study-swe", "invasive", "no way beside invasive, which the others are compared with"),
    ("swe-roofline", "rusanov", "rusanov: this benchmark is one whole"),
    ("swe-adapting", "18", "18: this benchmark is one whole")])
def test_words_that_a_benchmark_does_not_know_are_told(top, build, run_program, name, only, said):
    ran = run_program([sys.executable, top / "bench/run", name, "--only", only, "--build", build],
                      check=False)
    assert ran.returncode == 2 and f"--only: {said}" in ran.stderr


@pytest.mark.full
def test_the_roofline_has_a_number_for_each_kernel(swe, run_program):
    values = parse_values(run_program([beside(swe, "_roofline"), 1, 6, 0.01]).stdout)
    for kernel in ("rusanov", "augmented"):
        for precision in ("double", "float"):
            for what in ("cells-s", "roofline"):
                assert 0 < values[f"{kernel}-{precision}-{what}"] < float("inf")
    assert 0 < values["triad-bytes-s"] < float("inf")


STUDY = ["apps/swe/studies/run", "parameters", "--machine", "emulated", "--only", "F,at-once"]
BENCHMARK = ["bench/run", "study-swe", "--only", "emulated,at-once"]


def hang_ups_end_it():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ./run-tests ignores them, here too


@pytest.mark.timeout(900)
@pytest.mark.parametrize("command, how", [
    (STUDY, signal.SIGTERM), (BENCHMARK, signal.SIGHUP),
    *(pytest.param(*case, marks=FULL)
      for case in [(STUDY, signal.SIGINT), (BENCHMARK, signal.SIGTERM)])])
def test_a_study_that_is_told_to_end_leaves_no_process_and_no_working_files(
        swe, top, build, stock_env, tmp_path, command, how):
    program, *words = command
    # Both keep their records below the directory, by which their programs are known.
    words += ["--output", tmp_path / "output"] if "studies" in program else []
    words += ["--turns", "99", "--scale", "0.3", "--build", build]
    study = subprocess.Popen([sys.executable, *(str(word) for word in (top / program, *words))],
                             env={**stock_env, "TMPDIR": str(tmp_path)},
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL, start_new_session=True,
                             preexec_fn=hang_ups_end_it)
    try:
        end = time.monotonic() + 600  # what comes before the programs takes a while, too
        # Some three are of its programs. They come and go: not looked at a second time.
        while len(found := with_argument_below(tmp_path)) < 4:
            assert study.poll() is None and time.monotonic() < end, found
            time.sleep(0.05)
        os.kill(study.pid, how)
        assert study.wait(30) == 128 + how
        end = time.monotonic() + 20
        while with_argument_below(tmp_path) and time.monotonic() < end:
            time.sleep(0.05)
        assert with_argument_below(tmp_path) == []
        assert [file for file in tmp_path.rglob("*") if file.name != "output"] == []
    finally:
        if study.poll() is None:
            os.killpg(study.pid, signal.SIGKILL)
            study.wait()
