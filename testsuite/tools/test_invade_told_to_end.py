# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals that all processes of a job get at once, rmd and invade among them, as scancel, time
limits, docker stop and systemctl stop send them: the report and the trace are written, and no
process is left."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lib.processes import alive, children, descendants, gone, running
from lib.report import rows
from lib.terminal import on_terminal, read_until
from lib.trace_tool import proven
from lib.waiting import PATIENCE_S, comes_true

HEAD_START_S = 0.1  # of the signal to rmd: the worst order in which "at once" can happen
COMPUTES = "trap '' USR1 USR2 ALRM VTALRM PROF IO PWR QUIT; exec \"$0\" loop"
NO_MATTER_WHAT = "trap '' TERM; exec \"$0\" loop"


def words_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def rmd_of(launcher):
    rmd, = children(launcher, "rmd")
    return rmd


def send(number, first, others):
    os.kill(first, number)
    time.sleep(HEAD_START_S)
    for pid in others:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill(pids, first):
    """Kills rmd first: else it may see that other processes have ended, and finish the trace."""
    for pid in [first, *pids]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def told(report):
    """The text of the report, or the part that has been written."""
    return report.read_text() if report.exists() else ""


@pytest.fixture
def job(invade, omp_job, stock_env):
    """job(OPTION..., script=...) - invade and an OpenMP program that computes until it is ended,
    and what descends from them, once it computes."""

    @contextlib.contextmanager
    def start(*options, script=COMPUTES, env=None):
        with running(invade, *options, "--", "sh", "-c", script, omp_job,
                     env={**stock_env, **(env or {})}) as process:
            assert process.stdout.readline() == "ready\n"
            family = descendants(process.pid)
            yield process, family
        assert gone([process.pid, *family])

    return start


def ended(process, number):
    """Asserts that invade has ended by the signal; returns its messages."""
    said = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == -number, said
    return said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_report_and_trace_are_whole_where_all_are_told_to_end_at_once(job, tmp_path, trace_tool,
                                                                      number):
    report, trace = tmp_path / "report.txt", tmp_path / "trace"
    with job(f"--report={report}", f"--trace={trace}") as (process, family):
        rmd = rmd_of(process.pid)
        send(number, rmd, [process.pid, *(pid for pid in family if pid != rmd)])
        assert ended(process, number) == ""
        assert gone(family)
    line, = rows(report.read_text())
    assert line[2] == "omp"
    assert proven(trace_tool("check", trace)) > 0


@pytest.mark.parametrize("where", ["stderr", "json"])
def test_the_report_is_whole_wherever_it_goes(job, tmp_path, where):
    report = tmp_path / "report.json"
    option = "--report" if where == "stderr" else f"--report={report}"
    with job(option) as (process, family):
        rmd = rmd_of(process.pid)
        send(signal.SIGTERM, rmd, [process.pid, *(pid for pid in family if pid != rmd)])
        said = ended(process, signal.SIGTERM)
    if where == "stderr":
        line, = rows(said)
        assert line[2] == "omp"
        return
    told_all = json.loads(report.read_text())
    assert told_all["signal"] == signal.SIGTERM and told_all["exit_code"] is None
    one, = told_all["jobs"][0]["processes"]
    assert one["program"] == "omp"


def test_report_and_trace_are_whole_when_a_process_group_is_told_to_end(job, tmp_path, trace_tool):
    report, trace = tmp_path / "report", tmp_path / "trace"
    with job(f"--report={report}", f"--trace={trace}") as (process, _):
        os.killpg(process.pid, signal.SIGTERM)
        assert ended(process, signal.SIGTERM) == ""
    assert len(rows(report.read_text())) == 1
    assert proven(trace_tool("check", trace)) > 0


def test_report_and_trace_are_whole_after_ctrl_c(invade, omp_job, stock_env, tmp_path, trace_tool):
    report, trace = tmp_path / "report", tmp_path / "trace"
    words = [invade, f"--report={report}", f"--trace={trace}", omp_job, "loop"]
    with on_terminal("env", stock_env, *words) as (process, master):
        read_until(master, b"ready")
        family = descendants(process.pid)
        os.write(master, b"\x03")
        assert process.wait(PATIENCE_S) == -signal.SIGINT
        assert gone(family)
    assert len(rows(report.read_text())) == 1
    assert proven(trace_tool("check", trace)) > 0


def test_report_and_trace_are_whole_when_all_ranks_of_an_mpi_job_are_told_to_end(
        invade, mpi, stock_env, tmp_path, what_mpi_leaves_when_it_is_killed_goes):
    report = tmp_path / "report.json"
    ranks = [str(word) for word in mpi.run(2, mpi.program("mpi-shim/tests/scenes"), "hang")]
    with running(invade, f"--report={report}", *ranks, env=stock_env) as process:
        assert process.stdout.readline().strip().isdigit()  # MPI is set up
        family = descendants(process.pid)
        rmd = rmd_of(process.pid)
        send(signal.SIGTERM, rmd, [process.pid, *(pid for pid in family if pid != rmd)])
        for _ in range(10):  # launchers may have to be told twice, without us too
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=5)
                break
            process.terminate()
        assert gone([process.pid, *family])
    processes = [p for j in json.loads(report.read_text())["jobs"] for p in j["processes"]]
    assert sorted(p["rank"] for p in processes) == [0, 1]


