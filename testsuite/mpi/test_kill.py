# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever ends at any time - a rank, the launcher, the resource manager - the job ends as it does
without us, and nothing of it is left over.

The job is a long random MPI program (mpi-shim/tests/random), so that a moment chosen at random
finds each rank in MPI_Init, computing, in a parallel region, or in any kind of wait, with its core
lent or with others' borrowed.

Which code other than 0 mpiexec ends with is not compared: it is the signal's number most times, but
with or without us now and then another one where a rank dies in MPI_Init.  MPICH's gives 255 when
its proxy ends itself, since it cannot write to the rank that is gone, and 15 when another rank was
the first to give up.  SIGTERM may give 0.

Three faults of the MPI libraries, which they have without us too, are kept out: Job.lost_in_pmix
and KEPT_OUT.
"""

import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from lib.machine import TWO_CORES, shared_memory
from lib.waiting import until

pytestmark = pytest.mark.usefixtures("what_mpi_leaves_when_it_is_killed_goes")

PROGRAM = "mpi-shim/tests/random/random"
COMMAND = (PROGRAM, "--seed=1", "--count=1000000")
MPIEXEC = ["mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpiexec.openmpi", "orterun",
           "mpirun.openmpi"]
END_S, GONE_S = 60, 20  # what a loaded machine may need; a hang is longer
LOST_S = 10

# The handlers of Open MPI and UCX that print a backtrace need malloc, which waits for ever where
# the signal came in malloc, as a signal from outside may.  PMIx's default store has a lock in
# memory that mpiexec and its ranks share, which stays locked when a rank dies with it: mpiexec
# waits for it for ever (github.com/openpmix/openpmix/issues/1233); the other store has none.
KEPT_OUT = {"OMPI_MCA_opal_signal": "", "UCX_HANDLE_ERRORS": "none", "PMIX_MCA_gds": "hash"}


class Process:
    def __init__(self, pid):
        stat = Path(f"/proc/{pid}/stat").read_text()
        fields = stat.rsplit(")", 1)[1].split()
        self.pid, self.name = pid, stat[stat.index("(") + 1:stat.rindex(")")]
        self.state, self.session, self.started = fields[0], int(fields[3]), fields[19]


def processes():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield Process(int(entry.name))
            except (OSError, IndexError, ValueError):
                continue


class Job:
    """A launch in a session of its own.  mpiexec makes sessions for its ranks, so what belongs
    to it is found by a variable of its environment."""

    def __init__(self, command, env, mpi):
        self.openmpi = mpi.name == "openmpi"
        self.mark = f"INV_TEST_JOB={os.getpid()}.{random.randrange(1 << 40)}"
        name, value = self.mark.split("=")
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [str(word) for word in command], env={**env, name: value}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.errors, start_new_session=True)

    def members(self):
        found = []
        for process in processes():
            try:
                environ = Path(f"/proc/{process.pid}/environ").read_bytes()
            except OSError:
                continue
            if process.state not in "ZX" and self.mark.encode() in environ:
                found.append(process)
        return found

    def named(self, name):
        return sorted((p for p in self.members() if p.name == name), key=lambda p: p.pid)

    def wait(self, seconds=END_S):
        """The exit code of the launcher; None: it does not end."""
        until(lambda: self.ended() or self.lost_in_pmix(), seconds)
        if not self.ended() and self.openmpi and self.has_no_ranks():
            if not until(self.ended, LOST_S):
                self.kill_mpiexec()
            until(self.ended, seconds)
        return self.process.poll()

    def ended(self):
        return self.process.poll() is not None

    def kill_mpiexec(self):
        self.kill(p for p in self.members() if p.name in MPIEXEC)

    def has_no_ranks(self):
        return {p.name for p in self.members()} <= {"invade", "rmd", *MPIEXEC}

    def lost_in_pmix(self):
        """Has a rank died while Open MPI's mpiexec answered its connection, in MPI_Init?  PMIx
        4.2.2 then releases the rank's record once too often, and when all ranks are gone and
        mpiexec finalizes PMIx, it mostly waits for ever for a lock in the freed record.  It has
        said so before; what it may do without a word is given more time."""
        said = os.pread(self.errors.fileno(), 1 << 20, 0)
        return (b"PMIX ERROR" in said and b"ptl_base_connection_hdlr.c" in said
                and self.has_no_ranks())

    def state(self):
        """The processes that are left, where each of them sleeps, and what was printed."""
        lines = []
        for member in self.members():
            for task in sorted(Path(f"/proc/{member.pid}/task").glob("*")):
                try:
                    lines.append(f"{member.name} {member.pid} thread {task.name} {member.state} "
                                 f"{(task / 'syscall').read_text().split()[0]} "
                                 f"{(task / 'wchan').read_text()}")
                except (OSError, IndexError):
                    continue
        said = os.pread(self.errors.fileno(), 1 << 16, 0).decode(errors="replace")
        return "\n".join(["the job does not end:", *lines, said])

    def left_over(self):
        until(lambda: not self.members(), GONE_S)
        return [(p.pid, p.name) for p in self.members()]

    @staticmethod
    def kill(processes):
        for process in processes:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def clean(self):
        self.kill(self.members())
        self.process.wait(timeout=20)
        self.errors.close()


def invasive_sockets():
    """Names of abstract sockets of resource managers."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return {line.split()[-1] for line in lines if "@invasive" in line}


