# SPDX-License-Identifier: GPL-3.0-or-later
"""apps/swe as a whole: is what it computes right, and is it the same however it is computed?

Errors are those of `--error`, against the scenario's exact solution: l1 is the mean over the whole
domain."""

import csv
import json
import math
import re
import shutil
import subprocess
import time

import pytest

from lib.building.small_programs import SHARED, compile_text
from lib.simulation import Result, simulator

pytestmark = pytest.mark.usefixtures("what_mpi_leaves_when_it_is_killed_goes")
PLANAR = "dam_break_planar"
STOKER = ["scenario.depth=2", "scenario.inside=8"]
RITTER = ["scenario.depth=0", "scenario.inside=10"]
ORDER_1 = ["solver.order=1"]


def named(value):
    return "-".join(value) if isinstance(value, list) else str(value)


def depths(least, most):
    return [f"grid.min_depth={least}", f"grid.max_depth={most}"]


@pytest.fixture
def program(swe_program):
    return swe_program("swe")


@pytest.fixture
def scenarios(top):
    return top / "apps/swe/scenarios"


@pytest.fixture
def swe(program, scenarios, run_program):
    """swe(SCENARIO, KEY=VALUE...) - the result; as of lib/simulation.py"""
    return simulator(run_program, program, scenarios)


@pytest.fixture
def ranks(start_ranks):
    """ranks(N) - the words that start N ranks of apps/swe/swe"""
    return start_ranks


# --- a lake at rest

@pytest.mark.parametrize("seed", [1, 5])
@pytest.mark.parametrize("method", [
    ["solver.flux=rusanov"], ["solver.flux=augmented"],
    ["solver.flux=augmented", "solver.stepping=ssp_rk2"],
    ["solver.flux=augmented", "solver.local_steps=true", "grid.split=128", "grid.join=32",
     "grid.every=32"],
    [*ORDER_1, "solver.flux=rusanov"], [*ORDER_1, "solver.flux=augmented"]], ids="-".join)
def test_lake_with_islands_stays_at_rest_on_a_grid_that_changes(swe, method, seed):
    lake = ["lake", *depths(6, 12), "grid.every=2", *method, f"scenario.seed={seed}",
            "scenario.slope_bed=2", "time.end=1000", "time.steps=120"]
    still = swe(*lake)
    result = swe(*lake, "grid.wander=true", "--error")
    assert result["cells"] > 1.2 * still["cells"]
    assert result["height-error-max"] < 1e-12
    assert result["momentum-error-max"] < 1e-12
    assert abs(result["water-change"]) < 1e-14


@pytest.mark.parametrize("method", [[], ["solver.flux=augmented"], ORDER_1], ids=named)
def test_lake_stays_at_rest_in_single_precision(swe, method):
    """Up to rounding: 1e-6 m for 10 m of water."""
    result = swe("lake", *depths(6, 12), "grid.every=2", *method, "scenario.slope_bed=2",
                 "time.end=1000", "time.steps=120", "grid.wander=true", "solver.precision=single",
                 "--error")
    assert result["height-error-max"] < 1e-5
    assert result["momentum-error-max"] < 2e-4
    assert abs(result["water-change"]) < 1e-8


@pytest.mark.parametrize("border", ["wall", "open"])
def test_lake_stays_at_rest_at_any_border(swe, border):
    sides = [f"domain.{side}={border}" for side in ("west", "east", "south", "north")]
    result = swe("lake", *depths(6, 10), *sides, "time.steps=100", "time.end=1000", "--error")
    assert result["height-error-max"] < 1e-12
    assert result["momentum-error-max"] < 1e-12


# --- what is conserved

@pytest.mark.parametrize("words", [
    ["dam_break", "solver.flux=rusanov"], ["dam_break", "solver.flux=augmented"],
    ["dam_break", *ORDER_1], ["dam_break", "scenario.depth=0", "scenario.inside=5"],
    ["dam_break", "scenario.depth=0", "scenario.inside=5", *ORDER_1],
    ["dam_break", "solver.local_steps=true", "grid.split=128", "grid.join=32"],
    ["dam_break", "solver.local_steps=true", "grid.split=128", "grid.join=32", "scenario.depth=0",
     "scenario.inside=5", "solver.flux=augmented"],
    ["thacker"], ["thacker", "solver.stepping=ssp_rk2"]], ids="-".join)
def test_no_water_is_lost_or_made(swe, words):
    result = swe(*words, *depths(6, 11), "time.steps=200")
    assert abs(result["water-change"]) < 5e-14


@pytest.mark.parametrize("precision, most", [("double", 5e-14), ("single", 1e-5)])
@pytest.mark.parametrize("order", ["solver.order=0", *ORDER_1])
@pytest.mark.parametrize("flux", ["rusanov", "augmented"])
def test_the_thinnest_films_of_water_do_no_harm(swe, precision, most, order, flux):
    """The lowest solver.dry_tolerance, where water runs over dry ground."""
    result = swe("dam_break", "scenario.depth=0", "scenario.inside=5", *depths(6, 10), order,
                 f"solver.flux={flux}", f"solver.precision={precision}",
                 "solver.dry_tolerance=1e-12", "solver.manning=0.025", "time.steps=150",
                 "time.end=1000")
    assert result["steps"] == 150
    assert abs(result["water-change"]) < most


# --- known solutions

# Waves with a kink and a jump: less than order 1 in the mean for order 0.
@pytest.mark.parametrize("dam, words, fine_depth, least_rate, most", [
    (STOKER, ["solver.flux=rusanov"], 12, 0.65, 0.125),
    (STOKER, ["solver.flux=augmented"], 12, 0.7, 0.09),
    (STOKER, ORDER_1, 10, 0.95, 0.055),
    (STOKER, [*ORDER_1, "solver.flux=augmented"], 10, 0.95, 0.045),
    pytest.param(STOKER, ORDER_1, 12, 0.95, 0.025, marks=pytest.mark.full),
    (RITTER, ["solver.flux=rusanov"], 12, 0.5, 0.135),
    (RITTER, ["solver.flux=augmented"], 12, 0.6, 0.09),
    (RITTER, ORDER_1, 10, 0.8, 0.056),
    (RITTER, [*ORDER_1, "solver.flux=augmented"], 10, 0.8, 0.044),
    pytest.param(RITTER, ORDER_1, 12, 0.95, 0.027, marks=pytest.mark.full),
], ids=named)
def test_errors_of_a_dam_break_fall_with_the_size_of_cells(swe, dam, words, fine_depth,
                                                           least_rate, most):
    """Stoker's and Ritter's: the mean error in m of water 10 m deep, and the order by which it
    falls when cells are half as large."""
    coarse, fine = (swe(PLANAR, *dam, *words, *depths(d, d), "grid.shore=false", "time.end=20",
                        "--error") for d in (fine_depth - 2, fine_depth))
    assert fine["height-error-l1"] < most
    rate = math.log2(coarse["height-error-l1"] / fine["height-error-l1"])
    assert rate > least_rate


