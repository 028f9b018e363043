# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of /proc and /sys below a root of a test's own, for rmd --sys-root."""


def put(root, path, text):
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(file.name + ".new")
    new.write_text(f"{text}\n")
    new.replace(file)


def put_stat(root, cores):
    """cores: (busy, stolen) ticks of each."""
    lines = ["cpu  1 2 3 4 5 6 7 8 9 0"]
    lines += [f"cpu{i} {busy - 2} 0 1 900 0 1 0 {steal} 0 0"
              for i, (busy, steal) in enumerate(cores)]
    put(root, "/proc/stat", "\n".join([*lines, "intr 1 2 3", "ctxt 77"]))


ZONE = "/sys/class/powercap/intel-rapl:{}/{}"
RAPL = ZONE.format("{}", "constraint_0_{}")
FREQ = "/sys/devices/system/cpu/cpu{}/cpufreq/{}"


def value_of(root, path):
    return int((root / path.lstrip("/")).read_text())


def put_zone(root, zone, name, most, enabled=1):
    """A zone of powercap that may take so many watts, and is limited to 7 less."""
    put(root, ZONE.format(zone, "name"), name)
    put(root, ZONE.format(zone, "enabled"), enabled)
    put(root, RAPL.format(zone, "max_power_uw"), most * 10**6)
    put(root, RAPL.format(zone, "power_limit_uw"), (most - 7) * 10**6)


def put_energy(root, zone, microjoules, name=None, most=None):
    """What the counter of a zone of powercap says; the first time with its name and range."""
    if name:
        put(root, ZONE.format(zone, "name"), name)
        put(root, ZONE.format(zone, "max_energy_range_uj"), most or 10**12)
    put(root, ZONE.format(zone, "energy_uj"), microjoules)


def put_online(root, text):
    path = root / "sys/devices/system/cpu/online"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(f"{text}\n")
    path.with_suffix(".new").rename(path)
