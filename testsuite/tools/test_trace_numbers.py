# SPDX-License-Identifier: GPL-3.0-or-later
"""One number has one value: in the report as text and as JSON, and in HTML and pictures of the
trace of the same run, whatever the shape of the run is."""

import html
import json
import re

import pytest

from lib.building.small_programs import compile_text
from lib.machine import TWO_CORES

OPENMP = r"""
#include <stdio.h>
int main(void)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (long i = 1; i < 100000000; i++)
        sum += 1.0 / (double)i;
    printf("%g\n", sum);
    return 0;
}
"""
EMULATED = "--emulate-cores=8"
# name: options of invade, and programs: (ranks, 0 none; a scene of mpi-shim/tests/waits)
SHAPES = {
    "one rank": (TWO_CORES, [(1, "work")]),
    "fewer ranks than cores": (EMULATED, [(3, "places")]),
    "ranks as cores": (TWO_CORES, [(2, "steps")]),
    "more ranks than cores": (TWO_CORES, [(4, "work")]),
    "several programs": (TWO_CORES, [(2, "work"), (3, "work"), (0, "openmp")]),
    "emulated cores, more ranks": ("--emulate-cores=2", [(4, "places")]),
    "a rank that dies": (TWO_CORES, [(2, "killed")]),
    "no MPI": (TWO_CORES, [(0, "openmp")]),
    "no OpenMP": (TWO_CORES, [(2, "polls")]),
}
MORE = ("one rank", "ranks as cores", "emulated cores, more ranks")  # with --full
# Of a process: column of the text, member of the JSON, head of the HTML table, scale
COLUMNS = (("useful s", "useful_seconds", 1), ("waiting s", "waiting_seconds", 1),
           ("eff %", "metrics.parallel_efficiency", 100), ("load %", "metrics.load_balance", 100),
           ("comm %", "metrics.communication_efficiency", 100),
           ("used c*s", "useful_core_seconds", 1), ("lent c*s", "lent_core_seconds", 1),
           ("borrow c*s", "borrowed_core_seconds", 1), ("lends", "lends", 1),
           ("borrows", "borrows", 1), ("reclaims", "reclaims", 1))
METRICS = (("parallel efficiency", "parallel_efficiency"), ("load balance", "load_balance"),
           ("communication efficiency", "communication_efficiency"),
           ("balance of the work", "work_balance"),
           ("perfect balance would gain", "perfect_balance_gain"))

DRAWN = """
import sys, json
import numpy as np
from invasive_trace import format as fmt, picture, series
trace = fmt.load(sys.argv[1])
view = series.whole(trace)
tops = []
for table in series.views_of(trace):
    rows = table.stacked("held", 1000)[1]
    tops.append((float(rows.sum(axis=0).max()), table.table.ncores))
print(json.dumps({"title": picture.title_of(view), "report": trace.report, "tops": tops,
                  "areas": [[story.process.pid, story.computed_ns / 1e9]
                            for story in view.stories]}))
"""


def member(thing, path):
    for name in path.split("."):
        thing = thing[name]
    return thing


def tables_of(page):
    """[{heads: [...], rows: [[shown, value]...]}] of an HTML page."""
    found = []
    for text in re.findall(r"<table>(.*?)</table>", page, re.S):
        heads = [html.unescape(h) for h in re.findall(r"<th [^>]*>(.*?)</th>", text)]
        rows = []
        for row in re.findall(r"<tr>(<td.*?)</tr>", text, re.S):
            rows.append([(html.unescape(shown), value) for value, shown in re.findall(
                r'<td(?:[^>]*data-value="([^"]*)")?[^>]*>(.*?)</td>', row)])
        found.append((heads, rows))
    return found


