# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies as users meet them: rmd --policy, rmctl policy, and what they make of announcements."""

import json
import subprocess

import pytest

from lib.manager.fake_system import FREQ, RAPL, put, put_stat, put_zone, value_of
from lib.manager.member import counts
from lib.manager.rmd import Rmd, rmctl
from lib.waiting import eventually

pytestmark = pytest.mark.sanitize
FLAT = "graph 1 1 2 1.8 4 1.8"


@pytest.mark.smoke
def test_rmctl_shows_and_changes_the_policy_of_a_running_domain(rmd, build):
    r = rmd(12)
    one, other = r.joined(2, 0, 1)
    one.ask("announce 1 0 0")
    other.ask("announce 5 0 0")
    assert counts(one, 0, 1) == [2, 10]
    code, out, _ = rmctl(build, f"--socket={r.name}", "policy")
    assert code == 0 and f"domain {r.name}: policy workload" in out
    assert [line for line in out.splitlines() if line.startswith("*")][0].split()[1] == "workload"
    for policy, shares in (("equal", [6, 6]), ("makespan", [2, 10]), ("equal", [6, 6])):
        assert rmctl(build, f"--socket={r.name}", "policy", policy)[:2] == \
            (0, f"domain {r.name}: policy {policy}\n")
        assert counts(one, 0, 1) == shares


def test_every_policy_can_be_chosen_at_the_start_and_later(rmd, build):
    names = [line[2:].split()[0] for line in rmctl(
        build, f"--socket={rmd(2).name}", "policy")[1].splitlines() if line[0] in " *"]
    assert len(names) == 8
    r = rmd(4)
    member, = r.joined(1, 0)
    for name in names:
        assert f"policy {name}\n" in rmctl(build, f"--socket={rmd(2, f'--policy={name}').name}",
                                           "policy")[1]
        assert rmctl(build, f"--socket={r.name}", "policy", name)[0] == 0
        assert name == "energy" or counts(member, 0) == [4]


def test_a_policy_that_there_is_not_is_refused(rmd, build):
    r = rmd(2)
    code, out, err = rmctl(build, f"--socket={r.name}", "policy", "best")
    assert code == 64 and out == "" and "workload" in err and "energy" in err
    assert "policy workload" in rmctl(build, f"--socket={r.name}", "policy")[1]
    for tool in ("rmd", "invade"):
        done = subprocess.run([build / "bin" / tool, "--policy=best", "true"], check=False,
                              capture_output=True, text=True, timeout=20)
        assert done.returncode != 0 and "best" in done.stderr and "throughput" in done.stderr


def test_cores_follow_the_scalability_graphs(rmd):
    one, other = rmd(12, "--policy=throughput").joined(2, 0, 1)
    assert one.ask(FLAT) == "0" and one.ask("announce 1 0 0") == "0"
    assert other.ask("graph 1 1 12 8") == "0" and other.ask("announce 1 0 0") == "0"
    assert counts(one, 0, 1) == [2, 10]


def test_an_announced_graph_need_not_be_concave(rmd):
    """Its hull is what counts: eight cores bring the second one five, whatever the first do."""
    one, other = rmd(9, "--policy=throughput").joined(2, 0, 1)
    assert one.ask("graph 1 1 9 3") == "0" and one.ask("announce 1 0 0") == "0"
    assert other.ask("graph 1 1 2 1.01 4 1.02 8 5 9 5") == "0"
    assert other.ask("announce 1 0 0") == "0"
    assert counts(one, 0, 1) == [1, 8]


def test_ranks_of_a_job_share_what_the_job_has(rmd):
    """Two MPI jobs and a process without MPI: fair counts three, however many ranks there are."""
    r = rmd(12, "--policy=fair")
    pair = [r.member() for _ in range(2)]
    for rank, member in enumerate(pair):
        member.join(rank, 2, 2, rank)
    trio = [r.member() for _ in range(3)]
    for rank, member in enumerate(trio):
        member.join(rank, 3, 3, rank)
    assert counts(pair[0], *range(5)) == [3, 3, 2, 2, 2]
    r.member().join()
    assert counts(pair[0], *range(6)) == [2, 2, 2, 1, 1, 4]
    pair[0].ask("announce 1 0 0")
    pair[1].ask("announce 3 0 0")
    assert counts(pair[0], *range(6)) == [1, 3, 2, 1, 1, 4]


def test_a_second_job_of_the_same_size_is_another_job(rmd):
    r = rmd(12, "--policy=fair")
    ranks = [0, 1, 0, 1]
    members = [r.member() for _ in ranks]
    for rank, member in zip(ranks, members):
        member.join(rank, 2, 2, rank)
    members[0].ask("announce 5 0 0")
    members[1].ask("announce 1 0 0")
    assert counts(members[0], *range(4)) == [5, 1, 3, 3]


def test_energy_leaves_cores_free_that_bring_nothing(rmd):
    one, = rmd(8, "--policy=energy").joined(1, 0)
    assert one.ask(FLAT) == "0" and one.ask("announce 1 0 0") == "0"
    assert counts(one, 0) == [2]
    assert one.ask("graph 1 1 8 8") == "0" and one.ask("announce 2 0 0") == "0"
    assert counts(one, 0) == [8]


