# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ranks are of one MPI job, in whatever order those of several jobs join."""

import contextlib
import os
import select
import subprocess

import pytest

from lib.manager.member import MEMBER, Member
from lib.waiting import PATIENCE_S

RANKS = 3
ORDER = ["A0", "A1", "B0", "B1", "B2", "A2"]
# Six cores each; A0 has four times the work of each other rank of A.
RIGHT = {"A0": 4, "A1": 1, "A2": 1, "B0": 2, "B1": 2, "B2": 2}


def put_to_work(r, members):
    """The members join in the order of ORDER; returns how many cores each owns then."""
    for name in ORDER:
        members[name].slot = members[name].join(int(name[1]), RANKS, RANKS, int(name[1]))
    for name, member in members.items():
        member.ask(f"announce {4 if name == 'A0' else 1} 0 0")
    owners = members["A0"].owners()
    return {name: owners.count(member.slot) for name, member in members.items()}


class Started(Member):
    """A member with variables in its environment."""

    def __init__(self, r, env):
        self.name = r.name
        self.process = subprocess.Popen([r.build / MEMBER], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **env})
        r.members.append(self)


@pytest.mark.sanitize
@pytest.mark.parametrize("one,other", [
    ({"INVASIVE_LAUNCH": "one/1"}, {"INVASIVE_LAUNCH": "other/1"}),
    ({"PMIX_NAMESPACE": "5.1", "PMIX_SERVER_TMPDIR": "/t"},
     {"PMIX_NAMESPACE": "5.2", "PMIX_SERVER_TMPDIR": "/t"}),
    ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1"}),
    ({"PMI_PORT": "here:1", "PMI_ID": "0"}, {"PMI_PORT": "here:2", "PMI_ID": "0"})],
    ids=["launch", "pmix", "slurm", "port"])
def test_ranks_of_two_jobs_that_join_in_turns_are_told_apart(rmd, one, other):
    """Even if each rank has a launch of its own: the mpiexec of a rank decides first."""
    r = rmd(12, "--policy=fair")
    members = {}
    for name in RIGHT:
        env = dict(one if name[0] == "A" else other)
        env.setdefault("INVASIVE_LAUNCH", f"{name}/1")
        members[name] = Started(r, env)
    assert put_to_work(r, members) == RIGHT


class Rank(Member):
    """A member that mpiexec starts, with fifos in place of its standard input and output."""

    def __init__(self, r, directory, name):
        self.name, self.fds = r.name, []
        for end in ("in", "out"):
            fifo = directory / f"{name}.{end}"
            os.mkfifo(fifo)
            self.fds.append(os.open(fifo, os.O_RDWR | os.O_CLOEXEC))  # does not wait for a reader

    def say(self, command):
        os.write(self.fds[0], f"{command}\n".encode())

    def hear(self):
        line = b""
        while not line.endswith(b"\n"):
            assert select.select([self.fds[1]], [], [], PATIENCE_S)[0], f"nothing after {line!r}"
            line += os.read(self.fds[1], 1)
        return line.decode().strip()

    def close(self):
        for fd in self.fds:
            os.close(fd)


@pytest.fixture
def two_jobs(mpi, tmp_path, stock_env):
    """two_jobs(RMD, WORDS) - ranks that two mpiexec have started, each behind these words"""
    with contextlib.ExitStack() as stack:
        def start(r, *words, env):
            members = {name: Rank(r, tmp_path, name) for name in RIGHT}
            rank = "${PMI_RANK-$OMPI_COMM_WORLD_RANK}"
            for job in "AB":
                text = f'"$0" <"$1/{job}{rank}.in" >"$1/{job}{rank}.out"; exit 0'
                command = mpi.run(RANKS, *words, "sh", "-c", text,
                                  r.build / MEMBER, tmp_path)
                process = subprocess.Popen(list(map(str, command)), env={**stock_env, **env},
                                           stdin=subprocess.DEVNULL, cwd=tmp_path)
                stack.callback(end, process)
            for member in members.values():
                stack.callback(member.close)
            return members

        def end(process):
            try:
                process.wait(PATIENCE_S)  # its ranks have come to the end of their input
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait(PATIENCE_S)

        yield start


@pytest.mark.parametrize("behind", ["nothing", "invade"])
def test_two_mpiexec_of_one_launch_have_a_job_each(rmd, two_jobs, invade, behind):
    """With an invade for both of them, or one for each rank, which names a launch of its own."""
    r = rmd(12, "--policy=fair")
    words = [invade, f"--socket={r.name}", "--"] if behind == "invade" else []
    env = {} if words else {"INVASIVE_LAUNCH": "one/1"}
    assert put_to_work(r, two_jobs(r, *words, env=env)) == RIGHT
