# SPDX-License-Identifier: GPL-3.0-or-later
"""The CPUs stay below a temperature: the loop (rmd/power/thermal.c) on a simulated chip, and the
sensors (rmd/power/sensors.c) and rmd on files below a root of the test's own."""

from __future__ import annotations

import subprocess
import time

import pytest

from lib.building.build import TOP
from lib.building.small_programs import compile_text
from lib.manager.fake_system import FREQ, put, put_online
from lib.manager.member import counts
from lib.manager.rmd import Rmd
from lib.waiting import PATIENCE_S, eventually, until

HWMON = "/sys/class/hwmon/hwmon2/{}"


# --- the loop on a chip

class Chip:
    """Warms up with the cube of its speed, and a static part, over its surroundings."""

    def __init__(self, seconds=8.0, full=60.0, static=10.0, around=30.0):
        self.seconds, self.full, self.static, self.around = seconds, full, static, around
        self.degrees = around

    def steady(self, part):
        return self.around + self.static + self.full * part**3

    def run(self, part, load=1.0, period=1.0):
        goal = self.around + (self.steady(part) - self.around) * load
        for _ in range(10):
            self.degrees += (goal - self.degrees) * period / 10 / self.seconds

    def best(self, threshold):
        """The highest constant speed that stays below."""
        return min(1, max(0, (threshold - self.around - self.static) / self.full) ** (1 / 3))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    text = (TOP / "testsuite/rmd/programs/thermal.c").read_text()
    return compile_text(tmp_path_factory.mktemp("thermal") / "thermal", text, "-std=gnu17",
                        f"-I{TOP}", TOP / "rmd/power/thermal.c", "-lm")


