# SPDX-License-Identifier: GPL-3.0-or-later
"""Two users under one service, one of them hostile: it computes for ever on every core, breaks into
whatever it can reach, floods the socket, and writes nonsense over its own core table.  The other
one's programs are unharmed."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from lib.machine import TWO_CPUS
from lib.manager.core_table import ELSEWHERE
from lib.manager.hostile import compile_victim, goes_on, run_hostile
from lib.manager.member import counts
from lib.manager.service import Service
from lib.manager.users import ALICE, BOB
from lib.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.machine(os.getuid() == 0, "only root can be several users")
JOIN = 1


@pytest.fixture
def place(build, tmp_path_factory, make_variable, stock_env):
    """A directory that every user can reach, with the tools, a program and what is right."""
    if not (build / "lib/invasive/libgomp.so.1").exists():
        pytest.skip("the OpenMP runtime is not built")
    path = Path(f"/tmp/invasive-test-hostile-{os.getpid()}")
    path.mkdir(mode=0o755)
    shutil.copytree(build / "bin", path / "bin", ignore=lambda *_: ["lib"])
    shutil.copytree(build / "lib", path / "lib")
    shutil.copy(build / "testsuite/rmd/programs/rmd_member", path / "member")
    compile_victim(path, make_variable("CC"))
    right = subprocess.run([path / "victim"], env={**stock_env, "OMP_NUM_THREADS": "1"}, text=True,
                           capture_output=True, check=True, timeout=60).stdout
    (path / "right").write_text(right)
    yield path
    shutil.rmtree(path, ignore_errors=True)  # a holder may still be removing its socket


@pytest.fixture
def service(build, place):
    s = Service(build, place, f"socket-group = *\ncores = {','.join(map(str, TWO_CPUS))}\n"
                              "check-interval-ms = 20\nreclaim-bound-us = 2000\n", [], {})
    assert s.ready.startswith("ready "), s.said()
    yield s
    assert s.close() == 0, s.said()
    assert "Sanitizer" not in s.said()


def start_victim(place, service, stock_env):
    return subprocess.Popen([place / "bin/invade", f"--socket={service.name}", "--",
                             place / "victim"], env=stock_env, user=ALICE, group=60000,
                            extra_groups=[], cwd="/", stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.skipif(len(TWO_CPUS) < 2, reason="one CPU has one user")
def test_a_hostile_user_harms_no_program_of_another(place, service, stock_env):
    """Joins, results, cores, and the table of the other user, while it goes on."""
    alice = service.member(ALICE)
    child, out = run_hostile(service.name, [alice.process.pid, service.process.pid])
    try:
        assert out.readline() == b"\n"  # it broke into nothing
        assert out.read(1) == b"."
        eventually(lambda: counts(alice, 0, ELSEWHERE), [1, 1])
        core = alice.owners().index(0)
        assert alice.ask(f"borrow {core}") == "1"
        # it is taken off the core again and again, whatever its affinity says
        eventually(lambda: TWO_CPUS[core] in os.sched_getaffinity(child), False)
        grandchild = int(Path(f"/proc/{child}/task/{child}/children").read_text())
        eventually(lambda: TWO_CPUS[core] in os.sched_getaffinity(grandchild), False)
        alice.ask(f"lend {core}")
        victims = [start_victim(place, service, stock_env) for _ in range(2)]
        for victim in victims:
            said, complaint = victim.communicate(timeout=PATIENCE_S * 3)
            assert (victim.returncode, said, complaint) == \
                (0, (place / "right").read_text(), "")
        assert goes_on(out)
        newcomer = service.member(ALICE)
        assert newcomer.slot > 0
        assert alice.table()[2].count(ELSEWHERE) == 1
        assert alice.holders()[1 - core] == -1
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        out.close()
    eventually(lambda: counts(alice, ELSEWHERE), [0])
    assert service.process.poll() is None


def test_an_operator_may_look_at_a_table_that_is_being_scribbled_over(place, service):
    child, out = run_hostile(service.name, [])
    codes = []
    try:
        assert out.readline() == b"\n" and out.read(1) == b"."
        for turn in range(30):
            words = ["top", "-n1", "--batch"] if turn % 2 else ["status"]
            done = subprocess.run([place / "bin/rmctl", f"--socket={service.name}", *words,
                                   f"--user={BOB}", *["--json"][:turn % 4 // 2]], text=True,
                                  capture_output=True, timeout=PATIENCE_S, check=False)
            codes.append(done.returncode)
            assert "Sanitizer" not in done.stderr, done.stderr
        assert 0 in codes and set(codes) <= {0, 1}  # what is no table any more is refused
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        out.close()


@pytest.mark.skipif(len(TWO_CPUS) < 2, reason="one CPU has one user")
def test_a_user_stopped_while_it_holds_every_core_keeps_no_other_waiting(place, service, stock_env):
    bob = service.member(BOB)
    for core in range(2):
        assert bob.ask(f"borrow {core}") == "1"
    os.kill(bob.process.pid, signal.SIGSTOP)
    victim = start_victim(place, service, stock_env)
    said, complaint = victim.communicate(timeout=PATIENCE_S * 3)
    assert (victim.returncode, said, complaint) == (0, (place / "right").read_text(), "")
    os.kill(bob.process.pid, signal.SIGCONT)
