# SPDX-License-Identifier: GPL-3.0-or-later
"""invade --report=FILE.json: its schema, what its numbers must have in common, and that it survives
whatever happens to the processes that it is about."""

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from lib.building.small_programs import compile_text
from lib.machine import CPUS, TWO_CORES
from lib.mpi import Mpi
from lib.report import REPORT_SCHEMA, UNMANAGED, check_schema, close, parsed


@pytest.fixture
def waits(mpi):
    return mpi.program("mpi-shim/tests/waits")


@pytest.fixture
def report(invade, run_program, tmp_path):
    """report(COMMAND..., options=[]): the parsed report on the command"""

    def run(*command, options=(TWO_CORES,), check=True):
        file = tmp_path / "report.json"
        run_program([invade, *options, f"--report={file}", "--", *command], check=check)
        assert os.listdir(tmp_path) == [file.name]
        return parsed(file)

    return run


@pytest.fixture
def mpi_job(report, mpi, waits):
    """mpi_job(RANKS, SCENE): the only job in the report on it, and the report"""

    def run(ranks, scene, **more):
        whole = report(*mpi.run(ranks, waits, scene), **more)
        job, = whole["jobs"]
        assert job["mpi"] and job["ranks"] == ranks == len(job["processes"])
        assert job["missing_ranks"] == 0
        assert [p["rank"] for p in job["processes"]] == list(range(ranks))
        return job, whole

    return run


def sites_of(thing, function):
    return [s for s in thing["call_sites"] if s["function"] == function]


# --- call sites

def test_call_sites_come_in_the_order_of_their_waits_with_function_and_place(mpi_job, waits):
    job, _ = mpi_job(2, "places")
    first, = sites_of(job, "MPI_Recv")
    assert job["call_sites"][0] == first
    assert first["symbol"] == "wait_long" and first["source"].split("/")[-1].startswith("waits.c:")
    assert first["module"].endswith(waits.name) and int(first["offset"], 16) > 0
    assert (first["calls"], first["processes"]) == (20, 1)
    assert first["waited_seconds"] > 0.6 and first["longest_wait_seconds"] >= 0.03
    barrier, = sites_of(job, "MPI_Barrier")
    assert (barrier["symbol"], barrier["calls"], barrier["processes"]) == ("wait_some", 4, 2)
    bcast, = sites_of(job, "MPI_Bcast")
    assert (bcast["symbol"], bcast["calls"]) == ("wait_short", 4)


