# SPDX-License-Identifier: GPL-3.0-or-later
"""The cpuset of rmd and its programs changes while they run."""

import os

from lib.machine import TWO_CORES, TWO_CPUS
from lib.manager.control_groups import group_in, of_each_version, real_tree, with_cpusets
from lib.manager.core_table import ELSEWHERE
from lib.manager.rmd import Rmd
from lib.waiting import eventually


@with_cpusets
@of_each_version
def test_a_cpu_that_leaves_the_cpuset_has_no_owner_until_it_is_back(build, version):
    with real_tree(version) as tree:
        group = group_in(tree, version, "job")
        r = Rmd(build, TWO_CORES, "--check-interval-ms=20")
        try:
            (member,) = r.joined(1, 0)
            for pid in (r.process.pid, member.process.pid):
                (group / "cgroup.procs").write_text(str(pid))
            assert member.owners() == [0, 0]
            (group / "cpuset.cpus").write_text(str(TWO_CPUS[0]))
            eventually(member.owners, [0, ELSEWHERE])
            assert member.ask("borrow 1") == "0"
            (group / "cpuset.cpus").write_text(f"{TWO_CPUS[0]},{TWO_CPUS[1]}")
            eventually(member.owners, [0, 0])
        finally:
            r.close()


@with_cpusets
def test_an_affinity_of_rmd_takes_no_core_away(build):
    r = Rmd(build, TWO_CORES, "--check-interval-ms=20")
    try:
        (member,) = r.joined(1, 0)
        os.sched_setaffinity(r.process.pid, {TWO_CPUS[0]})
        r.joined(1, 1)  # rmd looks then
        assert ELSEWHERE not in member.owners()
        assert os.sched_getaffinity(r.process.pid) == {TWO_CPUS[0]}
    finally:
        r.close()
