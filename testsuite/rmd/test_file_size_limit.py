# SPDX-License-Identifier: GPL-3.0-or-later
"""`ulimit -f` smaller than a core table, which is a file to the kernel, or than what is written:
no process ends by SIGXFSZ, messages name the cause, and programs run."""

import contextlib
import os
import resource
import subprocess

import pytest

from lib.manager.rmd import Rmd
from lib.manager.users import ALICE
from lib.report import rows
from lib.waiting import PATIENCE_S

SMALL = 1 << 20  # bytes; a table has some 63 MiB
LARGE = 1 << 30  # more than the tables and what an MPI makes; files with holes
NAMES_IT = "RLIMIT_FSIZE"


def limit(soft, hard=None):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard or soft))


@pytest.fixture
def as_user():
    """A user that may not raise a hard limit."""
    return {"user": ALICE, "group": 60000, "extra_groups": []} if os.getuid() == 0 else {}


@pytest.fixture
def regions(build):
    return [build / "apps/regions/regions", "--batch-ms=1"]


@pytest.mark.parametrize("start", ["private", "node"])
def test_programs_run_and_the_limit_is_named(run_program, invade, regions, as_user, start):
    env = {"SLURM_JOB_ID": f"size-{os.getpid()}", "SLURM_STEP_ID": "0"} if start == "node" else {}
    done = run_program([invade, "--", *regions], env=env, preexec_fn=limit(SMALL), cwd="/",
                       **as_user)
    assert "us_per_region" in done.stdout
    assert NAMES_IT in done.stderr and "unmanaged" in done.stderr
    assert done.stderr.count("unmanaged") == 1


def test_a_soft_limit_keeps_no_process_from_anything(run_program, invade, regions, as_user):
    done = run_program([invade, "--report", "--", *regions], cwd="/",
                       preexec_fn=limit(SMALL, resource.RLIM_INFINITY), **as_user)
    line, = rows(done.stderr)
    assert line[2] == "regions" and NAMES_IT not in done.stderr


def test_a_service_says_why_it_does_not_start(run_program, build, as_user):
    done = run_program([build / "bin/rmd", f"--socket=@size-{os.getpid()}", "--emulate-cores=2"],
                       check=False, preexec_fn=limit(SMALL), cwd="/", **as_user)
    assert done.returncode == 1 and NAMES_IT in done.stderr


def test_an_rmd_that_is_limited_later_goes_on(run_program, build, regions):
    with contextlib.closing(Rmd(build, "--emulate-cores=2")) as rmd:
        resource.prlimit(rmd.process.pid, resource.RLIMIT_FSIZE, (SMALL, SMALL))
        done = run_program([build / "bin/invade", f"--socket={rmd.name}", "--", *regions],
                           check=False)
        assert done.returncode == 0 and "us_per_region" in done.stdout
        assert done.stderr.count("unmanaged") == 1 and rmd.process.poll() is None


@pytest.mark.parametrize("kind", ["txt", "json"])
def test_a_report_that_is_too_large_is_no_end_of_the_job(run_program, invade, build, tmp_path,
                                                         kind):
    file = tmp_path / f"report.{kind}"
    done = run_program([invade, f"--report={file}", "sh", "-c", '"$0" --batch-ms=1; exit 3',
                        build / "apps/regions/regions"], check=False,
                       preexec_fn=limit(100, resource.RLIM_INFINITY))
    assert done.returncode == 3
    assert f"cannot write the report to {file}: File too large" in done.stderr


def no_room(stderr, bytes_, directory):
    """A descriptor: as large a file as is allowed, or a pipe without a reader."""
    if stderr == "file":
        out = os.open(directory / "stderr", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.truncate(out, bytes_)
    else:
        reader, out = os.pipe()
        os.close(reader)
    return out


@pytest.mark.parametrize("stderr", ["file", "pipe"])
def test_a_line_of_ours_on_a_programs_stderr_does_not_end_it(build, regions, stock_env, tmp_path,
                                                             stderr):
    out = no_room(stderr, 100, tmp_path)
    env = {**stock_env, "LD_PRELOAD": f"{build}/lib/invasive/libinvasive-process.so "
           f"{build}/lib/invasive/libgomp.so.1", "INVASIVE_SOCKET": "@nobody-listens-here"}
    done = subprocess.run(regions, env=env, stderr=out, stdout=subprocess.PIPE, check=False,
                          timeout=PATIENCE_S, preexec_fn=limit(100), restore_signals=True)
    os.close(out)
    assert done.returncode == 0 and b"us_per_region" in done.stdout


@pytest.mark.parametrize("stderr", ["file", "pipe"])
def test_a_rank_whose_launcher_is_of_another_mpi_does_not_end_when_it_says_so(
        invade, mpi, stock_env, tmp_path, stderr):
    """It says that it is rank 0 of 1, where there should be two."""
    size, rank = {"mpich": ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
                  "openmpi": ("PMI_SIZE", "PMI_RANK")}[mpi.name]
    command = [invade, "--emulate-cores=2", "--", mpi.program("mpi-shim/tests/waits"), "work"]
    env = {**stock_env, size: "2", rank: "0"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True,
                          timeout=PATIENCE_S)
    assert "each is rank 0 of 1" in done.stderr
    out = no_room(stderr, LARGE, tmp_path)
    done = subprocess.run(command, env=env, stderr=out, stdout=subprocess.PIPE, check=False,
                          timeout=PATIENCE_S, preexec_fn=limit(LARGE), restore_signals=True)
    os.close(out)
    assert done.returncode == 0


def test_rmctl_says_that_it_cannot_write(build, tmp_path):
    with contextlib.closing(Rmd(build, "--emulate-cores=2")) as rmd:
        with open(tmp_path / "out", "w") as out:
            done = subprocess.run([build / "bin/rmctl", f"--socket={rmd.name}", "status"],
                                  stdout=out, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=PATIENCE_S, preexec_fn=limit(10))
        assert done.returncode == 1
        assert "cannot write to standard output: File too large" in done.stderr
