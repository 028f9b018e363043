# SPDX-License-Identifier: GPL-3.0-or-later
"""The energy of the CPU packages is counted for the processes that compute (rmd/power/energy.c),
and stands in the report of invade.  The counters are files below a root of the test's own."""

from __future__ import annotations

import os
import socket
from typing import NamedTuple

import pytest

from lib.building.layout import CONSTANTS
from lib.manager.fake_system import ZONE, put, put_energy
from lib.manager.protocol import REPLY, REPORT, REPORT_OF_PROCESS, request
from lib.manager.rmd import Rmd
from lib.manager.users import ALICE
from lib.processes import processor_s
from lib.report import REPORT_SCHEMA, check_schema, parsed
from lib.waiting import PATIENCE_S, eventually

COUNTED = CONSTANTS.INV_ENERGY_COUNTED


class Energy(NamedTuple):
    state: int
    microjoules: int


def energy_of(r):
    """pid: what rmd has counted for the process"""
    found = {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.settimeout(PATIENCE_S)
        one.connect("\0" + r.name[1:] if r.name.startswith("@") else r.name)
        one.send(request(REPORT))
        one.recv(REPLY.size)
        while message := one.recv(1 << 20):
            of = REPORT_OF_PROCESS.unpack(message)
            found[of.pid] = Energy(of.energy, of.energy_uj)
    return found


def pid(member):
    return member.process.pid


def compute(member, seconds=0.2):
    enough = processor_s(member.process) + seconds
    while processor_s(member.process) < enough:
        member.ask("table")


@pytest.fixture
def counted(rmd, tmp_path):
    """counted(RANK...) - an rmd on a machine with two packages, and members that have joined"""

    def start(*ranks):
        put_energy(tmp_path, "0", 9_000_000, "package-0", 10_000_000)
        put_energy(tmp_path, "0:0", 5_000_000, "core")
        put_energy(tmp_path, "1", 1_000_000, "package-1", 10_000_000)
        put_energy(tmp_path, "2", 1_000_000, "psys")
        r = rmd(4, f"--sys-root={tmp_path}")
        return r, r.joined(len(ranks), *ranks)

    return start


def test_a_process_alone_has_the_energy_of_all_packages_and_of_no_other_zone(counted, tmp_path):
    r, (one,) = counted(0)
    assert energy_of(r) == {pid(one): (COUNTED, 0)}
    put_energy(tmp_path, "0", 9_500_000)
    put_energy(tmp_path, "0:0", 5_400_000)
    put_energy(tmp_path, "1", 1_250_000)
    put_energy(tmp_path, "2", 9_000_000)
    assert energy_of(r) == {pid(one): (COUNTED, 750_000)}


def test_a_counter_that_wraps_goes_on_from_there(counted, tmp_path):
    r, (one,) = counted(0)
    put_energy(tmp_path, "0", 200_000)
    assert energy_of(r) == {pid(one): (COUNTED, 1_200_000)}


def test_counters_that_tell_what_cannot_be_add_nothing(counted, tmp_path):
    r, (one,) = counted(0)
    for microjoules in (2**63 - 1, 5_000_000):
        put_energy(tmp_path, "0", microjoules)
        put_energy(tmp_path, "1", microjoules)
        assert energy_of(r) == {pid(one): (COUNTED, 0)}


def test_processes_have_energy_in_proportion_to_their_processor_time(counted, tmp_path):
    r, (busy, idle) = counted(0, 1)
    energy_of(r)  # from here on
    before = energy_of(r)
    compute(busy)
    put_energy(tmp_path, "1", 3_000_000)
    after = energy_of(r)
    had = {m: after[pid(m)].microjoules - before[pid(m)].microjoules for m in (busy, idle)}
    assert had[busy] > 1_800_000 and 1_999_990 <= sum(had.values()) <= 2_000_000, had


def test_programs_that_are_not_managed_have_their_part(counted, tmp_path):
    put(tmp_path, "/proc/stat", "cpu 100 0 0 900 0 0 0 0 0 0")
    r, (one,) = counted(0)
    compute(one)
    put(tmp_path, "/proc/stat", "cpu 100100 0 0 900 0 0 0 0 0 0")  # 1000 s of others
    put_energy(tmp_path, "1", 9_000_000)
    assert energy_of(r)[pid(one)].microjoules < 800_000


def test_energy_before_a_process_joins_is_not_its_own(counted, tmp_path):
    r, (one,) = counted(0)
    put_energy(tmp_path, "1", 5_000_000)
    late, = r.joined(1, 0)
    told = energy_of(r)
    assert told[pid(one)].microjoules >= 3_999_990 and told[pid(late)].microjoules == 0


def test_the_energy_of_a_process_stays_known_after_its_death(counted, tmp_path):
    r, (one, other) = counted(0, 1)
    put_energy(tmp_path, "1", 2_000_000)
    one.kill()
    eventually(other.states, [other.slot])
    told = energy_of(r)
    assert sum(e.microjoules for e in told.values()) >= 999_990 and len(told) == 2
    put_energy(tmp_path, "1", 4_000_000)
    assert energy_of(r)[pid(one)] == told[pid(one)]


def test_energy_that_was_counted_is_not_forgotten_when_rmd_is_killed(mortal, tmp_path):
    put_energy(tmp_path, "0", 1_000_000, "package-0")
    s = mortal("emulate-cores = 4\n", f"--sys-root={tmp_path}")
    one = s.member(ALICE)
    put_energy(tmp_path, "0", 4_000_000)
    s.member(ALICE)  # a change of members saves what is known of them
    s.die()
    put_energy(tmp_path, "0", 7_000_000)
    s.begin()
    put_energy(tmp_path, "0", 7_500_000)
    os.seteuid(ALICE)
    try:
        told = energy_of(s)
    finally:
        os.seteuid(0)
    assert told[pid(one)].microjoules >= 3_000_000
    assert 3_499_990 <= sum(e.microjoules for e in told.values()) <= 3_500_000


def test_counters_that_vanish_are_told_once_and_their_energy_is_unknown(build, tmp_path):
    put_energy(tmp_path, "0", 1_000_000, "package-0")
    r = Rmd(build, "--emulate-cores=2", f"--sys-root={tmp_path}", "--check-interval-ms=10")
    one, = r.joined(1, 0)
    counter = tmp_path / ZONE.format("0", "energy_uj").lstrip("/")
    counter.unlink()
    eventually(lambda: energy_of(r)[pid(one)].state, CONSTANTS.INV_ENERGY_GONE)
    energy_of(r)
    said = r.close()
    assert said.count("is not counted any more") == 1 and f"{counter}: No such file" in said


@pytest.fixture
def reported(invade, run_program, build, make_variable, tmp_path):
    """reported(vanishing=False) - invade's report and text of an OpenMP program that brings the
    counter from 1 to 3.5 J, or takes it away"""

    def run(vanishing=False):
        root = tmp_path / "root"
        counter = root / ZONE.format("0", "energy_uj").lstrip("/")
        put_energy(root, "0", 1_000_000, "package-0")
        program = tmp_path / "program"
        program.with_suffix(".c").write_text(PROGRAM)
        run_program([*make_variable("CC").split(), "-fopenmp", "-o", program, f"{program}.c"])
        r = Rmd(build, "--emulate-cores=2", f"--sys-root={root}", "--check-interval-ms=10")
        texts = []
        for file in (tmp_path / "report.json", tmp_path / "report"):
            put_energy(root, "0", 1_000_000)
            put(tmp_path, "/later", 3_500_000)
            run_program([invade, f"--report={file}", "--", program, counter,
                         "" if vanishing else tmp_path / "later"],
                        env={**os.environ, "INVASIVE_SOCKET": r.name})
            texts.append(file)
        r.close()
        return parsed(texts[0]), texts[1].read_text()

    return run


PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
#pragma omp parallel
    (void)argc;
    if (!argv[2][0]) {
        unlink(argv[1]);
        usleep(200000);
        return 0;
    }
    return rename(argv[2], argv[1]) != 0;
}
"""


def test_the_report_has_joules_of_processes_jobs_and_the_launch(reported):
    report, text = reported()
    check_schema(report, REPORT_SCHEMA)
    job, = report["jobs"]
    process, = job["processes"]
    assert report["energy_counters"] == "counted"
    assert 1 < process["energy_joules"] <= 2.5
    assert report["energy_joules"] == job["energy_joules"] == process["energy_joules"]
    assert "energy of the CPU packages, by processor time:" in text


def test_a_report_says_that_counters_have_vanished(reported):
    report, text = reported(vanishing=True)
    assert (report["energy_counters"], report["energy_joules"]) == ("vanished", None)
    assert report["jobs"][0]["processes"][0]["energy_joules"] is None
    assert "the counters of the CPU packages have vanished" in text


def test_where_only_root_may_read_the_counters_the_energy_is_unknown(service, public):
    put_energy(public, "0", 1_000_000, "package-0")
    (public / ZONE.format("0", "energy_uj").lstrip("/")).chmod(0)
    s = service("emulate-cores = 2\n", f"--sys-root={public}",
                before=["setpriv", "--bounding-set", "-dac_override,-dac_read_search"])
    one = s.member(ALICE)
    os.seteuid(ALICE)
    try:
        assert energy_of(s)[pid(one)].state == CONSTANTS.INV_ENERGY_FORBIDDEN
    finally:
        os.seteuid(0)


def test_sockets_of_hwmon_are_counted_where_there_is_no_powercap(rmd, tmp_path):
    at = "/sys/class/hwmon/hwmon3/energy{}"
    for number, label in ((1, "Ecore000"), (2, "Esocket0")):
        put(tmp_path, at.format(f"{number}_label"), label)
        put(tmp_path, at.format(f"{number}_input"), 1000)
    r = rmd(2, f"--sys-root={tmp_path}")
    one, = r.joined(1, 0)
    put(tmp_path, at.format("1_input"), 9000)
    put(tmp_path, at.format("2_input"), 4000)
    assert energy_of(r) == {pid(one): (COUNTED, 3000)}