# Depth 0.1 m, in a fifth of the domain; amplitude half of it; one period, or half of one.
@pytest.mark.parametrize("surface, words, most", [
    ("false", ["solver.flux=rusanov", *depths(6, 12)], 2.2e-3),
    ("false", ["solver.flux=augmented", *depths(6, 12)], 1.1e-3),
    ("false", ["solver.dry_tolerance=1e-3", *ORDER_1, *depths(8, 8)], 1.1e-3),
    ("true", ["solver.flux=rusanov", *depths(10, 12)], 1e-3),
    ("true", ["solver.flux=augmented", *depths(10, 12)], 4.5e-4)],
    ids=named)
def test_thackers_basin_swings_as_it_should(swe, surface, words, most):
    result = swe("thacker", f"scenario.planar={surface}", *words, "time.end=2.243", "--error")
    assert result["height-error-l1"] < most


@pytest.mark.parametrize("words", [["solver.flux=rusanov"], ["solver.flux=augmented"]],
                         ids="-".join)
def test_an_adaptive_grid_is_nearly_as_good_as_a_fine_one(swe, words):
    fine = swe(PLANAR, *words, *depths(12, 12), "time.end=20", "--error")
    adaptive = swe(PLANAR, *words, *depths(6, 12), "time.end=20", "--error")
    assert adaptive["cell-steps"] < 0.8 * fine["cell-steps"]
    assert adaptive["height-error-l1"] < 1.06 * fine["height-error-l1"]


def test_single_precision_is_close_to_double(swe):
    double, single = (swe(PLANAR, *depths(6, 12), f"solver.precision={p}", "time.end=20", "--error")
                      for p in ("double", "single"))
    assert single["height-error-l1"] == pytest.approx(double["height-error-l1"], rel=1e-4)
    assert abs(single["water-change"]) < 1e-6
    assert single["water-m3"] == pytest.approx(double["water-m3"], rel=1e-6)


def test_steps_that_are_left_at_their_first_stage_are_counted(swe):
    words = ["dam_break", "scenario.depth=0", "time.steps=40", *depths(6, 10),
             "solver.stepping=ssp_rk2"]
    assert 0 < swe(*words, "solver.cfl=0.5")["euler-steps"] <= 40
    assert "euler-steps" not in swe(*words, "solver.cfl=0.2")


def test_local_steps_are_less_work_and_nearly_as_good(swe):
    words = ["thacker", *depths(12, 12), "time.end=2.243", "grid.split=128", "grid.join=32",
             "grid.every=32", "--error"]
    common = swe(*words)
    local = swe(*words, "solver.local_steps=true")
    assert local["cell-steps"] < 0.5 * common["cell-steps"]
    assert local["height-error-l1"] < 1.01 * common["height-error-l1"]
    assert abs(local["water-change"]) < 5e-14


@pytest.mark.parametrize("every", [3, 12])
def test_with_local_steps_waves_do_not_leave_their_fine_cells_either(swe, every):
    words = [PLANAR, *STOKER, "solver.flux=augmented", *depths(4, 12), "grid.split=64",
             "grid.join=16", f"grid.every={every}", "time.end=20", "--error"]
    common = swe(*words)
    local = swe(*words, "solver.local_steps=true")
    assert local["height-error-l1"] < 1.05 * common["height-error-l1"]


# --- the same, to the bit, however it is computed

CASES = {
    "dam": ["dam_break", "grid.max_depth=12", "time.steps=80"],
    "dam-order-1": ["dam_break", "grid.max_depth=12", "time.steps=40", *ORDER_1],
    "dam-single": ["dam_break", "grid.max_depth=12", "time.steps=80", "solver.precision=single"],
    "lake": ["lake", "grid.max_depth=12", "time.steps=40", "grid.wander=true"],
    "thacker-order-1": ["thacker", *depths(6, 10), "solver.dry_tolerance=1e-3", "time.steps=150",
                        *ORDER_1, "solver.flux=augmented"],
    "beach": ["beach", "time.steps=60", "solver.stepping=ssp_rk2"],
    "tsunami": ["tsunami", *depths(6, 12), "time.steps=40"],  # with friction
    "tsunami-order-1": ["tsunami", *depths(6, 10), "time.steps=30", *ORDER_1],
}
LOCAL = ["dam_break", "grid.max_depth=12", "time.steps=20", "solver.local_steps=true",
         "grid.split=256", "grid.join=64"]
FIRST = ("dam", "thacker-order-1", "beach", "tsunami")  # the others are for --full


def cases(**more):
    return pytest.mark.parametrize("words", [
        pytest.param(words, id=name, marks=[] if name in (*FIRST, *more) else pytest.mark.full)
        for name, words in {**CASES, **more}.items()])


case = cases(**{"local-steps": LOCAL})


@case
def test_threads_and_their_kind_change_no_bit(swe, words):
    expected = swe(*words, threads=1).checksum
    for threads in (2, 5):
        for kind in ("tasks", "owner", "loop"):
            assert swe(*words, f"run.parallel={kind}", threads=threads).checksum == expected


def test_the_checksum_tells_where_water_is(swe):
    """Of the same water at another place, and of it in another order."""
    dam = ["dam_break", *depths(6, 6), "time.steps=0"]
    places = [(0.3, 0.35), (0.7, 0.35), (0.3, 0.65), (0.7, 0.65)]
    results = [swe(*dam, f"scenario.x={x}", f"scenario.y={y}") for x, y in places]
    assert len({result["water-m3"] for result in results}) == 1
    assert len({result.checksum for result in results}) == len(places)


@cases()
def test_clusters_change_no_bit(swe, words):
    expected = swe(*words).checksum
    for split, join in ((100000, 50000), (200, 50), (7, 3), (2, 0)):
        assert swe(*words, f"grid.split={split}", f"grid.join={join}").checksum == expected


@case
def test_the_width_of_vectors_changes_no_bit(swe, words):
    results = [swe(*words, more={"SWE_VECTOR_BYTES": n}) for n in ("16", "32", "64")]
    assert len({result.checksum for result in results}) == 1


@case
def test_ranks_change_no_bit(swe, ranks, words):
    expected = swe(*words, "run.cut=2").checksum
    for n in (2, 3, 4):
        assert swe(*words, "run.cut=2", by=ranks(n)).checksum == expected


@case
@pytest.mark.parametrize("progress", ["none", "test", "late"])
def test_messages_that_are_sent_early_change_no_bit(swe, ranks, words, progress):
    """With enclaves and skeletons of all kinds in each rank."""
    words = [*words, "run.cut=2", *([] if words == LOCAL else ["grid.split=128", "grid.join=32"])]
    expected = swe(*words).checksum
    for kind in ("tasks", "owner", "loop"):
        early = [*words, "run.enclaves=on", f"run.progress={progress}", f"run.parallel={kind}"]
        for n, threads in ((1, 5), (2, 2), (3, 1), (4, 2)):
            assert swe(*early, threads=threads, by=ranks(n)).checksum == expected


