# SPDX-License-Identifier: GPL-3.0-or-later
"""apps/swe as a whole: is what it computes right, and is it the same however it is computed?

Errors are those of `--error`, against the scenario's exact solution: l1 is the mean over the whole
domain."""

import csv
import math
import re

import pytest

PLANAR = "dam_break_planar"
STOKER = ["scenario.depth=2", "scenario.inside=8"]
RITTER = ["scenario.depth=0", "scenario.inside=10"]
ORDER_1 = ["solver.order=1", "solver.stepping=ssp_rk2"]


def named(value):
    return "-".join(value) if isinstance(value, list) else str(value)


def depths(least, most):
    return [f"grid.min_depth={least}", f"grid.max_depth={most}"]


class Result(dict):
    """What came out: result["cells"] is a number, result.checksum is text."""

    def __init__(self, out):
        lines = [line.split() for line in out.splitlines()]
        super().__init__((line[0], line[1]) for line in lines if len(line) == 2)
        self.checksum = self.pop("checksum")

    def __getitem__(self, name):
        return float(super().__getitem__(name))


@pytest.fixture
def program(swe_program):
    return swe_program("swe")


@pytest.fixture
def scenarios(top):
    return top / "apps/swe/scenarios"


@pytest.fixture
def swe(program, scenarios, run_program):
    """swe(SCENARIO, KEY=VALUE..., threads=2, by=[...]) - the result; `by` is what starts it"""

    def run(scenario, *words, threads=2, by=(), of=program, check=True):
        file = scenario if str(scenario).endswith(".toml") else scenarios / f"{scenario}.toml"
        # threads that wait by spinning would keep each other off a busy machine's cores
        env = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        done = run_program([*by, of, "--quiet", file, *words], env, timeout=100, check=check)
        return Result(done.stdout) if check else done

    return run


@pytest.fixture
def ranks(mpiexec):
    """ranks(N) - the words that start N ranks of apps/swe/swe"""
    more = ["--oversubscribe", "--bind-to", "none"] if "openmpi" in mpiexec else []
    return lambda n: [mpiexec, *more, "-n", n]


# --- a lake at rest

@pytest.mark.parametrize("seed", [1, 5])
@pytest.mark.parametrize("method", [
    ["solver.flux=rusanov"], ["solver.flux=augmented"],
    ["solver.flux=augmented", "solver.stepping=ssp_rk2"],
    ["solver.flux=augmented", "solver.local_steps=true", "grid.split=128", "grid.join=32"],
    [*ORDER_1, "solver.flux=rusanov"], [*ORDER_1, "solver.flux=augmented"]], ids="-".join)
def test_lake_with_islands_stays_at_rest_on_a_grid_that_changes(swe, method, seed):
    lake = ["lake", *depths(6, 12), *method, f"scenario.seed={seed}", "scenario.slope_bed=2",
            "time.end=1000", "time.steps=120"]
    still = swe(*lake)
    result = swe(*lake, "grid.wander=true", "grid.every=2", "--error")
    assert result["cells"] > 1.2 * still["cells"]
    assert result["height-error-max"] < 1e-12
    assert result["momentum-error-max"] < 1e-12
    assert abs(result["water-change"]) < 1e-14


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


def test_local_steps_are_less_work_and_nearly_as_good(swe):
    words = ["thacker", *depths(12, 12), "time.end=2.243", "grid.split=128", "grid.join=32",
             "--error"]
    common = swe(*words)
    local = swe(*words, "solver.local_steps=true")
    assert local["cell-steps"] < 0.5 * common["cell-steps"]
    assert local["height-error-l1"] < 1.01 * common["height-error-l1"]
    assert abs(local["water-change"]) < 5e-14


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
}
LOCAL = ["dam_break", "grid.max_depth=12", "time.steps=20", "solver.local_steps=true",
         "grid.split=256", "grid.join=64"]
case = pytest.mark.parametrize("words", [*CASES.values(), LOCAL], ids=[*CASES, "local-steps"])


@case
def test_threads_and_their_kind_change_no_bit(swe, words):
    expected = swe(*words, threads=1).checksum
    for threads in (2, 5):
        for kind in ("tasks", "owner"):
            assert swe(*words, f"run.parallel={kind}", threads=threads).checksum == expected


@pytest.mark.parametrize("words", CASES.values(), ids=[*CASES])
def test_clusters_change_no_bit(swe, words):
    expected = swe(*words).checksum
    for split, join in ((100000, 50000), (200, 50), (7, 3), (2, 0)):
        assert swe(*words, f"grid.split={split}", f"grid.join={join}").checksum == expected


