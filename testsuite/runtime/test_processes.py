# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of OpenMP programs: more than the cores, children of fork, and those that call exec."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from lib.building.small_programs import compile_text
from lib.processes import running
from lib.waiting import PATIENCE_S, eventually

CORES = 2

# regions [CHILDREN]: regions until it is killed; so do children of a fork after its first one.
REGIONS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
static void region(void)
{
    int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
    {
        for (volatile int i = 0; i < 10000; i++)
            ;
#pragma omp barrier
        sum++;
    }
    if (sum != 4)
        abort();
}
int main(int argc, char **argv)
{
    int children = argc > 1 ? atoi(argv[1]) : 0;
    region();
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (children-- > 0)
        if (fork() == 0) {
            children = 0;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        }
    for (;;)
        region();
}
"""

class Crowd:
    """Programs of one rmd."""

    def __init__(self, rmd, build, ask, program, env):
        self.rmd, self.build, self.ask, self.program, self.env = rmd, build, ask, program, env
        self.programs = contextlib.ExitStack()

    def start(self, *arguments):
        """The program's process; it has had its first region."""
        command = [self.build / "invade", f"--socket={self.rmd.name}", "--", self.program,
                   *arguments]
        process = self.programs.enter_context(running(*map(str, command), env=self.env))
        word, pid = process.stdout.readline().split()
        assert word == "ready"
        process.member = int(pid)
        return process

    def kill(self, process):
        os.kill(process.member, signal.SIGKILL)
        assert process.wait(PATIENCE_S) in (137, -9)
        return process.stderr.read()

    def members(self):
        found, = self.ask(self.rmd, "status")["domains"]
        return found["processes"]

    def cores(self):
        """Of each member, ordered: how many it owns, and holds at least."""
        return sorted((p["owned_cores"], p["held_cores"]) for p in self.members())


@pytest.fixture
def crowd(rmd, ask, build, tmp_path, stock_env):
    program = compile_text(tmp_path / "regions", REGIONS, "-fopenmp")
    one = Crowd(rmd(CORES), build, ask, program, stock_env)
    with one.programs:
        yield one


def owned(crowd):
    return [cores for cores, _ in crowd.cores()]


def test_programs_beyond_the_cores_are_members_and_compute(crowd):
    programs = [crowd.start() for _ in range(5)]  # each has had a region
    assert len(crowd.members()) == 5
    eventually(lambda: owned(crowd), [0, 0, 0, 1, 1])
    eventually(lambda: all(held for _, held in crowd.cores()), True)
    assert [crowd.kill(program) for program in programs] == [""] * 5


def test_a_program_without_a_core_owns_one_when_another_ends(crowd):
    programs = [crowd.start() for _ in range(4)]
    for program in programs[:2]:
        crowd.kill(program)
    eventually(crowd.cores, [(1, 1), (1, 1)])  # and no token beside it
    crowd.kill(programs[2])
    eventually(lambda: owned(crowd), [2])


def test_killed_programs_leave_no_token(crowd):
    member = crowd.rmd.member()
    member.join()
    for _ in range(5):
        programs = [crowd.start() for _ in range(4)]
        eventually(lambda: member.table()[1] < 0, True)
        for program in reversed(programs):
            crowd.kill(program)
        eventually(lambda: member.table()[1], 0)


def test_children_of_a_fork_are_members_of_their_own(crowd):
    parent = crowd.start("3")
    eventually(lambda: len(crowd.members()), 4)
    assert len({p["pid"] for p in crowd.members()}) == 4
    eventually(lambda: owned(crowd), [0, 0, 1, 1])
    assert crowd.kill(parent) == ""
    eventually(crowd.members, [])


def test_a_killed_child_of_a_fork_leaves_nothing(crowd):
    parent = crowd.start("1")
    eventually(lambda: owned(crowd), [1, 1])
    child, = (p["pid"] for p in crowd.members() if p["pid"] != parent.member)
    os.kill(child, signal.SIGKILL)
    eventually(crowd.cores, [(2, 2)])


def test_a_suspended_program_without_a_core_has_no_token(crowd, tell):
    programs = [crowd.start() for _ in range(3)]
    eventually(lambda: owned(crowd), [0, 1, 1])
    without, = (p["pid"] for p in crowd.members() if p["owned_cores"] == 0)
    member = crowd.rmd.member()
    member.join()
    for word, tokens in (("suspend", 0), ("resume", -1)):
        assert tell(crowd.rmd, word, without)[0] == 0
        eventually(lambda: member.table()[1], tokens)
    assert [crowd.kill(program) for program in programs] == [""] * 3


# --- exec, and children past the handlers of fork

HOLDS = r"""
#include <unistd.h>
int main(void)
{
    int n = 0;
#pragma omp parallel num_threads(4) reduction(+ : n)
    n++;
    execlp("sleep", "sleep", "120", (char *)0);
    return n;
}
"""


FORKS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = 0;
    (void)argc;
