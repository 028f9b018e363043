# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits that are wide enough for stock libgomp are wide enough under invade: the default team is
no larger than what can be started.  A team that the user asked for fails as it does without us.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

USER = 60017  # a user without other processes
PIDS = [Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")]
MEMORY = [("-v 600000", {}), ("-v 4000000", {"OMP_STACKSIZE": "512M"}), ("-d 100000", {}),
          ("-s unlimited", {}), ("-s 1000000", {}), ("-s 1000000 -v 4000000", {}),
          ("-v 400000", {"OMP_STACKSIZE": " 64 m "}), ("-v 400000", {"OMP_STACKSIZE": "60000"})]
REFUSED = "\nlibgomp: Thread creation failed: Resource temporarily unavailable"
BINDS = ["elastic", "strict"]
KERNEL_THREADS = {"INVASIVE_CONTEXTS": "off"}
SEVERAL = {"MPI_LOCALNRANKS": "2"}  # ranks on the node, as a launcher says


def limited(words, *command):
    limits = "; ".join(f"ulimit -{text}" for text in words.split("-") if text)
    return ["sh", "-c", f'{limits}; exec "$@"', "sh", *command]


@pytest.mark.parametrize("bind", BINDS)
@pytest.mark.parametrize("limits, variables", MEMORY)
def test_the_default_team_fits_into_memory(
        run_program, invade, omp_program, limits, variables, bind):
    program = omp_program("limited")
    stock = run_program(limited(limits, program), env=variables)
    managed = run_program([invade, *limited(limits, program)],
                          env={**variables, "INVASIVE_BIND": bind})
    assert int(managed.stdout) >= int(stock.stdout) and managed.stderr == ""


def test_without_limits_the_default_team_is_what_it_is(run_program, invade, omp_program):
    """The number of cores; more for ranks that share a node of few cores."""
    for cores, ranks, team in ((4, {}, 4), (4, {"MPI_LOCALNRANKS": "1"}, 4), (20, SEVERAL, 20),
                               (4, SEVERAL, 16), (5, {"OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, 20),
                               (4, {"MPI_LOCALNRANKS": "4"}, 16), (4, {"PMI_SIZE": "5"}, 4)):
        done = run_program([invade, f"--emulate-cores={cores}", omp_program("limited")], env=ranks)
        assert (done.stdout, done.stderr) == (f"{team}\n", ""), (cores, ranks)


def test_ranks_whose_kernel_threads_meet_in_barriers_have_teams_of_their_share_of_the_cores(
        run_program, invade, omp_program):
    """Where the launcher says how many ranks are on this node; these say how many the job has."""
    strict = {"INVASIVE_BIND": "strict"}
    slurm = {"SLURM_PROCID": "0", "SLURM_NTASKS": "64"}
    for cores, ranks, how, team in ((4, SEVERAL, {}, 4), (4, SEVERAL, KERNEL_THREADS, 2),
                                    (5, SEVERAL, KERNEL_THREADS, 3), (20, SEVERAL, strict, 10),
                                    (4, {}, KERNEL_THREADS, 4), (4, slurm, KERNEL_THREADS, 4),
                                    (4, {"PMI_SIZE": "64"}, KERNEL_THREADS, 4),
                                    (4, {"PMIX_RANK": "0"}, KERNEL_THREADS, 4)):
        done = run_program([invade, f"--emulate-cores={cores}", omp_program("meets")],
                           env={**ranks, **how})
        assert (done.stdout, done.stderr) == (f"{team}\n", ""), (cores, ranks, how)


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"),
                    reason="no search for such loops on this processor")
@pytest.mark.parametrize("name, at_least", [("waits_by_hand", 1), ("waits_in_sections", 2)])
def test_ranks_whose_threads_wait_by_hand_have_teams_of_their_share_of_the_cores(
        run_program, invade, omp_program, name, at_least):
    """One section can wait for another one, so there are two threads for them at least.  Where
    the launcher does not say how many ranks are on this node, and with one rank, teams have all
    cores."""
    full = {"MPI_LOCALNRANKS": "8"}
    for cores, ranks, options, team in ((2, SEVERAL, [], at_least), (4, SEVERAL, [], 2),
                                        (5, SEVERAL, [], 3), (8, full, [], at_least),
                                        (20, SEVERAL, [], 10), (4, {}, [], 4),
                                        (4, SEVERAL, ["--mpi-tasks"], 4),
                                        (4, {"PMI_SIZE": "64"}, [], 4)):
        done = run_program([invade, f"--emulate-cores={cores}", *options, omp_program(name)],
                           env=ranks)
        assert (done.stdout, done.stderr) == (f"{team}\n", ""), (cores, ranks, options)


@pytest.mark.parametrize("bind", BINDS)
@pytest.mark.parametrize("how", ["variable", "clause"])
def test_a_team_that_was_asked_for_fails_as_without_us(
        run_program, invade, omp_program, how, bind):
    command = [omp_program("limited"), *(["60"] if how == "clause" else [])]
    env = {"OMP_NUM_THREADS": "60"} if how == "variable" else {}
    stock = run_program(limited("-v 400000", *command), env=env, check=False)
    managed = run_program([invade, *limited("-v 400000", *command)], check=False,
                          env={**env, "INVASIVE_BIND": bind})
    assert stock.returncode == managed.returncode == 1
    assert stock.stderr.strip() in managed.stderr
    assert "Thread creation failed: " in stock.stderr


@pytest.fixture
def public(omp_program):
    """A directory that every user can reach, with the programs."""
    with tempfile.TemporaryDirectory(prefix="invasive-test-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        for name in ("limited", "refused", "crowded"):
            shutil.copy(omp_program(name), path)
        yield path


@pytest.mark.machine(os.getuid() == 0, "only root can become another user")
@pytest.mark.parametrize("bind", BINDS)
@pytest.mark.parametrize("processes", [6, 8, 12, 30])
def test_the_default_team_fits_into_the_number_of_processes(
        run_program, invade, public, processes, bind):
    """Of a user that also runs invade and rmd."""
    command = ["prlimit", f"--nproc={processes}", public / "limited"]
    done = run_program([invade, *command], env={"INVASIVE_BIND": bind}, user=USER, group=USER,
                       extra_groups=[], cwd="/")
    assert 1 <= int(done.stdout) <= processes - 2 and done.stderr == ""


# From what stock libgomp needs on two cores: a thread beside each one that begins regions.
@pytest.mark.machine(os.getuid() == 0, "only root can become another user")
@pytest.mark.parametrize("bind", BINDS)
@pytest.mark.parametrize("kind", ["plain", "nested", "plain first", "nested first"])
@pytest.mark.parametrize("threads, processes", [(1, range(4, 10)), (3, range(8, 15)),
                                                (8, (18, 19, 20, 22, 26, 31, 36))])
def test_default_teams_of_many_threads_of_the_program_fit_into_the_number_of_processes(
        run_program, invade, public, threads, processes, kind, bind):
    """So do the threads that the program itself creates: our teams leave them what stock leaves."""
    for most in processes:
        command = ["prlimit", f"--nproc={most}", public / "crowded", threads, *kind.split()]
        done = run_program([invade, *command], env={"INVASIVE_BIND": bind}, user=USER, group=USER,
                           extra_groups=[], cwd="/")
        assert (done.stdout, done.stderr) == ("OK\n", ""), most


@pytest.mark.machine(os.getuid() == 0, "only root can become another user")
@pytest.mark.parametrize("bind", BINDS)
@pytest.mark.parametrize("how", ["variable", "function"])
def test_teams_that_were_asked_for_fail_where_no_more_processes_are_allowed(
        run_program, invade, public, how, bind):
    """Though a default team would be as large and fit: invade, rmd with two threads, the program
    with two.  Contexts need no further thread."""
    env = {"INVASIVE_BIND": bind, **KERNEL_THREADS}
    if how == "variable":
        env["OMP_NUM_THREADS"] = "2"
    words = [public / "crowded", 1, "plain", *(["asked"] if how == "function" else [])]
    as_user = {"user": USER, "group": USER, "extra_groups": [], "cwd": "/"}
    done = run_program([invade, "prlimit", "--nproc=5", *words], env=env, check=False, **as_user)
    assert done.returncode == 1 and done.stderr.startswith(REFUSED)
    if bind == "elastic":
        del env["INVASIVE_CONTEXTS"]
        done = run_program([invade, "prlimit", "--nproc=5", *words], env=env, **as_user)
        assert (done.stdout, done.stderr) == ("OK\n", "")


@pytest.mark.machine(os.getuid() == 0, "only root can become another user")
def test_a_process_that_can_make_no_thread_runs_without(run_program, invade, public):
    """If the program asks for threads and needs them, the message is that of stock.  With contexts
    it needs none."""
    command = ["prlimit", "--nproc=1", public / "limited"]
    as_user = {"user": USER, "group": USER, "extra_groups": [], "cwd": "/"}
    default = run_program([invade, *command], **as_user)
    assert (default.stdout, default.stderr) == ("1\n", "")
    asked = run_program([invade, *command, "2"], **as_user)
    assert (asked.stdout, asked.stderr) == ("2\n", "")
    asked = run_program([invade, *command, "2"], env=KERNEL_THREADS, **as_user, check=False)
    assert asked.returncode == 1 and asked.stderr.startswith(REFUSED)


@pytest.mark.machine(os.getuid() == 0, "only root can become another user")
def test_when_threads_are_refused_those_that_there_are_run_the_region(run_program, invade, public):
    """If the region does not wait inside, or waits in contexts; else the program ends as it does
    without us."""
    as_user = {"user": USER, "group": USER, "extra_groups": [], "cwd": "/"}
    done = run_program([invade, public / "refused"], env=SEVERAL, **as_user)
    assert (done.stdout, done.stderr) == ("16\n", "")
    waits = run_program([invade, public / "refused", "wait"], env=SEVERAL, **as_user)
    assert (waits.stdout, waits.stderr) == ("16\n", "")
    waits = run_program([invade, "--threads=32", "--", public / "refused", "wait"],
                        env=KERNEL_THREADS, **as_user, check=False)
    assert waits.returncode == 1 and waits.stderr.startswith(REFUSED)


# KiB: from what stock needs for these threads on.
@pytest.mark.parametrize("threads, spaces", [(8, (120000, 200000, 300000, 400000, 600000, 1000000)),
                                             (16, (250000, 450000, 1000000))])
def test_a_team_that_was_asked_for_has_the_address_space_that_it_has_without_us(
        run_program, invade, omp_program, threads, spaces):
    """The process runs unmanaged where the core table and our own threads would take it."""
    for space in spaces:
        words = ["sh", "-c", f'ulimit -v {space}; exec "$@"', "sh", omp_program("limited"), threads]
        done = run_program([invade, *words])
        assert done.stdout == f"{threads}\n", space
        assert done.stderr == "" or "leaves no room" in done.stderr and done.stderr.count("\n") == 1


@contextlib.contextmanager
def group_of(most):
    """A control group for so many processes, which ends with the test; None: there is none."""
    for base in PIDS:
        path = base / f"invasive-test-{os.getpid()}"
        with contextlib.suppress(OSError):
            path.mkdir()
            if not (path / "pids.max").exists():
                path.rmdir()
                continue
            (path / "pids.max").write_text(str(most))
            try:
                yield path
            finally:
                for _ in range(100):  # as long as processes are on their way out
                    with contextlib.suppress(OSError):
                        path.rmdir()
                        break
                    subprocess.run(["sleep", "0.05"], check=True, timeout=10)
            return
    yield None


def groups_can_be_made():
    with group_of(20) as group:
        return group is not None


@pytest.mark.machine(groups_can_be_made(),
                     "no control group for the number of processes may be made")
@pytest.mark.parametrize("bind", BINDS)
@pytest.mark.parametrize("processes", [6, 8, 20])
def test_the_default_team_fits_into_a_control_group(
        run_program, invade, omp_program, processes, bind):
    with group_of(processes) as group:
        assert group
        script = f'echo $$ >{group}/cgroup.procs; exec "$@"'
        done = run_program(["sh", "-c", script, "sh", invade, omp_program("limited")],
                           env={"INVASIVE_BIND": bind})
    assert 1 <= int(done.stdout) <= processes - 2 and done.stderr == ""