def test_announced_iteration_times_show_cores_that_deliver_less(rmd):
    """The same work, but twice the time on as many cores: half of them are missing."""
    one, other = rmd(16, "--policy=interference").joined(2, 0, 1)
    assert one.ask("iteration 0.2") == "0" and one.ask("announce 1 0 0") == "0"
    assert other.ask("iteration 0.1") == "0" and other.ask("announce 1 0 0") == "0"
    assert counts(one, 0, 1) == [10, 6]
    one.ask("announce 1.1 0 0")  # the times are those of eight cores each, whatever they own now
    assert counts(one, 0, 1) == [10, 6]


@pytest.mark.parametrize("policy", ["workload", "makespan", "interference"])
def test_a_workload_that_was_measured_is_time_of_the_cores_that_it_was_measured_on(rmd, policy):
    """Twice the time on cores that deliver half is the same work."""
    one, other = rmd(16, f"--policy={policy}").joined(2, 0, 1)
    assert one.ask("delivered 0.5 1") == "0" and one.ask("announce 2 0 0") == "0"
    assert other.ask("delivered 1 1") == "0" and other.ask("announce 1 0 0") == "0"
    measured = counts(one, 0, 1)
    assert one.ask("delivered 0.5 0") == "0" and one.ask("announce 1 0 0") == "0"
    assert counts(one, 0, 1) == measured


@pytest.mark.parametrize("policy", ["workload", "makespan", "interference"])
def test_a_workload_in_units_of_the_program_is_the_same_on_slow_cores(rmd, policy):
    """The ranks of a program that announces its cells, some of them on slow cores."""
    one, other = rmd(16, f"--policy={policy}").joined(2, 0, 1)
    assert one.ask("delivered 0.5 0") == "0" and other.ask("delivered 1 0") == "0"
    assert one.ask("announce 100 0 0") == "0" and other.ask("announce 100 0 0") == "0"
    assert counts(one, 0, 1) in ([10, 6], [11, 5])  # 10 2/3 of 16; 8 if it were core time


def test_the_next_process_of_a_slot_has_measured_nothing(rmd, build):
    r = rmd(4)
    _, first = r.joined(2, 0, 1)

    def measured():
        text = rmctl(build, f"--socket={r.name}", "status", "--json")[1]
        processes = json.loads(text)["domains"][0]["processes"]
        return {process["slot"]: process["workload_measured"] for process in processes}

    assert first.ask("delivered 0.5 1") == "0"
    assert measured() == {0: False, 1: True}
    first.kill()
    eventually(measured, {0: False})
    r.joined(1, 1)
    assert measured() == {0: False, 1: False}


def test_a_move_that_does_not_pay_in_time_is_not_made(rmd):
    """Seven cores would move; at a second each they do not pay within a millisecond."""
    one, other = rmd(16, "--move-cost-us=1000000", "--pay-within-ms=1").joined(2, 0, 1)
    one.ask("announce 1 0 0")
    other.ask("announce 15 0 0")
    assert counts(one, 0, 1) == [8, 8]
    assert other.ask("announce 15 9 0") == "0"  # its range is no question of cost
    assert counts(one, 0, 1)[1] >= 9


def test_how_much_energy_may_lose_can_be_said(rmd):
    one, = rmd(20, "--policy=energy", "--energy-loss=50").joined(1, 0)
    assert one.ask("graph 1 1 20 20") == "0" and one.ask("announce 1 0 0") == "0"
    assert counts(one, 0) == [10]


# --- what the machine says, below a root of our own


def stolen_from_the_first(rmd, root, ticks=(300, 200)):
    """Two processes on 16 cores; half of the first one's time is stolen, so it gets two more."""
    put_stat(root, [(100, 0)] * 16)
    r = rmd(16, "--policy=interference", f"--sys-root={root}")
    one, other = r.member(), r.member()
    for member in (one, other):
        member.join()
    assert counts(one, 0, 1) == [8, 8]
    put_stat(root, [ticks if slot == 0 else (500, 0) for slot in one.owners()])
    eventually(lambda: counts(one, 0, 1), [10, 6])
    return r, one


def test_a_process_whose_cores_are_stolen_gets_more_of_them(rmd, tmp_path):
    r, one = stolen_from_the_first(rmd, tmp_path)
    one.ask("announce 1 0 0")
    assert counts(one, 0, 1) == [10, 6]  # that is where it stays


def test_steal_counts_for_nothing_under_other_policies(rmd, build, tmp_path):
    r, one = stolen_from_the_first(rmd, tmp_path)
    assert rmctl(build, f"--socket={r.name}", "policy", "fair")[0] == 0
    assert counts(one, 0, 1) == [8, 8]


def test_ticks_that_are_beyond_64_bits_together_count_by_their_ratio(rmd, tmp_path):
    """As a container's own /proc/stat may have them."""
    stolen_from_the_first(rmd, tmp_path, (2**63 + 108, 2**63))


