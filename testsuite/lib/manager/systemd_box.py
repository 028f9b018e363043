# SPDX-License-Identifier: GPL-3.0-or-later
"""The distribution's systemd as process 1 of namespaces of its own, on an overlay of the machine's
root into which the build is installed."""

import contextlib
import ctypes
import os
import shutil
import subprocess
from pathlib import Path

from lib.machine import TWO_CPUS
from lib.manager.hostile import compile_victim
from lib.manager.member import Member
from lib.waiting import PATIENCE_S, eventually

SYSTEMD = Path("/lib/systemd/systemd")
NAMESPACES = ["-m", "-p", "-u", "-i", "-n", "-C"]


UNITS = ("basic.target sysinit.target sockets.target shutdown.target multi-user.target "
         "systemd-journald.service systemd-journald.socket systemd-journald-dev-log.socket")
SOCKET = "/run/invasive/rmd.sock"


def cgroup_root():
    """Where version 2 of control groups is mounted and may be written to, or None."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2" and os.access(where, os.W_OK):
            return Path(where)
    return None


def boots():
    """Can root make namespaces with mounts here?"""
    if os.getuid() != 0 or len(TWO_CPUS) < 2 or cgroup_root() is None:
        return False
    return subprocess.run(
        ["unshare", *NAMESPACES, "-f", "sh", "-c", "mount -t tmpfs x /mnt && cd /mnt && "
         "mkdir u w r && mount -t overlay -o lowerdir=/,upperdir=u,workdir=w x r && "
         "mount -t cgroup2 x /mnt/u"], check=False, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode == 0


BOOTS = boots()


# Of the version that systemd has: a machine may have cpusets in the other one.
CPUSETS = BOOTS and "cpuset" in (cgroup_root() / "cgroup.controllers").read_text().split()


class BoxMember(Member):
    """testsuite/rmd/programs/rmd_member as some user in the box."""

    def __init__(self, box, uid, groups=()):
        self.name = SOCKET
        self.process = subprocess.Popen(
            box.command("setpriv", f"--reuid={uid}", "--regid=60000",
                        f"--groups={','.join(map(str, groups)) or 60000}", "rmd_member"),
            text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")

    def inner(self):
        """The program: nsenter has to fork for another pid namespace."""
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def pins(self):
        return os.sched_getaffinity(self.inner())

    def group(self):
        """The control group of the process, from the root of the machine."""
        return Path(f"/proc/{self.inner()}/cgroup").read_text().rpartition("0::")[2].strip()


class Box:
    def __init__(self, top, build, path, cc):
        self.path = path
        self.since = []
        self.upper = self.path / "upper"
        subprocess.run(["make", "-C", build, "-s", "install", f"DESTDIR={self.upper}"], check=True,
                       stdout=subprocess.DEVNULL, timeout=400)
        shutil.copy(build / "testsuite/rmd/programs/rmd_member", self.upper / "usr/local/bin")
        compile_victim(self.upper / "usr/local/bin", cc)
        units = self.upper / "etc/box"
        units.mkdir(parents=True)
        for name in UNITS.split():
            shutil.copy(SYSTEMD.parent / "system" / name, units)
        self.cgroup = cgroup_root() / f"invasive-box-{os.getpid()}"
        self.delegated = self.cgroup.parent / "cgroup.subtree_control"
        self.lends_cpusets = CPUSETS and "cpuset" not in self.delegated.read_text().split()
        if self.lends_cpusets:
            self.delegated.write_text("+cpuset")
        self.cgroup.mkdir()
        self.process = subprocess.Popen(
            ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec unshare "$@"', self.cgroup,
             *NAMESPACES, "-f", "--kill-child",
             top / "testsuite/rmd/programs/systemd_box.sh", self.path],
            stdin=subprocess.DEVNULL)
        try:
            eventually(lambda: self.children() != [], True)
            # out of the group that is systemd's uppermost, where it would keep controllers out
            (self.cgroup.parent / "cgroup.procs").write_text(str(self.process.pid))
            eventually(self.booted, True, patience=200)
            self.must("start", "systemd-journald.service")
        except BaseException:
            self.close()
            raise

    def children(self):
        pid = self.process.pid
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

    def first(self):
        """Process 1 of the box."""
        return int(self.children()[0])

    def booted(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.children() != [] \
                and Path(f"/proc/{self.first()}/comm").read_text() == "systemd\n" \
                and self.systemctl("is-system-running").stdout == "running\n"
        return False

    def command(self, *words):
        return ["nsenter", "-t", str(self.first()), *NAMESPACES, "-r", "-w", *words]

    def enter(self):
        """The calling process, or rather a child that it waits for, for good."""
        first = Path(f"/proc/{self.first()}")
        root = os.open(first / "root", os.O_RDONLY | os.O_DIRECTORY)
        spaces = [os.open(first / "ns" / name, os.O_RDONLY)
                  for name in ("pid", "ipc", "uts", "net", "cgroup", "mnt")]
        for space in spaces:
            if ctypes.CDLL(None).setns(space, 0):
                raise OSError("setns")
            os.close(space)
        os.fchdir(root)
        os.close(root)
        os.chroot(".")
        if (child := os.fork()) != 0:
            os.waitpid(child, 0)
            os._exit(1)

    def run(self, *words, check=True):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, cwd="/")
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def systemctl(self, *words):
        return self.run("systemctl", *words, check=False)

    def must(self, *words):
        assert self.systemctl(*words).returncode == 0, self.journal()

    def show(self, name):
        return self.run("systemctl", "show", "--value", "-p", name, "rmd").stdout.strip()

    def begin_journal(self):
        """Skips messages of earlier tests."""
        self.run("journalctl", "--sync")
        cursor = self.run("journalctl", "-n0", "--show-cursor").stdout.rpartition("cursor: ")[2]
        self.since = [f"--after-cursor={cursor.strip()}"]

    def journal(self, *options):
        return self.run("journalctl", "--no-pager", *self.since, *options, check=False).stdout

    def hears(self, text):
        """Waits for a message of rmd in the journal."""
        with contextlib.suppress(AssertionError):
            eventually(lambda: text in self.journal(), True)
        assert text in self.journal()

    def configure(self, text):
        self.run("sh", "-c", 'mkdir -p /etc/invasive && printf %s "$0" >/etc/invasive/rmd.conf',
                 text)

    def close(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)
        eventually(lambda: (self.cgroup / "cgroup.procs").read_text() +
                   "".join(p.read_text() for p in self.cgroup.rglob("cgroup.procs")), "")
        for path in sorted(self.cgroup.rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
        self.cgroup.rmdir()
        if self.lends_cpusets:
            self.delegated.write_text("-cpuset")
        shutil.rmtree(self.path)