#pragma omp parallel num_threads(4) reduction(+ : n)
    n++;
    pid_t child = strcmp(argv[1], "raw") ? _Fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        exit(0);
    waitpid(child, NULL, 0);
    return kill(getpid(), SIGKILL);
}
"""


@pytest.mark.parametrize("how", ["raw", "_Fork"])
def test_a_child_past_the_handlers_of_fork_that_exits_is_not_its_parents_end(
        invade, run_program, tmp_path, how):
    compile_text(tmp_path / "forks", FORKS, "-fopenmp")
    report = tmp_path / "report.json"
    done = run_program([invade, f"--report={report}", "--", tmp_path / "forks", how], check=False)
    assert done.returncode == -signal.SIGKILL
    (job,) = json.loads(report.read_text())["jobs"]
    assert [process["end"] for process in job["processes"]] == ["killed"]


def test_an_openmp_program_that_execs_leaves_all_cores_to_others(
        build, invade, run_program, tmp_path):
    compile_text(tmp_path / "holds", HOLDS, "-fopenmp")
    script = f"""
        {tmp_path}/holds & pid=$!
        until grep -q sleep /proc/$pid/comm; do sleep 0.01; done
        for i in $(seq 500); do
            {build}/bin/rmctl status >{tmp_path}/status
            grep -q 'no process' {tmp_path}/status && break
            sleep 0.02
        done
        kill $pid
        cat {tmp_path}/status"""
    done = run_program([invade, "--", "sh", "-c", script])
    assert "no process" in done.stdout


# --- pools of processes, as Python and build tools make them

POOL = r"""
#include <stdio.h>
#include <stdlib.h>
long pool_sum(int times)
{
    long sum = 0;
    while (times-- > 0) {
        long all = 0;
#pragma omp parallel reduction(+ : all)
        {
#pragma omp for
            for (int i = 0; i < 1000; i++)
                all += i;
        }
        sum += all;
    }
    return sum;
}
void pool_of_r(int *times, double *sum)
{
    *sum = (double)pool_sum(*times);
}
#ifdef PROGRAM
int main(int argc, char **argv)
{
    printf("%ld\n", pool_sum(argc > 1 ? atoi(argv[1]) : 1));
    return 0;
}
#endif
"""
MAKEFILE = "all: 1 2 3 4 5 6 7 8\n1 2 3 4 5 6 7 8:\n\t@./pool $@\n.PHONY: all 1 2 3 4 5 6 7 8\n"
R_POOL = """
dyn.load("libpool.so")
sums <- parallel::mclapply(8:1, function(i) .C("pool_of_r", i, sum = 0)$sum, mc.cores = 4)
cat(format(unlist(sums), trim = TRUE, scientific = FALSE), sep = "\\n")
"""
SUMS = sorted(str(499500 * i) for i in range(1, 9))
PYTHON_POOL = Path(__file__).parent / "programs" / "processes" / "pools.py"


@pytest.fixture(scope="module")
def pool_place(tmp_path_factory):
    """A directory with a program, the same as a library, and a Makefile that runs the program."""
    place = tmp_path_factory.mktemp("pool")
    compile_text(place / "pool", POOL, "-fopenmp", "-DPROGRAM")
    compile_text(place / "libpool.so", POOL, "-fopenmp", "-shared", "-fPIC")
    (place / "Makefile").write_text(MAKEFILE)
    return place


@pytest.mark.parametrize("command", [
    ["make", "-s", "-j4"], ["xargs", "-P4", "-n1", "./pool"],
    ["parallel", "-j4", "./pool", "{}"]], ids=["make", "xargs", "parallel"])
def test_jobs_of_a_build_tool_compute_under_one_invade(command, pool_place, invade, run_program):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    done = run_program(["sh", "-c", 'seq 8 | "$@"', "sh", invade, "--", *command], cwd=pool_place,
                       env={"PARALLEL_HOME": str(pool_place)})
    assert (sorted(done.stdout.split()), done.stderr) == (SUMS, "")


@pytest.mark.parametrize("before", ["", "before"])
@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver", "futures", "loky",
                                 "multiprocessing"])
def test_a_pool_of_python_processes_computes_under_one_invade(
        how, before, pool_place, invade, run_program):
    done = run_program([invade, "--", "/usr/bin/python3", PYTHON_POOL, how, before], timeout=90,
                       cwd=pool_place)
    assert (done.stdout.split(), done.stderr) == (sorted(SUMS, key=int), "")


def has_torch():
    """Debian's, which uses the runtime of the distribution."""
    return subprocess.run(["/usr/bin/python3", "-c", "import importlib.util as u, sys; "
                           "sys.exit(not u.find_spec('torch'))"], check=False,
                          timeout=60).returncode == 0


@pytest.mark.parametrize("before", ["", "before"])
@pytest.mark.parametrize("how", ["pool", *(["loader"] if has_torch() else [])])
def test_workers_of_python_that_use_openmp_are_members(crowd, pool_place, build, how, before):
    """They are forked, and join at their first region (doc/limits.md)."""
    command = [build / "invade", f"--socket={crowd.rmd.name}", "--", "/usr/bin/python3",
               PYTHON_POOL.with_name("members.py"), how, before]
    with running(*map(str, command), env=crowd.env, cwd=pool_place,
                 stdin=subprocess.PIPE) as parent:
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        members = [p["pid"] for p in crowd.members()]
        assert set(workers) <= set(members), (workers, members)
        assert len(members) == len(workers) + bool(before)
        assert parent.communicate(timeout=PATIENCE_S) == ("", "")
        assert parent.returncode == 0


@pytest.mark.skipif(not shutil.which("Rscript"), reason="R is not installed")
def test_children_of_mclapply_compute_under_one_invade(pool_place, invade, run_program):
    done = run_program([invade, "--", "Rscript", "-e", R_POOL], timeout=90, cwd=pool_place)
    assert (sorted(done.stdout.split()), done.stderr) == (SUMS, "")