@pytest.mark.parametrize("text", ["", "cpu0", "cpu0 1 2 3", "cpu99 1 1 1 1 1 1 1 1", "x" * 5000,
                                  "cpu0 " + "9" * 400, "cpu-3 1 1 1 1 1 1 1 1 1"])
def test_a_senseless_proc_stat_says_nothing(rmd, tmp_path, text):
    put(tmp_path, "/proc/stat", text)
    one, _ = rmd(4, "--policy=interference", f"--sys-root={tmp_path}").joined(2, 0, 1)
    assert counts(one, 0, 1) == [2, 2]
    one.ask("announce 1 0 0")
    assert counts(one, 0, 1) == [2, 2]


@pytest.mark.parametrize("cap,expected", [("150", [100, 50]), ("150W", [100, 50]),
                                          ("25%", [50, 25]),
                                          ("99%", [193, 93]), ("9999", [193, 93])])
def test_packages_share_a_power_cap_and_have_theirs_back_at_the_end(build, tmp_path, cap, expected):
    for zone, most in ((0, 200), (1, 100)):
        put_zone(tmp_path, zone, f"package-{zone}", most)
    put(tmp_path, FREQ.format(0, "scaling_max_freq"), 3000000)
    r = Rmd(build, "--emulate-cores=2", f"--sys-root={tmp_path}", f"--power-cap={cap}")
    try:
        now = [value_of(tmp_path, RAPL.format(zone, "power_limit_uw")) for zone in (0, 1)]
        assert now == [watts * 10**6 for watts in expected]
        assert value_of(tmp_path, FREQ.format(0, "scaling_max_freq")) == 3000000
    finally:
        r.close()
    assert [value_of(tmp_path, RAPL.format(zone, "power_limit_uw"))
            for zone in (0, 1)] == [193000000, 93000000]


@pytest.mark.parametrize("platform", [0, 1, 2])
def test_what_the_platform_may_take_is_no_part_of_a_power_cap(build, tmp_path, platform):
    """Client machines limit it too, in a zone before, between or after those of packages, whose
    numbers need not follow each other."""
    packages = [zone for zone in (0, 1, 2, 4) if zone != platform]
    put_zone(tmp_path, platform, "psys", 500)
    for zone in packages:
        put_zone(tmp_path, zone, f"package-{zone}-die-0", 100)
    r = Rmd(build, "--emulate-cores=2", f"--sys-root={tmp_path}", "--power-cap=150")
    try:
        assert [value_of(tmp_path, RAPL.format(zone, "power_limit_uw")) for zone in packages] == \
            [50 * 10**6] * 3
        assert value_of(tmp_path, RAPL.format(platform, "power_limit_uw")) == 493 * 10**6
    finally:
        r.close()


def refused(build, root, cap):
    return subprocess.run([build / "bin" / "rmd", "--emulate-cores=2", f"--sys-root={root}",
                           f"--socket=@rmd-test-cap-{root.name}", f"--power-cap={cap}"],
                          check=False, capture_output=True, text=True, timeout=20)


def test_a_limit_without_effect_is_no_power_cap(build, tmp_path):
    """rmd gives up before it has changed anything."""
    put_zone(tmp_path, 0, "package-0", 200)
    put_zone(tmp_path, 1, "package-1", 200, enabled=0)
    done = refused(build, tmp_path, "100")
    assert done.returncode != 0 and "intel-rapl:1/enabled says 0" in done.stderr
    assert [value_of(tmp_path, RAPL.format(zone, "power_limit_uw"))
            for zone in (0, 1)] == [193 * 10**6] * 2


def test_without_powercap_a_percentage_limits_frequencies(build, tmp_path):
    put_zone(tmp_path, 0, "psys", 500, enabled=0)
    for cpu in (0, 1, 3):  # 2 is offline
        put(tmp_path, FREQ.format(cpu, "cpuinfo_max_freq"), 3000000)
        put(tmp_path, FREQ.format(cpu, "cpuinfo_min_freq"), 1600000 if cpu == 3 else 800000)
        put(tmp_path, FREQ.format(cpu, "scaling_max_freq"), 2900000)
    r = Rmd(build, "--emulate-cores=2", f"--sys-root={tmp_path}", "--power-cap=12.5%")
    try:
        now = [value_of(tmp_path, FREQ.format(cpu, "scaling_max_freq")) for cpu in (0, 1, 3)]
        assert now == [1500000, 1500000, 1600000]
    finally:
        r.close()
    assert all(value_of(tmp_path, FREQ.format(cpu, "scaling_max_freq")) == 2900000
               for cpu in (0, 1, 3))


@pytest.mark.parametrize("cap,why", [("50", "percentage"), ("50%", "no powercap nor cpufreq"),
                                     ("0", "use watts"), ("120%", "use watts"),
                                     ("ten", "use watts")])
def test_a_cap_that_the_machine_does_not_know_is_refused(build, tmp_path, cap, why):
    if cap == "50":
        put(tmp_path, FREQ.format(0, "cpuinfo_max_freq"), 3000000)
    done = refused(build, tmp_path, cap)
    assert done.returncode != 0 and why in done.stderr
