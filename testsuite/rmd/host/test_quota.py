# SPDX-License-Identifier: GPL-3.0-or-later
"""A domain has the cores that the quota of its control groups pays for (rmd/quota)."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

import pytest

from lib.asked import Asked
from lib.machine import TWO_CPUS
from lib.manager.fake_system import put
from lib.manager.member import counts
from lib.manager.rmd import Rmd, rmctl
from lib.manager.users import ALICE
from lib.waiting import eventually

V1, V2 = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
MOUNTS = {V1: f"30 20 0:26 / {V1} rw - cgroup cgroup rw,cpu,cpuacct",
          V2: f"31 20 0:27 / {V2} rw - cgroup2 cgroup2 rw"}


class Groups:
    """Control groups below a test's own root."""

    def __init__(self, root, version, mounts=None):
        self.root, self.version = root, version
        self.at = V2 if version == 2 else V1
        put(root, "/proc/self/mountinfo", mounts or MOUNTS[self.at])

    def join(self, group, pid="self"):
        put(self.root, f"/proc/{pid}/cgroup",
            f"0::{group}" if self.version == 2 else f"9:cpuset:/\n3:cpu,cpuacct:{group}")

    def file(self, group):
        name = {1: "cpu.cfs_quota_us", 2: "cpu.max"}[self.version]
        return self.root / f"{self.at}{group}/{name}".lstrip("/")

    def allow(self, group, quota, period=100000):
        if self.version == 2:
            put(self.root, f"{self.at}{group}/cpu.max", f"{quota} {period}")
        else:
            put(self.root, f"{self.at}{group}/cpu.cfs_period_us", period)
            put(self.root, f"{self.at}{group}/cpu.cfs_quota_us", -1 if quota == "max" else quota)


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def groups(request, tmp_path):
    return Groups(tmp_path, request.param)


def user_of(r):
    """What rmctl status tells of the user."""
    code, text, error = rmctl(r.build, f"--socket={r.name}", "status", "--json")
    assert (code, error) == (0, "")
    return json.loads(text)["domains"][0]["users"][0]


@pytest.fixture
def managed(rmd, groups):
    """managed(CORES) - an rmd below the groups' root with a member"""
    def start(cores=4):
        r = rmd(cores, f"--sys-root={groups.root}", "--check-interval-ms=20")
        r.joined(1, 0)
        return r
    return start


def quota_of(r):
    return lambda: user_of(r)["quota"]


def test_the_tightest_quota_of_the_group_and_of_those_above_counts(groups, managed):
    groups.join("/a/b/c")
    groups.allow("/a", 150000)
    groups.allow("/a/b", 30000, 10000)
    groups.allow("/a/b/c", "max")
    assert user_of(managed())["quota"] == 1.5


def test_a_quota_is_followed_when_it_is_changed(groups, managed):
    groups.join("/a")
    r = managed()
    quota = quota_of(r)
    assert quota() is None
    for given, expected in ((250000, 2.5), (50000, 0.5), ("max", None), (100000, 1.0)):
        groups.allow("/a", given)
        eventually(quota, expected)
    assert ", quota 1.00 cores (" in rmctl(r.build, f"--socket={r.name}", "status")[1]


def test_processes_that_do_not_compute_keep_all_cores(groups, managed):
    groups.join("/a")
    groups.allow("/a", 150000)
    r = managed(2)
    eventually(lambda: user_of(r)["quota_cores"], 2)
    assert user_of(r)["has"] == [0, 1]


def test_a_quota_of_all_cores_limits_nothing(groups, managed):
    groups.join("/a")
    groups.allow("/a", 400000)
    user = user_of(managed(4))
    assert (user["quota"], user["quota_cores"]) == (4.0, None)


@pytest.mark.parametrize("quota, period", [(0, 100000), (-5, 100000), ("many", 100000),
                                           (150000, 0), (150000, -1), (150000, "x"), ("", ""),
                                           (10**30, 100000), ("1e3", 100000)])
def test_a_quota_that_is_none_limits_nothing(groups, managed, quota, period):
    groups.join("/a")
    groups.allow("/a", quota, period)
    r = managed()
    assert user_of(r)["quota"] is None and len(user_of(r)["has"]) == 4
    groups.allow("/a", 200000)
    eventually(quota_of(r), 2.0)


@pytest.mark.parametrize("quota, period", [(-5, 100000), ("many", 100000), (150000, "x")])
def test_the_log_says_once_which_text_is_no_quota(groups, managed, quota, period):
    groups.join("/a")
    groups.allow("/a", quota, period)
    r = managed()
    user_of(r)
    time.sleep(0.2)  # of ten checks
    groups.allow("/a", 200000)
    eventually(quota_of(r), 2.0)
    told, = [line for line in r.close().splitlines() if "limits nothing" in line]
    assert f'{groups.file("/a")} holds no quota ("{quota} {period}"; ' in told


def test_the_log_says_once_that_a_quota_cannot_be_read(groups, managed):
    """A directory cannot be read, also by root."""
    groups.join("/a")
    file = groups.file("/a")
    file.mkdir(parents=True)
    r = managed()
    assert user_of(r)["quota"] is None
    time.sleep(0.2)  # of ten checks
    file.rmdir()
    groups.allow("/a", 200000)
    eventually(quota_of(r), 2.0)
    assert r.close().count(f"{file} cannot be read (Is a directory): it limits nothing") == 1


@pytest.mark.parametrize("text", ["", "0", "0:", "0::", "0::relative", "0::/../..", "3:cpu"])
def test_a_group_that_cannot_be_told_limits_nothing(groups, managed, text):
    groups.allow("/a", 150000)
    put(groups.root, "/proc/self/cgroup", text)
    assert user_of(managed())["quota"] is None