@case
def test_ranks_change_no_bit(swe, ranks, words):
    expected = swe(*words, "run.cut=2").checksum
    for n in (2, 3, 4):
        assert swe(*words, "run.cut=2", by=ranks(n)).checksum == expected


@pytest.mark.parametrize("words", CASES.values(), ids=[*CASES])
def test_the_cut_changes_no_bit(swe, words):
    assert len({swe(*words, f"run.cut={cut}").checksum for cut in (0, 1, 3)}) == 1


@pytest.mark.parametrize("words", [CASES["dam"], CASES["tsunami"]], ids=["dam", "tsunami"])
def test_no_mpi_changes_a_bit(swe, mpi, words):
    alone = swe(*words, "run.cut=1").checksum
    by = mpi.run(3)
    assert swe(*words, "run.cut=1", by=by, of=mpi.program("apps/swe/swe")).checksum == alone


@pytest.mark.parametrize("words", [CASES["dam"], CASES["dam-order-1"], LOCAL],
                         ids=["dam", "dam-order-1", "local-steps"])
def test_cores_that_come_and_go_change_no_bit(swe, invade, ranks, make_variable, words):
    if not make_variable("GCC_SOURCE"):
        pytest.skip("the runtime is not built: no source of libgomp")
    alone = swe(*words, "run.cut=1").checksum
    assert swe(*words, "run.cut=1", by=[invade, "--"]).checksum == alone
    for kind in ("tasks", "owner"):
        result = swe(*words, "run.cut=1", f"run.parallel={kind}", by=[invade, "--", *ranks(3)])
        assert result.checksum == alone


# --- checkpoints

@case
def test_a_restart_changes_no_bit(swe, ranks, tmp_path, words):
    """On other numbers of threads and of ranks."""
    words = [word for word in words if not word.startswith(("time.", "grid.wander"))]
    steps = 24 if words[0] != "dam_break" else 40
    out = [f"output.directory={tmp_path}", "run.cut=1"]
    at = swe(*words, f"time.steps={steps // 2}", "run.cut=1")["time"]
    whole = swe(*words, *out, f"output.checkpoint_every={at * 0.99}", f"time.steps={steps}")
    again = swe(*words, *out, f"time.steps={steps}", "--restart", threads=5)
    assert again.checksum == whole.checksum
    assert again["time"] == whole["time"]
    third = swe(*words, *out, f"time.steps={steps}", "--restart", by=ranks(3))
    assert third.checksum == whole.checksum


def test_a_restart_without_a_checkpoint_says_so(swe, tmp_path):
    done = swe("dam_break", f"output.directory={tmp_path}", "--restart", check=False)
    assert done.returncode != 0
    assert str(tmp_path) in done.stderr


def test_a_restart_of_another_simulation_says_so(swe, tmp_path):
    words = ["dam_break", *depths(5, 8), f"output.directory={tmp_path}"]
    swe(*words, "time.steps=8", "output.checkpoint_every=1e-3")
    done = swe(*words, "--restart", "scenario.x=0.4", check=False)
    assert done.returncode != 0
    assert "scenario.x" in done.stderr


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


# --- what is wrong is told

@pytest.mark.parametrize("words, message", [
    (["grid.max_dept=9"], "grid.max_depth"),
    (["grid.max_depth=99"], "from 0 to 47"),
    (["solver.flux=roe"], "rusanov"),
    (["run.cut=9"], "run.cut = 9: must be at most grid.min_depth, 8"),
    (["solver.local_steps=true", "solver.order=1"], "solver.local_steps"),
    (["solver.local_steps=true", "solver.stepping=ssp_rk2"], "solver.local_steps"),
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


def test_a_file_that_is_not_there_is_told(swe):
    done = swe("/nowhere/lake.toml", check=False)
    assert done.returncode == 2
    assert "/nowhere/lake.toml: No such file" in done.stderr


def test_more_ranks_than_parts_are_told(swe, ranks):
    done = swe("dam_break", by=ranks(5), check=False)
    assert done.returncode != 0
    assert "run.cut" in done.stderr


@pytest.mark.parametrize("words", [[], ["--frobnicate"]])
def test_wrong_usage_is_told(run_program, program, words):
    done = run_program([program, *words], check=False)
    assert done.returncode == 64  # EX_USAGE
    assert "--help" in done.stderr
