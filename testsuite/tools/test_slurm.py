# SPDX-License-Identifier: GPL-3.0-or-later
"""Under Slurm that binds tasks by affinity alone, a launch has the cores of its ranks and no
others."""

import os
import re
import shutil
import tempfile

import pytest

from lib.building.small_programs import compile_text
from lib.manager import slurm
from lib.waiting import until

pytestmark = [
    pytest.mark.machine({0, 1} <= os.sched_getaffinity(0), "Slurm has CPUs 0 and 1 here"),
    pytest.mark.timeout(180),
]

# Says on which CPUs it may run, and on which its team has run, for so many seconds or until a file
# is there: "allowed 0 used 0 1 managed 1".  With a file it says "ready" after the first region.
WHERE_C = """
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
int main(int argc, char **argv)
{
    static int used[CPU_SETSIZE], regions;
    cpu_set_t allowed;
    double begin = now();
    sched_getaffinity(0, sizeof allowed, &allowed);
    do {
#pragma omp parallel
        {
            double until = now() + 0.002;
            do {
                int cpu = sched_getcpu();
#pragma omp atomic write
                used[cpu] = 1;
            } while (now() < until);
        }
        if (argc > 2 && regions++ == 0) {
            puts("ready");
            fflush(stdout);
        }
    } while (argc > 2 ? access(argv[2], F_OK) != 0 && now() < begin + 60
                      : now() < begin + atof(argv[1]));
    char line[4096], *end = line;
    end += sprintf(end, "allowed");
    for (int c = 0; c < 256; c++)
        if (CPU_ISSET(c, &allowed))
            end += sprintf(end, " %d", c);
    end += sprintf(end, " used");
    for (int c = 0; c < 256; c++)
        if (used[c])
            end += sprintf(end, " %d", c);
    sprintf(end, " managed %d", getenv("INVASIVE_SOCKET") != NULL);
    puts(line);
    return 3;
}
"""


@pytest.fixture(scope="module")
def cluster(stock_env):
    absent = slurm.missing()
    if absent:
        pytest.skip(f"needs packages slurm-wlm and munge ({absent[0]} is missing)")
    directory = tempfile.mkdtemp(prefix="invasive-test-", dir="/tmp")  # short: it has sockets
    cluster = slurm.Slurm(directory, stock_env)
    try:
        if not cluster.start():
            pytest.fail(cluster.logs())
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def run(cluster, run_program):
    """run(COMMAND...): with Slurm's environment; nothing of it is left at the end."""
    env = {name: cluster.env[name] for name in ("SLURM_CONF", "PATH")}
    yield lambda *command: run_program(command, env=env, check=False)
    assert until(lambda: not cluster.jobs(), 30), cluster.jobs()


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    return compile_text(tmp_path_factory.mktemp("where") / "where", WHERE_C, "-O1", "-fopenmp")


def cpus(text):
    """[(allowed, used)] of each process."""
    return [({int(c) for c in m[1].split()}, {int(c) for c in m[2].split()})
            for m in re.finditer(r"^allowed([ \d]+) used([ \d]+) managed 1$", text, re.M)]


WAYS = {"srun invade": lambda invade, *srun: ["srun", *srun, invade],
        "invade srun": lambda invade, *srun: [invade, "srun", *srun],
        "srun sh invade": lambda invade, *srun: ["srun", *srun, "sh", "-c", '"$@"; exit $?', "sh",
                                                 invade]}


def test_a_rank_that_slurm_has_bound_outside_of_invades_cores_runs_stock(run, invade, where):
    done = run(invade, "--cores=0", "srun", "--cpu-bind=map_cpu:0,1", "-n2", "-c1", where, 0.5)
    assert done.returncode == 3, done.stderr
    assert sorted(cpus(done.stdout), key=str) == [({0}, {0}), ({1}, {1})]
    assert done.stderr.count("Slurm has bound it to none of our CPUs") == 1, done.stderr


def with_option(command, invade, option):
    where = command.index(invade) + 1
    return [*command[:where], option, *command[where:]]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_launch_has_the_cores_that_slurm_has_bound_its_ranks_to(run, invade, where, way, ranks):
    done = run(*WAYS[way](invade, "-n", ranks, "-c1"), where, 1)
    assert done.returncode == 3, done.stderr
    seen = cpus(done.stdout)
    assert len(seen) == ranks and all(len(allowed) == 1 for allowed, _ in seen)
    together = set().union(*(allowed for allowed, _ in seen))
    assert len(together) == ranks
    assert all(used <= together for _, used in seen), seen