@case
def test_tasks_that_messages_make_ready_change_no_bit(swe, swe_program, ranks, make_variable,
                                                      words):
    words = [*words, "run.cut=2", *([] if words == LOCAL else ["grid.split=128", "grid.join=32"])]
    expected = swe(*words).checksum
    words += ["run.enclaves=on", "run.parallel=tasks", "run.progress=trigger"]
    of = swe_program("swe_trigger")
    for n, threads in ((1, 5), (2, 2), (3, 1)):
        assert swe(*words, threads=threads, by=ranks(n), of=of).checksum == expected
    if make_variable("GCC_SOURCE"):
        assert swe(*words, by=ranks(3, managed=True), of=of).checksum == expected


def test_a_program_without_such_tasks_says_where_they_are(swe):
    done = swe("lake", "run.enclaves=on", "run.parallel=tasks", "run.progress=trigger", check=False)
    assert done.returncode == 2
    assert "swe_trigger" in done.stderr


@pytest.mark.parametrize("words", [*(CASES[name] for name in ("dam", "dam-order-1", "beach",
                                                              "tsunami")), LOCAL],
                         ids=["dam", "dam-order-1", "beach", "tsunami", "local-steps"])
def test_uneven_parts_of_ranks_change_no_bit(swe, ranks, words):
    expected = swe(*words, "run.cut=1").checksum
    squares = 4 if words[0] == "beach" else 1
    for eighths in ([6, 1, 1], [1, 2, 5]):
        parts = [squares * many for many in eighths]
        assert swe(*words, "run.cut=1", f"run.parts={parts}", by=ranks(3)).checksum == expected


@cases()
def test_the_cut_changes_no_bit(swe, words):
    assert len({swe(*words, f"run.cut={cut}").checksum for cut in (0, 1, 3)}) == 1


@pytest.mark.parametrize("mpi", ["mpich", pytest.param("openmpi", marks=pytest.mark.full)],
                         indirect=True)
@pytest.mark.parametrize("words", [CASES["dam"], CASES["tsunami"]], ids=["dam", "tsunami"])
def test_no_mpi_changes_a_bit(swe, mpi, words):
    alone = swe(*words, "run.cut=1").checksum
    by, of = mpi.run(3), mpi.program("apps/swe/swe")
    for how in ([], ["run.enclaves=on", "run.progress=test"],
                ["run.enclaves=on", "run.progress=late"]):
        assert swe(*words, "run.cut=1", *how, by=by, of=of).checksum == alone


@pytest.mark.parametrize("enclaves", ["off", "on"])
@pytest.mark.parametrize("words", [CASES["dam"], CASES["dam-order-1"], LOCAL],
                         ids=["dam", "dam-order-1", "local-steps"])
def test_cores_that_come_and_go_change_no_bit(swe, invade, ranks, make_variable, tmp_path, words,
                                              enclaves):
    """With more clusters than threads, so that a core which comes finds something to do; and cores
    do come.  Where ranks are more than cores, they take turns instead."""
    if not make_variable("GCC_SOURCE"):
        pytest.skip("the runtime is not built: no source of libgomp")
    words = [*words, "run.cut=1", "grid.split=128", "grid.join=32"]
    alone = swe(*words).checksum
    words += [f"run.enclaves={enclaves}"]
    assert swe(*words, by=[invade, "--"]).checksum == alone
    assert swe(*words, by=ranks(3, managed=True)).checksum == alone
    report = tmp_path / "report.json"
    for kind in ("tasks", "owner", "loop"):
        by = [invade, "--emulate-cores=4", f"--report={report}", "--", *ranks(2)]
        assert swe(*words, f"run.parallel={kind}", by=by).checksum == alone
        job, = json.loads(report.read_text())["jobs"]
        assert sum(process["lends"] for process in job["processes"]) > 0


# --- what the resource manager is told

EAR = r"""#include <stdio.h>
int inv_announce_workload(double work)
{
    return fprintf(stderr, "announced %.0f\n", work) < 0 ? -1 : 0;
}
"""


def test_work_is_announced_before_the_first_step_and_with_each_change_of_the_grid(
        swe, tmp_path):
    ear = compile_text(tmp_path / "ear.so", EAR, *SHARED)
    run = swe("dam_break", *depths(8, 8), "time.steps=3", "grid.every=2", "run.announce=true",
              more={"LD_PRELOAD": str(ear)}, check=False)
    assert run.stderr.split() == ["announced", "1024"] * 2
    assert Result(run.stdout)["cells"] == 1024


# --- checkpoints

@case
def test_a_restart_changes_no_bit(swe, ranks, tmp_path, words):
    """On other numbers of threads and of ranks, and cut otherwise (which moves clusters, and so
    local steps); nor a byte of the gauges.  It is less work."""
    words = [word for word in words if not word.startswith("time.")]
    steps = 24 if words[0] != "dam_break" else 40
    out = [f"output.directory={tmp_path}", "run.cut=1"]
    at = swe(*words, f"time.steps={steps // 2}", "run.cut=1")["time"]
    whole = swe(*words, *out, f"output.checkpoint_every={at * 0.99}", f"time.steps={steps}")
    gauges = {file: file.read_bytes() for file in tmp_path.glob("gauge-*.csv")}
    assert len(gauges) == (4 if words[0] == "tsunami" else 0)
    other_cut = 1 if "solver.local_steps=true" in words else 3
    for cut, how, early in ((1, {"threads": 5}, "off"), (other_cut, {"by": ranks(3)}, "off"),
                            (1, {"by": ranks(2)}, "on")):
        again = swe(*words, *out, f"time.steps={steps}", f"run.cut={cut}", "--restart",
                    f"run.enclaves={early}", **how)
        assert again.checksum == whole.checksum
        assert again["time"] == whole["time"]
        assert again["cell-steps"] < 0.7 * whole["cell-steps"]
        assert all(file.read_bytes() == before for file, before in gauges.items())


@pytest.mark.parametrize("cut", [0, 2, 5])
def test_a_restart_may_be_cut_for_more_ranks_or_fewer(swe, ranks, tmp_path, cut):
    words = ["dam_break", *depths(5, 8), f"output.directory={tmp_path}", "time.steps=8",
             "run.cut=2"]
    whole = swe(*words, "output.checkpoint_every=0.7")
    again = swe(*words, "--restart", f"run.cut={cut}", by=ranks(3 if cut == 0 else 6))
    assert again.checksum == whole.checksum
    assert again["cell-steps"] < whole["cell-steps"]


def test_a_restart_may_have_other_parts_and_those_of_other_ranks_are_told(swe, ranks, tmp_path):
    words = ["dam_break", *depths(5, 8), f"output.directory={tmp_path}", "time.steps=8",
             "run.cut=1"]
    whole = swe(*words, "output.checkpoint_every=0.7", "run.parts=[6, 1, 1]", by=ranks(3))
    for parts, n in (([1, 6, 1], 3), ([1, 7], 2), ([], 4)):
        again = swe(*words, "--restart", f"run.parts={parts}", by=ranks(n))
        assert again.checksum == whole.checksum
        assert again["cell-steps"] < whole["cell-steps"]
    done = swe(*words, "--restart", "run.parts=[6, 1, 1]", by=ranks(2), check=False)
    assert done.returncode == 2
    assert re.fullmatch(r"swe: .*\.toml: run\.parts has 3 numbers for 2 ranks: must be 2 integers "
                        r"from 1 to 7, together 8, or \[\] for equal numbers\n", done.stderr)