@pytest.fixture
def jobs(build, mpi, stock_env):
    """jobs(RANKS, managed, OPTION..., command=WORDS): starts one; all end with the test."""
    started = []

    def start(ranks, managed, *options, command=COMMAND):
        invade = [build / "invade", TWO_CORES, "--"] if managed else []
        program = mpi.program(command[0])
        job = Job([*invade, *mpi.run(ranks, program, *command[1:], *options)],
                  {**stock_env, **KEPT_OUT, "OMP_NUM_THREADS": "2"}, mpi)
        job.program = program.name[:15]  # of which the kernel knows no more
        started.append(job)
        return job

    yield start
    for job in started:
        job.clean()


def started_ranks(job, ranks):
    found = until(lambda: (lambda all_: all_ if len(all_) == ranks else None)(
        job.named(job.program)), 30)
    assert found, "the ranks have not started"
    return found


def end_of(job, seconds=END_S):
    """How the job ended: exit code, negative for a signal, or None; the processes that are left."""
    code = job.wait(seconds)
    return code, job.left_over()


def end_of_action(job, action, ranks):
    found = started_ranks(job, ranks)
    time.sleep(random.choice([0, 0.01, 0.1, 0.3, 0.6, 1]))
    action(job, found)
    return end_of(job)


def ended_after(job, action, ranks):
    """The exit code of the job; fails if the job does not end, or leaves processes."""
    code, left = end_of_action(job, action, ranks)
    assert code is not None, job.state()
    assert not left, job.state()
    return code


def kill_rank(number):
    def action(job, found):
        os.kill(random.choice(found).pid, number)

    return action


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
@pytest.mark.timeout(300)
def test_a_rank_killed_at_any_time_ends_the_job_and_leaves_nothing(jobs, number, ranks):
    code = ended_after(jobs(ranks, True), kill_rank(number), ranks)
    assert code != 0 or number == signal.SIGTERM


@pytest.mark.parametrize("level", ["1", "3"])
@pytest.mark.parametrize("managed", [True, False])
@pytest.mark.timeout(300)
def test_a_rank_killed_while_tasks_wait_for_messages_ends_the_job(jobs, managed, level):
    job = jobs(2, managed, command=("mpi-shim/tests/triggers", level, "endless"))
    assert ended_after(job, kill_rank(signal.SIGKILL), 2) != 0


@pytest.mark.parametrize("how,code", [("abort", 7), ("exit", 3)])
@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.timeout(300)
def test_a_rank_that_ends_itself_ends_the_job_with_its_code(jobs, how, code, ranks):
    option = f"--end={how}:{random.randrange(ranks)}:{random.randrange(1000)}"
    ended, left = end_of(jobs(ranks, True, option))
    assert not left
    if how == "abort":
        assert ended == code
    assert ended not in (0, None)


def test_interrupting_the_launch_ends_the_job(jobs):
    job = jobs(2, True)
    started_ranks(job, 2)
    time.sleep(random.random())
    for _ in range(4):  # mpiexec may have to be told twice, without us too
        os.killpg(job.process.pid, signal.SIGINT)
        if until(job.ended, 10):
            break
    code, left = end_of(job)
    assert code is not None and not left


def test_killing_the_launcher_ends_the_job_and_its_manager(jobs):
    job = jobs(2, True)
    started_ranks(job, 2)
    job.process.kill()
    assert end_of(job) == (-signal.SIGKILL, [])


# Not hydra's proxy: without it MPICH's mpiexec waits for ever, with us or not.
@pytest.mark.timeout(300)
def test_killing_the_mpi_launcher_ends_as_it_does_without_us(jobs):
    def outcome(managed):
        code, left = end_of_action(jobs(2, managed), lambda job, _: job.kill_mpiexec(), 2)
        return code is None, code == 0, {name for _, name in left}

    ours = outcome(True)
    if ours != (False, False, set()):  # then stock ends so, too, now and then
        assert any(outcome(False) == ours for _ in range(3)), ours


def test_killing_the_resource_manager_hurts_no_job(build, mpi, jobs, stock_env):
    # Some four seconds: the job must not be over before the manager is killed.
    program = mpi.program("mpi-shim/tests/nodes")
    command = [build / "invade", TWO_CORES, "--", *mpi.run(2, program, "240", "5:20")]
    job = Job(command, stock_env, mpi)
    job.program = program.name
    try:
        started_ranks(job, 2)
        manager, = job.named("rmd")
        time.sleep(random.choice([0, 0.1, 0.5]))
        os.kill(manager.pid, signal.SIGKILL)
        assert end_of(job, 110) == (0, [])
    finally:
        job.clean()


def test_nothing_of_ours_is_left_in_sockets_or_shared_memory(jobs):
    """MPI leaves its own files when a rank is killed; ours have no names in the file system."""
    before = shared_memory()
    job = jobs(2, True)
    started_ranks(job, 2)
    mine = {name for name in invasive_sockets() if f"-{job.process.pid}-" in name}
    assert mine
    ended_after(job, kill_rank(signal.SIGKILL), 2)
    assert not [name for name in shared_memory() - before if "inv" in name]
    assert until(lambda: not mine & invasive_sockets(), 10)


@pytest.mark.full
def test_many_jobs_end_and_leave_nothing_when_a_rank_is_killed_at_a_random_time(jobs):
    for _ in range(60):
        ranks = random.choice([1, 2, 3, 5])
        number = random.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
        ended_after(jobs(ranks, True), kill_rank(number), ranks)
