# SPDX-License-Identifier: GPL-3.0-or-later
"""rmctl suspend and resume: a job waits, and others have its cores."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from lib.machine import TWO_CORES, two_cpus
from lib.manager.core_table import NOBODY
from lib.manager.member import counts
from lib.manager.rmd import Rmd
from lib.manager.users import ALICE, BOB
from lib.processes import processor_s, running
from lib.waiting import PATIENCE_S, comes_true, eventually, until


def pid(member):
    return member.process.pid


def of_launch(s, name, join=True):
    """A member of ALICE's launch with this name."""
    return s.member(ALICE, join, env={"INVASIVE_LAUNCH": f"{name}/1"})


# --- what rmd does

@pytest.mark.sanitize
def test_the_cores_of_a_suspended_job_are_the_others_until_it_is_resumed(service, ask):
    s = service("emulate-cores = 4\n")
    one, other = s.member(ALICE), s.member(ALICE)
    for core in [core for core, owner in enumerate(one.owners()) if owner == one.slot]:
        assert one.ask(f"borrow {core}") == "1"
    said = ask(s, "suspend", pid(one))
    assert (said["outcome"], said["processes"]) == ("done", 1)
    assert one.owners() == [other.slot] * 4 and one.holders() == [NOBODY] * 4
    domain, = ask(s, "status")["domains"]
    assert [(o["pid"], o["suspended"]) for o in domain["orders"]] == [(pid(one), True)]
    ask(s, "resume", pid(one))
    assert counts(one, one.slot, other.slot) == [2, 2]
    assert ask(s, "status")["domains"][0]["orders"] == []


@pytest.mark.sanitize
def test_a_job_is_all_of_its_launch_and_what_joins_later(service, ask, tell):
    s = service("emulate-cores = 6\n")
    one, two, other = of_launch(s, "one"), of_launch(s, "one"), of_launch(s, "other")
    assert ask(s, "suspend", pid(two))["processes"] == 2
    assert other.owners() == [other.slot] * 6
    three = of_launch(s, "one")
    assert other.owners() == [other.slot] * 6
    text = tell(s, "status")[1]
    for member in (one, two, three):
        assert f"order: process {pid(member)} of user {ALICE} is suspended with its job" in text
    two.kill()
    eventually(lambda: ask(s, "status")["domains"][0]["users"][1]["processes"], 3)
    assert ask(s, "resume", pid(three))["processes"] == 2
    assert counts(one, one.slot, three.slot, other.slot) == [2, 2, 2]


@pytest.mark.sanitize
def test_all_jobs_may_be_suspended(service, ask):
    s = service("emulate-cores = 4\n")
    one = s.member(ALICE)
    ask(s, "suspend", pid(one))
    assert one.holders() == [NOBODY] * 4 and one.slot not in one.owners()
    ask(s, "resume", pid(one))
    eventually(lambda: one.owners(), [one.slot] * 4)


