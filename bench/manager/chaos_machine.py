# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that changes while programs run, for chaos: files of /proc and /sys below a root, for
rmd --sys-root.  It becomes warm and cool, one of its two sensors is missing now and then, its last
CPU goes offline and comes back, and the control group of its processes has a quota now and then.

rmd leaves cores out for each of these, so none is lost only when the machine is calm.
"""

from __future__ import annotations

import random
from pathlib import Path

SENSOR = "sys/class/hwmon/hwmon0/"
GROUPS = "/sys/fs/cgroup"
WARM, COOL, THRESHOLD = 95, 40, 70  # degrees Celsius
QUOTAS = ["50000", "100000", "150000"]  # microseconds of each 100,000


class Machine:
    def __init__(self, root: Path):
        self.root = root
        self.put(SENSOR + "name", "coretemp")
        self.put("proc/self/mountinfo", f"31 20 0:27 / {GROUPS} rw - cgroup2 cgroup2 rw")
        self.cpus = [0]
        self.calm()

    def put(self, path: str, text: str) -> None:
        """At once, as a file of the kernel changes."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(file.name + ".new")
        new.write_text(text + "\n")
        new.replace(file)

    def set(self, degrees: int, quota: str, cpus: list[int]) -> None:
        for sensor in ("temp1_input", "temp2_input"):
            self.put(SENSOR + sensor, str(degrees * 1000))
        self.put(f"{GROUPS.lstrip('/')}/job/cpu.max", f"{quota} 100000")
        self.put("sys/devices/system/cpu/online", ",".join(map(str, cpus)))

    def calm(self) -> None:
        self.set(COOL, "max", self.cpus)

    def change(self, chance: random.Random, pids: list[int]) -> None:
        """The processes that there are now are in the group; later ones have no quota."""
        for pid in pids:
            self.put(f"proc/{pid}/cgroup", "0::/job")
        last = -1 if len(self.cpus) > 1 and chance.random() < 0.3 else len(self.cpus)
        self.set(chance.choice([WARM, COOL]), chance.choice(["max", *QUOTAS]), self.cpus[:last])
        if chance.random() < 0.3:
            (self.root / SENSOR / "temp2_input").unlink()