def test_a_restart_without_a_checkpoint_says_so(swe, tmp_path):
    done = swe("dam_break", f"output.directory={tmp_path}", "--restart", check=False)
    assert done.returncode != 0
    assert str(tmp_path) in done.stderr


@pytest.mark.parametrize("end, why", [("time.end=1", "time.end = 1"),
                                      ("time.steps=4", "time.steps = 4")])
def test_a_restart_beyond_the_end_says_that_there_is_nothing_to_do(program, scenarios, run_program,
                                                                   tmp_path, end, why):
    words = [program, scenarios / "dam_break.toml", *depths(5, 8), f"output.directory={tmp_path}"]
    run_program([*words, "time.end=3", "output.checkpoint_every=1"])
    done = run_program([*words, "--restart", end])
    assert re.search(r"^swe: nothing to do: the checkpoint is of step \d+ at 3\.0+ s, and the run "
                     f"ends with {why}$", done.stderr, re.M)
    assert "nothing to do" not in run_program([*words, "--restart", "time.end=4"]).stderr


def test_a_restart_of_another_simulation_says_so(swe, tmp_path):
    words = ["dam_break", *depths(5, 8), f"output.directory={tmp_path}"]
    swe(*words, "time.steps=8", "output.checkpoint_every=1e-3")
    done = swe(*words, "--restart", "scenario.x=0.4", check=False)
    assert done.returncode != 0
    assert "scenario.x" in done.stderr


@pytest.mark.parametrize("n", [0, 2])
def test_a_new_run_does_not_replace_one_with_checkpoints_unasked(swe, ranks, tmp_path, n):
    by = ranks(n) if n else ()
    words = ["dam_break", *depths(5, 8), f"output.directory={tmp_path}", "time.steps=8",
             "output.checkpoint_every=1e-3"]
    swe(*words, by=by)
    before = files_in(tmp_path)
    done = swe(*words, "scenario.x=0.4", by=by, check=False)
    assert done.returncode == 2
    assert f"{tmp_path}: has a checkpoint, of step 8: --restart goes on" in done.stderr
    assert {file: file.read_bytes() for file in before} == before
    other = swe(*words, "scenario.x=0.4", "time.steps=4", "--overwrite", by=by)
    assert {path.name for path in tmp_path.glob("checkpoint-*")} == {"checkpoint-3",
                                                                     "checkpoint-4"}
    again = swe(*words, "scenario.x=0.4", "time.steps=4", "--restart", by=by)
    assert again.checksum == other.checksum


def files_in(directory):
    return {file: file.read_bytes() for file in directory.rglob("*") if file.is_file()}


@pytest.mark.parametrize("n", [0, 2])
def test_a_restart_does_not_replace_the_files_of_another_run(swe, ranks, tmp_path, n):
    """It goes on in a directory of its own, where it begins all files."""
    by = ranks(n) if n else ()
    words = ["tsunami", *depths(5, 8), "output.checkpoint_every=1", "output.vtu_every=1"]
    here, there, new = (f"output.directory={tmp_path / name}" for name in ("a", "b", "c"))
    whole = swe(*words, here, "time.steps=8", by=by)
    swe(*words, there, "scenario.lon0=144", "time.steps=12", by=by)
    for checkpoint in (tmp_path / "a", tmp_path / "a/checkpoint-8", f"{tmp_path}/a/checkpoint-8/"):
        before = files_in(tmp_path)
        done = swe(*words, there, "time.steps=10", f"--restart={checkpoint}", by=by, check=False)
        assert done.returncode == 2
        assert f"{tmp_path}/b: has a checkpoint, of step 12, and {checkpoint} is of " in done.stderr
        assert len(re.findall("^swe: ", done.stderr, re.M)) == 1
        assert files_in(tmp_path) == before
    swe(*words[:-2], "output.vtu_every=1", new, "time.steps=4", by=by)  # without checkpoints
    swe(*words, new, "time.steps=10", f"--restart={tmp_path / 'a'}", by=by)
    for file in (tmp_path / "c").glob("gauge-*.csv"):
        assert rows(file)[0]["time"] == pytest.approx(whole["time"], rel=1e-8)
    assert (tmp_path / "c/tsunami.pvd").read_text().count("<DataSet") == 3
    for checkpoint in (f"{tmp_path}/a/checkpoint-8/", tmp_path / "a"):  # its own files go on
        swe(*words, here, "time.steps=10", f"--restart={checkpoint}", by=by)
        assert all(len(rows(file)) == 11 for file in (tmp_path / "a").glob("gauge-*.csv"))


@pytest.mark.parametrize("n", [0, 2])
def test_a_restart_from_an_earlier_checkpoint_leaves_no_later_ones(swe, ranks, tmp_path, n):
    """Also one that comes to no checkpoint of its own: the next one goes on where it was, and
    gauges and frames have all times."""
    by = ranks(n) if n else ()
    words = ["tsunami", *depths(5, 8), "output.vtu_every=1", f"output.directory={tmp_path}"]
    whole = swe(*words, "output.checkpoint_every=1", "time.steps=8", by=by)
    assert {path.name for path in tmp_path.glob("checkpoint-*")} == {"checkpoint-7",
                                                                     "checkpoint-8"}
    gauges = {file: file.read_bytes() for file in tmp_path.glob("gauge-*.csv")}
    frames = (tmp_path / "tsunami.pvd").read_text()
    assert len(gauges) == 4 and frames.count("<DataSet") == 9
    swe(*words, f"--restart={tmp_path}/checkpoint-7", "time.steps=7", by=by)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-7"]
    again = swe(*words, "--restart", "time.steps=8", by=by)
    assert again.checksum == whole.checksum
    assert all(file.read_bytes() == before for file, before in gauges.items())
    assert (tmp_path / "tsunami.pvd").read_text() == frames


def test_checkpoints_are_there_until_the_run_that_replaces_them_can_start(swe, ranks, tmp_path):
    words = ["dam_break", *depths(5, 8), f"output.directory={tmp_path}", "time.steps=8",
             "output.checkpoint_every=1e-3"]
    swe(*words)
    before = files_in(tmp_path)
    done = swe(*words, "--overwrite", by=ranks(5), check=False)  # more ranks than parts
    assert done.returncode != 0
    assert files_in(tmp_path) == before


def no_rows(gauge):
    gauge.write_text("my thesis\n")


def no_file(gauge):
    gauge.unlink()
    gauge.mkdir()


@pytest.mark.parametrize("how, word, damage, said", [
    ("--restart={}/checkpoint-7", "output.raster_nx=9", None, "a raster of 8 x 8 points"),
    ("--restart={}/checkpoint-7", "output.arrival=0.2", None, "written with another configuration"),
    ("--restart={}/checkpoint-7", "time.steps=9", no_rows, "gauge-here.csv: not the rows of a ga"),
    ("--restart={}/checkpoint-7", "run.record=/nowhere/x", None, "run.record: cannot write /nowhe"),
    ("--overwrite", "run.record=/nowhere/x", None, "run.record: cannot write /nowhere/x."),
    ("--overwrite", "time.steps=9", no_file, "cannot write ")],
    ids=["raster", "maxima", "gauge", "record", "new record", "new gauge"])
