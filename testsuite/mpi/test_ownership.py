# SPDX-License-Identifier: GPL-3.0-or-later
"""Imbalance that persists moves ownership, and that is all; imbalance that alternates does not.
Eight emulated cores, kernels that sleep: nothing here depends on how busy the machine is, but for
how long it takes.  With more ranks than cores, imbalance decides which of them share a core."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lib.manager.service import fd_holder_of

ITERATIONS = 120
MANY = 12  # changes of owners; without hysteresis there is one every few iterations


@pytest.fixture
def rmd(build, stock_env, request):
    """The socket of an rmd on eight emulated cores, or on others, that outlives its jobs."""
    machine = getattr(request, "param", "8")
    socket = f"@invasive-test-ownership-{os.getpid()}"
    with subprocess.Popen([build / "bin/rmd", f"--socket={socket}", f"--emulate-cores={machine}"],
                          env=stock_env, stdin=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 30
        while subprocess.run([build / "bin/rmctl", f"--socket={socket}"], capture_output=True,
                             timeout=20, check=False).returncode != 0:
            assert process.poll() is None and time.monotonic() < deadline, "rmd does not listen"
            time.sleep(0.02)
        yield socket
        process.terminate()
        assert process.wait(20) == 0
    holder = fd_holder_of(socket)
    if holder:  # it would store the order of a policy for some minutes
        os.kill(holder, signal.SIGKILL)


def status(build, socket):
    """Changes of owners so far, and the cores that each rank owns now."""
    done = subprocess.run([build / "bin/rmctl", f"--socket={socket}"], capture_output=True,
                          text=True, timeout=20, check=False)
    moves = re.search(r"owners changed (\d+) times", done.stdout)
    ranks = re.findall(r"^ *\d+ +\d+ +(\d) imbalance +(\d+) ", done.stdout, re.M)
    return int(moves[1]) if moves else 0, {int(rank): int(owned) for rank, owned in ranks}


def run(build, mpiexec, socket, env, *arguments, look=lambda: None):
    """Runs the program; returns what status() said every now and then, and at its end."""
    seen = []
    command = [build / "invade", f"--socket={socket}", "--", mpiexec, "-n", "2",
               build / "apps/imbalance/imbalance", "--emulate", "--units-per-ms=1000",
               "--work-ms=80", f"--iterations={ITERATIONS}", *arguments]
    with subprocess.Popen([str(c) for c in command], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, start_new_session=True) as job:
        while job.poll() is None:
            moves, owned = status(build, socket)
            look()
            if len(owned) == 2:
                seen.append((moves, owned))
            time.sleep(0.02)
        assert job.returncode == 0
    return seen


def test_imbalance_that_persists_moves_ownership_which_then_stays(build, mpiexec, stock_env, rmd):
    seen = run(build, mpiexec, rmd, stock_env, "--loads=1:3")
    _, last = seen[-1]
    assert last[1] > last[0]
    assert seen[-1][0] <= MANY
    assert seen[-1][0] - seen[len(seen) // 2][0] <= MANY / 2


@pytest.mark.parametrize("rmd", ["4x1.0,4x0.25"], indirect=True)
@pytest.mark.parametrize("policy", ["workload", "makespan", "interference"])
def test_a_rank_on_slow_cores_owns_more_of_them(build, mpiexec, stock_env, rmd, policy):
    subprocess.run([build / "bin/rmctl", f"--socket={rmd}", "policy", policy], check=True,
                   timeout=20, stdout=subprocess.DEVNULL)
    seen = run(build, mpiexec, rmd, stock_env, "--loads=1:1")
    owned = [owned[1] - owned[0] for _, owned in seen]
    assert max(owned) >= 2, owned
    assert seen[-1][0] <= MANY


@pytest.mark.parametrize("rmd", ["4x1.0,4x0.25"], indirect=True)
def test_a_rank_measures_what_its_cores_deliver(build, mpiexec, stock_env, rmd):
    subprocess.run([build / "bin/rmctl", f"--socket={rmd}", "policy", "equal"], check=True,
                   timeout=20, stdout=subprocess.DEVNULL)
    told, measured = [set(), set()], set()

    def look():
        done = subprocess.run([build / "bin/rmctl", f"--socket={rmd}", "status", "--json"],
                              capture_output=True, text=True, timeout=20, check=True)
        for process in json.loads(done.stdout)["domains"][0]["processes"]:
            if process["rank"] in (0, 1) and process["delivered"]:
                told[process["rank"]].add(process["delivered"])
            measured.add(process["workload_measured"])

    run(build, mpiexec, rmd, stock_env, "--loads=1:1", look=look)
    assert min(told[1]) < 0.6 < min(told[0])
    assert True in measured  # so rmd converts the workload to time of whole cores


def test_imbalance_that_alternates_leaves_ownership_alone(build, mpiexec, stock_env, rmd):
    seen = run(build, mpiexec, rmd, stock_env, "--loads=0.5:1.5", "--alternate")
    assert seen[-1][0] <= MANY
    assert all(min(owned.values()) >= 2 for _, owned in seen[len(seen) // 2:])


def allowed(pid):
    """Where the main thread of a process may run, and where its other threads may."""
    def cpus(tid):
        text = Path(f"/proc/{pid}/task/{tid}/status").read_text()
        return re.search(r"Cpus_allowed_list:\s*(\S+)", text)[1]

    main, *others = sorted((int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()),
                           key=lambda tid: tid != pid)
    return cpus(main), {cpus(tid) for tid in others}


def ranks_of(mark):
    """{rank: allowed} of the processes that have the variable MARK."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environ = (path / "environ").read_bytes().split(b"\0")
            rank = [int(word[9:]) for word in environ if word.startswith(b"PMI_RANK=")]
            if f"MARK={mark}".encode() in environ and rank:
                found[rank[0]] = allowed(int(path.name))
        except (OSError, TypeError):
            continue  # it has ended, or has not begun
    return found


@pytest.mark.machine(len(os.sched_getaffinity(0)) > 1, "one processor")
@pytest.mark.parametrize("team", [{}, {"OMP_NUM_THREADS": "2"}], ids=["default", "two threads"])
def test_ranks_that_share_cores_are_bound_to_them_by_load(build, mpiexec, stock_env, team):
    one, other = (str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
    command = [build / "invade", f"--cores={one},{other}", "--", mpiexec, "-n", "4",
               build / "apps/imbalance/imbalance", "--loads=1:2:3:4", "--units-per-ms=1000",
               "--work-ms=8", "--iterations=1000000"]
    mark = str(os.getpid())
    with subprocess.Popen([str(c) for c in command], env={**stock_env, **team, "MARK": mark},
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as job:
        try:
            deadline = time.monotonic() + 100
            while True:
                ranks = ranks_of(mark)
                mains = [ranks[rank][0] for rank in range(4)] if len(ranks) == 4 else []
                # a thread that has just begun has its creator's binding for a moment
                bound = [cpus for _, others in ranks.values() for cpus in others
                         if cpus in (one, other)]
                if mains in ([one, other, other, one], [other, one, one, other]) and not bound:
                    break
                assert time.monotonic() < deadline, ranks
                time.sleep(0.05)
        finally:
            job.terminate()
