# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups with cpusets: the machine's, and directories that look like them."""

import contextlib
import os
from pathlib import Path

import pytest

from lib.machine import CPUS
from lib.waiting import eventually


def group_of(pid, version):
    """The path of the process's control group, from the root of the hierarchy."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if "cpuset" in controllers.split(",") if version == 1 else number == "0":
            return path
    return "/"  # a machine without this version


def fake_tree(path, version):
    """A directory like a control group, with one in it for the group of this process."""
    (path / group_of(os.getpid(), version).lstrip("/")).mkdir(parents=True)
    names = {1: ["cpuset.cpus", "cgroup.procs"], 2: ["cgroup.subtree_control", "cgroup.procs"]}
    for name in names[version]:
        (path / name).write_text("")
    if version == 1:
        (path / "cpuset.mems").write_text("0\n")
    else:
        (path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (path / group_of(os.getpid(), version).lstrip("/") / "cgroup.procs").write_text("")
    return path


def cpusets_in(tree):
    """Configuration: two cores, and users kept to theirs by control groups below the tree."""
    return f"cores = {CPUS[0]},{CPUS[1]}\nenforce = cpuset\ncgroup = {tree}\n"


def real_root(version):
    """The root of this machine's control groups of this version, if they have cpusets and rmd may
    make groups; else None.  A machine has cpusets in one version only.  Fake groups are above."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        root = Path(where)
        cpusets = ("cpuset" in options.split(",") if version == 1 else kind == "cgroup2"
                   and "cpuset" in (root / "cgroup.controllers").read_text().split())
        right = kind == ("cgroup" if version == 1 else "cgroup2")
        if right and cpusets and os.access(root, os.W_OK):
            return root
    return None


REAL = [version for version in (1, 2) if real_root(version)]


with_cpusets = pytest.mark.machine(len(CPUS) > 1 and REAL,
                                   "no control groups with cpusets that may be written to")
of_each_version = pytest.mark.parametrize("version", REAL or [2])


def is_removed(tree, root):
    """Removes the group and those below it, whose processes go to the root.  An rmd that ends, or a
    slow one that looks once more, removes its groups and makes them meanwhile: then not yet."""
    for name, _, _ in os.walk(tree, topdown=False):
        group = Path(name)
        with contextlib.suppress(FileNotFoundError):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    (root / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            group.rmdir()
    return not tree.exists()


@contextlib.contextmanager
def real_tree(version):
    """A group of the real hierarchy for a test."""
    root = real_root(version)
    tree, delegated = root / f"invasive-test-{os.getpid()}", root / "cgroup.subtree_control"
    enable = version == 2 and "cpuset" not in delegated.read_text().split()
    if enable:
        delegated.write_text("+cpuset")
    tree.mkdir()
    try:
        for name in ("cpuset.cpus", "cpuset.mems") if version == 1 else ():
            (tree / name).write_text((root / name).read_text())
        yield tree
    finally:
        eventually(lambda: is_removed(tree, root), True)
        if enable:
            delegated.write_text("-cpuset")


def group_in(tree, version, name):
    """A group like that of a slice, apart from those of rmd."""
    group = tree / name
    group.mkdir()
    for file in ("cpuset.cpus", "cpuset.mems") if version == 1 else ():
        (group / file).write_text((tree / file).read_text())
    return group
