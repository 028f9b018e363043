# SPDX-License-Identifier: GPL-3.0-or-later
"""Traces: no event of any core is missing, whichever process is killed; what invade-trace makes of
traces, and of files that are none."""

import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from lib.building.layout import CONSTANTS, STRUCTURES
from lib.building.small_programs import compile_text
from lib.machine import TWO_CORES
from lib.manager.member import Member
from lib.manager.rmd import Rmd
from lib.processes import processor_s
from lib.trace_tool import proven
from lib.waiting import eventually

IMBALANCE = ["apps/imbalance/imbalance", "--loads=1:9", "--work-ms=2", "--regions=4",
             "--units-per-ms=1000"]
WRITTEN = ["html", "chrome", "workload"]  # one file, of any name


class Hammered:
    """An rmd whose cores are fought for, and a trace of it."""

    def __init__(self, rmd, directory):
        self.build, self.file = rmd.build, directory / "hammer.trace"
        self.rmd = rmd
        self.children = []

    def rmctl(self, *words):
        return subprocess.run([self.build / "bin/rmctl", f"--socket={self.rmd.name}", *words],
                              capture_output=True, text=True, timeout=60, check=False)

    def hammer(self, threads, steps, seed):
        child = subprocess.Popen([self.build / "testsuite/tools/programs/trace_hammer",
                                  self.rmd.name,
                                  str(threads), str(steps), str(seed)], stdout=subprocess.PIPE,
                                 text=True)
        self.children.append(child)
        assert child.stdout.readline() == "joined\n"
        return child

    def close(self):
        for child in self.children:
            child.kill()
            child.stdout.close()
            child.wait()
        self.rmd.close()


