# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole programs of bench/programs, in small sizes, and the benchmark that runs them: their
results do not depend on ranks, threads or `invade`.  No time is looked at.
"""

import os
import shutil
import time

import beside
import never_slower
import own_programs
import pytest
import whole_programs
from common import BenchError, Context, Run, keep_line, parse_values
from whole_programs import Program, Shape

SHORT = {"hydro": ["8", "8"], "structured": ["10", "32"], "cg": ["20", "12"],
         "multizone": ["3", "64"], "sweep": ["2", "8"], "tree": ["50", "2"], "amr": ["25", "64"],
         "md": ["25", "6"], "wavefront": ["1", "8"]}
OWN = {program.name: program for program in own_programs.PROGRAMS}


def run_of(program, words, run_program, env=None):
    ran = run_program(words, env, timeout=100)
    return Run(program.name, 0, 0, parse_values(ran.stdout), ran.stdout)


@pytest.mark.parametrize("name", SHORT)
def test_a_whole_program_has_one_result_in_all_shapes(name, build, run_program):
    program, path = OWN[name], build / "bench/programs" / name
    if not path.exists() and name == "structured" and not shutil.which("mpifort.mpich"):
        pytest.skip("no mpifort.mpich (package libmpich-dev)")
    mpi = ["mpiexec.mpich", "-n"]
    shapes = [([], 1), ([], 2), ([], 5)]
    if program.ranks:
        shapes += [([*mpi, "2"], 1), ([*mpi, "3"], 2), ([build / "invade", "--", *mpi, "4"], None)]
    shapes += [([build / "invade", "--"], None), ([build / "invade", "--"], 5)]
    runs = [run_of(program, [*before, path, *SHORT[name]], run_program,
                   {"OMP_NUM_THREADS": str(threads)} if threads else {})
            for before, threads in shapes]
    for run in runs:
        assert run.values["seconds"] >= 0
        program.same(runs[0], run)
    assert set(OWN) == set(SHORT)


def of_checksum(text):
    return Run("a run", 0, 0, {} if text is None else {"checksum": text}, "")


@pytest.mark.parametrize(("one", "other", "tolerance", "equal"), [
    ("00ff", "00ff", 0, True), ("00ff", "00fe", 0, False), ("00ff", "00fe", 0.1, False),
    ("1.0e+02", "1.000001e+02", 0, False), ("1.0e+02", "1.000001e+02", 1e-5, True),
    ("1.0e+02", "1.1e+02", 1e-5, False), ("1", None, 0.1, False)])
def test_results_are_compared_as_the_program_says(one, other, tolerance, equal):
    program = Program("p", tolerance=tolerance)
    if equal:
        program.same(of_checksum(one), of_checksum(other))
        return
    with pytest.raises(BenchError, match="checksum"):
        program.same(of_checksum(one), of_checksum(other))


def shell(name, script):
    return Shape(name, ["sh", "-c", script])


def test_a_stock_shape_that_takes_too_long_is_not_the_best_and_not_waited_for(build, monkeypatch):
    monkeypatch.setattr(never_slower, "TRIALS", 1)
    program = Program("p", [shell("quick", "echo checksum 1"),
                            shell("slow", "sleep 0.3; echo checksum 1"),
                            shell("endless", "exec sleep 1000")])
    ctx = Context(build, 1, verbose=False)
    best, best_of = never_slower.find_best(ctx, program)
    assert best.name == "quick" and best_of["quick"] is best and set(best_of) == {"quick", "slow"}
    assert ctx.timeout_s == Context(build, 1).timeout_s


def test_a_managed_run_with_another_result_is_no_measurement(build):
    managed = shell("1", 'echo checksum ${INVASIVE_SOCKET:+2}')
    program = Program("p", [shell("1x1", "echo checksum 1")])
    with pytest.raises(BenchError, match="the checksum of p-invade-1 is|checksum of p-stock-1x1"):
        never_slower.row(Context(build, 1, verbose=False), program, managed,
                         program.shapes_stock[0], {})


def test_a_row_says_how_stock_does_with_as_many_ranks(build):
    program = Program("p", [shell("1x2", "echo checksum 1"),
                            shell("4x1", "sleep 0.5; echo checksum 1")])
    best, best_of = never_slower.find_best(Context(build, 1, verbose=False), program)
    found = never_slower.row(Context(build, 1, verbose=False), program,
                             shell("4", "echo checksum 1"), best, best_of)
    assert best.name == "1x2" and found.stock == "1x2"
    assert found.alike < 1 < found.ratio

def test_never_slower_ends_with_the_figures_of_its_programs(build, monkeypatch, capsys):
    short = own_programs.Own("tree")
    short.arguments = SHORT["tree"]

    class Missing(Program):
        def install(self, ctx):
            raise BenchError("no such package\nin two lines")

    broken = Program("broken", [shell("1x1", "exit 3")])
    programs = [broken, short, Missing("gone")]
    monkeypatch.setattr(never_slower, "all_programs", lambda: programs)
    figures = never_slower.never_slower(Context(build, 2, verbose=False))
    row, failed, alike, mean, worst = figures
    assert [f.name for f in figures] == ["never-slower-tree-1", "never-slower-failed",
                                         "never-slower-alike", "never-slower-mean", "never-slower"]
    assert row.value == pytest.approx(mean.value) == worst.value > 0 and alike.value > 0
    assert alike.note == "1 of 1 rows" or alike.value > never_slower.GOAL_EACH
    assert failed.value == 1 and not failed.reached
    assert failed.note == "broken failed: broken-stock-1x1: sh -c exit 3: exit code 3"
    assert mean.note == "1 rows; without gone: no such package"
    capsys.readouterr()


def test_learned_runs_a_program_until_its_team_is_known(build, monkeypatch, capsys):
    short = own_programs.Own("tree")
    short.arguments = SHORT["tree"]
    monkeypatch.setattr(own_programs, "PROGRAMS", [short])
    figures = never_slower.learned(Context(build, 2, verbose=False))
    assert [f.name for f in figures] == ["learned-tree-1", "learned-alike", "learned-mean",
                                         "learned"]
    assert figures[0].value > 0
    capsys.readouterr()


@pytest.mark.parametrize("name", SHORT)
def test_a_program_takes_part_in_the_shapes_that_are_compared(name, build):
    program = OWN[name]
    cores = len(os.sched_getaffinity(0))
    ctx = Context(build, 1, verbose=False)
    try:
        program.install(ctx)
    except BenchError:
        pytest.skip(f"{name} is not built")
    names = [shape.name for shape in program.shapes_stock]
    assert f"1x{cores}" in names and (not program.ranks or f"{cores}x1" in names)
    assert all(shape.env for shape in program.shapes_stock)
    assert whole_programs.CORES == cores
    assert [shape.name for shape in program.managed] == [
        f"{r}x{t}" if t else str(r) for r, t in program.ranks or ((1, None),)]


def test_a_benchmark_has_one_line_of_results_in_the_order_of_names(tmp_path):
    path = tmp_path / "results.jsonl"
    for name, value in [("swe", 1), ("balanced", 2), ("swe", 3)]:
        keep_line(path, {"benchmark": name, "value": value})
    assert path.read_text() == ('{"benchmark": "balanced", "value": 2}\n'
                                '{"benchmark": "swe", "value": 3}\n')


def test_each_thread_of_a_co_runner_counts_its_work(build):
    ctx = Context(build, pairs=1)
    machine = beside.Machine(ctx)
    with machine.co_runner(beside.CoRunner(2)) as units:  # waits until both have counted
        before = units()
        while units() == before:
            time.sleep(0.01)
        assert units() > before >= 2
