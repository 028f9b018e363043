# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs with the OpenMP runtime under a service whose limits change."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root's service has limits")
PATIENCE_S = 30
CPUS = sorted(os.sched_getaffinity(0))[:2]
BUSY = """
#include <time.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
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


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


class Service:
    def __init__(self, build, where):
        self.config, self.socket, self.log = (where / name for name in ("conf", "sock", "log"))
        self.write("all")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [build / "bin/rmd", "--foreground", f"--config={self.config}",
                 f"--socket={self.socket}"], stderr=log)
        until(self.socket.exists)

    def write(self, limit):
        self.config.write_text(f"cores = {','.join(map(str, CPUS))}\ncheck-interval-ms = 20\n"
                               f"max-cores = {limit}\n")

    def limit(self, limit):
        before = self.log.read_text().count("read again")
        self.write(limit)
        self.process.send_signal(signal.SIGHUP)
        until(lambda: self.log.read_text().count("read again") > before)


@pytest.fixture
def service(build, tmp_path):
    one = Service(build, tmp_path)
    yield one
    one.process.terminate()
    assert one.process.wait(PATIENCE_S) == 0


@pytest.fixture
def busy(build, invade, service, make_variable, tmp_path, stock_env):
    """A program that computes without end, under the service; its pid"""
    (tmp_path / "busy.c").write_text(BUSY)
    subprocess.run([*make_variable("CC").split(), "-fopenmp", tmp_path / "busy.c", "-o",
                    tmp_path / "busy"], check=True, timeout=60)
    process = subprocess.Popen([invade, f"--socket={service.socket}", "--", tmp_path / "busy"],
                               env=stock_env, start_new_session=True)
    names = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until(lambda: any(Path(f"/proc/{pid}/comm").read_text() == "busy\n"
                      for pid in [str(process.pid), *names.read_text().split()]))
    own = Path(f"/proc/{process.pid}/comm").read_text() == "busy\n"
    yield process.pid if own else int(names.read_text().split()[0])
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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
    """{CPU: thread} of the cores that somebody computes on, as rmctl shows them."""
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

    until(lambda: set(holders(build, service)) == set(CPUS))
    for _ in range(3):
        service.limit(1)
        until(lambda: len(holders(build, service)) == 1)
        until(lambda: all(len(mask & set(CPUS)) == 1 for mask in affinities(busy)))
        service.limit("all")
        until(lambda: set(holders(build, service)) == set(CPUS))
        until(pinned)