def with_variable(text):
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and text in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def test_report_and_trace_are_whole_where_each_rank_has_an_invade(job, tmp_path):
    """The rmd of these is not a child of any of them, and ends by itself."""
    report, name = tmp_path / "report", f"test-{os.getpid()}"
    env = {"SLURM_JOB_ID": name, "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}
    with job(f"--report={report}", env=env) as (process, family):
        everybody = with_variable(f"SLURM_JOB_ID={name}".encode())
        rmd, = [pid for pid in everybody if words_of(pid)[:1] == ["rmd"]]
        assert rmd not in family
        send(signal.SIGTERM, rmd, [pid for pid in everybody if pid != rmd])
        assert ended(process, signal.SIGTERM) == ""
        assert gone([rmd])
    assert len(rows(report.read_text())) == 1


def test_signals_for_programs_do_not_end_rmd(job, tmp_path):
    """Batch systems send also the signals that a job asks for, as a notice of its time limit, to
    all processes."""
    report = tmp_path / "report"
    with job(f"--report={report}") as (process, family):
        rmd = rmd_of(process.pid)
        for name in ("USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "PWR", "QUIT", "CONT",
                     "RTMIN", "RTMAX"):
            os.kill(rmd, getattr(signal, f"SIG{name}"))
        time.sleep(HEAD_START_S)
        assert alive(rmd)
        process.terminate()
        assert ended(process, signal.SIGTERM) == ""
        assert gone(family)
    assert len(rows(report.read_text())) == 1


@pytest.mark.parametrize("kind", ["txt", "json"])
def test_what_does_not_end_when_told_is_reported_before_it_is_killed(job, tmp_path, trace_tool,
                                                                     kind):
    report, trace = tmp_path / f"report.{kind}", tmp_path / "trace"
    with job(f"--report={report}", f"--trace={trace}", script=NO_MATTER_WHAT) as (process, family):
        for pid in (rmd_of(process.pid), process.pid):
            os.kill(pid, signal.SIGTERM)
        comes_true(lambda: "omp" in told(report), "a report")
        kill([process.pid, *family], first=rmd_of(process.pid))
        process.communicate(timeout=PATIENCE_S)
    if kind == "json":
        told_all = json.loads(report.read_text())
        assert told_all["signal"] is None and told_all["exit_code"] is None
        one, = told_all["jobs"][0]["processes"]
        assert one["end"] == "running"
    else:
        assert "still runs" in report.read_text()
        assert len(rows(report.read_text())) == 1
    checked = trace_tool("check", trace, check=False)
    assert "no end" in checked.stdout + checked.stderr, "but it can be read up to there"


@pytest.mark.parametrize("script", [COMPUTES, NO_MATTER_WHAT], ids=["ends", "ignores-it"])
def test_report_and_trace_are_there_when_all_is_killed_two_seconds_later(job, tmp_path, script,
                                                                         trace_tool):
    """As a batch system does at the time limit.  Three tries, for a busy machine."""
    for attempt in range(3):
        report, trace = tmp_path / f"report{attempt}", tmp_path / f"trace{attempt}"
        with job(f"--report={report}", f"--trace={trace}", script=script) as (process, family):
            rmd = rmd_of(process.pid)
            send(signal.SIGTERM, rmd, [process.pid, *family])
            time.sleep(2 - HEAD_START_S)
            kill([process.pid, *family], first=rmd)
            process.communicate(timeout=PATIENCE_S)
        if told(report):
            break
    assert len(rows(told(report))) == 1
    checked = trace_tool("check", trace, check=False)
    if script == COMPUTES:
        assert proven(checked) > 0
    else:
        assert "no end" in checked.stdout + checked.stderr, "but it can be read up to there"


def test_what_ends_later_has_the_whole_report_in_the_place_of_the_first(job, tmp_path):
    report, go = tmp_path / "report", tmp_path / "go"
    script = (f"trap 'kill $!; while ! test -e {go}; do sleep 0.05; done; exit 7' TERM; "
              "$0 loop & wait; wait")
    with job(f"--report={report}", script=script) as (process, _):
        for pid in (rmd_of(process.pid), process.pid):
            os.kill(pid, signal.SIGTERM)
        comes_true(lambda: "still runs" in told(report), "a report")
        go.touch()
        assert process.communicate(timeout=PATIENCE_S)[1] == "" and process.returncode == 7
    assert "still runs" not in report.read_text() and len(rows(report.read_text())) == 1


def test_the_trace_of_a_killed_invade_is_whole_and_its_rmd_ends(job, tmp_path, trace_tool):
    trace = tmp_path / "trace"
    with job(f"--trace={trace}") as (process, family):
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        assert gone(family)
    assert proven(trace_tool("check", trace)) > 0


def test_an_rmd_that_was_stopped_is_not_left_behind(job):
    with job() as (process, family):
        os.kill(rmd_of(process.pid), signal.SIGSTOP)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        assert gone(family)
