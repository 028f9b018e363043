# SPDX-License-Identifier: GPL-3.0-or-later
"""Two network namespaces of this machine as two hosts, each with a name, one address and a link to
the other."""

import os
import re
import shutil
import subprocess

import pytest

from lib.waiting import until

ADDRESSES = ["10.77.0.1", "10.77.0.2"]
NAMES = ["nodea", "nodeb"]
HOLD = "hostname $0 && mount -t sysfs sysfs /sys && ip link set lo up && echo ready && exec cat"


class Host:
    """A namespace that lives as long as a process of ours keeps its standard input open."""

    def __init__(self, name, address, first):
        self.name, self.address = name, address
        self.user = first.user if first else os.geteuid() != 0
        if first and self.user:
            command = [*first.prefix("-U", "--preserve-credentials"), "unshare", "-n", "-u", "-m"]
        else:
            command = ["unshare", *(["-Ur"] if self.user else []), "-n", "-u", "-m"]
        self.process = subprocess.Popen([*command, "sh", "-c", HOLD, name], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        if self.process.stdout.readline() != "ready\n":
            self.process.stdin.close()
            pytest.skip(f"no network namespaces here: {self.process.stderr.read()}")

    def prefix(self, *namespaces):
        return ["nsenter", "-t", str(self.process.pid), *namespaces]

    def inside(self, *command):
        """The command line that runs the command on this host."""
        user = ["-U", "--preserve-credentials"] if self.user else []
        return [*self.prefix(*user, "-n", "-u", "-m"), "--", *(str(c) for c in command)]

    def from_the_other(self, *command):
        """The same on the other host, which has the same users' namespace."""
        return [*self.prefix("-n", "-u", "-m"), "--", *(str(c) for c in command)]

    def do(self, *command):
        return subprocess.run(self.inside(*command), check=True, stdout=subprocess.PIPE, text=True,
                              timeout=20).stdout

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()
        self.process.stderr.close()

    def sockets(self):
        """The abstract sockets of resource managers."""
        return re.findall(r"@invasive\S+", self.do("cat", "/proc/net/unix"))


def link(hosts):
    first, second = hosts
    first.do("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
             second.process.pid)
    for host in hosts:
        host.do("ip", "addr", "add", f"{host.address}/24", "dev", "eth0")
        host.do("ip", "link", "set", "eth0", "up")
    for host in hosts:
        assert until(lambda h=host: h.do("cat", "/sys/class/net/eth0/operstate") == "up\n", 20)


@pytest.fixture(scope="module")
def hosts():
    for tool in ("ip", "unshare", "nsenter"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool} (packages iproute2, util-linux)")
    made = [Host(NAMES[0], ADDRESSES[0], None)]
    made.append(Host(NAMES[1], ADDRESSES[1], made[0]))
    link(made)
    yield made
    for host in made:
        host.end()
