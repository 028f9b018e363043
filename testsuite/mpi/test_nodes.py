# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks on several hosts: each host has a resource manager of its own, started with the ranks,
and cores stay on their host.

The hosts are two network namespaces of this machine, each with a name, one address and a link to
the other.  MPI reaches the second one as it would reach any host, by a program in the place of
ssh, and its ranks talk over TCP.  Abstract sockets belong to a network namespace, so nothing of
the first host's resource manager can be seen on the second.

Namespaces need root, or user namespaces.  Where neither is to be had the tests are skipped, which
CI takes as a failure."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lib.manager.hosts import ADDRESSES, NAMES
from lib.report import close, parsed
from lib.waiting import until

pytestmark = pytest.mark.timeout(120)
SSH_ENV = ["PATH=/usr/local/bin:/usr/bin:/bin", "OMPI_ALLOW_RUN_AS_ROOT=1",
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]  # of a log-in on another host
LOADS = "40:40:8:8"  # dealt out in turn, each host has one rank that computes 40 ms and one 8


@pytest.fixture(scope="session")
def stock_env(stock_env):
    """Every user is root in a namespace of its own, which Open MPI asks about twice."""
    return {**stock_env, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture
def launcher(hosts, tmp_path):
    """launcher(COMMAND...) - a program in the place of ssh; on the second host, the command
    (taskset, env, ...) starts what MPI starts there."""

    def make(*before):
        script = tmp_path / "launch"
        lines = ["#!/bin/sh", "while case $1 in -*) true ;; *) false ;; esac; do shift; done",
                 "host=$1; shift", "case $host in"]
        for host, words in zip(hosts, ((), before)):
            there = " ".join(["env", "-i", *SSH_ENV, *host.from_the_other(*words, "sh", "-c")])
            lines.append(f'{host.address}) exec {there} "$*" ;;')
        script.write_text("\n".join([*lines, "esac", "exit 9", ""]))
        script.chmod(0o755)
        return script

    return make


@pytest.fixture
def start(mpi, launcher, stock_env):
    """start(RANKS, COMMAND...) - the command line of the MPI's launcher, ranks dealt out to the
    hosts in turn; and the environment for it."""

    def make(ranks, *command, before=()):
        script = launcher(*before)
        if mpi.name == "mpich":
            line = [mpi.mpiexec, "-disable-auto-cleanup", "-launcher", "ssh", "-launcher-exec",
                    script, "-hosts", ",".join(ADDRESSES), "-n", ranks]
        else:
            where = ",".join(f"{a}:{ranks}" for a in ADDRESSES)
            tcp = ["pml", "ob1", "btl", "tcp,vader,self", "btl_tcp_if_include", "eth0",
                   "oob_tcp_if_include", "eth0", "plm_rsh_agent", script]
            line = [mpi.mpiexec, *(w for name, value in zip(tcp[::2], tcp[1::2])
                                   for w in ("--mca", name, value)),
                    "--host", where, "--map-by", "node", "--bind-to", "none", "-n", ranks]
        return [*line, *command]

    return make


@pytest.fixture
def run(hosts, run_program, mpi):
    """run(COMMAND...) on the first host.  The exit code is not MPICH's own where the program had to
    end itself, see finalize in nodes.c."""

    def go(*command):
        return run_program(hosts[0].inside(*command), env={"UCX_TLS": "tcp,self"}, timeout=60,
                           check=mpi.name != "mpich")

    return go


@pytest.fixture(autouse=True)
def nothing_is_left(hosts):
    yield
    for host in hosts:
        assert until(lambda h=host: not h.sockets(), 20), f"left on {host.name}: {host.sockets()}"


def hosts_of(output):
    return {int(r): host for r, host in re.findall(r"^rank (\d+) host (\S+) ", output, re.M)}


def reported(text):
    """{rank: (lends, borrows)} as invade --report gives them."""
    rows = re.findall(r"^ *(\d+) +\d+ +\S+(?: +(?:\d+\.\d+|-))+ +(\d+) +(\d+) ", text, re.M)
    return {int(rank): (int(lends), int(borrows)) for rank, lends, borrows in rows}


def watch(host, rmctl, found):
    """Look at the resource managers of a host until one has processes; what it shows."""
    for line in re.findall(r"@invasive\S+", host.do("cat", "/proc/net/unix")):
        look = host.inside(rmctl, f"--socket={line}", "status")
        text = subprocess.run(look, check=False, text=True, timeout=20, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout
        ranks = {int(r) for r in re.findall(r"^ +\d+ +\d+ +(\d+) nodes", text, re.M)}
        lends = sum(int(n) for n in re.findall(
            r"^ +\d+ +(\d+) +\d+ +\d+ +\d+ +[\d.]+ +[\d.]+$", text, re.M))
        if ranks:
            found.setdefault(line, set()).update(ranks)
            found[line, "lends"] = max(lends, found.get((line, "lends"), 0))
            found[line, "cpus"] = re.findall(
                r"^ +\d+ +(\d+) +\S+ +\S+ +\S+ +(?:asked|-) +\S+$", text, re.M)


def has_shown(found, ranks, lends):
    """Have the managers shown all these ranks, and cores lent so often?"""
    there = set().union(*(r for s, r in found.items() if isinstance(s, str)))
    most = max((n for name, n in found.items() if name[1] == "lends"), default=0)
    return there >= ranks and most >= lends


@pytest.fixture
def seen(tmp_path):
    """The file for which the program (nodes.c) waits."""
    return tmp_path / "seen"


@pytest.fixture
def watched(hosts, build, stock_env, seen):
    """watched(COMMAND..., ranks=) - runs it on the first host until its resource managers have
    shown these ranks, for each host, and lent cores.  Returns its output, its errors, and for each
    host what they showed: {socket: ranks, (socket, "lends"): n, ...}"""

    def go(*command, ranks, lends=1):
        shown = [{}, {}]
        with subprocess.Popen(hosts[0].inside(*command), text=True, start_new_session=True,
                              env={**stock_env, "UCX_TLS": "tcp,self"}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                end = time.monotonic() + 60
                while process.poll() is None and time.monotonic() < end:
                    for host, found in zip(hosts, shown):
                        watch(host, build / "rmctl", found)
                    if all(has_shown(f, r, lends) for f, r in zip(shown, ranks)):
                        seen.touch()
                    time.sleep(0.1)
                out, err = process.communicate(timeout=20)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return out, err, shown

    return go


def test_each_host_has_a_manager_for_its_ranks_and_lends_among_them(start, watched, build, mpi,
                                                                     seen):
    program = mpi.program("mpi-shim/tests/nodes")
    out, err, shown = watched(build / "invade", "--emulate-cores=2", "--report",
                              *start(4, program, 30, LOADS, seen, 0), ranks=({0, 2}, {1, 3}))
    assert f"sum {30 * 29 // 2 * 10}" in out, out + err
    assert hosts_of(out) == {0: "nodea", 1: "nodeb", 2: "nodea", 3: "nodeb"}
    for found, ranks in zip(shown, ({0, 2}, {1, 3})):
        sockets = [s for s in found if isinstance(s, str)]
        assert len(sockets) == 1, f"{found}"
        assert found[sockets[0]] == ranks
        assert found[sockets[0], "lends"] > 0, "no process lent a core"
    for ranks in ({0, 2}, {1, 3}):
        assert sum(reported(err)[rank][1] for rank in ranks) > 0, "no process borrowed a core"
    assert dict(re.findall(r"^ +(\d) .* on (\S+)$", err, re.M)) == {
        "0": "nodea", "1": "nodeb", "2": "nodea", "3": "nodeb"}
    assert "4 cores of 2 nodes, 4 processes" in err
    assert "missing" not in err


def check_report(file, cores=2):
    """Checks the report on four ranks, dealt out in turn, that computed as LOADS says."""
    whole = parsed(file)
    assert whole["nodes"] == [{"name": name, "cores": cores} for name in NAMES]
    assert whole["cores"] == 2 * cores
    job, = whole["jobs"]
    assert (job["ranks"], job["missing_ranks"], job["cores"]) == (4, 0, 2 * cores)
    assert [(p["rank"], p["node"]) for p in job["processes"]] == list(enumerate(2 * NAMES))
    for p in job["processes"]:
        assert p["end"] in ("exited", "finalized", "killed" if p["node"] == NAMES[0] else None)
        assert p["owned_core_seconds"] > 0 and p["elapsed_seconds"] > 0.1
        # they leave MPI_Init together and come to MPI_Finalize together
        assert close(p["start_seconds"], job["start_seconds"], 5)
        assert close(p["elapsed_seconds"], job["elapsed_seconds"], 5)
        assert [s for s in p["call_sites"] if s["function"] == "MPI_Allreduce"]
    place, = [s for s in job["call_sites"] if s["function"] == "MPI_Allreduce"]
    assert (place["symbol"], place["processes"], place["calls"]) == ("iterate", 4, 120)
    for c in job["iteration_classes"]:
        parts = [k for p in job["processes"] for k in p["iteration_classes"] if k["id"] == c["id"]]
        assert close(c["useful_seconds"], sum(k["useful_seconds"] for k in parts))
    assert job["iteration_classes"]
    work = [p["useful_core_seconds"] for p in job["processes"]]
    assert close(job["metrics"]["work_balance"], sum(work) / 4 / max(work))


def test_the_report_is_on_the_ranks_of_all_hosts_whatever_their_clocks(start, run, build, mpi,
                                                                       tmp_path):
    """The second host was booted a day before the first."""
    file = tmp_path / "report.json"
    day_before = ("unshare", "-T", "--fork", "--kill-child", "--monotonic", "86400")
    run(build / "invade", "--emulate-cores=2", f"--report={file}",
        *start(4, mpi.program("mpi-shim/tests/nodes"), 30, LOADS, before=day_before))
    check_report(file)


def test_of_an_invade_for_each_rank_the_first_reports_on_all(start, run, build, mpi, tmp_path):
    file = tmp_path / "report.json"
    run(*start(4, build / "invade", "--emulate-cores=2", f"--report={file}",
               mpi.program("mpi-shim/tests/nodes"), 30, LOADS))
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith("report")] == [file.name]
    check_report(file)


def test_results_are_those_of_a_stock_run_with_more_ranks_than_cores(start, run, build, mpi):
    """Six ranks: anonymous tokens on both hosts."""
    command = start(6, mpi.program("mpi-shim/tests/nodes"), 20, "6:2:4")
    stock = run(*command)
    managed = run(build / "invade", "--emulate-cores=2", *command)
    assert sorted(managed.stdout.splitlines()) == sorted(
        re.sub(r"cores \d+$", "cores 2", line) for line in stock.stdout.splitlines())
    assert "unmanaged." not in managed.stderr


def test_ranks_of_a_host_with_tokens_agree_with_those_of_one_with_cores(start, run, build, mpi):
    """Three ranks on two hosts with one core each: one host counts tokens, the other pins."""
    done = run(build / "invade", "--report", "--emulate-cores=1",
               *start(3, mpi.program("mpi-shim/tests/nodes"), 20, "6:2:4"))
    assert f"sum {20 * 19 // 2 * 6}" in done.stdout
    assert "unmanaged." not in done.stderr
    assert set(reported(done.stderr)) == {0, 1, 2}


def test_the_other_host_uses_the_cpus_that_it_has(start, watched, build, mpi, seen):
    """--cores names CPUs of the first host; the second has another one."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    command = start(2, mpi.program("mpi-shim/tests/nodes"), 20, "5", seen, 0,
                    before=("taskset", "-c", str(cpus[1])))
    out, err, shown = watched(build / "invade", f"--cores={cpus[0]}", *command,
                              ranks=({0}, {1}), lends=0)
    assert "sum" in out, out + err
    for found, cpu in zip(shown, cpus):
        assert [v for k, v in found.items() if k[1] == "cpus"] == [[str(cpu)]], found


def test_an_invade_for_each_rank_shares_the_hosts_manager(start, watched, build, mpi, seen):
    out, err, shown = watched(*start(4, build / "invade", "--emulate-cores=2",
                                     mpi.program("mpi-shim/tests/nodes"), 30, LOADS, seen, 0),
                              ranks=({0, 2}, {1, 3}))
    assert f"sum {30 * 29 // 2 * 10}" in out, out + err
    assert "unmanaged." not in err
    for found, ranks in zip(shown, ({0, 2}, {1, 3})):
        assert [r for s, r in found.items() if isinstance(s, str)] == [ranks], found


def test_a_host_without_us_makes_all_ranks_unmanaged(start, run, build, mpi):
    """The environment did not reach the host, or the project is not installed there."""
    program = mpi.program("mpi-shim/tests/nodes")
    script = ["sh", "-c", 'test $(hostname) = nodea || unset LD_PRELOAD; exec "$@"', "sh"]
    done = run(build / "invade", "--emulate-cores=2", *start(2, *script, program, 10, "2"))
    assert "sum 135" in done.stdout
    assert done.stderr.count("MPI rank 1 does not run under invade: running unmanaged") == 1


@pytest.mark.parametrize("rmd", ["/nonexistent/rmd", "/bin/false"])
def test_a_host_that_cannot_start_a_manager_makes_all_ranks_unmanaged(start, run, build, mpi, rmd):
    program = mpi.program("mpi-shim/tests/nodes")
    done = run(build / "invade", "--emulate-cores=2",
               *start(2, program, 10, "2", before=("env", f"INVASIVE_RMD={rmd}")))
    assert "sum 135" in done.stdout
    assert f"cannot start {rmd} on this node" in done.stderr
    assert "MPI rank 1 is not managed: running unmanaged" in done.stderr


def ranks_of(lines):
    return dict(tuple(int(w) for w in line.split()) for line in lines)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def managers(host):
    """pids of the resource managers of this host"""
    found, network = [], os.stat(f"/proc/{host.process.pid}/ns/net").st_ino
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0] == b"rmd" and (entry / "ns/net").stat().st_ino == network:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("victim", [0, pytest.param(1, marks=pytest.mark.full)])
def test_the_hosts_go_on_lending_when_a_manager_is_killed(hosts, start, build, mpi, stock_env,
                                                          tmp_path, seen, victim):
    """Both hosts keep their tables, whichever manager is killed; the manager of the first host has
    the report."""
    command = start(4, mpi.program("mpi-shim/tests/nodes"), 30, LOADS, seen, 60)
    with open(tmp_path / "errors", "w+", encoding="ascii") as errors, \
            subprocess.Popen(hosts[0].inside(build / "invade", "--emulate-cores=2", "--report",
                                             *command),
                             env={**stock_env, "UCX_TLS": "tcp,self"}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=errors, text=True,
                             start_new_session=True) as launch:
        try:
            found = {}

            def works():
                watch(hosts[victim], build / "rmctl", found)
                return has_shown(found, {victim, victim + 2}, 1)

            assert until(works, 40)
            before = max(n for name, n in found.items() if name[1] == "lends")
            manager, = managers(hosts[victim])
            os.kill(manager, signal.SIGKILL)
            seen.touch()
            out, _ = launch.communicate(timeout=60)
        except BaseException:
            os.killpg(launch.pid, signal.SIGKILL)
            raise
        errors.seek(0)
        err = errors.read()
    assert f"sum {(30 * 29 + 60 * 59) // 2 * 10}" in out, out + err
    assert "unmanaged." not in err
    if victim == 0:
        assert "rmd is gone, and what it knew with it" in err
        return
    assert set(reported(err)) == {0, 1, 2, 3}
    assert sum(reported(err)[rank][0] for rank in (1, 3)) > before + 20


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_ends_the_job_on_both_hosts(hosts, start, build, mpi, stock_env, tmp_path,
                                                  victim):
    """The report does not wait for the records of the second host's ranks, and lacks them."""
    file = tmp_path / "report.json"
    command = [c for c in start(4, mpi.program("mpi-shim/tests/nodes"), "hang")
               if c != "-disable-auto-cleanup"]
    with subprocess.Popen(hosts[0].inside(build / "invade", "--emulate-cores=2",
                                           f"--report={file}", *command),
                          env={**stock_env, "UCX_TLS": "tcp,self"}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          start_new_session=True) as launch:
        try:
            pids = ranks_of(launch.stdout.readline() for _ in range(4))
            assert sorted(pids) == [0, 1, 2, 3]
            assert all(host.sockets() for host in hosts)
            time.sleep(0.3)  # they sleep in the wait by now
            os.kill(pids[victim], signal.SIGKILL)
            assert launch.wait(timeout=40) != 0
            assert until(lambda: not any(alive(p) for p in pids.values()), 20)
            assert until(lambda: not any(host.sockets() for host in hosts), 20)
            job, = parsed(file)["jobs"]
            assert [p["rank"] for p in job["processes"]] == [0, 2]
            assert job["missing_ranks"] == 2
        finally:
            for pid in [p for p in pids.values() if alive(p)]:
                os.kill(pid, signal.SIGKILL)
