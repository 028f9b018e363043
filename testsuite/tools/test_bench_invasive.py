# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmarks of "rmd": their programs do what they say on any machine, in little time,
and the fuzzers of everything that reads bytes of others find nothing.  No time is looked at.
"""

import os
import re
import subprocess
import sys
import time

import chaos
import chaos_holds
import common
import fuzz
import pytest

from lib.manager.core_table import ANONYMOUS, ELSEWHERE, NOBODY

CHECKSUM = re.compile(r"^checksum ([0-9a-f]{16})$", re.MULTILINE)


# Inputs, and edges that these reach at least: more than half of what they do.  A target that does
# not get to its parser any more finds nothing.
REACHED = {"config": (2000, 120), "socket": (2000, 800), "table": (2000, 700), "trace": (2000, 400),
           "state": (500, 500), "remote_report": (2000, 100), "http": (2000, 40),
           "simulate": (2000, 120), "fd_holder": (2000, 110), "reply": (2000, 230),
           "machine": (2000, 150)}


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


def test_emulated_cells_have_the_result_of_their_program_and_phase_on_any_machine(
        cells, build, tmp_path, run_program):
    machine = tmp_path / "machine"
    machine.write_bytes(bytes(1 << 16))
    words = ["cells=40", "least=0.3", "cell-us=20", "cpus=4", f"machine={machine}", "serial=0.1"]

    def checksum(*others, under=()):
        ran = run_program([*under, cells, *words, *others], {"OMP_WAIT_POLICY": "passive"},
                          timeout=60)
        return CHECKSUM.search(ran.stdout).group(1)

    invade = [build / "invade", "--emulate-cores=4", "--"]
    programs = [["steps=20", "peak=0.2"], ["steps=20", "peak=0.8"], ["steps=21", "peak=0.2"]]
    stock = [checksum(*program) for program in programs]
    assert len(set(stock)) == 3
    assert [checksum(*program, "invade=nonblocking-left", under=invade)
            for program in programs] == stock


@pytest.mark.parametrize("name", ["invade-call", pytest.param("migrate", marks=pytest.mark.full),
                                  pytest.param("overhead", marks=pytest.mark.full)])
def test_bench_run_ends_with_the_figure_of_the_benchmark(
        name, cells, top, build, tmp_path, run_program):
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


@pytest.mark.parametrize("how", ["run", "checksum"])
def test_a_program_that_runs_unmanaged_is_no_measurement(build, how):
    """Its result is right, but its time is that of a stock run."""
    ctx = common.Context(build, 1, verbose=False)
    command = [str(build / "bin/invade"), "--socket=@nobody-listens-here", "--", "echo",
               "checksum 1"]
    with common.Programs() as programs, pytest.raises(common.BenchError, match="unmanaged"):
        if how == "run":
            ctx.run("ours", command, {})
        else:
            ctx.checksum("ours", programs.piped(command, {}))
    assert ctx.runs == []


@pytest.fixture
def build_with(build, tmp_path):
    """build_with(SCRIPT) - a build whose rmd is this, with the real one as $REAL"""

    def make(script):
        other = tmp_path / "build"
        (other / "bin").mkdir(parents=True)
        for name in ("apps", "lib", "invade", "rmctl"):
            (other / name).symlink_to(build / name)
        (other / "bin/rmctl").symlink_to(build / "bin/rmctl")
        rmd = other / "bin/rmd"
        rmd.write_text(f"#!/bin/sh\nREAL={build}/bin/rmd\n{script}\n")
        rmd.chmod(0o755)
        return other

    return make


def test_a_study_waits_for_an_rmd_that_takes_its_time(cells, top, build_with, tmp_path,
                                                      run_program):
    """Its programs would run unmanaged, and are started one after the other here."""
    build = build_with('sleep 1.5; exec "$REAL" "$@"')
    ran = run_program([sys.executable, top / "bench/run", "study", "--turns", "1", "--scale",
                       "0.01", "--only", "emulated,sequential", "--build", build],
                      {"INVASIVE_BENCH_WORK": str(tmp_path)}, timeout=110, check=False)
    assert ran.returncode in (0, 1), ran.stderr


@pytest.mark.parametrize(("script", "patience_s", "said"), [
    ("exit 3", 60, "exit code 3"),
    ("exec sleep 60", 0.2, "no answer after 0.2 s: .*is it running")])
def test_an_rmd_that_does_not_come_is_told(build_with, monkeypatch, script, patience_s, said):
    ctx = common.Context(build_with(script), 1)
    real = common.wait_for_answer
    monkeypatch.setattr(common, "wait_for_answer", lambda *a: real(*a, patience_s=patience_s))
    with pytest.raises(common.BenchError, match=said), common.resource_manager(ctx):
        pass


@pytest.mark.full
@pytest.mark.timeout(300)  # all its programs once, stock, and then a tenth of a minute
def test_a_short_chaos_finds_nothing_wrong(cells, top, build, run_program):
    ran = run_program([sys.executable, top / "bench/run", "chaos", "--minutes", "0.1", "--seed",
                       "1", "--build", build], timeout=290, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    names = [line.partition(":")[0] for line in ran.stdout.splitlines() if "(goal " in line]
    assert names == ["chaos-takeover", "chaos-takeover-median", "chaos"]
    assert ran.stdout.splitlines()[-1].startswith("chaos: 0.000 "), ran.stdout


def test_chaos_sees_a_thread_that_computes_where_another_sits():
    cpu = min(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", "import os\nos.sched_setaffinity(0, "
                              f"[{cpu}])\nprint(flush=True)\nwhile True: pass"],
                             stdout=subprocess.PIPE) for _ in range(2)]
    one, other = (process.pid for process in busy)
    try:
        for process in busy:
            process.stdout.readline()
        holds, found, epoch = chaos_holds.Holds(), [], 1
        end = time.monotonic() + 60
        while not found and time.monotonic() < end:
            found = holds.compare(f"{cpu} {one} {one} {epoch}", [one, other])
            time.sleep(0.05)
        assert len(found) == 1 and found[0].startswith(f"thread {other} of {other} ")
        holds = chaos_holds.Holds()
        end = time.monotonic() + 3
        while time.monotonic() < end:  # a core that changes hands
            epoch += 1
            assert holds.compare(f"{cpu} {one} {one} {epoch}", [one, other]) == []
            time.sleep(0.05)
        assert holds.looks > 0
        holds.stopped.add(other)  # it cannot know yet that it has lost its hold
        end = time.monotonic() + 3
        while time.monotonic() < end:
            assert holds.compare(f"{cpu} {one} {one} {epoch}", [one, other]) == []
            time.sleep(0.05)
        holds.compare(f"{cpu} {other} {other} {epoch}", [other])  # now it does
        end = time.monotonic() + 60
        while not (found := holds.compare(f"{cpu} {one} {one} {epoch}", [one, other])):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert len(found) == 1 and found[0].startswith(f"thread {other} of {other} ")
    finally:
        for process in busy:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.mark.parametrize("mine,others,lost", [
    ("0 0 -1 -1 0 -1 -1 0", "0 0 E -1 1 E -1 1", ""),
    ("0 0 -1 -1 0 -1 0 0", "0 0 E -1 1 E -1 1", "core 1"),  # still held
    ("0 0 -1 -1 0 -1 -1 0", "0 0 E -1 1 0 -1 0", "core 1"),  # in two tables
    ("0 0 -1 -1 0 E -1 1", "0 0 E -1 1 E -1 1", "core 1"),  # in none
    ("1 1 -1 -1 0 E -1 1", "0 0 E -1 1 0 -1 0", ""),
    ("1 0 -1 -1 0 E -1 1", "0 0 E -1 1 0 -1 0", "tokens"),
    ("1 2 -1 -1 0 E -1 1", "0 0 E -1 1 0 -1 0", "tokens")])
def test_chaos_sees_what_is_lost_of_cores_and_tokens(build, mine, others, lost):
    class Answers(chaos.Member):
        def __init__(self, answer):
            self.answer = answer.replace("E", str(ELSEWHERE))

        def ask(self, command):
            assert command == "table"
            return self.answer

    one = chaos.Chaos.__new__(chaos.Chaos)
    one.numbers = chaos.numbers_of(build)
    one.members, one.others = [Answers(mine)], [Answers(others)]
    assert one.lost().partition(":")[0] == lost


@pytest.fixture(scope="session")
def fuzzers(tmp_path_factory):
    return fuzz.programs(list(fuzz.LENGTH), tmp_path_factory.mktemp("fuzz"))


@pytest.mark.full
@pytest.mark.timeout(500)  # the first one compiles them all
@pytest.mark.parametrize("name", fuzz.LENGTH)
def test_arbitrary_bytes_break_no_parser(name, fuzzers, tmp_path, build):
    inputs, edges = REACHED[name]
    found = fuzz.search(name, fuzzers[name], inputs, 1, tmp_path, 100)
    assert found["failed"] == 0
    assert found["inputs"] >= inputs
    assert found["covered"] > edges


def test_made_up_trace_files_are_read_or_refused(build):
    found = fuzz.search_trace_files(build, 300, 1, 100)
    assert found["failed"] == 0
    assert found["inputs"] == 300
    assert 200 > found["taken"] > 60
    assert found["covered"] > found["edges"] * 0.7


def test_chaos_reads_a_core_table_as_members_print_it(build):
    assert chaos.numbers_of(build) == chaos.Numbers(NOBODY, ELSEWHERE, ANONYMOUS)