@pytest.fixture
def hammered(build, tmp_path):
    """hammered(RMD=a private one) - see Hammered"""
    made = []

    def make(rmd=None):
        made.append(Hammered(rmd or Rmd(build, "--emulate-cores=4"), tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.sanitize
def test_no_event_is_lost_torn_or_reordered_when_many_threads_write(hammered, trace_tool):
    """More events than a ring has room for, from three threads of each of three processes."""
    fight = hammered()
    assert fight.rmctl("trace", "start", fight.file).returncode == 0
    children = [fight.hammer(3, 15000, seed) for seed in (1, 2, 3)]
    for child in children:
        assert child.wait(100) == 0
    stopped = fight.rmctl("trace", "stop")
    assert stopped.returncode == 0, stopped.stderr
    # At the least, whatever was taken has been given up as well.
    taken = sum(int(child.stdout.read()) for child in children)
    assert proven(trace_tool("check", fight.file)) > taken


@pytest.mark.sanitize
def test_no_event_is_lost_when_processes_are_killed_in_the_middle_of_it(hammered, trace_tool):
    """The next process gets the slot, and the ring, of the process that has died."""
    fight, chance = hammered(), random.Random(7)
    assert fight.rmctl("trace", "start", fight.file).returncode == 0
    for seed in range(8):
        child = fight.hammer(2, 10 ** 9, seed)
        if len(fight.children) > 2:
            victim = fight.children.pop(chance.randrange(2))
            victim.kill()
            victim.stdout.close()
            victim.wait()
        assert child.poll() is None
    assert fight.rmctl("trace", "stop").returncode == 0
    assert proven(trace_tool("check", fight.file)) > 100


def test_a_process_that_rings_for_the_reader_all_the_time_takes_little_of_a_processor(
        hammered, build, trace_tool):
    """A quarter of a processor, after the time granted at once; the trace ends on command."""
    fight = hammered()
    with contextlib.closing(Member(build, fight.rmd.name)) as member:
        assert member.join() == 0
        assert fight.rmctl("trace", "start", fight.file).returncode == 0
        before, begun = processor_s(fight.rmd.process), time.monotonic()
        assert int(member.ask("toll 1.5")) > 0
        spent, lasted = processor_s(fight.rmd.process) - before, time.monotonic() - begun
        stopped = fight.rmctl("trace", "stop")
        assert stopped.returncode == 0, stopped.stderr
    assert spent < 0.3 * lasted + 0.15, (spent, lasted)


def test_a_trace_begins_and_ends_while_processes_run(hammered, trace_tool, tmp_path):
    """Three traces one after the other: each has all changes between its first and last words."""
    fight = hammered()
    for seed in (1, 2):
        fight.hammer(2, 10 ** 9, seed)
    for number in range(3):
        file = tmp_path / f"{number}.trace"
        file.write_bytes(b"invtrace, an older and longer one" * 100000)
        started = fight.rmctl("trace", "start", file)
        assert started.returncode == 0, started.stderr
        for other in (tmp_path / "other", file):  # which stays as it is
            again = fight.rmctl("trace", "start", other)
            assert again.returncode == 1 and "already" in again.stderr
        stopped = fight.rmctl("trace", "stop")
        assert stopped.returncode == 0, stopped.stderr
        proven(trace_tool("check", file))
    again = fight.rmctl("trace", "stop")
    assert again.returncode == 1 and "no trace is being taken" in again.stderr


def test_what_came_of_a_command_for_a_trace_is_json(hammered, tmp_path):
    fight = hammered()
    for word, outcome in (("start", "done"), ("start", "refused"), ("stop", "done"),
                          ("stop", "refused")):
        done = fight.rmctl("--json", "trace", word, *[tmp_path / "a"] * (word == "start"))
        told = json.loads(done.stdout)
        assert (told["command"], told["outcome"]) == (f"trace {word}", outcome)
        assert done.returncode == (outcome != "done")
        assert (told["text"] == "") == (outcome == "done") and told["lost_events"] == 0


def test_a_file_that_rmd_cannot_be_sure_to_write_to_is_refused(hammered):
    """rmd would wait for the reader of a pipe."""
    fight = hammered()
    for file in ("/dev/null", "/dev/full"):
        done = fight.rmctl("trace", "start", file)
        assert done.returncode == 1 and "not a regular file" in done.stderr


def test_a_trace_is_not_written_over_what_is_no_trace(hammered, build, run_program, tmp_path):
    """As in "invade --trace=./solver input"."""
    solver, fight = tmp_path / "solver", hammered()
    for content in ("#!/bin/sh\nexit 0\n", "x"):
        solver.write_text(content)
        done = run_program([build / "bin/invade", f"--trace={solver}", "echo", "ran"], check=False)
        assert (done.returncode, done.stdout) == (125, "") and "no trace" in done.stderr
        done = fight.rmctl("trace", "start", solver)
        assert done.returncode == 1 and "no trace" in done.stderr
        assert solver.read_text() == content
    solver.write_text("")
    assert fight.rmctl("trace", "start", solver).returncode == 0


def test_of_a_trace_that_is_refused_no_new_file_stays(hammered, build, run_program, tmp_path):
    fight, new, old = hammered(), tmp_path / "new", tmp_path / "old"
    old.touch()
    assert fight.rmctl("trace", "start", fight.file).returncode == 0
    for file in (new, old):
        started = fight.rmctl("trace", "start", file)
        assert started.returncode == 1
        assert started.stderr.startswith(f"rmctl: no trace in {file}: ")
        for socket in (fight.rmd.name, f"@none-{os.getpid()}"):
            done = run_program([build / "bin/invade", f"--socket={socket}", f"--trace={file}",
                                "--", "echo", "ran"])
            assert done.stdout == "ran\n"
            assert (f"no trace in {file}: " in done.stderr) == (socket == fight.rmd.name)
        done = run_program([build / "bin/invade", f"--trace={file}", f"--report={tmp_path}",
                            "--", "echo", "ran"], check=False)
        assert (done.returncode, done.stdout) == (125, "")
        done = run_program([build / "bin/invade", "--cores=none", f"--trace={file}", "--", "true"],
                           check=False)
        assert done.returncode == 125
    assert old.exists() and not new.exists()
    assert fight.rmctl("trace", "stop").returncode == 0 and fight.file.stat().st_size


def test_a_trace_and_a_report_in_one_file_are_refused(build, run_program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refused(*options):
        done = run_program([build / "bin/invade", *options, "--", "echo", "ran"], check=False)
        assert (done.returncode, done.stdout) == (125, "")
        return done.stderr

    for first, second in (("a", "a"), ("a", "./a"), ("a", f"{tmp_path}/a")):
        assert "are one file" in refused(f"--report={first}", f"--trace={second}")
    assert list(tmp_path.iterdir()) == []
    Path("a").touch()
    os.link("a", "linked")
    os.symlink("a", "a.json")
    for off in ((), ("--off",)):
        for other in ("linked", "a.json"):
            assert "are one file" in refused(*off, f"--report={other}", "--trace=a")
    for empty in ("--report=", "--trace="):
        assert f"{empty}: the name of the file is empty" in refused(empty)


# --- programs

@pytest.fixture(scope="module")
def traced(build, make_variable, stock_env, tmp_path_factory):
    """A trace of the imbalance program, and what the program printed."""
    if not make_variable("MPIEXEC"):
        pytest.skip("configured without MPI")
    file = tmp_path_factory.mktemp("trace") / "imbalance.trace"
    command = [make_variable("MPIEXEC"), "-n", "2", str(build / IMBALANCE[0]), *IMBALANCE[1:],
               "--iterations=100"]
    done = subprocess.run([build / "bin/invade", TWO_CORES, f"--trace={file}", "--", *command],
                          env=stock_env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return file


def test_a_program_leaves_a_trace_that_proves_one_holder_of_each_core(traced, trace_tool):
    if len(os.sched_getaffinity(0)) > 1:
        assert proven(trace_tool("check", traced)) >= 4


def test_a_trace_tells_of_processes_waits_and_changes(traced, trace_tool):
    text = trace_tool("dump", traced).stdout
    for rank in (0, 1):
        assert re.search(rf"process \d+ \(imbalance, rank {rank} of 2\) joins", text)
    assert len(re.findall(r"process \d+ is gone", text)) == 2
    assert re.search(r"slot \d: core \d: holder", text)
    assert re.search(r"waited [\d.]+ us at site", text)
    times = [float(line.split()[0]) for line in text.splitlines()]
    assert times == sorted(times)


def test_invade_trace_says_of_which_version_it_is(build, trace_tool):
    of_invade = subprocess.run([build / "bin/invade", "--version"], capture_output=True, text=True,
                               timeout=60, check=True).stdout.split()[1]
    assert trace_tool("--version").stdout == f"invade-trace {of_invade}\n"


def test_pictures_are_png_or_svg(traced, trace_tool, tmp_path):
    trace_tool("picture", traced, "-o", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n")
    trace_tool("picture", traced, "-o", tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text()
    assert "<svg" in svg and "rank 0" in svg and "rank 1" in svg
    refused = trace_tool("picture", traced, "-o", tmp_path / "a.gif", check=False)
    assert refused.returncode == 2 and "png or .svg" in refused.stderr


def test_a_picture_of_rows_shows_one_run_above_another(traced, trace_tool, tmp_path):
    picture = tmp_path / "a.svg"
    trace_tool("picture", "--rows", "--above", traced, "--title=before", "--title=after", traced,
               "-o", picture)
    svg = picture.read_text()
    assert "before" in svg and "after" in svg and "rank 1" in svg and svg.count("core<") == 2
    refused = trace_tool("picture", "--rows", "--title=one", "--title=two", traced, check=False)
    assert refused.returncode == 2 and "2 titles for 1 traces" in refused.stderr
    refused = trace_tool("picture", "--above", traced, traced, check=False)
    assert refused.returncode == 2 and "--above needs --rows" in refused.stderr
    other = shutil.copy(traced, tmp_path / "other.png")
    refused = trace_tool("picture", "--rows", "--above", other, traced, "-o", other, check=False)
    assert refused.returncode == 2 and f"{other} is the trace itself" in refused.stderr


DOLLARS = """
import sys
import numpy as np
from invasive_trace import format as fmt, html, picture, series

def table(start, program):
    word, end = np.array([1 | 1 << 16], np.uint64), start + 10 ** 6
    return fmt.Table(start, True, False, np.arange(1), word, last=word, end_ns=end,
                     processes=[fmt.Process(0, 42, -1, 0, program, start, end)])

names = sys.argv[1:]
trace = fmt.Trace(0, 0, [table(10 ** 7 * i, name) for i, name in enumerate(names)], ended=True)
view = series.whole(trace)
assert picture.render(view, "png")[1:4] == b"PNG"
drawn, page = picture.render(view, "svg").decode(), html.page(trace, "a.trace")
print(f">{picture.title_of(view)}<" in drawn)  # the report has a picture of each table
print(*(f">{name} 42<" in text for name in names for text in (drawn, page)))
"""


def test_a_dollar_in_a_programs_name_is_a_dollar(ask_python):
    """Not the begin of a formula, whether the name is a valid formula or not."""
    found = ask_python(DOLLARS, r"run$\x$", "$1", "$y$", r"c:\$").split()
    assert found == ["True"] * 9


@pytest.mark.parametrize(("verb", "name"), [("picture", "a.png"), ("html", "a.html"),
                                            ("workload", "a.csv"),
                                            ("paraver", "a.prv"), ("paraver", "a.row")])
def test_the_trace_itself_is_not_written_over(traced, trace_tool, tmp_path, verb, name):
    trace = shutil.copy(traced, tmp_path / name)
    done = trace_tool(verb, trace, check=False)
    assert done.returncode == 2 and f"{trace} is the trace itself" in done.stderr
    assert trace.read_bytes() == traced.read_bytes() and list(tmp_path.iterdir()) == [trace]


def test_the_report_of_the_same_run_is_not_written_over(traced, trace_tool, tmp_path):
    """--report=run.json --trace=run.trace"""
    trace, report = shutil.copy(traced, tmp_path / "run.trace"), tmp_path / "run.json"
    report.write_text("report")
    done = trace_tool("chrome", trace)
    assert Path(done.stdout.strip()) == tmp_path / "run.chrome.json"
    assert report.read_text() == "report"


@pytest.mark.parametrize("verb", WRITTEN)
def test_devices_are_written_to_and_files_that_cannot_be_are_named(traced, trace_tool, tmp_path,
                                                                   verb):
    done = trace_tool(verb, traced, "-o", tmp_path / "none" / "a", check=False)
    assert done.returncode == 2
    assert done.stderr == (f"invade-trace: cannot write {tmp_path / 'none' / 'a'}: "
                           "No such file or directory\n")
    device = tmp_path / "device"
    os.mkfifo(device)
    with (tmp_path / "read").open("wb") as read, \
            subprocess.Popen(["cat", device], stdout=read) as reader:
        try:
            assert trace_tool(verb, traced, "-o", device).returncode == 0
            assert reader.wait(60) == 0
        finally:
            reader.kill()
    assert device.is_fifo() and (tmp_path / "read").stat().st_size > 100


@pytest.fixture
def empty(hammered):
    """A trace in which no process was."""
    fight = hammered()
    for words in (("start", fight.file), ("stop",)):
        assert fight.rmctl("trace", *words).returncode == 0
    return fight.file


@pytest.mark.parametrize("verb", [*WRITTEN, "paraver"])
def test_a_trace_that_is_refused_leaves_what_there_was(empty, trace_tool, tmp_path, verb):
    old = tmp_path / "old.prv"
    old.write_text("old")
    before = set(tmp_path.iterdir())
    for more in ([], ["-o", old]):
        done = trace_tool(verb, empty, *more, check=False)
        assert done.returncode == 2 and "no process" in done.stderr
    assert old.read_text() == "old" and set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("verb", WRITTEN)
def test_a_full_disk_leaves_what_there_was(traced, trace_tool, tmp_path, verb):
    old = tmp_path / "old"
    old.write_text("old")
    done = trace_tool(verb, traced, "-o", old, check=False, preexec_fn=lambda:
                      resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
    assert done.returncode == 2 and f"cannot write {old}: File too large" in done.stderr
    assert old.read_text() == "old" and list(tmp_path.iterdir()) == [old]


def test_a_full_disk_leaves_all_of_paravers_files(traced, trace_tool, tmp_path):
    old = {tmp_path / f"old{suffix}" for suffix in (".prv", ".pcf", ".row")}
    for file in old:
        file.write_text("old")
    done = trace_tool("paraver", traced, "-o", tmp_path / "old.prv", check=False,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600)))
    assert done.returncode == 2 and "cannot write" in done.stderr and not done.stdout
    assert set(tmp_path.iterdir()) == old and {file.read_text() for file in old} == {"old"}


BROKEN = """
import sys
from pathlib import Path
from invasive_trace import chrome, command

def begun(trace, out):
    out.write("[" * 100000)
    raise KeyboardInterrupt

chrome.write = begun
try:
    command.main(["chrome", sys.argv[1], "-o", sys.argv[2]])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_what_is_interrupted_in_the_middle_leaves_what_there_was(traced, ask_python, tmp_path):
    old = tmp_path / "old"
    old.write_text("old")
    assert ask_python(BROKEN, traced, old) == "interrupted\n"
    assert old.read_text() == "old" and list(tmp_path.iterdir()) == [old]


def test_chromes_json_has_a_track_for_each_core_and_one_holder_at_a_time(traced, trace_tool,
                                                                          tmp_path):
    trace_tool("chrome", traced, "-o", tmp_path / "a.json")
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    on_cores = [e for e in events if e.get("cat") == "core"]
    assert {e["name"] for e in on_cores} <= {"rank 0", "rank 1"} and on_cores
    for core in {e["tid"] for e in on_cores}:
        spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in on_cores if e["tid"] == core)
        for (_, end), (start, _) in zip(spans, spans[1:]):
            assert start >= end - 0.002  # of floating point
    assert any(e.get("cat") == "wait" and e["name"] == "Allreduce" for e in events)


def test_paravers_files_fit_together(traced, trace_tool, tmp_path):
    names = trace_tool("paraver", traced, "-o", tmp_path / "a.prv").stdout.split()
    assert [Path(name).suffix for name in names] == [".prv", ".pcf", ".row"]
    head, *lines = (tmp_path / "a.prv").read_text().splitlines()
    found = re.fullmatch(r"#Paraver \(\d\d/\d\d/\d\d at \d\d:\d\d\):(\d+)_ns:1\((\d+)\):1:2"
                         r"\(\2:1,\2:1\)", head)
    assert found, head
    end, cores = int(found.group(1)), int(found.group(2))
    last = 0
    for line in lines:
        kind, cpu, appl, task, thread, time, *rest = (int(word) for word in line.split(":"))
        assert 0 <= cpu <= cores and appl == 1 and task in (1, 2) and 1 <= thread <= cores
        assert last <= time <= end
        assert (kind == 1 and time < rest[0] <= end) or (kind == 2 and len(rest) == 2)
        last = time
    levels = re.findall(r"LEVEL (\w+) SIZE (\d+)", (tmp_path / "a.row").read_text())
    assert levels == [("CPU", str(cores)), ("NODE", "1"), ("TASK", "2"),
                      ("THREAD", str(2 * cores))]
    assert "61000002" in (tmp_path / "a.pcf").read_text()


JOBS = """
import sys
from invasive_trace import format as fmt
trace = fmt.load(sys.argv[1])
table = max(trace.tables, key=lambda t: len(t.processes))
print([p.name for p in table.processes])
first = min(table.processes, key=lambda p: p.rank)
other = fmt.Process(9, 4711, 0, 3, "other", first.start_ns)
later = fmt.Table(table.end_ns, False, False, table.cpus, table.first)
for jobs in (table, later):
    jobs.processes.append(other)
    trace.tables = [table, later]
    fmt.tell_jobs_apart(trace)
    processes = [p for t in trace.tables for p in t.processes]
    print([p.name for p in processes] ==
          [f"rank {p.rank} of {p.program} {p.pid}" for p in processes])
    jobs.processes.remove(other)
"""


def test_ranks_of_two_jobs_in_one_trace_have_names_of_their_own(traced, ask_python):
    """Whether they ran at the same time or one after the other."""
    names, *told_apart = ask_python(JOBS, traced).splitlines()
    assert sorted(json.loads(names.replace("'", '"'))) == ["rank 0", "rank 1"]
    assert told_apart == ["True", "True"]


# Two tables of emulated cores, as (holder, owner) of each at first, and what becomes of them.
TWO_TABLES = """
import numpy as np
from invasive_trace import format as fmt, paraver, series

MS = 1_000_000

def word(holder, owner):
    return np.uint64(holder | owner << 16)

def table(start, end, cores, changes, processes):
    made = fmt.Table(start * MS, True, False, np.arange(len(cores)),
                     np.array([word(*core) for core in cores]), end_ns=end * MS)
    events = []
    for epoch, (time, core, before, after) in enumerate(changes, 1):
        fields = [holder | owner << 9 for holder, owner in (after, before)]
        events.append((time * MS << 16 | fmt.DONE << 14 | fmt.CORE << 10 | core,
                       epoch << 40 | fields[1] << 20 | fields[0]))
    if events:
        made.chunks.append((0, end * MS, np.array(events, fmt.EVENT)))
    made.processes = [fmt.Process(slot, 100 + slot, rank, size, program, start * MS, end * MS)
                      for slot, rank, size, program in processes]
    return made

trace = fmt.Trace(0, 0, [
    table(100, 120, [(1, 1), (2, 2)],  # slot 0 lends core 0, which slot 1 has from 8 to 16 ms
          [(105, 0, (1, 1), (0, 1)), (108, 0, (0, 1), (2, 1)), (116, 0, (2, 1), (0, 1))],
          [(0, 0, 2, "a"), (1, 1, 2, "a")]),
    table(130, 140, [(1, 1)] * 3, [], [(0, -1, 0, "b")])])
"""

STACKED = TWO_TABLES + """
view = series.whole(trace)
for what in ("held", "owned"):
    edges, rows = view.stacked(what, 8)
    print(edges.round(9).tolist(), rows.round(9).tolist())
edges = np.array([90, 100, 102, 106, 120, 130, 200]) * MS
print((view.stories[1].held.integral(edges) / MS).tolist(), series.none().integral(edges).tolist())
print((view.start_ns // MS, view.end_ns // MS, view.table.ncores, view.takings))
"""


def test_a_picture_has_the_mean_cores_of_each_process_in_each_bin(ask_python):
    """For two tables one after the other, of two and three cores, with a gap between them."""
    held, owned, integrals, about = ask_python(STACKED).splitlines()
    edges = "[0.0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04]"
    nobody, all_three = "0.0, 0.0", "3.0, 3.0"
    later = f"[0.0, 0.0, 0.0, 0.0, {nobody}, {all_three}]"
    assert held == (f"{edges} [[1.0, 0.0, 0.0, 0.0, {nobody}, 0.0, 0.0], "
                    f"[1.0, 1.4, 2.0, 1.2, {nobody}, 0.0, 0.0], {later}]")
    one = f"[1.0, 1.0, 1.0, 1.0, {nobody}, 0.0, 0.0]"
    assert owned == f"{edges} [{one}, {one}, {later}]"
    assert integrals == f"[0.0, 0.0, 2.0, 6.0, 28.0, 28.0, 28.0] {[0.0] * 7}"
    assert about == "(100, 140, 3, 3)"


AREAS = """
import sys
import numpy as np
from invasive_trace import format as fmt, merge, series

def core_time(table, process, column):
    name, life = process.slot + 1, (process.start_ns, process.end_ns)
    total = 0
    for chain in merge.chains_of(table):
        ends = np.append(chain.time[1:], table.end_ns)
        start, end = np.clip(chain.time, *life), np.clip(ends, *life)
        total += int((end - start)[getattr(chain, column) == name].sum())
    return total

trace = fmt.load(sys.argv[1])
assert len(trace.tables) == 1
view, table = series.whole(trace), trace.tables[0]
for bins in (1, 7, 1200):
    for what, column in (("held", "holder"), ("owned", "owner")):
        edges, rows = view.stacked(what, bins)
        assert edges[0] == 0 and edges[-1] == view.seconds and rows.shape == (2, bins)
        assert rows.min() >= 0 and rows.sum(axis=0).max() <= table.ncores + 1e-6
        for story, area in zip(view.stories, rows @ np.diff(edges)):
            truth = core_time(table, story.process, column) / 1e9
            assert truth > 0 and abs(area - truth) < 1e-6, (what, bins, area, truth)
print("fits")
"""


def test_the_area_of_a_process_in_a_picture_is_its_core_time(traced, ask_python):
    """There are never more held or owned cores than cores."""
    assert ask_python(AREAS, traced) == "fits\n"


@pytest.fixture(scope="module")
def two_programs(build, make_variable, stock_env, tmp_path_factory):
    """A trace of two MPI programs one after the other; the second one has more ranks than cores,
    and a table of its own."""
    if not make_variable("MPIEXEC"):
        pytest.skip("configured without MPI")
    file = tmp_path_factory.mktemp("trace") / "two.trace"
    script = 'for n in 2 3; do "$0" -n $n "$@" || exit; done'
    subprocess.run([build / "bin/invade", "--emulate-cores=2", f"--trace={file}", "--", "sh", "-c",
                    script, make_variable("MPIEXEC"), build / IMBALANCE[0], "--loads=1:2:3",
                    *IMBALANCE[2:], "--iterations=20"], env=stock_env, stdout=subprocess.DEVNULL,
                   timeout=100, check=True)
    return file


PICTURED = """
import sys
from invasive_trace import format as fmt, series
trace = fmt.load(sys.argv[1])
print(*(len(table.processes) for table in trace.tables))
view = series.whole(trace)
edges, rows = view.stacked("held", 1000)
for story, row in zip(view.stories, rows):
    there = edges[:-1][row > 0]
    print(story.process.name, there[0], there[-1], sep=",")
"""


def test_a_picture_has_programs_that_ran_one_after_the_other(two_programs, ask_python, trace_tool,
                                                             tmp_path):
    tables, *lines = ask_python(PICTURED, two_programs).splitlines()
    assert tables == "2 3"
    names, first, last = zip(*(line.split(",") for line in lines))
    assert [name[:6] for name in names] == [f"rank {n}" for n in (0, 1, 0, 1, 2)]
    assert max(map(float, last[:2])) < min(map(float, first[2:]))
    trace_tool("picture", two_programs, "-o", tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text()
    assert all(f">{name}<" in svg for name in names) and len(set(names)) == 5


def test_paravers_files_have_programs_that_ran_one_after_the_other(two_programs, trace_tool,
                                                                   tmp_path):
    """A task for each process, and one axis of time."""
    trace_tool("paraver", two_programs, "-o", tmp_path / "a.prv")
    head, *lines = (tmp_path / "a.prv").read_text().splitlines()
    assert re.search(r":1\(2\):1:5\(2:1,2:1,2:1,2:1,2:1\)$", head), head
    ran = {}
    for line in lines:
        kind, cpu, _, task, thread, time, *rest = (int(word) for word in line.split(":"))
        assert 0 <= cpu <= 2 and 1 <= thread <= 2, line
        if kind == 1:
            ran.setdefault(task, []).append((time, rest[0]))
    assert sorted(ran) == [1, 2, 3, 4, 5]
    assert max(end for task in (1, 2) for _, end in ran[task]) <= \
        min(start for task in (3, 4, 5) for start, _ in ran[task])
    tasks = (tmp_path / "a.row").read_text().partition("LEVEL TASK SIZE 5\n")[2].splitlines()[:5]
    assert [task[:9] for task in tasks] == [f"rank {n} of" for n in (0, 1, 0, 1, 2)]
    assert len(set(tasks)) == 5


def test_chromes_json_has_programs_that_ran_one_after_the_other(two_programs, trace_tool,
                                                                tmp_path):
    """Each process has a number and a name of its own."""
    trace_tool("chrome", two_programs, "-o", tmp_path / "a.json")
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert len([e for e in events if e["name"] == "process_name"]) == 6 == len(set(named.values()))
    assert {e["name"] for e in events if e.get("cat") == "core"} == set(named.values()) - {"cores"}
    ends = {name: max(e["ts"] + e["dur"] for e in events if e["name"] == name and e["ph"] == "X")
            for name in named.values() if name != "cores"}
    ranks = sorted(ends, key=ends.get)
    assert sorted(name[:6] for name in ranks[:2]) == ["rank 0", "rank 1"]


TOKENS = """
import numpy as np
from invasive_trace import merge, series

time, by = np.array([1, 2, 4, 6, 7]), np.array([1, 1, -1, 1, -1])
none = np.zeros(5, np.int64)
events = merge.Events(time, none, none, none.astype(bool), none, by.astype(np.uint64))
spans = series.token_spans(events, 0, 9)
print(sorted(zip(spans.core.tolist(), spans.start.tolist(), spans.end.tolist())))
"""


def test_a_process_with_two_tokens_has_numbers_0_and_1_of_them(ask_python):
    """Tokens are numbered as cores are; the token taken last is returned first."""
    assert ask_python(TOKENS) == "[(0, 1, 9), (1, 2, 4), (1, 6, 7)]\n"


PLACES = TWO_TABLES + """
import re
first, second = trace.tables
for process in first.processes + second.processes:
    process.sites[1] = fmt.Site("Send", "", f"/bin/{process.program}", 16)
view = series.whole(trace)
for story, sites in zip(view.stories, ((1,), (1,), (1, 2))):
    story.waits = [series.Wait(story.process.start_ns, story.process.end_ns, n) for n in sites]
print(re.findall(rf":{paraver.WAIT}:([1-9]\\d*)", "\\n".join(t for _, t in paraver.lines_of(view))))
print(re.findall(r"^\\d      (?:\\(|Send).*$", paraver.pcf(view), re.M))
"""


def test_places_of_several_programs_have_values_of_their_own_in_paraver(ask_python):
    """Each program numbers its places from 1 on; ranks of one program have the same numbers."""
    assert ask_python(PLACES).splitlines() == ["['2', '2', '3', '1']", (
        "['1      (not recorded)', '2      Send a+0x10', '3      Send b+0x10']")]


LARGE = TWO_TABLES + """
view = series.whole(trace)
view.stories[0].announced = [(view.start_ns, w) for w in (0.0004, 2e12, 1e15, 1.7e308)]
for _, line in paraver.lines_of(view):
    if f":{paraver.WORKLOAD}:" in line:
        print(line.rpartition(":")[2])
"""


def test_workloads_of_any_size_are_in_paravers_files(ask_python):
    """Very large ones are written as 10^18, which has room in 64 bits."""
    assert ask_python(LARGE).split() == ["0", "2" + 15 * "0", "1" + 18 * "0", "1" + 18 * "0"]


# All that can be announced.
ANNOUNCE = """
#include <invasive.h>
int main(void)
{
    struct inv_constraint needs = {.min_cores = 1, .max_cores = 3, .workload = 2.5,
                                   .iteration_s = 0.125,
                                   .scalability = {{{1, 1}, {2, 1.75f}, {5, 3.5f}}}};
    return inv_invade(&needs, INV_BLOCKING, 0) || inv_invade(&needs, INV_BLOCKING, 0) ||
           inv_announce_workload(4);
}
"""


@pytest.fixture
def traced_source(build, top, run_program, tmp_path):
    """traced_source(C) - a trace of this program on four emulated cores"""

    def run(text):
        file = tmp_path / "a.trace"
        program = compile_text(tmp_path / "announce", text, "-fopenmp", f"-I{top / 'include'}",
                               f"-L{build / 'lib'}", "-linvasive", "-lm",
                               f"-Wl,-rpath,{build / 'lib'}")
        run_program([build / "bin/invade", "--emulate-cores=4", f"--trace={file}", "--", program])
        return file

    return run


@pytest.fixture
def announced(traced_source):
    """A trace of a program that says twice what it needs, and then another workload."""
    return traced_source(ANNOUNCE)


def test_a_trace_tells_what_was_announced(announced, trace_tool):
    """Each time all that is known; announcements without a change are left out."""
    said = re.findall(r"slot 0: (workload|range|iteration|speed-up) (.*)",
                      trace_tool("dump", announced).stdout)
    known = [("iteration", "0.125 s"), ("speed-up", "1 on 1 cores"),
             ("speed-up", "1.75 on 2 cores"), ("speed-up", "3.5 on 5 cores")]
    assert said == [one for workload in ("2.5", "4")
                    for one in (("range", "1 to 3 cores"), ("workload", workload), *known)]
    proven(trace_tool("check", announced))


def test_what_was_announced_is_in_the_files_for_other_programs(announced, trace_tool, tmp_path):
    trace_tool("chrome", announced, "-o", tmp_path / "a.json")
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    counted = [e for e in events if e["ph"] == "C" and e["name"] == "workload"]
    assert [e["args"] for e in counted] == [{"workload": 2.5}, {"workload": 4}]
    trace_tool("paraver", announced, "-o", tmp_path / "a.prv")
    lines = re.findall(r"^2:0:1:1:1:(\d+):61000003:(\d+)$", (tmp_path / "a.prv").read_text(), re.M)
    assert [value for _, value in lines] == ["2500", "4000"]
    times = [int(time) / 1e3 for time, _ in lines]  # one clock, one beginning
    assert times == pytest.approx([e["ts"] for e in counted])
    assert "61000003    Announced workload" in (tmp_path / "a.pcf").read_text()
    piece = lines_of_workload(trace_tool("workload", announced, "-o", "-").stdout)[-1]
    assert (piece["scalability"], piece["min"], piece["max"]) == ("1:1 2:1.75 5:3.5", "1", "3")


def test_a_workload_does_not_forget_what_was_announced_before_the_retreat(traced_source, top,
                                                                          trace_tool):
    """The example ends with a retreat, as programs should; here it computes more before."""
    example = (top / "doc/examples/claim.c").read_text()
    assert "step(1000L * t)" in example and example.rindex("inv_retreat") > example.index("step(")
    trace = traced_source(example.replace("step(1000L * t)", "step(10000000L * t)"))
    said = re.findall(r"slot 0: range (.*)", trace_tool("dump", trace).stdout)
    assert said == ["1 to all cores"] * 4 + ["0 to 1 cores"]
    pieces = lines_of_workload(trace_tool("workload", trace, "-o", "-").stdout)
    assert {(piece["min"], piece["max"]) for piece in pieces} == {("1", "0")}


RANGE_TAKEN_BACK = """
#include <invasive.h>
int main(void)
{
    struct inv_constraint needs = {.max_cores = 2}, none = {.workload = 1};
    return inv_invade(&needs, INV_BLOCKING, 0) || inv_invade(&none, INV_BLOCKING, 0) ||
           inv_announce_workload(2);
}
"""


def test_a_trace_tells_that_a_range_was_taken_back(traced_source, trace_tool):
    said = re.findall(r"slot 0: (?:workload|range) .*",
                      trace_tool("dump", traced_source(RANGE_TAKEN_BACK)).stdout)
    assert [line.partition(": ")[2] for line in said] == \
        ["range 0 to 2 cores", "workload 0", "range 0 to all cores", "workload 1", "workload 2"]


def lines_of_workload(text):
    head, *lines = (line.split(",") for line in text.splitlines() if not line.startswith("#"))
    return [dict(zip(head, line)) for line in lines]


def test_a_trace_becomes_a_workload_that_rmctl_simulates(traced, trace_tool, build, run_program,
                                                         tmp_path):
    file = tmp_path / "a.csv"
    assert trace_tool("workload", traced, "--piece-ms=0.5", "-o", file).stdout == f"{file}\n"
    pieces = lines_of_workload(file.read_text())
    works = {}
    for piece in pieces:
        works.setdefault(piece["process"].rpartition(".")[2], []).append(float(piece["work"]))
    assert sorted(works) == ["0", "1"] and len({piece["job"] for piece in pieces}) == 1
    assert len(works["0"]) == len(works["1"]) > 5  # of a hundred iterations
    assert sorted(works["0"])[len(works["0"]) // 2] < sorted(works["1"])[len(works["1"]) // 2]
    done = run_program([build / "bin/rmctl", "simulate", "--machine=2", f"--workload={file}",
                        "--schedules=static,workload", "--json"])
    simulated = json.loads(done.stdout)
    worked = sum(works["0"]) + sum(works["1"])
    assert simulated["workload"]["core_seconds"] == pytest.approx(worked, rel=1e-6)
    refused = trace_tool("workload", traced, "--piece-ms=nan", check=False)
    assert refused.returncode == 2 and "no number" in refused.stderr


WORKLOAD = """
import sys
import numpy as np
from invasive_trace import format as fmt, series, workload

MS = 1_000_000

def member(rank, held, waits, graph=()):
    core, start, end = (np.array(column, np.int64) for column in zip(*held))
    story = series.Story(fmt.Process(rank, 100 + rank, rank, 2, "a,b", 0),
                         series.Spans(core, start * MS, end * MS), series.none())
    story.waits = [series.Wait(a * MS, b * MS, 0) for a, b in waits]
    return workload.Member(story, 0, 20 * MS, list(graph))

ranks = [member(0, [(0, 0, 2), (0, 10, 20)], [(2, 10)]),
         member(1, [(1, 0, 20), (0, 2, 10)], [(13, 20)])]
print(workload.lines_of(ranks, 0, MS, workload.Names(), workload.Names()), end="")
ranks[1].graph = [(2, 1.5)]
print(workload.work_of(ranks[1], [0, 10 * MS, 20 * MS]).round(9).tolist())
print(workload.cuts_of(ranks, 11 * MS), workload.cuts_of(ranks[:1], 0))
ranks[1].start = 30 * MS  # not of the same job: the other one had ended
print(len(workload.jobs_of(ranks)))
"""

ANNOUNCEMENTS = """
import numpy as np
from invasive_trace import format as fmt, merge, series, workload

MS = 1_000_000
SINGLE, TWICE, FAR = 1 << 32 | 0x3f800000, 2 << 32 | 0x3fc00000, 4 << 32 | 0x40000000

def events(*said):
    time, kind, body = (np.array(column, np.uint64) for column in zip(*said))
    none = np.zeros(len(said), np.int64)
    return merge.Events(time.astype(np.int64) * MS, none, kind.astype(np.int64),
                        none.astype(bool), none, body)

said = events((1, fmt.RANGE, 8 << 32 | 2), (1, fmt.WORKLOAD, 0), (1, fmt.SPEEDUP, TWICE),
              (2, fmt.WORKLOAD, 0), (2, fmt.SPEEDUP, SINGLE), (2, fmt.SPEEDUP, FAR),
              (9, fmt.WORKLOAD, 0), (9, fmt.SPEEDUP, FAR), (9, fmt.SPEEDUP, SINGLE),
              (10, fmt.RANGE, 1 << 32), (10, fmt.WORKLOAD, 0))
for a in workload.announcements_of(said):
    print(a.time // MS, a.least, a.most, a.graph)
for more in ([(1, 0, 3)], [(1, 0, 9)], [(c, 1, 2) for c in range(1, 21)]):
    core, start, end = (np.array(column, np.int64) for column in zip((0, 0, 20), *more))
    story = series.Story(fmt.Process(0, 100, -1, 0, "a", 0, 20 * MS),
                         series.Spans(core, start * MS, end * MS), series.none())
    table = fmt.Table(0, True, False, core, core, end_ns=20 * MS)
    member = workload.member_of(series.View(table, [story], 0, 20 * MS), story, said)
    print(member.least, member.most, member.graph)
"""


def test_pieces_of_work_are_what_was_held_outside_waits_between_meetings(ask_python):
    assert ask_python(WORKLOAD).splitlines() == [
        "0,a_b.100.0,a_b.100,0.002,,1,0,0", "0,a_b.100.0,a_b.100,0.01,,1,0,0",
        "0,a_b.101.1,a_b.100,0.018,,1,0,0", "0,a_b.101.1,a_b.100,0.003,,1,0,0",
        "[0.014, 0.003]", "[0, 20000000] [0, 10000000, 20000000]", "2"]


def test_a_workload_has_the_range_and_the_graph_under_which_most_was_computed(ask_python):
    """One core all the time, and others for a while."""
    assert ask_python(ANNOUNCEMENTS).splitlines() == [
        "1 2 8 [(2, 1.5)]", "2 0 0 [(1, 1.0), (4, 2.0)]", "9 0 0 []", "10 0 1 []",
        "0 1 []", "0 0 [(1, 1.0), (4, 2.0)]", "2 8 [(2, 1.5)]"]


def test_the_html_report_opens_in_a_browser_without_a_network(traced, trace_tool, tmp_path,
                                                               run_program):
    """Its script has run, the picture and the tables are there, and nothing outside is named."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        pytest.skip("needs package chromium")
    page, shot = tmp_path / "a.html", tmp_path / "a.png"
    trace_tool("html", traced, "-o", page)
    text = page.read_text()
    assert not re.search(r"(src|href)=\"(?!#|data:)[^\"]*//", text)
    assert re.search(r"imbalance\.c:\d+ \(\w+\)", text) or not shutil.which("addr2line")
    whole, balance, talk = (float(re.search(rf"{name}</td><td[^>]*data-value=\"([\d.]+)\"",
                                            text).group(1))
                            for name in ("parallel efficiency", "load balance",
                                         "communication efficiency"))
    assert abs(whole - balance * talk) < 1e-6
    # Another directory for its profile: a browser holds locks there.
    with tempfile.TemporaryDirectory() as home:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--proxy-server=127.0.0.1:9",
                   f"--user-data-dir={home}",
                   f"--screenshot={shot}", "--dump-dom", "--window-size=1000,1500"]
        seen = run_program([*command, f"file://{page}"], timeout=100,
                           env={"HOME": home, "XDG_RUNTIME_DIR": home})
    ready = re.search(r'data-ready="(\d+)"', seen.stdout)
    assert ready and int(ready.group(1)) >= 8, seen.stdout[:300]
    assert "MPI_Allreduce" in seen.stdout and "<svg" in seen.stdout
    if shot.exists():  # not every version makes both
        assert shot.read_bytes().startswith(b"\x89PNG") and shot.stat().st_size > 10000


VIEWED = """
import os, sys
from invasive_trace import format as fmt, places
os.geteuid = lambda: int(sys.argv[1])
for module in sys.argv[3:]:
    site = fmt.Site("MPI_Barrier", "", module, int(sys.argv[2], 16) + 1)
    print(*places.names_of([site]).values())
"""


def test_debugging_sections_are_read_of_files_of_root_and_of_the_reader(
        ask_python, tmp_path):
    """Another user's trace names files of that user, which a parser may not be safe against."""
    if not shutil.which("addr2line"):
        pytest.skip("needs package binutils")
    module = compile_text(tmp_path / "step", "int main(void) { return 0; }\n", "-g")
    link = tmp_path / "link"
    link.symlink_to(module)
    listed = subprocess.run(["nm", module], check=True, stdout=subprocess.PIPE, text=True).stdout
    at = re.search(r"^(\w+) T main$", listed, re.M).group(1)

    def named(viewer, *modules):
        return ask_python(VIEWED, viewer, at, *modules).splitlines()

    owner, known = os.getuid(), "step.c:1 (main)"
    assert named(owner, module, link) == [known, known]
    if owner == 0:
        assert named(60001, module) == [known]  # it is root's
        owner = 60002
        os.chown(module, owner, -1)
        assert named(owner, module) == [known]
    os.mkfifo(tmp_path / "pipe")
    unknown = [f"{name}+{int(at, 16) + 1:#x}" for name in ("step", "link", "pipe", "none")]
    for viewer in {0, 60001} - {owner}:
        assert named(viewer, *(tmp_path / of.split("+")[0] for of in unknown)) == unknown


@pytest.mark.parametrize("shape", ["both", "report inside", "trace inside"])
def test_a_trace_and_a_report_of_one_run_both_name_where_it_waits(build, mpiexec, run_program,
                                                                  trace_tool, tmp_path, shape):
    """A trace alone asks for the names only (above), and takes nothing from a report."""
    invade, trace, report = build / "bin/invade", tmp_path / "a.trace", tmp_path / "a.json"
    outer, inner = f"--trace={trace}", f"--report={report}"
    if shape == "trace inside":
        outer, inner = inner, outer
    between = [] if shape == "both" else ["--", invade]
    run_program([invade, TWO_CORES, outer, *between, inner, "--", mpiexec, "-n", 2,
                 build / IMBALANCE[0], *IMBALANCE[1:], "--iterations=50"])
    trace_tool("chrome", trace, "-o", tmp_path / "chrome.json")
    events = json.loads((tmp_path / "chrome.json").read_text())["traceEvents"]
    assert any(e.get("cat") == "wait" and e["name"] == "Allreduce" for e in events)
    job = json.loads(report.read_text())["jobs"][0]
    assert job["ranks"] == 2 and len(job["processes"]) == 2
    site = next(s for s in job["call_sites"] if "Allreduce" in s["function"])
    assert site["calls"] == 2 * 50, site
    assert all(p["cpu_seconds"] for p in job["processes"])


def test_a_trace_survives_the_killing_of_a_rank(build, make_variable, run_program, trace_tool,
                                                tmp_path):
    file, program = tmp_path / "killed.trace", build / IMBALANCE[0]
    if not make_variable("MPIEXEC"):
        pytest.skip("configured without MPI")
    # The rank that has been chosen kills itself when it has run for a while, as `timeout` does.
    script = ('if [ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ]; then '
              'exec timeout -s KILL 0.7 "$@"; else exec "$@"; fi')
    done = run_program([build / "bin/invade", TWO_CORES, f"--trace={file}", "--",
                        make_variable("MPIEXEC"), "-n", 2, "sh", "-c", script, "sh", program,
                        *IMBALANCE[1:], "--iterations=1000000"], check=False, timeout=90)
    assert done.returncode != 0
    proven(trace_tool("check", file))
    assert "joins" in trace_tool("dump", file).stdout


def test_a_program_with_more_ranks_than_cores_leaves_a_trace(build, make_variable, run_program,
                                                             trace_tool, tmp_path):
    file = tmp_path / "many.trace"
    if not make_variable("MPIEXEC"):
        pytest.skip("configured without MPI")
    run_program([build / "bin/invade", TWO_CORES, f"--trace={file}", "--",
                 make_variable("MPIEXEC"), "-n", 4, build / IMBALANCE[0], "--loads=1:2:3:4",
                 *IMBALANCE[2:], "--iterations=20"])
    proven(trace_tool("check", file))
    assert "token taken" in trace_tool("dump", file).stdout
    trace_tool("picture", file, "-o", tmp_path / "a.svg")


# --- what goes wrong

def test_a_full_disk_ends_the_trace_and_nothing_else(hammered, trace_tool):
    """rmd says so and goes on, and so do the processes; what is in the file can be used."""
    fight = hammered()
    fight.hammer(1, 1, 1)
    resource.prlimit(fight.rmd.process.pid, resource.RLIMIT_FSIZE, (100000, 100000))
    assert fight.rmctl("trace", "start", fight.file).returncode == 0
    for seed in (2, 3):
        assert fight.hammer(2, 20000, seed).wait(60) == 0
    stopped = fight.rmctl("trace", "stop")
    assert stopped.returncode == 1 and "not complete: File too large" in stopped.stderr
    assert fight.rmctl("status").returncode == 0
    checked = trace_tool("check", fight.file, check=False)
    assert checked.returncode == 1 and "no end" in checked.stdout, checked.stdout
    assert 0 < fight.file.stat().st_size <= 100000


MEMBERS = """
import sys
from invasive_trace import format as fmt
print(*(process.program for table in fmt.load(sys.argv[1]).tables for process in table.processes))
"""


@pytest.mark.sanitize
@pytest.mark.machine(os.getuid() == 0, "only root can be several users")
def test_a_trace_ends_when_rmd_is_killed_and_the_next_one_takes_a_whole_one(
        mortal, hammered, trace_tool, ask_python, tmp_path):
    """Of the same table.  Processes go on meanwhile; no rmd reads the rings, which become full."""
    fight = hammered(mortal("emulate-cores = 4\n"))
    assert fight.rmctl("trace", "start", fight.file).returncode == 0
    fight.hammer(2, 10 ** 9, 1)
    alone = fight.hammer(3, 15000, 2)
    alone.send_signal(signal.SIGSTOP)
    eventually(lambda: fight.file.stat().st_size > 10000, True)
    fight.rmd.die()
    alone.send_signal(signal.SIGCONT)
    assert alone.wait(60) == 0 and int(alone.stdout.read()) > 0
    checked = trace_tool("check", fight.file, check=False)
    assert checked.returncode == 1 and re.search("no end: rmd was killed|in the middle of a chunk",
                                                 checked.stdout), checked.stdout
    fight.rmd.begin()
    assert "no trace is being taken" in fight.rmctl("trace", "stop").stderr
    second = tmp_path / "second.trace"
    assert fight.rmctl("trace", "start", second).returncode == 0
    assert fight.hammer(2, 5000, 3).wait(60) == 0
    stopped = fight.rmctl("trace", "stop")
    assert stopped.returncode == 0, stopped.stderr
    assert proven(trace_tool("check", second)) > 1000
    assert ask_python(MEMBERS, second).split() == ["hammer"] * 2


def test_a_trace_that_cannot_be_written_is_said_before_the_program_starts(build, run_program):
    done = run_program([build / "bin/invade", "--trace=/nonexistent/trace", "--", "echo", "ran"],
                       check=False)
    assert done.returncode == 125 and "ran" not in done.stdout
    assert "cannot write the trace to /nonexistent/trace" in done.stderr


FUZZ = """
import random, sys
from pathlib import Path
from invasive_trace import check, dump, format as fmt, paraver, series, workload
good = open(sys.argv[1], "rb").read()
chance = random.Random(int(sys.argv[2]))
refused = taken = 0

class Nowhere:
    def write(self, text):
        pass

for number in range(int(sys.argv[3])):
    data = bytearray(good)
    for _ in range(chance.randrange(1, 6)):
        kind = chance.randrange(4)
        at = chance.randrange(len(data)) if data else 0
        if kind == 0 and data:
            data[at] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
        elif kind == 1:
            del data[at:at + chance.choice((1, 8, 16, 24, 100))]
        elif kind == 2:
            data[at:at] = data[:chance.choice((1, 8, 16, 24, 100))]
        else:
            del data[at:]
    if number % 16 == 0:
        data = bytearray(chance.randbytes(chance.randrange(200)))
    try:
        trace = fmt.parse(bytes(data))
    except fmt.TraceError:
        refused += 1
        continue
    taken += 1
    check.check(trace)
    dump.write(trace, Nowhere())
    for table in trace.tables:
        series.view_of(table)
    if taken % 8 == 0 and any(table.processes for table in trace.tables):
        workload.text(trace, Path("x"), 1000)
        paraver.texts(trace)
        series.whole(trace).stacked("held", 10)
print(refused, taken)
"""


def small(traced, directory, limit=6000):
    """The first chunks of a trace, so that a byte of it is often one that matters."""
    data, at = traced.read_bytes(), STRUCTURES["inv_trace_file"].size
    chunk = STRUCTURES["inv_trace_chunk"]
    while at < limit:
        at += chunk.size + chunk.unpack(data[at:]).bytes
    file = directory / "small.trace"
    file.write_bytes(data[:at])
    return file


def test_arbitrary_bytes_are_refused_or_read_and_never_a_surprise(traced, ask_python, tmp_path):
    with_table = small(traced, tmp_path)
    refused, taken = (int(n) for n in ask_python(FUZZ, with_table, "1", "1500",
                                                 timeout=100).split())
    assert refused > 100 and taken > 20


LAYOUT = """
import json, sys
from invasive_trace import format as fmt
kinds = ("CORE", "TOKEN", "WORKLOAD", "RANGE", "ITERATION", "SPEEDUP", "SLEEP", "WAIT")
chunks = ("TABLE", "EVENTS", "PROCESSES", "GONE", "SITES", "LAST", "END", "REPORT")
print(json.dumps({
    "inv_trace_file": fmt.HEAD.format, "inv_trace_chunk": fmt.CHUNK.format,
    "inv_trace_process": fmt.PROCESS.format, "inv_trace_site": fmt.SITE.format,
    "inv_trace_first": {n: (o, str(t)) for n, (t, o) in fmt.FIRST.fields.items()},
    "inv_trace_event": {n: (o, str(t)) for n, (t, o) in fmt.EVENT.fields.items()},
    "kinds": [getattr(fmt, name) for name in kinds],
    "chunks": [getattr(fmt, name) for name in chunks],
    "numbers": [fmt.VERSION, fmt.ORDER, fmt.MAX_CORES, fmt.MAX_SLOTS, fmt.MAX_SITES,
                fmt.RING_OF_RMD, fmt.RINGS, fmt.RING_EVENTS, fmt.REPORT_MOST, fmt.INTENT,
                fmt.DONE]}))
"""


@pytest.mark.sanitize
def test_the_reader_of_traces_has_the_layout_of_the_headers(ask_python):
    told = json.loads(ask_python(LAYOUT))
    for name in ("inv_trace_file", "inv_trace_chunk", "inv_trace_process", "inv_trace_site"):
        assert told[name] == STRUCTURES[name].format()
        assert struct.calcsize(told[name]) == STRUCTURES[name].size
    types = {"i": "int32", "I": "uint32", "Q": "uint64"}
    for name, keys in (("inv_trace_first", {"os_cpu": "cpu"}), ("inv_trace_event", {})):
        assert told[name] == {keys.get(field, field): [offset, types[form]] for
                              field, (offset, form) in STRUCTURES[name].fields.items()}
    says = vars(CONSTANTS).get
    assert told["kinds"] == [says(f"INV_TRACE_{name}") for name in (
        "CORE", "TOKEN", "WORKLOAD", "RANGE", "ITERATION", "SPEEDUP", "SLEEP", "WAIT")]
    assert told["chunks"] == [says(f"INV_CHUNK_{name}") for name in (
        "TABLE", "EVENTS", "PROCESS", "GONE", "SITES", "LAST", "END", "REPORT")]
    assert told["numbers"] == [says(f"INV_{name}") for name in (
        "TRACE_VERSION", "TRACE_ORDER", "MAX_CORES", "MAX_SLOTS", "SITES", "TRACE_RMD",
        "TRACE_RINGS", "TRACE_EVENTS", "TRACE_REPORT_MOST", "TRACE_INTENT", "TRACE_DONE")]


@pytest.mark.full
def test_a_million_damaged_traces_are_refused_or_read(traced, ask_python, tmp_path):
    with_table = small(traced, tmp_path)
    for seed in range(10):
        ask_python(FUZZ, with_table, str(seed + 2), "100000", timeout=3000)


DAMAGE = """
import struct, sys
from invasive_trace import check, format as fmt, merge
def chunks(data):
    at = fmt.HEAD.size
    while at < len(data):
        kind, size = fmt.CHUNK.unpack_from(data, at)[:2]
        yield kind, at, fmt.CHUNK.size + size
        at += fmt.CHUNK.size + size

good = bytearray(open(sys.argv[1], "rb").read())
changes = []  # where events of cores are
for kind, at, size in chunks(good):
    if kind == fmt.EVENTS:
        for place in range(at + fmt.CHUNK.size + 8, at + size, fmt.EVENT.itemsize):
            head, body = struct.unpack_from("=QQ", good, place)
            if head >> 10 & 15 == fmt.CORE:
                changes.append((place, at, head, body))

def finds(what, data):
    found = check.check(fmt.parse(bytes(data)))[0]
    print(what, "found" if found else "MISSED", *found[:1])

assert not check.check(fmt.parse(bytes(good)))[0]
place, at, head, body = changes[len(changes) // 2]
for what, event in (("a holder that nobody was", (head, body ^ 0xff)),
                    ("a change of the epoch", (head, body ^ 1 << 41)),
                    ("a change of an owner by a process", (head, body ^ 1 << 9)),
                    ("another core's", (head ^ 1, body))):
    data = bytearray(good)
    struct.pack_into("=QQ", data, place, *event)
    finds(what, data)

def without(places):
    data = bytearray(good)
    for place, at, head, body in places:  # its kind is one of no core then
        struct.pack_into("=Q", data, place, head & ~(15 << 10) | fmt.SLEEP << 10)
    return data

core = changes[len(changes) // 2][2] & 1023
line = sorted((c for c in changes if c[2] & 1023 == core), key=lambda c: c[3] >> 40)
finds("two that are missing", without(line[3:5]))
trace = fmt.parse(bytes(without(line[3:4])))
before = [(c.fields.tolist()) for c in merge.chains_of(fmt.parse(bytes(good)).tables[0])]
after = [(c.fields.tolist()) for c in merge.chains_of(trace.tables[0])]
print("one that is missing", "restored" if before == after else "MISSED")
"""


def test_check_finds_what_is_missing_and_what_cannot_be(hammered, ask_python):
    fight = hammered()
    assert fight.rmctl("trace", "start", fight.file).returncode == 0
    for seed in (1, 2):
        assert fight.hammer(1, 300, seed).wait(60) == 0
    assert fight.rmctl("trace", "stop").returncode == 0
    said = ask_python(DAMAGE, fight.file)
    assert "MISSED" not in said and said.count("found") >= 5 and "restored" in said, said


KILLED = """
from invasive_trace import merge
import numpy as np
number = np.array([1, 2, 2, 3])
intent = np.array([False, True, True, False])
after = np.array([5, 7, 6, 8])
before = np.array([0, 5, 5, 6])
print(merge.happened(number, before, after, intent, None).tolist())
print(merge.happened(number[:3], before[:3], after[:3], intent[:3], 7).tolist())
print(merge.unwrapped(np.array([0xfffffe, 0xffffff, 1, 0, 2]), 0xfffffd).tolist())
"""


def test_an_intent_counts_where_the_word_has_become_what_it_says(ask_python):
    said = ask_python(KILLED).splitlines()
    assert said == ["[True, False, True, True]", "[True, True, False]", "[1, 2, 4, 3, 5]"]


def test_nothing_is_left_when_a_launcher_with_a_trace_is_killed(build, stock_env, trace_tool,
                                                                tmp_path):
    """The file of the trace is whole up to there: rmd ends it a moment later."""
    file = tmp_path / "cut.trace"
    child = subprocess.Popen([build / "bin/invade", "--emulate-cores=2", f"--trace={file}", "--",
                              sys.executable, "-c", "import time; print(1, flush=True); "
                              "time.sleep(60)"], env=stock_env, stdout=subprocess.PIPE)
    assert child.stdout.read(1) == b"1"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert file.exists()
    eventually(lambda: trace_tool("check", file, check=False).returncode, 0)