@pytest.mark.parametrize("n", [0, 2])
def test_what_is_refused_takes_nothing_away(swe, ranks, scenarios, tmp_path, how, word, damage,
                                            said, n):
    """Checkpoints, frames and rows stay."""
    scenario, out, by = tmp_path / "dam.toml", tmp_path / "out", ranks(n) if n else ()
    scenario.write_text((scenarios / "dam_break.toml").read_text() +
                        '[[gauges]]\nname = "here"\nx = 300\ny = 350\n')
    words = [scenario, *depths(5, 8), f"output.directory={out}", "output.raster_nx=8",
             "output.raster_ny=8", "time.steps=8", *(f"output.{what}_every=1e-3" for what in (
                 "vtu", "raster", "maxima", "checkpoint"))]
    swe(*words)
    if damage:
        damage(out / "gauge-here.csv")
    before = files_in(out)
    done = swe(*words, word, how.format(out), by=by, check=False)
    assert done.returncode == 1
    assert said in done.stderr and len(re.findall("^swe: ", done.stderr, re.M)) == 1
    assert files_in(out) == before


def test_a_record_may_be_in_a_directory_that_is_made_for_other_files(swe, tmp_path):
    out = tmp_path / "new" / "out"
    swe("dam_break", *depths(5, 8), f"output.directory={out}", "output.raster_every=1",
        "output.raster_nx=8", "output.raster_ny=8", "time.steps=3", f"run.record={out}/record")
    assert list(out.glob("record*")) and (out / "dam_break.nc").exists()


def test_overwrite_leaves_a_collection_that_is_not_ours(swe, tmp_path):
    words = ["dam_break", *depths(5, 8), f"output.directory={tmp_path}", "time.steps=3"]
    swe(*words, "output.checkpoint_every=1e-3")
    other = tmp_path / "dam_break.pvd"
    other.write_text('<VTKFile type="Collection">\n<Collection/>\n</VTKFile>\n')
    swe(*words, "--overwrite")
    assert other.exists() and not list(tmp_path.glob("checkpoint-*"))


@pytest.mark.parametrize("n", [0, 2])
def test_a_restart_from_nowhere_is_told(swe, ranks, n):
    done = swe("dam_break", "--restart", by=ranks(n) if n else (), check=False)
    assert done.returncode == 2
    assert "--restart: output.directory is empty" in done.stderr
    assert len(re.findall("^swe: ", done.stderr, re.M)) == 1


@pytest.mark.parametrize("n", [0, 2])
def test_a_gauge_that_was_moved_is_not_gone_on_with(swe, ranks, scenarios, tmp_path, n):
    """Its file would have the water of two places; nothing is changed before that is told."""
    scenario, out, by = tmp_path / "dam.toml", tmp_path / "out", ranks(n) if n else ()

    def run(gauges, *more, check=True):
        scenario.write_text((scenarios / "dam_break.toml").read_text() + "".join(
            f'[[gauges]]\nname = "{name}"\nx = {x}\ny = 350\n' for name, x in gauges.items()))
        return swe(scenario, *depths(5, 8), f"output.directory={out}", *more, by=by, check=check)

    run({"a": 300, "b": 400}, "output.checkpoint_every=1e-3", "time.steps=8")
    before = files_in(out)
    done = run({"b": 400, "a": 300.5}, f"--restart={out}/checkpoint-7", check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"swe: {scenario}: gauge a is at x = 300.5, y = 350 now, and the rows of {out}/gauge-a.csv "
        "are of x = 300, y = 350: give it another name, set its place as it was, or move the file "
        "away\n")
    assert files_in(out) == before
    (out / "gauge-a.csv").rename(tmp_path / "a.csv")
    for _ in range(2):  # twice from one checkpoint, which knows nothing of these files
        run({"b": 400, "a": 300.5, "c": 300}, "--restart", "time.steps=10")
        assert [len(rows(out / f"gauge-{name}.csv")) for name in "abc"] == [3, 11, 3]


@pytest.mark.parametrize("place", [300, 300.5])
def test_a_gauge_that_was_left_out_does_not_come_back_with_a_gap(swe, scenarios, tmp_path, place):
    """Nor from elsewhere, of which the checkpoint between knows nothing."""
    scenario, out = tmp_path / "dam.toml", tmp_path / "out"
    text = (scenarios / "dam_break.toml").read_text()
    words = [scenario, *depths(5, 8), f"output.directory={out}", "output.checkpoint_every=1e-3"]
    gauge = '[[gauges]]\nname = "a"\nx = {}\ny = 350\n'
    scenario.write_text(text + gauge.format(300))
    swe(*words, "time.steps=4")
    scenario.write_text(text)
    swe(*words, "time.steps=6", "--restart")
    scenario.write_text(text + gauge.format(place))
    before = files_in(out)
    done = swe(*words, "time.steps=8", "--restart", check=False)
    assert done.returncode == 1
    assert f"{scenario}: gauge a: of the rows of {out}/gauge-a.csv the checkpoint" in done.stderr
    assert files_in(out) == before
    (out / "gauge-a.csv").rename(tmp_path / "before.csv")
    swe(*words, "time.steps=8", "--restart")
    assert len(rows(out / "gauge-a.csv")) == 3


@pytest.mark.parametrize("n", [0, 2])
def test_files_of_another_simulation_are_not_gone_on_with(swe, ranks, scenarios, tmp_path, n):
    """Files that are there when a run begins that does not write them."""
    scenario, out, by = tmp_path / "dam.toml", tmp_path / "out", ranks(n) if n else ()
    text = (scenarios / "dam_break.toml").read_text()
    gauge = '[[gauges]]\nname = "here"\nx = 300\ny = 350\n'
    words = [scenario, *depths(5, 8), f"output.directory={out}", "output.raster_nx=8",
             "output.raster_ny=8"]
    files = {f"output.{kind}_every=1e-3": out / f"dam_break{ending}" for kind, ending in (
        ("raster", ".nc"), ("vtu", ".pvd"), ("maxima", "-maxima.nc"))}
    scenario.write_text(text + gauge)
    swe(*words, "scenario.x=0.7", "time.steps=3", *files, by=by)
    scenario.write_text(text)
    swe(*words, "time.steps=8", "output.checkpoint_every=1e-3", by=by)
    for word, file in files.items():
        before = files_in(out)
        done = swe(*words, word, "time.steps=9", "--restart", by=by, check=False)
        assert done.returncode == 1
        assert f"{file}: written with another configuration: line " in done.stderr
        assert "is 'scenario.x = 0.7' there and 'scenario.x = 0.3' now; " in done.stderr
        assert files_in(out) == before
        file.unlink()
    scenario.write_text(text + gauge)
    before = files_in(out)
    done = swe(*words, "time.steps=9", "--restart", by=by, check=False)
    assert done.returncode == 1
    assert f"of the rows of {out}/gauge-here.csv the checkpoint knows nothing: " in done.stderr
    assert files_in(out) == before
    (out / "gauge-here.csv").unlink()
    swe(*words, *files, "time.steps=9", "--restart", by=by)
    assert all(file.exists() for file in files.values())