def test_a_container_sees_its_own_group_mounted(rmd, tmp_path):
    mounts = f"30 20 0:26 /docker/abc {V1} rw - cgroup cgroup rw,cpu"
    groups = Groups(tmp_path, 1, mounts)
    groups.join("/docker/abc/sub")
    groups.allow("/sub", 70000)
    r = rmd(4, f"--sys-root={tmp_path}")
    r.joined(1, 0)
    assert user_of(r)["quota"] == 0.7


def test_another_hierarchy_is_not_mistaken_for_that_of_the_processors(rmd, tmp_path):
    groups = Groups(tmp_path, 1, f"29 20 0:25 / {V1} rw - cgroup cgroup rw,cpuset,cpuacct")
    groups.join("/a")
    groups.allow("/a", 70000)
    r = rmd(4, f"--sys-root={tmp_path}")
    r.joined(1, 0)
    assert user_of(r)["quota"] is None


@pytest.mark.machine(os.getuid() == 0, "only root can be several users")
def test_each_process_with_a_quota_of_its_own_owns_what_that_pays_for(service, tmp_path):
    groups = Groups(tmp_path, 2)
    s = service("emulate-cores = 8\ncheck-interval-ms = 20\n", f"--sys-root={tmp_path}")
    one, two = s.member(ALICE), s.member(ALICE)
    eventually(lambda: counts(one, 0, 1), [4, 4])
    groups.allow("/a", 270000)
    groups.join("/a", one.process.pid)
    eventually(lambda: counts(one, 0, 1), [2, 6])
    groups.join("/a", two.process.pid)  # now it is of all
    eventually(lambda: counts(one, 0, 1).count(0), 0)
    groups.allow("/a", "max")
    eventually(lambda: counts(one, 0, 1), [4, 4])


# --- how many cores may compute

class Budget(Asked):
    """testsuite/rmd/programs/rmd_budget: a kernel with a quota in hundredths of a core."""

    def run(self, percent, cores, parts, period_us=100000, phase_us=31000, return_us=500, others=0):
        """Throttled periods of 1000; used and done, in thousandths; looks of a period."""
        words = [word for part in parts for word in part]
        return self.numbers(percent * period_us // 100, period_us, cores, phase_us, return_us,
                            others, len(parts), *words)


@pytest.fixture(scope="module")
def budget(build):
    program = Budget(build / "testsuite/rmd/programs/rmd_budget")
    yield program
    program.close()


@pytest.mark.parametrize("percent, cores", [(150, 2), (110, 2), (190, 2), (230, 4), (450, 16),
                                            (1590, 16), (100, 2), (6350, 64)])
@pytest.mark.parametrize("period_us, phase_us, return_us", [
    (100000, 0, 0), (100000, 99900, 500), (100000, 50000, 4000), (20000, 7000, 200)])
def test_a_busy_program_uses_its_quota_and_is_not_throttled(budget, percent, cores, period_us,
                                                            phase_us, return_us):
    throttled, used, _, looks = budget.run(percent, cores, [(1000, cores)], period_us, phase_us,
                                           return_us)
    assert throttled < 10 and used > 900 and looks < 30


def test_what_rmd_does_not_know_of_takes_its_part_of_the_quota(budget):
    throttled, used, _, _ = budget.run(150, 2, [(1000, 2)], others=100)
    assert throttled < 10 and used > 950


@pytest.mark.parametrize("cores, percent, parts", [
    (16, 450, [(10, 16), (40, 0)]), (2, 150, [(37, 2), (20, 0)]), (2, 150, [(300, 1)]),
    (8, 350, [(5, 8), (15, 1)])])
def test_a_program_that_needs_less_than_its_quota_has_all_cores(budget, cores, percent, parts):
    throttled, _, done, _ = budget.run(percent, cores, parts)
    assert throttled < 10 and done > 980


# --- a real group

def cpu_directory():
    """Where groups with quotas can be made; None: nowhere."""
    for at in (Path(V1), Path(V2)):
        one = at / f"invasive-test-{os.getpid()}"
        try:
            one.mkdir()
        except OSError:
            continue
        usable = (one / "cpu.cfs_quota_us").exists() or (one / "cpu.max").exists()
        one.rmdir()
        if usable:
            return at
    return None


REAL = cpu_directory()


@pytest.fixture
def real_group():
    group = REAL / f"invasive-quota-{os.getpid()}"
    group.mkdir()
    yield group
    for _ in range(100):  # a process that has just ended is in it for a moment
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


def set_quota(group, quota_us):
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text("max" if quota_us < 0 else f"{quota_us} 100000")
    else:
        (group / "cpu.cfs_quota_us").write_text(str(quota_us))


@pytest.mark.machine(REAL is not None, "control groups with quotas cannot be made here")
@pytest.mark.machine(len(TWO_CPUS) == 2, "one CPU")
def test_the_quota_of_a_real_group_is_followed(build, real_group):
    cores = ",".join(map(str, TWO_CPUS))
    r = Rmd(build, f"--cores={cores}", "--check-interval-ms=20")
    try:
        r.joined(1, 0)
        (real_group / "cgroup.procs").write_text(str(r.process.pid))
        for given, expected in ((150000, 1.5), (-1, None), (120000, 1.2)):
            set_quota(real_group, given)
            eventually(lambda: user_of(r)["quota"], expected)  # noqa: B023
    finally:
        r.close()
    assert r.process.returncode == 0
