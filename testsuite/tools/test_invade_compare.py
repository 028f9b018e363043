# SPDX-License-Identifier: GPL-3.0-or-later
"""invade --compare: the command runs stock and managed in turns, in the same circumstances; the
comparison at the end."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest

from lib.building.small_programs import SHARED, compile_text
from lib.machine import TWO_CORES
from lib.processes import descendants, gone, running
from lib.waiting import PATIENCE_S, until

pytestmark = pytest.mark.timeout(60)

WHO = "echo ${INVASIVE_SOCKET-none} ${LD_PRELOAD-none} >&2"
MANAGED = '[ -n "$INVASIVE_SOCKET" ]'
COUNT = 'echo >>"$0"; echo run $(wc -l <"$0")'  # of runs; $0 is a file


@pytest.fixture
def compare(run_program, invade):
    """compare(N, SCRIPT, ARGUMENT..., options=[]) - the completed process."""

    def run(n, script, *arguments, options=(), **more):
        return run_program([invade, f"--compare={n}", *options, "sh", "-c", script, *arguments],
                           check=False, **more)

    return run


def rows(said):
    """{kind: [runs, median, least, most, and these of processor time]} of the table."""
    return {kind: [float(word) for word in rest.split() if word != "to"]
            for kind, rest in re.findall(r"^(stock|managed) +(\d+ .*)$", said, re.M)}


# --- the runs

def test_stock_and_managed_runs_take_turns(compare):
    done = compare(2, WHO)
    runs = [line.split() for line in done.stderr.splitlines()[:4]]
    assert done.returncode == 0
    assert runs[0] == runs[2] == ["none", "none"]
    for socket, preload in (runs[1], runs[3]):
        assert socket.startswith("@invasive-") and "libinvasive-process.so" in preload
    assert runs[1] != runs[3]  # each has its own resource manager
    assert {kind: row[0] for kind, row in rows(done.stderr).items()} == {"stock": 2, "managed": 2}


def test_three_runs_of_each_are_the_default(run_program, invade, tmp_path):
    done = run_program([invade, "--compare", "sh", "-c", COUNT, tmp_path / "count"])
    assert done.stdout == "run 6\n"


def test_a_stock_run_has_nothing_of_a_surrounding_invade(run_program, invade, tmp_path):
    theirs = str(compile_text(tmp_path / "theirs.so", "int their_variable;", *SHARED))
    done = run_program([invade, "--", invade, "--compare=1", "sh", "-c",
                        f"{WHO}; env | grep ^INVASIVE | wc -l >&2"],
                       env={"LD_PRELOAD": theirs, "INVASIVE_BIND": "strict"}, check=False)
    stock, ours_in_stock, managed, ours = done.stderr.splitlines()[:4]
    assert (stock, ours_in_stock) == (f"none {theirs}", "0")
    assert managed.startswith("@invasive-") and managed.endswith(theirs) and int(ours) > 1


def test_managed_runs_use_the_resource_manager_that_is_there(compare, rmd):
    service = rmd(2)
    for how in ({"env": {"INVASIVE_SOCKET": service.name}},
                {"options": [f"--socket={service.name}"]}):
        stock, managed = compare(1, WHO, **how).stderr.splitlines()[:2]
        assert stock == "none none" and managed.split()[0] == service.name


def test_cores_are_those_of_all_runs(compare):
    cpu = min(os.sched_getaffinity(0))
    done = compare(1, "grep Cpus_allowed_list /proc/self/status >&2", options=[f"--cores={cpu}"])
    stock, managed = done.stderr.splitlines()[:2]
    assert stock == managed == f"Cpus_allowed_list:\t{cpu}"


def test_mpi_jobs_are_compared(run_program, invade, mpi):
    program = mpi.program("apps/allreduce/allreduce")
    done = run_program([invade, "--compare=1", TWO_CORES, "--", *mpi.run(2, program)])
    assert rows(done.stderr).keys() == {"stock", "managed"}, done.stderr
    assert done.stdout


def test_a_rank_of_a_job_is_not_run_again(run_program, invade, mpi):
    done = run_program(mpi.run(2, invade, "--compare=1", "true"), check=False)
    assert done.returncode != 0
    assert "write invade --compare mpiexec" in done.stderr + done.stdout


# --- input and output

def test_output_is_the_last_runs_and_errors_are_those_of_all(compare, tmp_path):
    longer = '; [ $(wc -l <"$0") != 1 ] || echo the first one writes more'
    done = compare(2, f"{COUNT}{longer}; echo error >&2", tmp_path / "count",
                   env={"TMPDIR": str(tmp_path)})
    assert done.stdout == "run 4\n" and done.stderr.count("error\n") == 4
    assert os.listdir(tmp_path) == ["count"]


def test_each_run_reads_the_same_file(invade, stock_env, tmp_path):
    (tmp_path / "input").write_text("before\none\ntwo\n")
    with open(tmp_path / "input", "rb", buffering=0) as file:
        file.seek(len("before\n"))
        done = subprocess.run([invade, "--compare=1", "sh", "-c", "cat; cat >&2"], stdin=file,
                              env=stock_env, capture_output=True, text=True, check=True,
                              timeout=PATIENCE_S)
        assert done.stdout == "one\ntwo\n"
        file.seek(len("before\n"))
        done = subprocess.run([invade, "--compare=1", "sh", "-c", "cat >&2"], stdin=file,
                              env=stock_env, capture_output=True, text=True, check=True,
                              timeout=PATIENCE_S)
        assert done.stderr.startswith("one\ntwo\none\ntwo\n")


def test_a_pipe_as_input_is_refused(invade, stock_env):
    done = subprocess.run([invade, "--compare=1", "true"], input="text", env=stock_env, text=True,
                          capture_output=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 125 and "< /dev/null" in done.stderr


# --- how it ends

@pytest.mark.parametrize("script, code, run, how", [
    (f"{MANAGED} && exit 3; true", 3, "2 of 4 (managed)", "exit code 3"),
    (f"{MANAGED} || exit 4", 4, "1 of 4 (stock)", "exit code 4"),
    (f"{MANAGED} && kill -SEGV $$; true", -signal.SIGSEGV, "2 of 4 (managed)", "signal 11")])
def test_a_run_that_fails_ends_the_comparison(compare, script, code, run, how):
    done = compare(2, f"echo output; {script}")
    assert (done.returncode, done.stdout) == (code, "output\n")
    assert f"invade: run {run} ended with {how}: " in done.stderr
    assert {kind: row[0] for kind, row in rows(done.stderr).items()} == (
        {"stock": 1} if "managed" in run else {})


def test_a_command_that_is_not_there_is_told_once(run_program, invade):
    done = run_program([invade, "--compare", "no-such-command"], check=False)
    assert done.returncode == 127 and done.stdout == ""
    assert done.stderr.count("invade: no-such-command: No such file") == 1
    done = run_program([invade, "--compare", "5", "true"], check=False)
    assert done.returncode == 127 and "Write --compare=5" in done.stderr


@pytest.mark.parametrize("options, word", [
    (["--compare=0"], "'0' is not a number from 1 to"),
    (["--compare=x"], "'x' is not a number from 1 to"),
    (["--compare="], "'' is not a number from 1 to"),
    (["--compare", "--report"], "--report"),
    (["--compare", "--trace=t"], "--trace"),
    (["--compare", "--off"], "nothing to compare"),
    (["--compare", "--emulate-cores=4"], "--emulate-cores")])
def test_options_that_make_no_sense_are_refused(run_program, invade, options, word, tmp_path):
    done = run_program([invade, *options, "touch", "ran"], check=False, cwd=tmp_path)
    assert done.returncode == 125 and word in done.stderr
    assert not list(tmp_path.iterdir())


def test_invasive_off_in_the_environment_is_refused(compare):
    done = compare(1, "true", env={"INVASIVE": "off"})
    assert done.returncode == 125 and "nothing to compare" in done.stderr


# --- signals

WAITS_MANAGED = f"{MANAGED} || exit 0; echo ready >&2; exec sleep 1000"


@pytest.fixture
def waiting(invade, stock_env):
    """waiting(SCRIPT) - invade --compare=2, in whose first managed run the command waits; at the
    end nothing of it is left."""

    @contextlib.contextmanager
    def start(script=WAITS_MANAGED):
        with running(invade, "--compare=2", "sh", "-c", script, env=stock_env,
                     stdin=subprocess.DEVNULL) as process:
            assert process.stderr.readline() == "ready\n"
            family = descendants(process.pid)
            yield process
        assert family and gone([process.pid, *family])

    return start


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_a_signal_ends_the_run_and_the_comparison(waiting, number, send):
    with waiting() as process:
        send(process.pid, number)
        said = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == -number
    assert "invade: told to end in run 2 of 4 (managed)\n" in said
    assert {kind: row[0] for kind, row in rows(said).items()} == {"stock": 1}


def test_what_was_measured_is_said_before_the_kill_that_follows(waiting):
    """For a command that does not end at a signal: once, and not again when it has ended."""
    with waiting(f"trap '' TERM; {WAITS_MANAGED}") as process:
        process.terminate()
        while not process.stderr.readline().startswith("stock "):
            assert process.poll() is None
        for pid in descendants(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        said = process.communicate(timeout=PATIENCE_S)[1]
    assert not rows(said) and "told to end in run 2" in said


def test_nothing_is_left_of_a_comparison_that_is_killed(waiting):
    with waiting() as process:
        process.kill()


def test_a_signal_that_the_command_survives_ends_the_comparison(compare, tmp_path):
    done = compare(2, f"{COUNT}; trap '' TERM; kill -TERM $PPID", tmp_path / "count")
    assert (done.returncode, done.stdout) == (0, "run 1\n")
    assert "told to end in run 1 of 4" in done.stderr


def test_a_signal_that_is_ignored_does_not_end_the_comparison(run_program, invade):
    done = run_program(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", invade, "--compare=1", "sh",
                        "-c", "kill -HUP $PPID"])
    assert rows(done.stderr).keys() == {"stock", "managed"}


# --- the messages

def test_the_ratio_is_that_of_the_medians(compare):
    script = f"sleep 0.1; \"$0\" -c pass; if {MANAGED}; then sleep 0.3; fi"
    said = compare(2, script, sys.executable).stderr
    both = rows(said)
    stock, managed = both["stock"], both["managed"]
    assert stock[2] >= 0.1 and managed[2] >= 0.4  # least
    for row in (stock, managed):
        assert row[2] <= row[1] <= row[3] and row[5] <= row[4] <= row[6]
    time, cpu = re.search(r"managed took (\S+) of stock's time, (\S+) of its processor time",
                          said).groups()
    assert float(time) == pytest.approx(managed[1] / stock[1], rel=0.05)
    assert float(cpu) == pytest.approx(managed[4] / stock[4], rel=0.2)


def test_a_difference_within_the_spread_is_said_to_be_so(compare, tmp_path):
    """Stock and managed runs, some of 0.3 s and some of no time."""
    script = f"{COUNT}; case $(wc -l <\"$0\") in 1|4) sleep 0.3;; esac"
    said = compare(2, script, tmp_path / "count").stderr
    assert re.search("^(the difference in time is|both differences are) within", said, re.M)
    assert "one run tells no spread" in compare(1, "true").stderr


def test_a_difference_beyond_the_spread_is_not_said_to_be_within_it(compare):
    said = compare(2, f"if {MANAGED}; then sleep 0.5; fi").stderr
    told = "both" in said or "in time is" in said
    assert not told or rows(said)["stock"][3] >= 0.5  # on a machine that is so slow


def test_processor_time_of_orphans_counts(compare):
    """An orphan computes on after its parent has ended; on a slow machine for too long."""
    burn = "import time\nwhile time.process_time() < 0.05: pass"
    said = compare(1, '("$0" -c "$1" &)', sys.executable, burn).stderr
    assert "left behind" in said or all(row[4] >= 0.05 for row in rows(said).values())


def test_what_still_runs_is_said(compare):
    said = compare(1, "sleep 4 >/dev/null 2>&1 &").stderr
    assert "processes that the command has left behind" in said


def test_verbose_says_each_run(compare):
    said = compare(1, "true", options=["-v"]).stderr
    assert re.findall(r"^invade: (\w+): \S+ s, \S+ s of processor time$", said, re.M) == [
        "stock", "managed"]


def test_no_descriptor_is_needed(invade, stock_env):
    """All three standard descriptors may be closed."""
    process = subprocess.Popen(["sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh", invade, "--compare=1",
                                "sh", "-c", "exit 0"], env=stock_env)
    assert until(lambda: process.poll() is not None) and process.returncode == 0