@pytest.mark.sanitize
def test_other_users_have_the_cores_of_a_user_whose_jobs_are_all_suspended(service, ask):
    s = service("emulate-cores = 4\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    assert counts(bob, bob.slot) == [2]
    ask(s, "suspend", pid(alice))
    eventually(lambda: counts(bob, bob.slot), [4])
    ask(s, "resume", pid(alice))
    eventually(lambda: counts(bob, bob.slot) + counts(alice, alice.slot), [2, 2])


@pytest.mark.sanitize
def test_cores_to_which_a_suspended_process_is_pinned_are_not_kept_for_it(service, ask):
    s = service("emulate-cores = 4\n")
    one, other = s.member(ALICE), s.member(ALICE)
    ask(s, "pin", pid(one), "0-2")
    ask(s, "suspend", pid(one))
    assert other.owners() == [other.slot] * 4
    ask(s, "pin", pid(other), "0")
    ask(s, "resume", pid(one))
    assert other.owners()[:3] == [other.slot, one.slot, one.slot]


@pytest.mark.sanitize
def test_where_tokens_are_counted_others_have_those_of_a_suspended_job(service, ask):
    s = service("emulate-cores = 2\n")
    one, other = of_launch(s, "one", False), of_launch(s, "other", False)
    for member in (one, other):
        member.slot = member.join(0, 3, 3)
    assert one.table()[0] == 1
    assert [one.ask("token"), one.ask("token"), other.ask("token")] == ["1", "1", "0"]
    ask(s, "suspend", pid(one))
    assert [other.ask("token"), other.ask("token")] == ["1", "1"]
    ask(s, "resume", pid(one))
    assert other.table()[1] == -2


@pytest.mark.sanitize
def test_suspended_jobs_are_so_for_the_next_rmd_too(mortal, ask):
    s = mortal("emulate-cores = 4\n")
    one, other = s.member(ALICE), s.member(ALICE)
    ask(s, "suspend", pid(one))
    s.kill_and_start_again()
    assert other.owners() == [other.slot] * 4
    other.ask("announce 1 0 0")
    assert other.owners() == [other.slot] * 4
    ask(s, "resume", pid(one))
    assert counts(one, one.slot, other.slot) == [2, 2]


@pytest.mark.sanitize
def test_what_cannot_be_suspended_or_resumed_is_refused_with_the_reason(service, tell):
    s = service("emulate-cores = 4\n")
    one = s.member(ALICE)
    for words, why in ((("resume", pid(one)), f"the job of process {pid(one)} is not suspended"),
                       (("suspend", os.getpid()), "is not managed here"),
                       (("suspend", "rank:7"), "no process of yours is rank 7")):
        code, out, err = tell(s, *words)
        assert code == 1 and out == "" and why in err
    assert tell(s, "suspend", pid(one))[0] == 0
    code, _, err = tell(s, "suspend", pid(one))
    assert code == 1 and f"the job of process {pid(one)} is suspended already" in err
    for words in (("suspend",), ("suspend", "x"), ("resume", pid(one), 2)):
        assert tell(s, *words)[0] == 64


@pytest.mark.sanitize
def test_a_user_suspends_its_own_jobs_and_root_those_of_all(service, build, public):
    s = service("emulate-cores = 4\n")
    alice = s.member(ALICE)
    shutil.copy(build / "bin/rmctl", public)

    def by(uid, *words):
        done = subprocess.run([public / "rmctl", f"--socket={s.name}", *words, str(pid(alice))],
                              cwd="/", user=uid, group=60000, extra_groups=[], text=True,
                              capture_output=True, timeout=PATIENCE_S, check=False)
        return done.returncode, done.stderr

    code, err = by(BOB, "suspend")
    assert code == 1 and "is not managed here, or not yours" in err
    assert by(ALICE, "suspend") == (0, "")
    assert by(BOB, "resume")[0] == 1
    assert by(0, "resume") == (0, "")


@pytest.mark.sanitize
def test_events_tell_of_suspended_jobs(service, ask, tell):
    s = service("emulate-cores = 4\n")
    one, two = of_launch(s, "one"), of_launch(s, "one")
    ask(s, "suspend", pid(one))
    ask(s, "resume", pid(two))
    found = [(e["event"], e["pid"], e["processes"]) for e in s.events()
             if e["event"] in ("suspend", "resume")]
    assert found == [("suspend", pid(one), 2), ("resume", pid(two), 2)]
    assert re.search(rf"suspend user {ALICE} process {pid(one)} 2 processes$",
                     tell(s, "events")[1], re.M)


# --- what the threads do

def waits(process):
    """Comes to take no processor time."""

    def still():
        before = processor_s(process)
        time.sleep(0.2)
        return processor_s(process) - before < 0.01

    comes_true(still, "its threads wait")


def computes(process):
    before = processor_s(process)
    comes_true(lambda: processor_s(process) > before + 0.05, "it computes")


class Of:
    """A process by its pid, for processor_s."""

    def __init__(self, found):
        self.pid = found["pid"]


@two_cpus
def test_a_suspended_program_takes_no_processor_time_and_goes_on(domain, blocks, ask):
    d = domain()
    one, other = d.start(blocks, "computes"), d.start(blocks, "computes")
    d.comes_to_hold(1, 1)
    process = Of(d.processes()[0])
    ask(d.rmd, "suspend", process.pid)
    d.comes_to_hold(0, 2)
    waits(process)
    ask(d.rmd, "resume", process.pid)
    computes(process)
    d.comes_to_hold(1, 1)
    d.ends_well(one, other)


@two_cpus
def test_a_program_that_comes_to_no_scheduling_point_waits_too(domain, blocks, ask):
    d = domain()
    serial = d.blocked(blocks, "read")
    d.wakes(serial)
    process = Of(d.processes()[0])
    computes(process)
    ask(d.rmd, "suspend", process.pid)
    waits(process)
    assert d.held() == [0]
    ask(d.rmd, "resume", process.pid)
    computes(process)
    d.ends_well(serial)


@two_cpus
def test_a_program_that_sleeps_when_it_is_suspended_waits_when_it_wakes(domain, blocks, ask):
    d = domain()
    blocked = d.blocked(blocks, "read")
    process = Of(d.processes()[0])
    ask(d.rmd, "suspend", process.pid)
    d.wake.write()
    comes_true(lambda: "S" in state_after_wake(process), "it waits")
    waits(process)
    ask(d.rmd, "resume", process.pid)
    assert blocked.stdout.readline() == "woken\n"
    d.ends_well(blocked)


def state_after_wake(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
        return stat.read().rpartition(")")[2].split()[0]


@two_cpus
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_suspended_program(domain, blocks, ask, number):
    d = domain()
    one = d.start(blocks, "computes")
    eventually(lambda: len(d.processes()), 1)
    process = Of(d.processes()[0])
    computes(process)
    ask(d.rmd, "suspend", process.pid)
    os.kill(process.pid, number)
    assert one.wait(PATIENCE_S) == -number
    eventually(d.processes, [])


@two_cpus
def test_a_program_that_begins_in_a_suspended_job_begins_when_that_is_resumed(build, stock_env, ask,
                                                                             omp_job, tmp_path):
    """One after the other, of one launch."""
    r = Rmd(build, TWO_CORES)
    script = f"{omp_job} loop & until [ -e {tmp_path}/go ]; do sleep 0.05; done; {omp_job} plain"
    try:
        with running(str(build / "invade"), f"--socket={r.name}", "--", "sh", "-c", script,
                     env=stock_env) as jobs:
            assert jobs.stdout.readline() == "ready\n"
            first, = ask(r, "status")["domains"][0]["processes"]
            ask(r, "suspend", first["pid"])
            (tmp_path / "go").touch()
            eventually(lambda: len(ask(r, "status")["domains"][0]["processes"]), 2)
            second = max(ask(r, "status")["domains"][0]["processes"], key=lambda p: p["slot"])
            waits(Of(second))
            assert [p["held_cores"] for p in ask(r, "status")["domains"][0]["processes"]] == [0, 0]
            ask(r, "resume", first["pid"])
            assert jobs.stdout.readline() == "good\n"
            os.kill(first["pid"], signal.SIGKILL)
    finally:
        r.close()


MPI = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, go = 1, rounds = 0;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (; go; rounds++) {
        volatile double x = 0;
        for (int i = 0; i < (rank ? 10000 : 100000); i++)
            x = x + 1;
        double mine = rank + 1, all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
        if (rounds == 0 && !rank) {
            puts("ready");
            fflush(stdout);
        }
        go = rank == 0 && access(argv[1], F_OK) != 0;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (!rank)
        puts(sum == 3.0 * rounds ? "right" : "wrong");
    return MPI_Finalize();
}
"""


@two_cpus
def test_ranks_that_are_suspended_for_two_seconds_end_with_the_right_result(
        build, stock_env, ask, mpi, tmp_path):
    (tmp_path / "ranks.c").write_text(MPI)
    before, after = mpi.flags
    subprocess.run(["gcc", "-O1", *before, tmp_path / "ranks.c", "-o", tmp_path / "ranks", *after],
                   check=True, timeout=60)
    command = map(str, mpi.run(2, tmp_path / "ranks", tmp_path / "end"))
    with contextlib.closing(Rmd(build, TWO_CORES)) as r:
        with running(str(build / "invade"), f"--socket={r.name}", "--", *command,
                     env=stock_env) as job:
            assert job.stdout.readline() == "ready\n"
            ranks = ask(r, "status")["domains"][0]["processes"]
            assert ask(r, "suspend", "rank:1")["processes"] == 2
            for rank in ranks:
                waits(Of(rank))
            assert not until(lambda: job.poll() is not None, 2)
            assert [p["held_cores"] for p in ask(r, "status")["domains"][0]["processes"]] == [0, 0]
            ask(r, "resume", "rank:0")
            (tmp_path / "end").touch()
            assert job.communicate(timeout=PATIENCE_S) == ("right\n", "")
            assert job.returncode == 0


# --- priorities

@pytest.mark.sanitize
def test_a_job_of_higher_priority_has_all_cores_but_the_least_of_the_others(service, ask):
    s = service("emulate-cores = 8\n")
    one, two, other = of_launch(s, "one"), of_launch(s, "one"), of_launch(s, "other")
    assert ask(s, "priority", pid(two), 70)["processes"] == 2
    assert counts(one, one.slot, two.slot, other.slot) == [4, 3, 1]
    other.ask("announce 0 2 0")
    assert counts(one, one.slot, two.slot, other.slot) == [3, 3, 2]
    for member in (one, two):
        member.ask("announce 0 0 2")
    assert counts(one, one.slot, two.slot, other.slot) == [2, 2, 4]
    domain, = ask(s, "status")["domains"]
    assert [o["priority"] for o in domain["orders"]] == [70, 70]
    ask(s, "priority", pid(two), 50)
    assert ask(s, "status")["domains"][0]["orders"] == []


@pytest.mark.sanitize
def test_a_priority_holds_for_what_joins_later_and_for_the_next_rmd(mortal, ask):
    s = mortal("emulate-cores = 6\n")
    one, other = of_launch(s, "one"), of_launch(s, "other")
    ask(s, "priority", pid(one), 40)
    assert counts(one, one.slot, other.slot) == [1, 5]
    two = of_launch(s, "one")
    assert counts(one, one.slot, two.slot, other.slot) == [1, 1, 4]
    s.kill_and_start_again()
    other.ask("announce 1 0 0")
    assert counts(one, one.slot, two.slot, other.slot) == [1, 1, 4]


@pytest.mark.sanitize
def test_a_user_gives_no_more_than_the_usual_priority_and_root_does(service, build, public):
    s = service("emulate-cores = 4\n")
    alice = s.member(ALICE)
    shutil.copy(build / "bin/rmctl", public)

    def by(uid, priority):
        done = subprocess.run([public / "rmctl", f"--socket={s.name}", "priority", str(pid(alice)),
                               str(priority)], cwd="/", user=uid, group=60000, extra_groups=[],
                              text=True, capture_output=True, timeout=PATIENCE_S, check=False)
        return done.returncode, done.stderr

    code, err = by(ALICE, 51)
    assert code == 1 and "only root and the user that runs rmd may give a job more than 50" in err
    assert by(ALICE, 10) == by(ALICE, 50) == by(0, 100) == (0, "")
    assert by(ALICE, 101)[0] == by(ALICE, "x")[0] == 64
    assert by(BOB, 1)[0] == 1


@two_cpus
def test_invade_gives_its_command_a_priority(build, stock_env, ask, omp_job):
    with contextlib.closing(Rmd(build, TWO_CORES)) as r:
        with running(str(build / "invade"), f"--socket={r.name}", "--priority=0", "--",
                     str(omp_job), "loop", env=stock_env) as job:
            assert job.stdout.readline() == "ready\n"
            assert [o["priority"] for o in ask(r, "status")["domains"][0]["orders"]] == [0]
            os.killpg(job.pid, signal.SIGKILL)


@pytest.mark.parametrize("word", ["-1", "101", "high", ""])
def test_invade_refuses_what_is_no_priority(run_program, invade, word):
    done = run_program([invade, f"--priority={word}", "true"], check=False)
    assert done.returncode == 125
    assert f"--priority: '{word}' is not a number from 0 to 100" in done.stderr
