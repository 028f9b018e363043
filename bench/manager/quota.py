# SPDX-License-Identifier: GPL-3.0-or-later
"""never-slower's hydrodynamics, twice as long, in a control group with a quota of 1.5 cores on two.

Stock competes with one and two threads, which spin after a region or sleep, in the same quota.  The
part of the kernel's periods in which the group was throttled is of all turns together: cpu.stat's
nr_throttled over nr_periods.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from pathlib import Path

import own_programs
from common import BenchError, Context, Figure, Run, median_wall_ratio, quickest

STEPS = 4000
PERCENT, PERIOD_US = 150, 100000
HIERARCHIES = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup")
GOAL_THROTTLED, GOAL = 1.0, 1.05
TOO_BUSY = 0.9  # of the quota: another load has kept the program from using it


class Group:
    """A control group with the quota, for what is started in it."""

    def __init__(self):
        name = f"invasive-bench-{os.getpid()}"
        for at in map(Path, HIERARCHIES):
            self.path = at / name
            with contextlib.suppress(OSError):
                self.path.mkdir()
                if self.set_quota():
                    return
                self.path.rmdir()
        raise BenchError("quota: no control group with a quota can be made here (as root?)")

    def set_quota(self) -> bool:
        quota_us = PERCENT * PERIOD_US // 100
        for file, text in (("cpu.max", f"{quota_us} {PERIOD_US}"), ("cpu.cfs_quota_us", quota_us)):
            if (self.path / file).exists():
                (self.path / file).write_text(str(text))
                return True
        return False

    def command(self, command: list[str]) -> list[str]:
        enter = 'echo $$ >"$0"/cgroup.procs && exec "$@"'
        return ["sh", "-c", enter, str(self.path), *command]

    def stat(self) -> tuple[int, int]:
        """Periods, and those that were throttled."""
        lines = (self.path / "cpu.stat").read_text().split("\n")
        values = dict(line.split() for line in lines if line)
        return int(values["nr_periods"]), int(values["nr_throttled"])

    def remove(self) -> None:
        for _ in range(50):  # what has just ended is in it for a moment
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.1)


class Counted:
    """Runs of a variant in a group, with their periods."""

    def __init__(self, ctx: Context, group: Group, name: str, command: list[str], **env: str):
        self.ctx, self.group, self.name, self.env = ctx, group, name, env
        self.command = group.command(command)
        self.periods = self.throttled = 0

    def run(self) -> Run:
        before = self.group.stat()
        run = self.ctx.run(self.name, self.command, dict(self.env))
        periods, throttled = (b - a for a, b in zip(before, self.group.stat()))
        self.periods += periods
        self.throttled += throttled
        return run

    @property
    def percent(self) -> float:
        return 100 * self.throttled / max(1, self.periods)


def quota(ctx: Context) -> list[Figure]:
    ctx.check_only()
    program = own_programs.Own("hydro", 1e-7, ranks=((1, None),))
    program.arguments = [str(STEPS)]
    program.install(ctx)
    command = program.managed[0].command
    group = Group()
    try:
        stock = [Counted(ctx, group, f"stock {threads} {policy}", command,
                         OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY=policy)
                 for threads, policy in ((1, "passive"), (2, "active"), (2, "passive"))]
        ours = Counted(ctx, group, "invade", [str(ctx.build / "invade"), "--", *command])
        turns = ctx.turns(*(one.run for one in (*stock, ours)))
    finally:
        group.remove()
    for turn in turns:
        for run in turn[1:]:
            program.same(turns[0][0], run)
    best = quickest(turns, len(stock))
    ratio = median_wall_ratio(turns, -1, best)
    cores = statistics.median(turn[best].cpu_s / turn[best].wall_s for turn in turns)
    busy = "; another load was there" if cores < TOO_BUSY * PERCENT / 100 and best else ""
    rows = ", ".join(f"{one.name} {one.percent:.1f} %" for one in (*stock, ours))
    return [Figure("quota time", ratio, "of the best stock time", "<=", GOAL,
                   f"the best: {stock[best].name}, {cores:.2f} cores{busy}"),
            Figure("quota", ours.percent, "% of the periods throttled", "<=", GOAL_THROTTLED,
                   f"throttled periods: {rows}")]
