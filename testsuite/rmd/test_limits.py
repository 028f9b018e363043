# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs with the OpenMP runtime under a service whose limits change."""

import contextlib
import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from lib.building.small_programs import compile_text
from lib.machine import TWO_CPUS
from lib.processes import children
from lib.waiting import PATIENCE_S, until

pytestmark = pytest.mark.machine(os.getuid() == 0, "only root's service has limits")
CLOCK = """
#include <stdio.h>
#include <time.h>
static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
"""
BUSY = CLOCK + """
static double now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

int main(void)
{
    for (;;) {
        #pragma omp parallel num_threads(8)
        for (double end = now() + 2e-4; now() < end;)
            ;
    }
}
"""


# Says of each region how many of its implicit tasks have run at the same time.  They take processor
# time: their time by the clock depends on the other load of the machine.
BESIDE = CLOCK + """
static double spent(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

int main(void)
{
    for (;;) {
        int running = 0, most = 0;
        #pragma omp parallel num_threads(8)
        {
            int mine = __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
            for (int before = most; before < mine &&
                 !__atomic_compare_exchange_n(&most, &before, mine, 0, __ATOMIC_SEQ_CST,
                                              __ATOMIC_SEQ_CST);)
                ;
            for (double end = spent() + 2e-2; spent() < end;)
                ;
            __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
        }
        printf("%d\\n", most);
        fflush(stdout);
    }
}
"""


class Service:
    def __init__(self, build, where):
        self.config, self.socket, self.log = (where / name for name in ("conf", "sock", "log"))
        self.write("all")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [build / "bin/rmd", "--foreground", f"--config={self.config}",
                 f"--socket={self.socket}"], stderr=log)
        assert until(self.socket.exists, PATIENCE_S)

    def write(self, limit):
        self.config.write_text(f"cores = {','.join(map(str, TWO_CPUS))}\ncheck-interval-ms = 20\n"
                               f"max-cores = {limit}\n")

    def limit(self, limit):
        before = self.log.read_text().count("read again")
        self.write(limit)
        self.process.send_signal(signal.SIGHUP)
        assert until(lambda: self.log.read_text().count("read again") > before, PATIENCE_S)


@pytest.fixture
def service(build, short_path):
    one = Service(build, short_path)
    yield one
    one.process.terminate()
    assert one.process.wait(PATIENCE_S) == 0


@pytest.fixture
def started(invade, service, tmp_path, stock_env):
    """started(NAME, SOURCE) - a program under the service, its pid, and the file of its output"""
    groups = []

    def start(name, source):
        compile_text(tmp_path / name, source, "-fopenmp")
        said = tmp_path / f"{name}.out"
        with said.open("w") as out:
            process = subprocess.Popen([invade, f"--socket={service.socket}", "--",
                                        tmp_path / name], env=stock_env, start_new_session=True,
                                       stdout=out)
        groups.append(process)
        assert until(lambda: running_as(name, process.pid), PATIENCE_S)
        return running_as(name, process.pid), said

    yield start
    for process in groups:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def running_as(name, pid):
    """The pid of the process of this name: this one or a child of it; None until there is one."""
    for one in (pid, *children(pid)):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{one}/comm").read_text() == f"{name}\n":
                return one
    return None


@pytest.fixture
def busy(started):
    """A program that computes without end, under the service; its pid"""
    return started("busy", BUSY)[0]


def affinities(pid):
    """Of its threads; those that end meanwhile have none."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            found.append(os.sched_getaffinity(int(tid)))
        except OSError:
            pass
    return found


def holders(build, service):
    """{CPU: thread} of the cores that have a holder, as rmctl shows them."""
    text = subprocess.run([build / "bin/rmctl", f"--socket={service.socket}"], check=True,
                          capture_output=True, text=True, timeout=PATIENCE_S).stdout
    lines = [line.split() for line in text.splitlines()]
    return {int(line[1]): int(line[4]) for line in lines
            if len(line) == 7 and line[5] in ("asked", "-") and line[3] != "-"
            and line[4].isdigit()}


def test_a_managed_program_follows_its_limit_there_and_back(build, service, busy):
    """After each change every thread that computes is pinned to the core that it holds."""
    def pinned():
        held = holders(build, service)
        try:
            return held and all(os.sched_getaffinity(tid) == {cpu} for cpu, tid in held.items())
        except OSError:
            return False

    assert until(lambda: set(holders(build, service)) == set(TWO_CPUS), PATIENCE_S)
    for _ in range(3):
        service.limit(1)
        assert until(lambda: len(holders(build, service)) == 1, PATIENCE_S)
        assert until(lambda: all(len(mask & set(TWO_CPUS)) == 1 for mask in affinities(busy)),
                     PATIENCE_S)
        service.limit("all")
        assert until(lambda: set(holders(build, service)) == set(TWO_CPUS), PATIENCE_S)
        assert until(pinned, PATIENCE_S)


@pytest.mark.skipif(len(TWO_CPUS) < 2, reason="one CPU is no choice")
def test_what_a_program_does_while_it_has_no_core_is_not_held_against_it(service, started, busy):
    """Implicit tasks that wait for each other are started at once, on whatever cores there are.
    That regions get nowhere without a core is no sign of it."""
    _, said = started("beside", BESIDE)

    def regions():
        return [int(line) for line in said.read_text().splitlines()]

    assert until(lambda: len(regions()) > 8, PATIENCE_S)
    assert statistics.median(regions()) <= 2  # tasks on cores that were taken back go on meanwhile
    service.limit(1)
    before = len(regions())
    until(lambda: len(regions()) > before + 5)  # it goes on, without a core or with the only one
    service.limit("all")
    time.sleep(0.5)
    before = len(regions()) + 3
    assert until(lambda: len(regions()) > before + 5, PATIENCE_S)
    assert statistics.median(regions()[before:]) <= 2, regions()