@pytest.mark.parametrize("n", [0, 2])
def test_what_is_begun_anew_leaves_no_files_of_others(swe, ranks, scenarios, tmp_path, n):
    """Files of other programs stay."""
    scenario, out, by = tmp_path / "dam.toml", tmp_path / "out", ranks(n) if n else ()
    text = (scenarios / "dam_break.toml").read_text()
    scenario.write_text(text + '[[gauges]]\nname = "here"\nx = 300\ny = 350\n')
    words = [*depths(5, 8), f"output.directory={out}", "time.steps=2"]
    swe(scenario, *words, *(f"output.{kind}_every=1" for kind in (
        "raster", "vtu", "maxima", "checkpoint")), by=by)
    left = {file.name for file in out.glob("*.*vtu")}
    assert left and {file.name for file in out.iterdir()} >= {
        "dam_break.nc", "dam_break-maxima.nc", "dam_break.pvd", "gauge-here.csv"}
    for name in ("gauge-mine.csv", "lake.nc", "lake.pvd"):
        (out / name).write_text("mine\n")
        left.add(name)
    scenario.write_text(text)
    swe(scenario, *words, "--overwrite", by=by)
    assert {file.name for file in out.iterdir()} == left
    for name in ("dam_break.nc", "dam_break.pvd"):  # of a name that they could have
        (out / name).write_text("mine\n")
        left.add(name)
    swe(scenario, *words, "--overwrite", by=by)
    assert {file.name for file in out.iterdir()} == left


MAXIMA = ["output.checkpoint_every=1", "output.raster_nx=8", "output.raster_ny=8"]


def test_maxima_that_are_not_of_the_whole_run_say_so(program, scenarios, run_program, tmp_path):
    words = [program, scenarios / "dam_break.toml", *depths(5, 8), *MAXIMA,
             f"output.directory={tmp_path}"]
    run_program([*words, "time.end=3"])
    again = [*words, "--restart", "output.maxima_every=1"]
    for end in (5, 7):  # without a file, and with one
        said = run_program([*again, f"time.end={end}"]).stderr
        found = re.search(r"^swe: maxima: from ([\d.]+) s on, not from the beginning", said, re.M)
        assert float(found.group(1)) >= 2
    assert run_program([*again, "time.end=8", "-q"]).stderr == ""
    assert "maxima:" not in run_program([*words, "--overwrite", "output.maxima_every=1",
                                         "time.end=3"]).stderr
    assert "maxima:" not in run_program([*again, "time.end=4"]).stderr


def test_maxima_stay_true_when_a_run_goes_on_from_before_their_last_look(
        program, scenarios, run_program, tmp_path):
    """The run ends before that look."""
    words = [program, "-q", scenarios / "dam_break.toml", *depths(5, 8), *MAXIMA,
             f"output.directory={tmp_path}"]
    look = [*words, "output.maxima_every=1"]

    def dump():
        return run_program(["ncdump", tmp_path / "dam_break-maxima.nc"]).stdout

    def go_on(first, program_words):
        """Goes on for one step; returns the time."""
        step = int(first.name.split("-")[1])
        said = run_program([*program_words, f"time.steps={step + 1}", f"--restart={first}"])
        return float(re.search(r"^time (\S+)", said.stdout, re.M)[1])

    def earliest():
        return min(tmp_path.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))

    run_program([*words, "time.end=3"])  # no maxima
    copy = tmp_path / "earlier" / earliest().name
    shutil.copytree(earliest(), copy)
    run_program([*look, "time.steps=30", "--restart"])
    last = re.search(r":until = ([\d.]+)", dump())[1]
    since = float(re.search(r":since = ([\d.]+)", dump())[1])
    assert "gaps" not in dump()
    assert since < go_on(earliest(), look) < float(last)
    assert f":until = {last}" in dump() and "gaps" not in dump()
    # A run that looks from an earlier time on, and ends before the former :since, leaves a gap.
    shutil.copytree(copy, tmp_path / copy.name, dirs_exist_ok=True)
    time = go_on(tmp_path / copy.name, [*look, "output.maxima_every=0.01"])
    begin, end = map(float, re.search(r":gaps = ([\d.]+), ([\d.]+)", dump()).groups())
    assert begin == pytest.approx(time) and begin < end == since
    assert f":until = {last}" in dump()