def test_names_of_places_are_found_though_a_signal_is_sent_to_all_of_the_job(
        invade, run_program, mpi, waits, tmp_path):
    """MPICH's launcher sends one when a rank ends without MPI_Finalize; here addr2line sends it."""
    file, program = tmp_path / "report.json", tmp_path / "addr2line"
    real = shlex.quote(shutil.which("addr2line"))
    program.write_text(f'#!/bin/sh\nkill -USR1 0\nexec {real} "$@"\n')
    program.chmod(0o755)
    run_program([invade, TWO_CORES, f"--report={file}", "--", *mpi.run(2, waits, "places")],
                env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    job, = parsed(file)["jobs"]
    assert job["call_sites"][0]["symbol"] == "wait_long"


def test_waits_by_call_site_add_up_to_the_wait_of_the_process(mpi_job):
    job, _ = mpi_job(2, "places")
    for p in job["processes"]:
        assert close(sum(s["waited_seconds"] for s in p["call_sites"]), p["waiting_seconds"], 0.01)
    for name in ("calls", "waited_seconds"):
        for s in job["call_sites"]:
            parts = [t[name] for p in job["processes"] for t in p["call_sites"]
                     if (t["function"], t["offset"]) == (s["function"], s["offset"])]
            assert close(sum(parts), s[name])


def test_one_place_that_calls_two_functions_is_two_call_sites(mpi_job):
    job, _ = mpi_job(2, "pointer")
    (send,), (ssend,) = sites_of(job, "MPI_Send"), sites_of(job, "MPI_Ssend")
    assert send["offset"] == ssend["offset"]
    assert (send["calls"], ssend["calls"]) == (20, 10)


def test_call_sites_without_room_are_counted_together(mpi_job):
    job, _ = mpi_job(1, "many")
    other, = sites_of(job, "other")
    assert other["module"] is other["offset"] is other["symbol"] is None
    named = sites_of(job, "MPI_Iprobe")
    assert len({s["offset"] for s in named}) == len(named) > 200
    assert all(s["calls"] == 1 for s in named)
    finalize = len(sites_of(job, "MPI_Finalize"))
    assert sum(s["calls"] for s in (*named, other)) == 400 + (1 - finalize)


def test_threads_at_one_call_site_are_all_counted(mpi_job):
    job, _ = mpi_job(2, "threads")
    (send,), (receive,) = sites_of(job, "MPI_Send"), sites_of(job, "MPI_Recv")
    assert (send["calls"], receive["calls"]) == (200, 200)


def test_a_loop_of_tests_is_a_call_site(mpi_job):
    job, _ = mpi_job(2, "polls")
    test, = sites_of(job, "MPI_Test")
    assert test["symbol"] == "poll_for_it" and test["waited_seconds"] > 0


def polled_sites(mpi_job):
    """Rank 1 has seen rank 0 asleep for 100 ms in the first loop, for 200 in the two others."""
    job, _ = mpi_job(2, "polled")
    p = job["processes"][0]
    return p, {(s["function"], s["symbol"]): s for s in p["call_sites"]}


def test_loops_of_tests_are_waits_and_work_between_tests_is_none(mpi_job):
    p, sites = polled_sites(mpi_job)
    loop, work = sites["MPI_Test", "poll_for_it"], sites["MPI_Iprobe", "look_and_work"]
    assert loop["waited_seconds"] > 0.09 and loop["sleeps"] > 0
    both = [sites[name, "poll_in_turns"] for name in ("MPI_Testall", "MPI_Test")]
    assert sum(s["waited_seconds"] for s in both) > 0.19
    naps = sites["MPI_Test", "nap_for_it"]
    assert naps["waited_seconds"] > 0.1 and naps["sleeps"] > 0
    assert (work["calls"], work["waited_seconds"], work["sleeps"]) == (200, 0, 0)
    assert p["useful_seconds"] > 0.1
    waited = sum(s["waited_seconds"] for s in p["call_sites"])
    assert close(waited, p["waiting_seconds"], 0.01)


# --- metrics

@pytest.mark.parametrize("ranks", [2, 5])  # cores of their own, and more ranks than cores
def test_work_balance_is_that_of_the_program_whichever_rank_has_the_cores(mpi_job, ranks):
    """Rank r computes 100 * (r + 1) ms of CPU time, however busy the machine is."""
    job, whole = mpi_job(ranks, "work")
    assert whole["cores_shared"] == (ranks > whole["cores"])
    work = [p["useful_core_seconds"] for p in job["processes"]]
    for rank, seconds in enumerate(work):
        assert 0.06 * (rank + 1) < seconds < 0.1 * (rank + 1) + 0.1
    expected = sum(work) / ranks / max(work)
    assert close(job["metrics"]["work_balance"], expected)
    balances = [p["metrics"]["load_balance"] for p in job["processes"]]
    assert balances == sorted(balances) and balances[-1] == 1
    mean = sum(p["metrics"]["parallel_efficiency"] for p in job["processes"]) / ranks
    assert close(mean, job["metrics"]["parallel_efficiency"])


OPENMP = r"""
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    double sum = 0;
    (void)argv;
#pragma omp parallel for reduction(+ : sum)
    for (long i = 1; i < 30000000; i++)
        sum += 1.0 / (double)i;
    printf("%g\\n", sum);
    fflush(stdout);
    if (argc > 1)
        sleep(3);
    return 0;
}
"""


def test_iterations_are_reported_by_class_in_each_rank_and_the_job(mpi_job):
    job, _ = mpi_job(2, "steps")
    main = job["iteration_classes"][0]
    assert main["count"] > 50  # without a pattern too, where the machine is too busy for one
    counts = set()
    for p in job["processes"]:
        mine, = [c for c in p["iteration_classes"] if c["id"] == main["id"]]
        assert 0 < mine["count"] <= main["count"]
        counts.add(mine["count"])
        assert close(mine["useful_seconds"] + mine["waiting_seconds"], mine["elapsed_seconds"])
        parts = sum(c["elapsed_seconds"] for c in p["iteration_classes"])
        assert close(parts, p["elapsed_seconds"], 0.1)
    # Each rank recognizes iterations for itself: on a busy machine one may have seen some later.
    assert len(counts) > 1 or main["metrics"]["work_balance"] < 0.95


def test_iterations_are_found_however_long_they_are_in_ranks_that_wait(mpi_job):
    """Longer than the time in which iterations must recur.  Six calls have to be seen."""
    job, _ = mpi_job(2, "slow")
    for p in job["processes"]:
        found = [c["count"] for c in p["iteration_classes"] if c["id"]]
        assert found and max(found) >= 20, p["iteration_classes"]


@pytest.fixture
def omp(tmp_path_factory):
    """An OpenMP program."""
    return compile_text(tmp_path_factory.mktemp("openmp") / "omp", OPENMP, "-O1", "-fopenmp")


def test_an_openmp_program_is_a_job_without_ranks(report, omp):
    job, = report(omp)["jobs"]
    assert (job["mpi"], job["ranks"], job["program"]) == (False, None, "omp")
    p, = job["processes"]
    assert p["waiting_seconds"] == 0 and p["end"] == "exited" and p["rank"] is None
    assert 0 < p["useful_core_seconds"] <= p["cpu_seconds"]


@pytest.fixture
def others():
    """One program on each of the first two cores that computes all the time."""
    with contextlib.ExitStack() as stack:
        for core in CPUS[:2]:
            program = stack.enter_context(subprocess.Popen(
                ["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"]))
            stack.callback(program.kill)
        yield


def test_what_other_programs_had_of_our_cores_is_told(report, invade, run_program, omp, others):
    command = ["sh", "-c", f"{omp}; sleep 1"]
    whole = report(*command)
    assert 0.3 * whole["cores"] < whole["other_programs_core_seconds"]
    text = run_program([invade, TWO_CORES, "--report", *command]).stderr
    assert re.search(r"^other programs had our cores for \d+\.\d+ core-seconds, ", text, re.M)


    assert "what perfect balance would gain cannot be told beside other programs" in text
    assert "would still gain" not in text


@pytest.mark.skipif(len(CPUS) < 2, reason="of one core nothing can be taken away")
def test_cores_that_a_program_may_not_have_are_not_missing_in_its_efficiency(invade, build, omp,
                                                                             run_program, tmp_path):
    """Also for a resource manager with more cores: here that of an outer launch, with a limit."""
    file = tmp_path / "inner.json"
    limit = shlex.join([str(build / "bin/rmctl"), "limit", "--cores=1"])
    inner = shlex.join([str(invade), f"--report={file}", str(omp)])
    run_program([invade, TWO_CORES, "sh", "-c", f"{limit} >&2 && {inner}"])
    job, = parsed(file)["jobs"]
    assert 0.5 < job["cores"] <= 1.01


@pytest.mark.parametrize("why", ["emulated", "left behind", "another manager"])
def test_of_other_programs_nothing_is_said_that_is_not_known(report, invade, run_program, omp,
                                                             tmp_path, why):
    if why == "another manager":
        inner, file = shlex.join([str(invade), "--report=inner.json", str(omp)]), "inner.json"
        run_program([invade, TWO_CORES, "sh", "-c", inner], cwd=tmp_path)
        whole = parsed(tmp_path / file)
    elif why == "emulated":
        whole = report(omp, options=("--emulate-cores=2",))
    else:
        whole = report("bash", "-c", f"exec 3< <({omp} stays 2>/dev/null); read -n 1 -u 3")
    assert whole["jobs"] and whole["other_programs_core_seconds"] is None


def test_every_job_of_a_launch_has_its_own_report(report, mpi, waits):
    commands = [mpi.run(*job) for job in ((2, waits, "places"), (1, waits, "many"),
                                          (2, waits, "polls"))]
    jobs = report("sh", "-c", " && ".join(" ".join(map(str, c)) for c in commands))["jobs"]
    assert [len(job["processes"]) for job in jobs] == [2, 1, 2]
    assert [job["call_sites"][0]["function"] for job in jobs[:1]] == ["MPI_Recv"]
    assert [bool(sites_of(job, "MPI_Iprobe")) for job in jobs] == [False, True, False]
    assert jobs[0]["start_seconds"] < jobs[1]["start_seconds"] < jobs[2]["start_seconds"]


def test_ranks_whose_mpiexec_is_of_another_mpi_are_told_so(report, invade, run_program, build,
                                                           make_variable):
    """Each process is rank 0 of 1: the most frequent mistake of a beginner."""
    if not (make_variable("MPICH_MPIEXEC") and make_variable("OPENMPI_MPIEXEC")):
        pytest.skip("configured without one of the two")
    mpich, openmpi = (Mpi(name, make_variable, build) for name in ("mpich", "openmpi"))
    for ours, theirs, name in ((mpich, openmpi, "Open MPI"), (openmpi, mpich, "MPICH")):
        command = ours.run(2, theirs.program("mpi-shim/tests/waits"), "work")
        jobs = report(*command)["jobs"]
        assert [(job["ranks"], job["launched_ranks"]) for job in jobs] == [(1, 2), (1, 2)]
        said = run_program([invade, TWO_CORES, "--report", *command]).stderr
        shim, text = (re.findall(rf"^{begin}.*$", said, re.M) for begin in ("invasive: ", "2 proc"))
        assert len(shim) == 1 and f"has started 2 ranks, but each is rank 0 of 1, since the " \
            f"program's MPI is {name}" in shim[0]
        assert text == ["2 processes: rank 0 of 1 each, though mpiexec has started 2 ranks: "
                        "mpiexec and the program are of different MPI libraries"]
    # two launchers, of which the inner one has started the program
    inner = shlex.join(map(str, openmpi.run(1, openmpi.program("mpi-shim/tests/waits"), "work")))
    done = run_program([invade, TWO_CORES, "--report", *mpich.run(2, "sh", "-c", inner)])
    assert "has started 2 ranks" not in done.stderr
    done = run_program([invade, TWO_CORES, "--report", *mpich.run(
        1, mpich.program("mpi-shim/tests/waits"), "work")])
    assert "has started" not in done.stderr


def test_emulated_cores_have_metrics_too(mpi_job):
    """Kernels that sleep use no CPU time, so it is not what is measured."""
    job, whole = mpi_job(4, "places", options=("--emulate-cores=8",))
    assert whole["emulated"] and job["cores"] == 8
    assert all(p["cpu_seconds"] is None for p in job["processes"])
    assert job["processes"][1]["useful_core_seconds"] > 0.5


# --- without moving cores

@pytest.fixture
def modelled(report, mpi):
    """modelled(LOADS, MORE..., cores=2): the job of a program that sleeps for 40 ms of work a core
    in each of 24 iterations, and what a moved core saves of that in seconds, by its report"""

    def run(loads, *more, cores=2):
        program, ranks = mpi.program("apps/imbalance/imbalance"), loads.count(":") + 1
        job, = report(*mpi.run(ranks, program, f"--loads={loads}", "--work-ms=80", "--emulate",
                               "--iterations=24", *more),
                      options=(f"--emulate-cores={cores}",))["jobs"]
        return job, (job["without_moving_seconds"] or 0) - job["elapsed_seconds"]

    return run


def test_how_long_it_would_have_taken_without_moving_cores_is_told(modelled):
    """Whether the imbalance stays or alternates: 24 times 72 ms, or 60, instead of 40.  Of the few
    iterations in which a core has not been moved nothing is saved.  It is a bound if iterations are
    less than 0.9 of the run, as where a loaded machine starts and ends the ranks slowly."""
    iterations_s = 24 * 0.04
    for loads, more, saved in (("1:9", (), 0.77), ("0.5:1.5", ("--alternate",), 0.48)):
        job, gain = modelled(loads, *more)
        assert 0.5 * saved < gain < 1.5 * saved, (loads, job)
        slow = job["elapsed_seconds"] > iterations_s / 0.85
        assert slow or not job["without_moving_is_bound"], job


def test_where_nothing_was_gained_it_would_have_taken_as_long(modelled):
    job, gain = modelled("1:1")
    assert 0 <= gain < 0.25 * job["elapsed_seconds"]


def test_more_ranks_than_cores_are_compared_with_turns_on_each_core(invade, run_program, mpi,
                                                                    waits):
    """Rank r computes 100 * (r + 1) ms: ranks 2 and 3 on one core 700 of them."""
    command = mpi.run(4, waits, "work")
    said = run_program([invade, TWO_CORES, "--report", *command]).stderr
    line, = re.findall(r"^without moving cores this would have taken .*", said, re.M)
    assert "(2 ranks by turns on each core)" in line


def test_where_there_is_nothing_to_compare_nothing_is_said(report, mpi, omp, waits):
    """For a single rank, for a program without MPI, and for two jobs beside each other."""
    one = report(*mpi.run(1, waits, "work"))["jobs"]
    none = report(omp)["jobs"]
    command = shlex.join(map(str, mpi.run(2, waits, "work")))
    two = report("sh", "-c", f"{command} & {command}; wait", options=("--emulate-cores=8",))["jobs"]
    assert [len(jobs) for jobs in (one, none, two)] == [1, 1, 2]
    assert all(job["without_moving_seconds"] is None for jobs in (one, none, two) for job in jobs)


# --- whatever happens

def test_a_killed_rank_is_reported_as_such_with_what_it_had_done(report, mpi, waits):
    whole = report(*mpi.run(2, waits, "killed"), check=False)
    assert whole["exit_code"] != 0
    (job,) = whole["jobs"]
    killed = job["processes"][1]
    assert (killed["rank"], killed["end"]) == (1, "killed")
    site, = sites_of(killed, "MPI_Recv")
    assert site["symbol"] == "scene_killed" and site["waited_seconds"] > 0.2
    other = job["processes"][0]
    assert other["end"] == "killed" and sites_of(other, "MPI_Barrier"), "it waits in a barrier"
    assert sites_of(other, "MPI_Barrier")[0]["waited_seconds"] > 0.01


def test_a_rank_that_ends_by_itself_is_not_called_killed(mpi_job):
    job, _ = mpi_job(2, "polls")
    assert {p["end"] for p in job["processes"]} == {"exited"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_invade_is_interrupted(invade, mpiexec, build, tmp_path, number):
    file = tmp_path / "report.json"
    file.write_text("before")
    with subprocess.Popen([invade, f"--report={file}", mpiexec, "-n", "2",
                           build / "mpi-shim/tests/scenes", "hang"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, start_new_session=True) as process:
        assert process.stdout.readline().strip().isdigit()  # MPI is set up
        for _ in range(5):  # mpiexec may have to be told twice, without us too
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
                break
        process.stdout.read()  # to the end of the last process
    if number == signal.SIGKILL:
        assert file.read_text() == "before", "an old report is whole, or a new one is"
    else:
        ends = {p["end"] for job in parsed(file)["jobs"] for p in job["processes"]}
        assert ends <= {"killed", "running", "exited"} and ends
    assert os.listdir(tmp_path) == [file.name]
    assert not [name for name in os.listdir("/dev/shm") if "invasive" in name]


def test_nothing_is_recorded_without_report(invade, run_program, mpi, waits, build, tmp_path):
    with subprocess.Popen([build / "testsuite/rmd/programs/rmd_member"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        offset = process.communicate("records\n")[0].strip()
    for options, recorded in (([], False), ([f"--report={tmp_path / 'x.json'}"], True)):
        done = run_program([invade, *options, *mpi.run(1, waits, "untouched", offset)])
        assert (int(done.stdout) > 0) == recorded


@pytest.mark.parametrize("why", ["--socket=@nobody-listens-here", "--off"])
def test_a_run_that_is_unmanaged_is_said_to_be_so_in_json(invade, run_program, tmp_path, why):
    """And the report of an earlier run is replaced."""
    file = tmp_path / "report.json"
    file.write_text("before")
    run_program([invade, why, f"--report={file}", "true"])
    report = json.loads(file.read_text())
    check_schema(report, UNMANAGED)
    assert report["managed"] is False and report["command"] == ["true"]


@pytest.mark.sanitize
def test_a_report_takes_the_place_of_the_old_one_as_a_whole(invade, run_program, tmp_path):
    file, other_name = tmp_path / "report.json", tmp_path / "old"
    file.write_text("before")
    os.link(file, other_name)
    run_program([invade, f"--report={file}", "true"])
    check_schema(json.loads(file.read_text()), REPORT_SCHEMA)
    assert other_name.read_text() == "before"
    assert set(os.listdir(tmp_path)) == {file.name, other_name.name}


@pytest.mark.sanitize
@pytest.mark.parametrize("name", ["no/such/directory/r.json", "directory.json", "fifo.json"])
def test_a_report_that_cannot_be_written_stops_before_the_command(invade, run_program, tmp_path,
                                                                   name):
    (tmp_path / "directory.json").mkdir()
    os.mkfifo(tmp_path / "fifo.json")
    mark = tmp_path / "mark"
    done = run_program([invade, f"--report={tmp_path / name}", "touch", mark], check=False)
    assert done.returncode == 125 and not mark.exists()
    assert f"cannot write the report to {tmp_path / name}: " in done.stderr


# --- where the report goes

def json_in(text):
    """The report that is the end of a program's output."""
    return json.loads(text[text.index("{"):])


@pytest.mark.sanitize
def test_a_file_named_minus_is_standard_output_after_what_the_command_has_written(
        invade, run_program, tmp_path):
    done = run_program([invade, "--report=-", "echo", "ran"], cwd=tmp_path)
    assert done.stdout.startswith("ran\ninvade: echo: ") and "invade:" not in done.stderr
    whole = run_program([invade, "--report=-.json", "echo", "ran"], cwd=tmp_path)
    assert whole.stdout.startswith("ran\n{")
    check_schema(json_in(whole.stdout), REPORT_SCHEMA)
    off = run_program([invade, "--off", "--report=-.json", "true"], cwd=tmp_path)
    check_schema(json_in(off.stdout), UNMANAGED)
    assert os.listdir(tmp_path) == []
    run_program([invade, "--report=./-", "true"], cwd=tmp_path)
    assert os.listdir(tmp_path) == ["-"]


@pytest.mark.sanitize
def test_standard_output_that_is_full_is_said_and_the_exit_code_is_the_commands(invade,
                                                                               run_program):
    for name in ("-", "-.json"):
        done = run_program(["sh", "-c", f"{invade} --report={name} sh -c 'exit 7' > /dev/full"],
                           check=False)
        assert done.returncode == 7
        assert "cannot write the report to standard output: No space left" in done.stderr


@pytest.mark.sanitize
@pytest.mark.parametrize("there", [True, False])
def test_a_word_after_report_that_is_no_command_may_have_been_meant_as_its_file(
        invade, run_program, tmp_path, there):
    """A file follows its option after =, never after a blank: "--report FILE ./a" runs FILE."""
    file, mark = tmp_path / "report.txt", tmp_path / "mark"
    if there:
        file.write_text("the report of yesterday")
    hint = f"invade: is {file} the file of the report? Write --report={file}"
    done = run_program([invade, "--report", file, "touch", mark], check=False)
    assert done.returncode == (126 if there else 127) and hint in done.stderr.splitlines()
    assert not mark.exists()
    for words in (["--report", "--", file], ["--report", "-v", file], ["--report=r", file], [file]):
        done = run_program([invade, *words], check=False, cwd=tmp_path)
        assert done.returncode == (126 if there else 127) and hint not in done.stderr


@pytest.mark.sanitize
def test_the_file_of_a_trace_follows_after_an_equals_sign_only(invade, run_program, tmp_path):
    """Like the file of a report."""
    file, mark = tmp_path / "run.trace", tmp_path / "mark"
    done = run_program([invade, "--trace", file, "touch", mark], check=False)
    assert done.returncode == 125 and not mark.exists() and not file.exists()
    assert f"--trace: its file follows after =, as in --trace={file}" in done.stderr
    done = run_program([invade, "--trace=-", "touch", mark], check=False, cwd=tmp_path)
    assert done.returncode == 125 and os.listdir(tmp_path) == []
    assert "--trace=-: a trace needs a file" in done.stderr


@pytest.mark.sanitize
def test_of_no_process_there_is_no_efficiency(report):
    whole = report("true", options=())
    assert whole["jobs"] == []
    assert (whole["elapsed_seconds"], whole["parallel_efficiency"]) == (None, None)


def test_a_program_on_llvms_openmp_runtime_is_not_said_to_use_none(invade, run_program, tmp_path):
    clang = next((name for name in ("clang", "clang-14") if shutil.which(name)), None)
    if not clang:
        pytest.skip("needs package clang-14 and libomp-14-dev")
    (tmp_path / "a.c").write_text(OPENMP)
    run_program([clang, "-O1", "-fopenmp", "-o", tmp_path / "a", tmp_path / "a.c"])
    said = run_program([invade, TWO_CORES, "--report", tmp_path / "a"]).stderr
    assert "no process used MPI or GCC's OpenMP runtime (libgomp)" in said
    assert "LLVM's and Intel's" in said


# --- records with contents that cannot be true

@pytest.fixture
def members(invade, run_program, build, tmp_path):
    """members(SCRIPT...): the report on processes of rmd_member, each with such a script"""

    def run(*scripts):
        file, words = tmp_path / "report.json", []
        for number, script in enumerate(scripts):
            path = tmp_path / f"script{number}"
            path.write_text(script)
            words.append(f"{build / 'testsuite/rmd/programs/rmd_member'} < {path}")
        command = 'set -e; export S="$INVASIVE_SOCKET" L="${INVASIVE_REPORT%%:*}"; ' + "; ".join(
            f"sed \"s/SOCKET/$S/;s/LAUNCH/$L/\" {word.split(' < ')[1]} | {word.split(' < ')[0]}"
            for word in words)
        run_program([invade, "--emulate-cores=4", f"--report={file}", "sh", "-c", command])
        return parsed(file)

    return run


@pytest.mark.sanitize
@pytest.mark.parametrize("seed, sites", [*itertools.product([1, 2, 3], [0, 7, 256, -1])])
def test_arbitrary_bytes_in_a_record_do_no_harm(members, seed, sites):
    whole = members(f"join SOCKET 0 1 1\nrecord LAUNCH {sites} {seed}\n",
                    "join SOCKET 0 1 1\nrecord LAUNCH 0 0\n")
    assert sum(len(job["processes"]) for job in whole["jobs"]) == 2
    for job in whole["jobs"]:
        for p in job["processes"]:
            assert p["useful_seconds"] <= p["elapsed_seconds"] + 1e-6


@pytest.mark.sanitize
def test_ranks_that_are_nowhere_to_be_seen_are_said_to_be_missing(members):
    job, = members("join SOCKET 2 5 1\nrecord LAUNCH 1 0\n")["jobs"]
    assert (job["ranks"], job["missing_ranks"], len(job["processes"])) == (5, 4, 1)


# --- reports that have come from other nodes

@pytest.mark.sanitize
def test_a_report_from_another_node_is_kept_beside_those_of_this_one(members):
    whole = members("join SOCKET 0 4 1\nrecord LAUNCH 1 0\nsubmit SOCKET LAUNCH 1 0\n")
    assert whole["cores"] == 9
    assert [n["cores"] for n in whole["nodes"]] == [4, 5] and whole["nodes"][1]["name"] == "other"
    p = [(p["rank"], p["node"], p["pid"]) for job in whole["jobs"] for p in job["processes"]]
    assert p[1] == (3, "other", 0) and p[0][0] == 0


@pytest.mark.sanitize
@pytest.mark.parametrize("seed, sites", [*itertools.product([1, 2, 3, 4], [0, 7, 256])])
def test_arbitrary_bytes_from_another_node_do_no_harm(members, seed, sites):
    whole = members("join SOCKET 0 4 1\nrecord LAUNCH 1 0\n"
                    f"submit SOCKET LAUNCH {sites} {seed}\nsubmit SOCKET LAUNCH 2 0\n")
    processes = [p for job in whole["jobs"] for p in job["processes"]]
    assert len([p for p in processes if p["node"] == "other"]) >= 1 and len(processes) in (2, 3)
    for p in processes:
        assert p["useful_seconds"] <= p["elapsed_seconds"] + 1e-6


@pytest.mark.sanitize
@pytest.mark.parametrize("script", ["submit SOCKET LAUNCH 1 0\njoin SOCKET 0 1 1\n",
                                    "join SOCKET 0 1 1\nsubmit SOCKET LAUNCH -1 0\n"])
def test_a_report_from_no_member_or_without_a_record_is_not_kept(members, script):
    """The first report comes from a process that has not joined; it joins only then."""
    whole = members(script)
    assert len(whole["nodes"]) == 1
    assert sum(len(job["processes"]) for job in whole["jobs"]) == 1


# --- an invade for each rank

def test_of_an_invade_for_each_rank_the_first_reports_on_the_job(invade, run_program, mpi, waits,
                                                                 tmp_path):
    file = tmp_path / "report.json"
    run_program(mpi.run(3, invade, TWO_CORES, f"--report={file}", "--", waits, "places"))
    assert os.listdir(tmp_path) == [file.name]
    whole = parsed(file)
    assert whole["command"] == [str(waits), "places"]
    job, = whole["jobs"]
    assert (job["ranks"], job["missing_ranks"]) == (3, 0)
    assert [p["rank"] for p in job["processes"]] == [0, 1, 2]
    assert {p["end"] for p in job["processes"]} <= {"exited", "finalized"}
    assert job["call_sites"][0]["symbol"] == "wait_long"


def test_what_a_rank_ran_under_another_invade_before_is_not_in_it(invade, run_program, mpi, waits,
                                                                  omp, tmp_path):
    """All ranks end the first run before: a process that still ran when rank 0's invade began
    would be in its report."""
    before, file, done = tmp_path / "before.json", tmp_path / "report.json", tmp_path / "done"
    done.mkdir()
    run_program(mpi.run(2, "sh", "-c", f"{invade} --report={before} {omp} && : > {done}/$$ && "
                        f"while [ $(ls {done} | wc -l) -lt 2 ]; do sleep 0.01; done && "
                        f"exec {invade} --report={file} {waits} places"))
    assert [job["program"] for job in parsed(file)["jobs"]] == [waits.name]
    assert {job["program"] for job in parsed(before)["jobs"]} == {omp.name}