def text_rows(text):
    """{pid: {column: number}} of a report as text."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(" rank"))
    rows = {}
    for line in lines[at + 1:]:
        words = line.split()
        if len(words) < 16 or not re.fullmatch(r"-|\d+", words[0]):
            break
        names = [name for name, *_ in COLUMNS]
        rows[int(words[1])] = dict(zip(names, map(float, words[3:3 + len(names)])))
    return rows


@pytest.fixture(scope="module")
def openmp(tmp_path_factory):
    return compile_text(tmp_path_factory.mktemp("openmp") / "openmp", OPENMP, "-O1", "-fopenmp")


@pytest.fixture
def run_shape(build, mpiexec, openmp, run_program, tmp_path):
    """run_shape(SHAPE, REPORT): the trace, and the report as it is in that file"""
    waits = build / "mpi-shim/tests/waits"

    def run(shape, report):
        option, programs = SHAPES[shape]
        commands = [f"{mpiexec} -n {ranks} {waits} {scene}" if ranks else str(openmp)
                    for ranks, scene in programs]
        trace, file = tmp_path / "run.trace", tmp_path / report
        run_program([build / "bin/invade", option, f"--trace={trace}", f"--report={file}", "--",
                     "sh", "-c", " && ".join(commands)], check=False, timeout=90)
        return trace, file.read_text()

    return run


@pytest.mark.parametrize("shape", [pytest.param(name, marks=[pytest.mark.full] * (name in MORE))
                                   for name in SHAPES])
def test_a_number_has_one_value_in_text_json_html_and_pictures(shape, run_shape, trace_tool,
                                                               ask_python, tmp_path):
    trace, text = run_shape(shape, "report.txt")
    drawn = json.loads(ask_python(DRAWN, trace))
    report = drawn["report"]
    processes = {p["pid"]: p for job in report["jobs"] for p in job["processes"]}
    assert {pid for pid, _ in drawn["areas"]} <= set(processes) and processes

    # text and JSON
    rows = text_rows(text)
    assert set(rows) == set(processes)
    for pid, row in rows.items():
        for column, path, scale in COLUMNS:
            told = member(processes[pid], path)
            digits = 1 if scale == 100 else 3
            assert abs(row[column] - scale * told) <= 0.51 * 10 ** -digits, (column, row, told)

    # HTML and JSON
    trace_tool("html", trace, "-o", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    seen, metrics = set(), []
    for heads, body in tables_of(page):
        if "pid" in heads:
            for row in body:
                cells = dict(zip(heads, row))
                pid = int(cells["pid"][1])
                seen.add(pid)
                for column, path, _ in COLUMNS:
                    told = member(processes[pid], path)
                    assert abs(float(cells[column][1]) - told) < 1e-6, (column, cells, told)
        elif heads[1:] == ["share"]:
            metrics.append({row[0][0].split(":")[0].lstrip("= x"): row[1] for row in body})
    assert seen == {pid for pid, _ in drawn["areas"]}
    jobs = [job for job in report["jobs"]]
    assert len([m for m in metrics if "parallel efficiency" in m]) == len(jobs)
    for job in jobs:
        assert any(all(abs(float(m[name][1]) - job["metrics"][key]) < 1e-6
                       for name, key in METRICS) for m in metrics if METRICS[0][0] in m), job

    # pictures: no more cores than there are, and the efficiency that the report has
    for top, cores in drawn["tops"]:
        assert 0 < top <= cores + 1e-6
    percent = f"{100 * report['parallel_efficiency']:.1f} %"
    assert f"parallel efficiency {percent}" in drawn["title"]
    if len(jobs) == 1:
        assert f"parallel efficiency {float(percent[:-2]):5.1f} %" in text
    else:
        assert f"parallel efficiency {float(percent[:-2]):5.1f} % of all together" in text
    trace_tool("picture", trace, "-o", tmp_path / "a.svg")
    assert percent in (tmp_path / "a.svg").read_text()


def test_the_report_in_a_trace_is_the_one_in_the_file(run_shape, ask_python):
    trace, text = run_shape("ranks as cores", "report.json")
    inside, beside = json.loads(ask_python(DRAWN, trace))["report"], json.loads(text)
    for job in beside["jobs"]:
        for part in (job, *job["processes"]):
            del part["call_sites"], part["parallel_regions"]
    assert inside == beside


def test_a_trace_alone_has_the_numbers_of_a_report_too(build, mpiexec, run_program, trace_tool,
                                                       ask_python, tmp_path):
    trace = tmp_path / "run.trace"
    run_program([build / "bin/invade", TWO_CORES, f"--trace={trace}", "--", mpiexec, "-n", 2,
                 build / "mpi-shim/tests/waits", "work"])
    job, = json.loads(ask_python(DRAWN, trace))["report"]["jobs"]
    assert all(p["cpu_seconds"] > 0 for p in job["processes"]) and job["ranks"] == 2
    trace_tool("check", trace)


def test_a_trace_without_a_report_has_no_efficiency(build, mpiexec, run_program, trace_tool,
                                                    ask_python, tmp_path):
    """A trace of programs that run already; its numbers on cores have other names."""
    trace, rmctl = tmp_path / "run.trace", build / "bin/rmctl"
    script = (f"{rmctl} trace start {trace} >&2; {mpiexec} -n 4 {build}/mpi-shim/tests/waits work; "
              f"{rmctl} trace stop >&2")
    run_program([build / "bin/invade", TWO_CORES, "sh", "-c", script])
    drawn = json.loads(ask_python(DRAWN, trace))
    assert drawn["report"] is None and "efficiency" not in drawn["title"]
    assert all(0 < top <= cores + 1e-6 for top, cores in drawn["tops"])
    trace_tool("html", trace, "-o", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "parallel efficiency" not in page and "core time held" in page
    checked = trace_tool("check", trace).stdout
    assert "prove nothing" not in checked and "which process holds which core is not recorded" \
        in checked