def test_maxima_with_a_gap_say_so(program, scenarios, run_program, mpiexec, tmp_path):
    """Each time again, unless what is missing was looked at after all.  There is none where looks
    are rarer than steps, or than checkpoints."""
    words = [program, scenarios / "dam_break.toml", *depths(5, 8), *MAXIMA,
             f"output.directory={tmp_path}"]

    def gap(*more):
        said = run_program([*words, *more]).stderr
        found = re.findall(r"^swe: maxima: no look is known from ([\d.]+) to ([\d.]+) s$", said,
                           re.M)
        assert said.count("maxima:") == len(found) <= 1
        return tuple(float(number) for number in found[0]) if found else None

    assert gap("time.end=4", "output.maxima_every=2") is None
    first = min(tmp_path.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    copy = tmp_path / "earlier" / first.name
    shutil.copytree(first, copy)
    assert gap("time.end=5.5", "output.maxima_every=2", "--restart") is None
    assert gap("time.end=8", "--restart") is None  # no maxima
    begin, end = gap("time.end=10", "output.maxima_every=1", "--restart")
    assert begin == 5.5 and end == 8
    words = [mpiexec, "-n", 2, *words]
    assert gap("time.end=11", "output.maxima_every=1", "--restart") == (begin, end)
    shutil.copytree(copy, tmp_path / first.name)
    assert gap("time.end=12", "output.maxima_every=1", f"--restart={tmp_path / first.name}") is None
    assert gap("time.end=13", "output.maxima_every=1", "--restart") is None


def test_maxima_without_a_look_have_no_gap(program, scenarios, run_program, tmp_path):
    """They were written with a checkpoint, before they were due."""
    words = [program, scenarios / "dam_break.toml", *depths(5, 8), *MAXIMA,
             f"output.directory={tmp_path}"]
    run_program([*words, "time.end=3"])
    again = [*words, "--restart", "output.maxima_every=100"]
    killed = subprocess.Popen([*again, "time.end=1e6"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "dam_break-maxima.nc").exists():
            assert killed.poll() is None and time.monotonic() < end
            time.sleep(0.01)
    finally:
        killed.kill()
        killed.wait()
    said = run_program([*again, "time.steps=1"]).stderr
    assert "no look" not in said and "inf" not in said


@pytest.mark.parametrize("other, said", [
    ("scenario.x=0.4", "is 'scenario.x = 0.4' there and 'scenario.x = 0.3' now"),
    ("output.arrival=0.2", "is 'output.arrival = 0.2' there and 'output.arrival = 0.1' now")])
def test_maxima_of_another_run_are_not_gone_on_with(swe, ranks, tmp_path, other, said):
    words = ["dam_break", *depths(5, 8), *MAXIMA, f"output.directory={tmp_path}"]
    swe(*words, other, "output.maxima_every=1", "output.checkpoint_every=0", "time.end=3")
    swe(*words, "time.end=3")
    before = (tmp_path / "dam_break-maxima.nc").read_bytes()
    done = swe(*words, "output.maxima_every=1", "--restart", by=ranks(2), check=False)
    assert done.returncode == 1
    assert said in done.stderr and "; take it away to begin anew" in done.stderr
    assert len(re.findall("^swe: ", done.stderr, re.M)) == 1
    assert (tmp_path / "dam_break-maxima.nc").read_bytes() == before


def faults(directory, slip_m):
    """A list of one sub-fault, of two digits of slip."""
    path = directory / "one.faults"
    path.write_text("x_km y_km depth_km strike dip rake slip_m length_km width_km\n"
                    f"0 0 20 200 12 90 {slip_m} 300 80\n")
    return f"scenario.faults={path}"


def test_a_restart_with_other_sub_faults_says_so(swe, tmp_path):
    """In a list of the same name and size."""
    words = ["tsunami", *depths(5, 8), f"output.directory={tmp_path}", "time.steps=8",
             "output.checkpoint_every=1"]
    swe(*words, faults(tmp_path, 20))
    swe(*words, faults(tmp_path, 20), "--restart")
    done = swe(*words, faults(tmp_path, 21), "--restart", check=False)
    assert done.returncode != 0
    assert "'sub-faults = 1 with CRC" in done.stderr


# --- tsunamis

def said(err):
    """Magnitude, and the least and the greatest rise of the bed, of what is said at the start."""
    found = re.search(r"^swe: earthquake: (\d+) sub-faults of .*, magnitude ([\d.]+); the bed "
                      r"moves by (-[\d.]+) to ([\d.]+) m$", err, re.M)
    return [float(number) for number in found.groups()]


def test_a_tsunami_says_what_it_read(run_program, program, scenarios, tmp_path):
    """And the list of sub-faults in the repository is the program's own, but for digits."""
    words = [program, scenarios / "tsunami.toml", *depths(5, 8), "time.steps=1"]
    listed = run_program(words).stderr
    own = run_program([*words, "scenario.faults="]).stderr
    assert f"of {scenarios / 'tohoku-like.faults'}," in listed
    assert "of the synthetic list," in own
    assert said(listed) == pytest.approx(said(own), rel=0.01)
    for err in (listed, own):
        for line in ("bathymetry: the synthetic basin; heights about ", "map: 133.8",
                     "grid: ", "gauges: not written"):
            assert f"\nswe: {line}" in err
    assert run_program([*words, "--quiet"]).stderr == ""
    checked = run_program([*words, "--check"])
    assert said(checked.stderr) == said(listed)
    assert run_program([*words, "--check", "--quiet"]).stderr == ""
    nonsense = tmp_path / "nonsense.faults"
    nonsense.write_text("nonsense")
    done = run_program([*words, f"scenario.faults={nonsense}", "--check"], check=False)
    assert done.returncode == 2
    assert "nonsense.faults:1: " in done.stderr


def test_sub_faults_of_another_place_are_told(run_program, program, scenarios, tmp_path):
    text = (scenarios / "tsunami.toml").read_text().split("[[gauges]]")[0]
    (tmp_path / "f.toml").write_text(text)
    words = [program, tmp_path / "f.toml", "--check",
             f"scenario.faults={scenarios / 'tohoku-like.faults'}"]
    told = "\nswe: earthquake: no sub-fault is in the domain"
    assert told not in run_program(words).stderr
    assert told in run_program([*words, "scenario.lon0=-72", "scenario.lat0=-36"]).stderr


# --- gauges

GAUGES = """name = "dam_break"
domain = { square = 1000, west = "open", east = "open" }
grid = { min_depth = 8, max_depth = 12, refine = 0.2, coarsen = 0.05 }
time = { end = 15 }
scenario = { planar = true, x = 0.5, depth = 0, inside = 10 }
solver = { flux = "augmented" }
gauges = [ { name = "dam", x = 500.1, y = 480 }, { name = "far", x = 20, y = 20 } ]
"""


def rows(file):
    with file.open() as f:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(f)]


def test_gauges_say_what_the_water_does_at_their_places(swe, ranks, tmp_path):
    """Ritter: at the dam the depth is 4/9 of what it was, at once and for ever."""
    scenario = tmp_path / "gauges.toml"
    scenario.write_text(GAUGES)
    result = swe(scenario, f"output.directory={tmp_path / 'one'}")
    dam, far = (rows(tmp_path / "one" / f"gauge-{name}.csv") for name in ("dam", "far"))
    assert len(dam) == result["steps"] + 1
    assert [row["time"] for row in dam] == sorted({row["time"] for row in dam})
    assert dam[-1]["time"] == pytest.approx(15)
    for row in dam:
        assert row["eta"] == row["h"]  # the bed is at 0
        if row["time"] > 3:
            assert row["h"] == pytest.approx(40 / 9, rel=0.06)
            assert row["hu"] == pytest.approx(40 / 9 * 2 / 3 * math.sqrt(98.1), rel=0.06)
    assert {row["h"] for row in far} == {10}
    swe(scenario, f"output.directory={tmp_path / 'three'}", by=ranks(3))
    for name in ("dam", "far"):
        one, three = (tmp_path / n / f"gauge-{name}.csv" for n in ("one", "three"))
        assert one.read_bytes() == three.read_bytes()


def test_order_1_carries_a_tsunami_further(swe, tmp_path):
    """Half as fine in each direction, it leaves more of the wave."""
    highest = []
    for depth, order in ((12, []), (10, ORDER_1)):
        out = tmp_path / str(depth)
        swe("tsunami", *depths(6, depth), *order, "time.end=2400", f"output.directory={out}")
        highest.append([max(row["eta"] for row in rows(out / f"gauge-{name}.csv"))
                        for name in ("shelf", "ocean")])
    (shelf, ocean), (further_shelf, further_ocean) = highest
    assert 1.2 * shelf < further_shelf < 8 and 1.5 * ocean < further_ocean < 5


@pytest.mark.parametrize("order", [0, 1])
def test_waves_between_walls_do_not_grow(swe, scenarios, tmp_path, order):
    """A swell of 0.1 m goes to and fro for a quarter of an hour, with the stepping by default."""
    scenario = tmp_path / "scenario.toml"
    scenario.write_text('gauges = [ { name = "here", x = 300, y = 350 } ]\n' +
                        (scenarios / "dam_break.toml").read_text())
    swe(scenario, *depths(8, 8), f"solver.order={order}", "scenario.inside=0.1",
        "scenario.radius=0.3", "time.end=800", f"output.directory={tmp_path}")
    assert max(abs(row["eta"]) for row in rows(tmp_path / "gauge-here.csv")) < 0.15


TWO_PLACES = """
gauges = [ { name = "near", x = 620, y = 480 }, { name = "far", x = 200, y = 800 } ]
"""


def surface_at(series, time):
    """Between the two rows around the time."""
    after = next(i for i, row in enumerate(series) if row["time"] >= time)
    first, second = series[max(after, 1) - 1], series[max(after, 1)]
    part = (time - first["time"]) / (second["time"] - first["time"])
    return first["eta"] + part * (second["eta"] - first["eta"])


# The last two: mean difference over time, in parts of the range; part of the work.
@pytest.mark.parametrize("name, words, depth, most, work", [
    ("dam_break", ["time.end=60"], 11, 0.035, 0.65),
    ("dam_break", ["time.end=60", *ORDER_1], 9, 0.006, 0.7),
    ("tsunami", ["time.end=2400"], 11, 0.004, 0.5)], ids=["dam", "dam-order-1", "tsunami"])
def test_gauges_of_an_adaptive_grid_are_nearly_those_of_a_fine_one(swe, scenarios, tmp_path, name,
                                                                   words, depth, most, work):
    scenario = tmp_path / "scenario.toml"
    text = (scenarios / f"{name}.toml").read_text()
    faults = scenarios / "tohoku-like.faults"
    scenario.write_text((TWO_PLACES if name == "dam_break" else "") +
                        text.replace(faults.name, str(faults)))
    fine, adaptive = (swe(scenario, *words, *depths(least, depth),
                          f"output.directory={tmp_path / str(least)}") for least in (depth, 6))
    assert adaptive["cell-steps"] < work * fine["cell-steps"]
    for file in (tmp_path / str(depth)).glob("gauge-*.csv"):
        expected, got = rows(file), rows(tmp_path / "6" / file.name)
        times = [expected[-1]["time"] * i / 200 for i in range(1, 200)]
        surface = [surface_at(expected, time) for time in times]
        off = sum(abs(surface_at(got, time) - s) for time, s in zip(times, surface)) / len(times)
        assert off < most * (max(surface) - min(surface))


# --- what is wrong is told

@pytest.mark.parametrize("words, message", [
    (["grid.max_dept=9"], "grid.max_depth"),
    (["grid.max_depth=99"], "from 0 to 47"),
    (["solver.flux=roe"], "rusanov"),
    (["grid.min_depth=30", "grid.max_depth=30"], "grid.min_depth = 30: makes 4294967296 cells"),
    (["--check", "domain.nx=1024", "domain.ny=1024", "grid.min_depth=10"], "makes 4294967296"),
    (["run.cut=9"], "run.cut = 9: must be at most grid.min_depth, 8"),
    (["solver.order=1", "solver.stepping=euler"],
     'solver.stepping = "euler": solver.order = 1 is unstable with it, at any cfl: set "ssp_rk2"'),
    (["solver.local_steps=true", "solver.order=1"], "solver.local_steps"),
    (["solver.local_steps=true", "solver.stepping=ssp_rk2"], "solver.local_steps"),
    (["solver.local_steps=true", "run.record=r"], "run.record = \"r\": not with solver.local"),
    (["--error"], "--error"),
    (["output.vtu_every=1"], "needs output.directory"),
    (["nonsense"], "KEY=VALUE")], ids=lambda value: value[0] if isinstance(value, list) else "")
@pytest.mark.parametrize("n", [0, 2])
def test_a_wrong_configuration_is_told_once_with_exit_code_2(swe, ranks, words, message, n):
    done = swe("dam_break", *words, by=ranks(n) if n else (), check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(re.findall("^swe: ", done.stderr, re.M)) == 1
    assert done.stdout == ""


@pytest.mark.parametrize("words, advice", [
    (["dam_break", "scenario.depth=0", "scenario.radius=1e-6"],
     "; raise scenario.depth, now 0, or scenario.radius, now 1e-06"),
    ([PLANAR, *RITTER, "scenario.x=0"], "; raise scenario.depth, now 0, or scenario.x, now 0")])
@pytest.mark.parametrize("n", [0, 2])
def test_a_simulation_without_water_is_refused(swe, ranks, tmp_path, words, advice, n):
    done = swe(*words, *depths(5, 8), f"output.directory={tmp_path / 'out'}",
               by=ranks(n) if n else (), check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f".toml: no cell has any water at time 0{advice}\n")
    assert len(re.findall("^swe: ", done.stderr, re.M)) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("n", [0, 2])
def test_a_record_that_cannot_be_written_is_told_once(swe, ranks, n):
    done = swe("dam_break", *depths(5, 8), "run.record=/nonexistent/x", by=ranks(n) if n else (),
               check=False)
    assert done.returncode == 1
    assert done.stderr == ("swe: run.record: cannot write /nonexistent/x.0: "
                           "No such file or directory\n")


def test_a_file_that_is_not_there_is_told(swe):
    done = swe("/nowhere/lake.toml", check=False)
    assert done.returncode == 2
    assert "/nowhere/lake.toml: No such file" in done.stderr


FAULTS = """lon,lat,depth_km,length_km,width_km,strike,dip,rake,slip_m
143 38 10 100 50 200 12 90 5
"""


@pytest.mark.parametrize("what", ["scenario", "faults", "checkpoint"])
def test_a_file_that_one_rank_cannot_read_stops_all(program, scenarios, mpiexec, run_program,
                                                    tmp_path, what):
    """One message, and no rank waits for the rank that has failed."""
    good = [program, "--quiet", scenarios / "tsunami.toml", "time.steps=1", *depths(5, 6)]
    bad = list(good)
    if what == "scenario":
        bad[2] = tmp_path / "missing.toml"
    elif what == "faults":
        (tmp_path / "faults").write_text(FAULTS)
        good.append(f"scenario.faults={tmp_path / 'faults'}")
        bad.append(f"scenario.faults={tmp_path / 'missing'}")
    else:
        run_program([*good, f"output.directory={tmp_path}", "output.checkpoint_every=1"])
        good.append(f"--restart={tmp_path}")
        bad.append(f"--restart={tmp_path / 'missing'}")
    more = ["--oversubscribe"] if "openmpi" in mpiexec else []
    done = run_program([mpiexec, *more, "-n", 1, *good, ":", "-n", 1, *bad], timeout=60,
                       check=False)
    assert done.returncode == (1 if what == "checkpoint" else 2)
    assert len(re.findall("^swe: .*missing", done.stderr, re.M)) == 1
    assert len(re.findall("^swe: ", done.stderr, re.M)) == 1


@pytest.mark.parametrize("words", [["output.vtu_every=1"], ["output.raster_every=1"],
                                   ["output.checkpoint_every=1"]], ids="-".join)
@pytest.mark.parametrize("n", [1, 3])
def test_a_directory_that_cannot_be_written_is_told_once(swe, ranks, tmp_path, words, n):
    (tmp_path / "file").write_text("no directory")
    done = swe("dam_break", *depths(5, 8), f"output.directory={tmp_path / 'file'}/out", *words,
               by=ranks(n), check=False)
    assert done.returncode == 1
    assert re.findall("^swe: cannot .*file/out", done.stderr, re.M)
    assert len(re.findall("^swe: ", done.stderr, re.M)) == 1


def test_more_ranks_than_parts_are_told(swe, ranks):
    done = swe("dam_break", by=ranks(5), check=False)
    assert done.returncode != 0
    assert "run.cut" in done.stderr


@pytest.mark.parametrize("words", [[], ["--frobnicate"], ["x.toml", "--restart", "--overwrite"]])
def test_wrong_usage_is_told(run_program, program, words):
    done = run_program([program, *words], check=False)
    assert done.returncode == 64  # EX_USAGE
    assert "--help" in done.stderr
