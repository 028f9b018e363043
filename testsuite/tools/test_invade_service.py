# SPDX-License-Identifier: GPL-3.0-or-later
"""What invade makes of a service that is there and cannot be used, and of one that is not there:
in a /run of its own."""

import os
import subprocess
import sys

import pytest

SOCKET = "/run/invasive/rmd.sock"


def has_mounts():
    """Can root make namespaces with mounts here?"""
    return os.getuid() == 0 and subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "x", "/run"], check=False,
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode == 0


pytestmark = pytest.mark.machine(has_mounts(), "only root can have another /run")

# SOCKET HOW COMMAND... - runs it where something is at this path, or nothing
THERE = """
import os, socket, subprocess, sys
path, how, *command = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "x", "/run"], check=True)
os.mkdir(os.path.dirname(path))
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if how != "absent":
    listener.bind(path)
    listener.listen()
if how == "left":
    listener.close()
if how == "closed":
    os.chmod(path, 0)
if how == "closed-directory":
    os.chmod(os.path.dirname(path), 0)
sys.exit(subprocess.run(command, timeout=30).returncode)
"""


@pytest.fixture
def where(invade, stock_env):
    """where(HOW, OPTION...) - what invade says where the service's socket is so, and the socket
    that its command is told"""

    def run(how, *options):
        # without these root's access to files is that of their owner
        mortal = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
        done = subprocess.run(
            ["unshare", "-m", sys.executable, "-c", THERE, SOCKET, how, *mortal, invade, *options,
             "--", "sh", "-c", "echo ${INVASIVE_SOCKET-unmanaged}; exit 3"], check=False, text=True,
            capture_output=True, env=stock_env, stdin=subprocess.DEVNULL, timeout=60)
        assert done.returncode == 3, done.stderr
        return done.stderr, done.stdout.strip()

    return run


SAID = f"invade: cannot reach rmd at {SOCKET} ({{}}){{}} Running unmanaged; --cores makes one " \
       "of its own.\n"


@pytest.mark.parametrize("how,why,what", [
    ("closed", "Permission denied", ": is your user in group invasive?"),
    ("closed-directory", "Permission denied", ": is your user in group invasive?"),
    ("silent", "Connection timed out", ".")])
def test_a_user_that_cannot_use_the_service_is_told_and_takes_no_cores_of_its_users(
        where, how, why, what):
    assert where(how) == (SAID.format(why, what), "unmanaged")


@pytest.mark.parametrize("how", ["closed", "silent"])
def test_a_user_that_cannot_use_the_service_may_ask_for_a_manager_of_its_own(where, how):
    said, socket = where(how, "--emulate-cores=2")
    assert said == "" and socket.startswith("@invasive-")


@pytest.mark.parametrize("how", ["absent", "left"])
def test_without_a_service_a_private_manager_is_started_without_a_word(where, how):
    said, socket = where(how)
    assert said == "" and socket.startswith("@invasive-")
