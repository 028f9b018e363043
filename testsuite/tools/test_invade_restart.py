# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that starts during a restart of the service waits for it, and takes no cores of it."""

import os
import subprocess
import time

import pytest

from lib.waiting import PATIENCE_S

pytestmark = pytest.mark.machine(os.getuid() == 0, "only root can be a service")

LATER_S = 0.3  # a second is waited for
TURNS = 10     # on a busy machine it may have passed


def joined(s, program):
    """How often a process of this name has joined the rmd that runs now."""
    return sum(e["event"] == "join" and program in e["text"] for e in s.events())


def test_invade_waits_for_a_service_that_is_started_again(mortal, invade):
    s = mortal("emulate-cores = 2\n")
    command = [invade, f"--socket={s.name}", "--", "sh", "-c", "echo ${INVASIVE_SOCKET-none}"]
    for _ in range(TURNS):
        s.die()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            time.sleep(LATER_S)
            s.begin()
            if process.communicate(timeout=PATIENCE_S)[0] == f"{s.name}\n":
                return
    pytest.fail(f"unmanaged each of {TURNS} times")


def test_a_program_waits_for_a_service_that_is_started_again(mortal, invade):
    s = mortal("emulate-cores = 2\n")
    command = [invade, f"--socket={s.name}", "--", "sh", "-c", "echo ready; read go; exec \"$0\" "
               "--batch-ms=1", s.build / "apps/regions/regions"]
    for _ in range(TURNS):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            assert process.stdout.readline() == "ready\n"
            s.die()
            process.stdin.write("\n")
            process.stdin.flush()
            time.sleep(LATER_S)
            s.begin()
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
        if joined(s, "regions"):
            return
    pytest.fail(f"unmanaged each of {TURNS} times")


def test_a_program_that_finds_no_service_goes_on_without_it_after_a_second(mortal, invade):
    s = mortal("emulate-cores = 2\n")
    s.die()
    began = time.monotonic()
    with subprocess.Popen([invade, f"--socket={s.name}", "--", "sh", "-c", "read go; exit 3"],
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        assert "Running unmanaged" in command.stderr.readline()
        assert time.monotonic() - began >= 1
        s.begin()  # too late for it
        command.communicate("\n", timeout=PATIENCE_S)
        assert command.returncode == 3
    assert joined(s, "sh") == 0