@pytest.fixture
def controlled(program):
    """controlled(CHIP, THRESHOLD, LOAD, DIGITS) - temperature and speed of each of 300 looks, by a
    sensor of so many digits"""

    def run(chip, threshold, load=lambda _: 1.0, digits=3):
        found = []
        with subprocess.Popen([program, str(threshold)], text=True, bufsize=1,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for look in range(300):
                process.stdin.write(f"{chip.degrees:.{digits}f}\n")
                part = float(process.stdout.readline())
                chip.run(part, load(look))
                found.append((chip.degrees, part))
            process.stdin.close()
            assert process.wait(60) == 0
        return found

    return run


@pytest.mark.parametrize("threshold", [60, 75, 90])
@pytest.mark.parametrize("seconds", [4.0, 8.0, 30.0])
@pytest.mark.parametrize("digits,cost", [(3, 1.015), (0, 1.06)])
def test_a_chip_stays_below_the_threshold_at_nearly_its_best_speed(
        controlled, seconds, threshold, digits, cost):
    """`cost`: in time, over the best constant speed."""
    chip = Chip(seconds)
    looks = controlled(chip, threshold, digits=digits)
    assert max(degrees for degrees, _ in looks) < threshold + 0.5
    later = [part for _, part in looks[100:]]
    assert sum(later) / len(later) > chip.best(threshold) / cost


def test_a_chip_that_stays_cool_is_not_slowed(controlled):
    assert {part for _, part in controlled(Chip(full=20.0), 70)} == {1.0}


def test_load_that_comes_and_goes_does_not_make_the_chip_too_warm(controlled):
    looks = controlled(Chip(), 70, lambda look: 1.0 if look // 30 % 2 else 0.2)
    assert max(degrees for degrees, _ in looks) < 72
    assert max(part for _, part in looks[100:]) > 0.9  # while there is little load


def test_a_chip_that_is_always_too_warm_keeps_the_least_speed(controlled):
    looks = controlled(Chip(around=90.0), 60)
    assert looks[-1][1] == 0.2


# --- sensors

@pytest.fixture(scope="module")
def sensors_program(tmp_path_factory):
    text = (TOP / "testsuite/rmd/programs/sensors.c").read_text()
    sources = [TOP / name for name in (
        "rmd/power/sensors.c", "rmd/power/chips.c", "rmd/host/online.c", "rmd/host/sysfile.c",
        "rmd/loop/log.c", "libinvasive/base/cpulist.c")]
    return compile_text(tmp_path_factory.mktemp("sensors") / "sensors", text, "-std=gnu17",
                        f"-I{TOP}", *sources, "-lm")


class Sensors:
    """Two sensors of CPUs, 40 and 80 degrees, and the program that looks at them."""

    def __init__(self, program, root):
        self.root, self.hot = root, root / HWMON.format("temp2_input").lstrip("/")
        put(root, HWMON.format("name"), "coretemp")
        put(root, HWMON.format("temp1_input"), 40000)
        self.warm(80)
        put_online(root, "0-3")
        self.process = subprocess.Popen([program, root], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def warm(self, degrees):
        put(self.root, HWMON.format("temp2_input"), degrees * 1000)

    def look(self, second):
        """How many can be read, are missing, the highest temperature; are these other ones?"""
        self.process.stdin.write(f"{second}\n")
        return tuple(map(int, self.process.stdout.readline().split()))

    def said(self):
        """The log, of which each line is one message."""
        return self.process.communicate(timeout=PATIENCE_S)[1].splitlines()


@pytest.fixture
def sensors(sensors_program, tmp_path):
    one = Sensors(sensors_program, tmp_path)
    yield one
    one.process.kill()
    one.process.communicate()


@pytest.mark.parametrize("fails", [lambda hot: hot.unlink(), lambda hot: hot.write_text("-\n")],
                         ids=["its file is gone", "its file cannot be read"])
def test_a_sensor_is_missing_until_it_can_be_read(sensors, fails):
    assert sensors.look(1) == (2, 0, 80, 1)
    assert sensors.look(2) == (2, 0, 80, 0)
    fails(sensors.hot)
    assert sensors.look(3) == (1, 1, 40, 1)
    assert sensors.look(5) == (1, 1, 40, 0)
    assert sensors.look(100000) == (1, 1, 40, 0)
    sensors.warm(70)
    assert sensors.look(100001) == (2, 0, 70, 1)
    assert sensors.look(100002) == (2, 0, 70, 0)
    told, = sensors.said()
    assert "1 sensor of the CPUs cannot be read any more " \
           "(/sys/class/hwmon/hwmon2/temp2_input): " in told


def test_a_sensor_that_fails_now_and_then_is_not_told_of(sensors):
    for second in range(1, 100):
        sensors.warm(80)
        if second % 2:
            sensors.hot.unlink()
        sensors.look(second)
    assert sensors.said() == []


def test_a_sensor_of_a_cpu_that_went_offline_is_given_up_after_a_minute(sensors):
    sensors.look(1)
    put_online(sensors.root, "0-2")
    sensors.hot.unlink()
    assert sensors.look(2)[:2] == (1, 1)
    assert sensors.look(60)[:2] == (1, 1)
    assert sensors.look(61) == (1, 0, 40, 0)
    assert sensors.look(62) == (1, 0, 40, 0)
    put_online(sensors.root, "0-3")
    sensors.warm(80)
    assert sensors.look(63) == (2, 0, 80, 1)  # with the CPU it is back
    warned, told = sensors.said()
    assert "cannot be read" in warned
    assert "1 sensor is gone since a CPU went offline (/sys/class/hwmon/hwmon2/temp2_input)" in told


def test_a_sensor_with_an_error_is_not_given_up_when_a_cpu_goes_offline(sensors):
    sensors.look(1)
    put_online(sensors.root, "0-2")
    sensors.hot.write_text("error\n")
    assert sensors.look(1000)[:2] == (1, 1)


def test_sensors_that_are_all_gone_are_missing_until_some_are_back(sensors):
    sensors.look(1)
    put_online(sensors.root, "0-2")
    for name in ("temp1_input", "temp2_input"):
        (sensors.root / HWMON.format(name).lstrip("/")).unlink()
    assert sensors.look(100) == (0, 2, 80, 1)
    put(sensors.root, HWMON.format("temp1_input"), 45000)
    assert sensors.look(101) == (1, 0, 45, 1)


def test_a_thermal_zone_stands_in_for_hwmon_and_is_not_missed_afterwards(sensors):
    name = sensors.root / HWMON.format("name").lstrip("/")
    put(sensors.root, "/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp")
    put(sensors.root, "/sys/class/thermal/thermal_zone0/temp", 60000)
    assert sensors.look(1) == (2, 0, 80, 1)
    name.rename(name.with_name("away"))
    assert sensors.look(2) == (1, 2, 60, 1)
    name.with_name("away").rename(name)
    assert sensors.look(3) == (2, 0, 80, 1)


def test_a_sensor_that_is_missing_can_be_given_up(sensors):
    sensors.look(1)
    sensors.hot.unlink()
    assert sensors.look(2)[:2] == (1, 1)
    assert sensors.look("forget")[:2] == (1, 0)
    assert sensors.look(3) == (1, 0, 40, 0)


# --- rmd

def text_of(file):
    return int(file.read_text() or 0)


@pytest.fixture
def machine(build, tmp_path):
    """machine(OPTION..., cpufreq=True, sensor=DEGREES) - an rmd on a machine of two CPUs"""
    started = []

    def start(*options, cpufreq=True, sensor=50, frequency=2900000):
        if sensor:
            put(tmp_path, HWMON.format("name"), "coretemp")
            put(tmp_path, HWMON.format("temp1_input"), 40000)
            warm(sensor)
        for cpu in range(2 if cpufreq else 0):
            put(tmp_path, FREQ.format(cpu, "cpuinfo_max_freq"), 3000000)
            put(tmp_path, FREQ.format(cpu, "cpuinfo_min_freq"), 1500000)
            put(tmp_path, FREQ.format(cpu, "scaling_max_freq"), frequency)
        started.append(Rmd(build, "--emulate-cores=4", f"--sys-root={tmp_path}", *options))
        return started[-1]

    def warm(degrees):
        put(tmp_path, HWMON.format("temp2_input"), degrees * 1000)

    start.warm = warm
    def frequency(cpu=1):  # rmd writes into the file, as into one of sysfs: it may be empty
        return until(lambda: text_of(tmp_path / FREQ.format(cpu, "scaling_max_freq").lstrip("/")))

    start.frequency = frequency
    start.root = tmp_path
    yield start
    for one in started:
        one.close()


def test_frequencies_fall_while_it_is_too_warm_and_are_back_at_the_end(machine, ask):
    r = machine("--temperature-limit=70")
    assert ask(r, "power")["threshold"] == 70 and machine.frequency() == 2900000
    machine.warm(90)
    eventually(machine.frequency, 1500000)  # the least of these CPUs
    said = ask(r, "power")
    assert (said["temperature"], said["sensors"]) == (90, 2) and said["speed_percent"] < 60
    machine.warm(40)
    eventually(lambda: machine.frequency() > 1500000, True)
    r.close()
    assert machine.frequency() == 2900000


def test_a_threshold_by_rmctl_holds_until_it_is_off(machine, ask, tell):
    r = machine()
    assert ask(r, "power")["threshold"] is None
    machine.warm(90)
    assert ask(r, "power", "--threshold=70")["outcome"] == "done"
    eventually(lambda: machine.frequency() < 2900000, True)
    assert "90.0 degrees in the hottest CPU; below 70 degrees, by " in tell(r, "power")[1]
    assert ask(r, "power", "--threshold=off")["threshold"] is None
    assert machine.frequency() == 2900000 and ask(r, "power")["speed_percent"] == 100


def test_where_no_frequency_can_be_set_cores_are_left_out(machine, ask):
    r = machine("--temperature-limit=70", cpufreq=False)
    member, = r.joined(1, 0)
    assert member.owners() == [0, 0, 0, 0]
    machine.warm(90)
    eventually(lambda: member.owners().count(0), 1)
    assert "% of the cores" in ask(r, "power")["text"]
    ask(r, "power", "--threshold=off")
    eventually(member.owners, [0, 0, 0, 0])


def test_when_sensors_vanish_the_limit_stays_and_is_told_once(machine, ask):
    r = machine("--temperature-limit=70")
    machine.warm(90)
    eventually(machine.frequency, 1500000)
    for name in ("temp1_input", "temp2_input"):
        (machine.root / HWMON.format(name).lstrip("/")).unlink()
    eventually(lambda: ask(r, "power")["sensors"], 0)
    said = ask(r, "power")
    assert said["temperature"] is None and "stays until a sensor is back" in said["text"]
    assert machine.frequency() == 1500000
    machine.warm(40)
    eventually(lambda: ask(r, "power")["sensors"], 1)
    assert machine.frequency() == 1500000  # the other one is missing still
    put(machine.root, HWMON.format("temp1_input"), 40000)
    eventually(lambda: machine.frequency() > 1500000, True)
    assert r.close().count("no sensor tells the temperature") == 1
    assert machine.frequency() == 2900000


def test_a_warm_sensor_that_is_back_is_not_taken_for_a_rise_of_the_temperature(machine, ask):
    r = machine("--temperature-limit=70", sensor=69)
    (machine.root / HWMON.format("temp2_input").lstrip("/")).unlink()
    eventually(lambda: ask(r, "power")["temperature"], 40)
    machine.warm(69)
    eventually(lambda: ask(r, "power")["temperature"], 69)
    assert ask(r, "power")["speed_percent"] == 100


def test_while_one_of_several_sensors_is_missing_the_cpus_do_not_become_faster(machine, ask, tell):
    """The hottest is missing, the other one is cool."""
    r = machine("--temperature-limit=70")
    machine.warm(90)
    eventually(machine.frequency, 1500000)
    (machine.root / HWMON.format("temp2_input").lstrip("/")).unlink()
    eventually(lambda: ask(r, "power")["sensors"], 1)
    slow = ask(r, "power")["speed_percent"]
    time.sleep(3)  # of three looks
    assert ask(r, "power")["speed_percent"] == slow
    assert "no faster: 1 sensor is missing" in tell(r, "power")[1]
    assert ask(r, "power", "--threshold=70")["outcome"] == "done"  # an operator gives it up
    eventually(lambda: ask(r, "power")["speed_percent"] > slow, True)
    assert "missing" not in tell(r, "power")[1]


def make_unwritable(root, *cpus):
    """A directory cannot be written."""
    for cpu in cpus:
        file = root / FREQ.format(cpu, "scaling_max_freq").lstrip("/")
        file.unlink()
        file.mkdir()


def make_writable(root, frequency, *cpus):
    for cpu in cpus:
        (root / FREQ.format(cpu, "scaling_max_freq").lstrip("/")).rmdir()
        put(root, FREQ.format(cpu, "scaling_max_freq"), frequency)


def test_frequencies_that_could_not_be_set_once_are_tried_again(machine, ask):
    """That other CPUs are online is a reason to try again."""
    r = machine("--temperature-limit=70", "--log-level=notice")
    put_online(machine.root, "0-7")
    member, = r.joined(1, 0)
    machine.warm(90)
    eventually(machine.frequency, 1500000)
    make_unwritable(machine.root, 0, 1)
    machine.warm(60)  # it may become faster, which fails
    eventually(lambda: "% of the cores" in ask(r, "power")["text"], True)
    eventually(lambda: member.owners().count(0) < 4, True)
    machine.warm(90)
    make_writable(machine.root, 2900000, 0, 1)
    put_online(machine.root, "0-8")
    eventually(member.owners, [0, 0, 0, 0])
    eventually(machine.frequency, 1500000)
    assert "% of the highest frequency" in ask(r, "power")["text"]
    said = r.close()
    assert said.count("frequencies cannot be set") == 1
    assert said.count("frequencies can be set again") == 1
    assert machine.frequency() == 2900000


def test_when_the_limit_ends_frequencies_are_restored_that_could_not_be_set_before(machine, ask):
    """The full speed is reached again while they cannot be set; a small rise costs little."""
    r = machine("--temperature-limit=70", sensor=70)
    machine.warm(71)
    eventually(lambda: machine.frequency() < 2900000, True)
    make_unwritable(machine.root, 0, 1)
    machine.warm(40)
    eventually(lambda: ask(r, "power")["speed_percent"], 100)
    make_writable(machine.root, 2800000, 0, 1)
    ask(r, "power", "--threshold=off")
    assert machine.frequency() == 2900000


def test_a_frequency_that_cannot_be_restored_is_logged_and_the_others_are_restored(machine, ask):
    r = machine("--temperature-limit=70")
    machine.warm(90)
    eventually(machine.frequency, 1500000)
    make_unwritable(machine.root, 0)
    ask(r, "power", "--threshold=off")
    assert machine.frequency() == 2900000
    assert "frequencies cannot be set (Is a directory): CPUs stay slower" in r.close()


@pytest.mark.parametrize("words,why", [
    (["--threshold=29"], "use degrees Celsius from 30 to 120, or off"),
    (["--threshold=hot"], "use degrees Celsius from 30 to 120, or off"),
    (["--threshold=70"], "no sensor tells the temperature of the CPUs")])
def test_a_threshold_that_cannot_be_is_refused(machine, tell, words, why):
    r = machine(sensor=None)
    code, out, err = tell(r, "power", *words)
    assert code and not out and why in err


def test_a_limit_in_the_configuration_needs_a_sensor(build, tmp_path):
    done = subprocess.run([build / "bin/rmd", "--emulate-cores=2", f"--sys-root={tmp_path}",
                           f"--socket=@rmd-test-heat-{tmp_path.name}", "--temperature-limit=70"],
                          check=False, capture_output=True, text=True, timeout=20)
    assert done.returncode and "--temperature-limit: no sensor tells" in done.stderr


@pytest.fixture
def warm_machine(mortal, tmp_path):
    """warm_machine(LINE...) - rmd as a service that can be killed, on CPUs of 90 degrees, and the
    file of their frequency"""

    def start(*configured):
        put(tmp_path, HWMON.format("name"), "k10temp")
        put(tmp_path, HWMON.format("temp1_input"), 90000)
        for name, value in (("cpuinfo_max_freq", 3000000), ("cpuinfo_min_freq", 1500000),
                            ("scaling_max_freq", 2900000)):
            put(tmp_path, FREQ.format(0, name), value)
        lines = ["emulate-cores = 2", *configured]
        return mortal("\n".join(lines) + "\n", f"--sys-root={tmp_path}"), \
            tmp_path / FREQ.format(0, "scaling_max_freq").lstrip("/")

    return start


@pytest.mark.parametrize("configured,ordered,holds", [
    ([], "70", 70), (["temperature-limit = 80"], "70", 70),
    (["temperature-limit = 80"], "off", None)])
def test_a_threshold_by_rmctl_holds_for_the_next_rmd(warm_machine, ask, configured, ordered, holds):
    s, _ = warm_machine(*configured)
    assert ask(s, "power", f"--threshold={ordered}")["threshold"] == holds
    for end in ("kill", "terminate", "kill"):
        getattr(s.process, end)()
        s.process.wait(PATIENCE_S)
        s.begin()
        assert ask(s, "power")["threshold"] == holds
    s.process.terminate()
    s.process.wait(PATIENCE_S)
    s.config.write_text("emulate-cores = 2\ntemperature-limit = 85\n")
    s.begin()
    assert ask(s, "power")["threshold"] == 85


def test_nothing_is_kept_for_a_threshold_that_is_off_or_the_configured_one(warm_machine, ask):
    s, _ = warm_machine("temperature-limit = 95")
    for degrees in ("98", "off"):
        ask(s, "power", f"--threshold={degrees}")
        eventually(lambda: len(s.memory_of_holder("invasive-rmd-orders")), 1)
        ask(s, "power", "--threshold=95")
        eventually(lambda: s.memory_of_holder("invasive-rmd-orders"), [])


def test_rmd_starts_without_the_sensor_of_a_threshold_of_before(warm_machine, ask, tmp_path):
    s, _ = warm_machine()
    ask(s, "power", "--threshold=95")
    s.die()
    (tmp_path / HWMON.format("temp1_input").lstrip("/")).unlink()
    s.begin()
    assert ask(s, "power")["threshold"] is None
    assert s.said().count("the limit of 95 degrees, which was ordered before, does not hold") == 1


def test_the_frequencies_of_before_are_back_after_rmd_was_killed(warm_machine, tmp_path):
    s, limit = warm_machine("temperature-limit = 70")
    eventually(lambda: text_of(limit), 1500000)
    s.die()
    put(tmp_path, HWMON.format("temp1_input"), 40000)
    s.begin()
    assert text_of(limit) == 2900000


# --- several chips

PACKAGE = "/sys/devices/system/cpu/cpu{}/topology/physical_package_id"
CHIP = "/sys/class/hwmon/hwmon{}/{}"


def put_chip(root, chip, package, degrees):
    """A coretemp device of this package, whose second sensor is the hottest."""
    put(root, CHIP.format(chip, "name"), "coretemp")
    put(root, CHIP.format(chip, "temp1_label"), f"Package id {package}")
    put(root, CHIP.format(chip, "temp1_input"), degrees * 1000 - 1000)
    put(root, CHIP.format(chip, "temp2_input"), degrees * 1000)


def put_packages(root, *packages):
    for cpu, package in enumerate(packages):
        put(root, PACKAGE.format(cpu), package)


class Chips:
    """Packages 0 and 3 with two CPUs each, each with a sensor of its own, and one of no package."""

    def __init__(self, root):
        self.root = root
        put_packages(root, 0, 0, 3, 3)
        put_chip(root, 1, 0, 50)
        put_chip(root, 2, 3, 50)
        put(root, CHIP.format(7, "name"), "k10temp")
        self.warm_all(45)

    def warm(self, chip, degrees):
        put_chip(self.root, 1 + chip, (0, 3)[chip], degrees)

    def warm_all(self, degrees):
        put(self.root, CHIP.format(7, "temp1_input"), degrees * 1000)

    def vanish(self, chip):
        for name in ("temp1_input", "temp2_input"):
            (self.root / CHIP.format(1 + chip, name).lstrip("/")).unlink()


@pytest.fixture
def chips(tmp_path):
    return Chips(tmp_path)


@pytest.fixture
def look(sensors_program, chips):
    """look(SECOND) - what the sensors of each chip tell: how many can be read, are missing, the
    highest temperature; are these other ones?"""
    process = subprocess.Popen([sensors_program, chips.root], text=True, bufsize=1,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)

    def one(second):
        process.stdin.write(f"{second}\n")
        said = list(map(int, process.stdout.readline().split()))
        return [tuple(said[at:at + 4]) for at in range(4, len(said), 4)]

    yield one
    process.kill()
    process.communicate()


def test_a_sensor_belongs_to_the_chip_of_its_package(chips, look):
    chips.warm(1, 80)
    assert look(1) == [(3, 0, 50, 1), (3, 0, 80, 1)]
    assert look(2) == [(3, 0, 50, 0), (3, 0, 80, 0)]


def test_a_sensor_without_a_package_counts_for_all_chips(chips, look):
    chips.warm_all(90)
    assert [seen[:3] for seen in look(1)] == [(3, 0, 90), (3, 0, 90)]


def test_a_sensor_that_vanishes_is_missing_in_its_chip_only(chips, look):
    look(1)
    chips.vanish(1)
    assert look(2) == [(3, 0, 50, 0), (1, 2, 45, 1)]


@pytest.mark.parametrize("cpus,chip", [("0-1", 0), ("2", 1), ("0-3", None), ("1,x", None)])
def test_a_device_near_the_cpus_of_one_package_belongs_to_it(chips, look, cpus, chip):
    """k10temp is a device of PCI, and has no label of a package."""
    put(chips.root, CHIP.format(7, "device/local_cpulist"), cpus)
    chips.warm_all(90)
    assert [seen[2] for seen in look(1)] == [90 if chip in (None, one) else 50 for one in (0, 1)]


def test_a_label_of_an_unknown_package_tells_no_chip(chips, look):
    put_chip(chips.root, 2, 9, 70)
    assert [seen[2] for seen in look(1)] == [70, 70]


def test_of_several_chips_thermal_zones_count_for_all(chips, look):
    for chip in (1, 2, 7):
        put(chips.root, CHIP.format(chip, "name"), "nvme")
    for zone, degrees in enumerate((60000, 65000)):
        put(chips.root, f"/sys/class/thermal/thermal_zone{zone}/type", "x86_pkg_temp")
        put(chips.root, f"/sys/class/thermal/thermal_zone{zone}/temp", degrees)
    assert [seen[:3] for seen in look(1)] == [(2, 0, 65), (2, 0, 65)]


def frequencies(machine):
    return [machine.frequency(cpu) for cpu in range(4)]


@pytest.fixture
def two_chips(machine, chips):
    """two_chips(OPTION..., cpufreq=True) - an rmd on four CPUs in two packages"""

    def start(*options, cpufreq=True):
        for cpu in range(2, 4 if cpufreq else 2):
            for name, value in (("cpuinfo_max_freq", 3000000), ("cpuinfo_min_freq", 1500000),
                                ("scaling_max_freq", 3000000)):
                put(chips.root, FREQ.format(cpu, name), value)
        return machine(*options, cpufreq=cpufreq, sensor=None, frequency=3000000)

    return start


def speeds_of(ask, r):
    return [core["speed"] for core in ask(r, "status")["domains"][0]["cores"]]


def test_only_the_chip_that_is_hot_is_slowed(two_chips, machine, chips, ask, tell):
    r = two_chips("--temperature-limit=70")
    r.joined(1, 0)
    chips.warm(1, 90)
    eventually(lambda: frequencies(machine), [3000000, 3000000, 1500000, 1500000])
    said = ask(r, "power")
    assert [chip["package"] for chip in said["chips"]] == [0, 3]
    assert [chip["temperature"] for chip in said["chips"]] == [50, 90]
    cool, hot = (chip["speed_percent"] for chip in said["chips"])
    assert cool == 100 and hot < 60 and said["speed_percent"] <= hot
    text = tell(r, "power")[1]
    assert "chip 0: 50 degrees, 100 %\n" in text and "chip 3: 90 degrees, " in text
    eventually(lambda: speeds_of(ask, r), [1.0, 1.0, 0.5, 0.5])
    r.close()
    assert frequencies(machine) == [3000000] * 4


def test_cores_have_the_same_speed_again_when_the_chip_is_cool(two_chips, machine, chips, ask):
    r = two_chips("--temperature-limit=70")
    r.joined(1, 0)
    chips.warm(0, 90)
    eventually(lambda: speeds_of(ask, r), [0.5, 0.5, 1.0, 1.0])
    ask(r, "power", "--threshold=off")
    assert speeds_of(ask, r) == [1.0] * 4 and frequencies(machine) == [3000000] * 4


def test_chips_that_are_equally_hot_have_cores_of_one_speed(two_chips, machine, chips, ask):
    r = two_chips("--temperature-limit=70")
    r.joined(1, 0)
    chips.warm_all(90)  # the sensor that belongs to no package
    eventually(lambda: frequencies(machine), [1500000] * 4)
    assert speeds_of(ask, r) == [1.0] * 4


def test_while_a_sensor_of_a_chip_is_missing_only_this_chip_does_not_become_faster(
        two_chips, machine, chips, ask):
    r = two_chips("--temperature-limit=70")
    chips.warm(0, 90)
    chips.warm(1, 90)
    eventually(lambda: frequencies(machine), [1500000] * 4)
    chips.vanish(1)
    eventually(lambda: ask(r, "power")["sensors"], 3)
    slow = ask(r, "power")["chips"][1]["speed_percent"]
    chips.warm(0, 40)
    eventually(lambda: machine.frequency(0) > 1500000, True)
    assert ask(r, "power")["chips"][1]["speed_percent"] == slow
    chips.warm(1, 40)
    eventually(lambda: machine.frequency(2) > 1500000, True)


def test_where_no_frequency_can_be_set_cores_of_the_hot_chip_are_left_out(two_chips, chips, ask):
    r = two_chips("--temperature-limit=70", cpufreq=False)
    member, = r.joined(1, 0)
    chips.warm(0, 90)
    eventually(lambda: [owner == 0 for owner in member.owners()], [True, False, True, True])
    assert "% of the cores in the slowest chip" in ask(r, "power")["text"]
    ask(r, "power", "--threshold=off")
    eventually(member.owners, [0, 0, 0, 0])


def test_a_process_on_a_hot_chip_has_more_cores(machine, chips, ask):
    """Of equal workloads, by policy workload."""
    put_packages(chips.root, *[0] * 4, *[3] * 4)
    for cpu in range(2, 8):
        for name, value in (("cpuinfo_max_freq", 3000000), ("cpuinfo_min_freq", 1500000),
                            ("scaling_max_freq", 3000000)):
            put(chips.root, FREQ.format(cpu, name), value)
    r = machine("--temperature-limit=70", "--emulate-cores=8", "--policy=workload", sensor=None,
                frequency=3000000)
    members = r.joined(2, 0, 1)
    for member in members:
        member.ask("announce 100 0 0")
    assert counts(members[0], 0, 1) == [4, 4]
    chips.warm(0, 90)
    eventually(lambda: counts(members[0], 0, 1), [5, 3])
