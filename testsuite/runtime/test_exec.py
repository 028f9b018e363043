# SPDX-License-Identifier: GPL-3.0-or-later
"""What rmd and the report say of OpenMP programs that call exec or have unmanaged children."""

from __future__ import annotations

import json
import signal

import pytest

from lib.small_programs import compile_text

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