@pytest.mark.parametrize("way", ["srun invade", "invade srun"])
def test_a_report_is_of_the_cores_of_the_step(run, invade, where, way):
    done = run(*with_option(WAYS[way](invade, "-n1", "-c1"), invade, "--report"), where, 0.5)
    assert re.search(r"^invade: \S+: [\d.]+ s, 1 core, 1 process$", done.stderr, re.M), done.stderr


@pytest.mark.parametrize("beside", ["srun invade", "invade srun"])
def test_two_jobs_side_by_side_keep_to_their_cores(run, invade, where, cluster, tmp_path, beside):
    stop = tmp_path / "stop"
    script = tmp_path / "job"
    script.write_text(f"#!/bin/sh\nsrun -n1 -c1 {invade} {where} 0 {stop}\n")
    out = tmp_path / "out"
    sent = run("sbatch", "-n1", "-c1", f"--output={out}", script)
    assert sent.returncode == 0, sent.stderr
    assert until(lambda: "where" in cluster.jobs().values()), cluster.logs()
    done = run(*WAYS[beside](invade, "-n1", "-c1"), where, 1)
    stop.touch()
    assert until(lambda: cpus(out.read_text())), out.read_text()
    (first,), (second,) = cpus(out.read_text()), cpus(done.stdout)
    assert first[0] == first[1] and second[0] == second[1] and not first[0] & second[0]


def test_sbatch_gives_the_exit_code_and_the_output_of_the_script(run, invade, where, tmp_path):
    script, out = tmp_path / "job", tmp_path / "out"
    script.write_text(f"#!/bin/sh\n{invade} {where} 0.2\n{invade} srun {where} 0.2\nexit 5\n")
    number = run("sbatch", "-n2", "-c1", f"--output={out}", script).stdout.split()[-1]
    job = until(lambda: re.search(r"JobState=FAILED.*ExitCode=5:0",
                                  run("scontrol", "show", "job", number).stdout, re.S), 40)
    assert job, out.read_text()
    seen = cpus(out.read_text())
    assert len(seen) == 3 and all(used <= {0, 1} for _, used in seen), out.read_text()


@pytest.mark.parametrize("way", ["srun invade", "invade srun"])
def test_ranks_of_an_mpi_job_lend_to_each_other_under_srun(run, invade, mpi, build, tmp_path, way):
    report = tmp_path / "report"
    plugin = {"mpich": "pmi2", "openmpi": "pmix"}[mpi.name]
    if plugin not in run("srun", "--mpi=list").stderr + run("srun", "--mpi=list").stdout:
        pytest.skip(f"this Slurm has no plugin {plugin}")
    command = with_option(WAYS[way](invade, f"--mpi={plugin}", "-n2", "-c1"), invade,
                          f"--report={report}")
    done = run(*command, mpi.program("apps/artificial/artificial"), "-T", 80)
    assert done.returncode == 0, done.stderr
    text = report.read_text()
    assert "2 cores, 2 processes" in text and "unmanaged" not in text + done.stderr


@pytest.mark.parametrize("way", ["srun invade", "invade srun"])
def test_scancel_leaves_the_report_and_nothing_else(run, invade, where, cluster, tmp_path, way):
    script, out, report = tmp_path / "job", tmp_path / "out", tmp_path / "report"
    command = with_option(WAYS[way](invade, "-n2", "-c1"), invade, f"--report={report}")
    script.write_text(f"#!/bin/sh\nexec {' '.join(map(str, command))} {where} 0 /nonexistent\n")
    number = run("sbatch", "-n2", "-c1", f"--output={out}", script).stdout.split()[-1]
    assert until(lambda: out.exists() and out.read_text().count("ready") == 2), cluster.logs()
    run("scancel", number)
    assert until(lambda: not cluster.jobs(), 30), cluster.jobs()  # rmd is one of them
    rows = re.findall(r"^ +\S+ +\d+ where .* (killed|running)$", report.read_text(), re.M)
    assert len(rows) == 2 and "killed" in rows, report.read_text()
