# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that compute beside the members of a domain and have not joined."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

import pytest

from lib.machine import TWO_CPUS
from lib.manager.rmd import Rmd, rmctl
from lib.waiting import eventually

COMPUTES = "while True: pass"

@pytest.fixture
def domain(build):
    """A domain on CPUs of this machine, with a member that only waits."""
    r = Rmd(build, f"--cores={','.join(map(str, TWO_CPUS))}", "--check-interval-ms=100")
    r.joined(1, 0)
    yield r
    r.close()


@contextlib.contextmanager
def program(code):
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def status(r, *options):
    code, text, error = rmctl(r.build, f"--socket={r.name}", "status", *options)
    assert (code, error) == (0, "")
    return text


def unmanaged(r):
    return {p["pid"]: p for p in json.loads(status(r, "--json"))["domains"][0]["unmanaged"]}


def test_a_program_that_computes_and_has_not_joined_is_shown(domain):
    with program(COMPUTES) as stranger:
        eventually(lambda: stranger.pid in unmanaged(domain), True)
        eventually(lambda: unmanaged(domain).get(stranger.pid, {}).get("running_threads"), 1)
        shown = unmanaged(domain)[stranger.pid]
        assert shown["program"].startswith("python") and shown["uid"] == os.getuid()
        assert 0.05 <= shown["cores"] <= 1.1
        lines = [line.split() for line in status(domain).splitlines()
                 if line.startswith("unmanaged")]
        assert str(stranger.pid) in [words[1] for words in lines]
    eventually(lambda: stranger.pid in unmanaged(domain), False)


def test_a_program_that_waits_is_not_shown(domain):
    with program("import time; time.sleep(1000)") as waits, program(COMPUTES) as computes:
        eventually(lambda: computes.pid in unmanaged(domain), True)
        eventually(lambda: waits.pid in unmanaged(domain), False)  # its start computes


def test_a_member_is_not_shown(domain):
    member = domain.members[0]
    with program(COMPUTES) as computes:
        eventually(lambda: computes.pid in unmanaged(domain), True)
        assert member.process.pid not in unmanaged(domain)


@pytest.mark.skipif(len(TWO_CPUS) < 2, reason="two CPUs are needed")
def test_a_program_that_is_bound_elsewhere_is_not_shown(build):
    r = Rmd(build, f"--cores={TWO_CPUS[0]}", "--check-interval-ms=100")
    bound = "import os; os.sched_setaffinity(0, [{}])\n" + COMPUTES
    try:
        r.joined(1, 0)
        with program(bound.format(TWO_CPUS[1])) as there, \
                program(bound.format(TWO_CPUS[0])) as here:
            eventually(lambda: here.pid in unmanaged(r), True)
            eventually(lambda: there.pid in unmanaged(r), False)  # its start computes anywhere
            for _ in range(20):
                assert there.pid not in unmanaged(r)
    finally:
        r.close()


def test_emulated_cores_have_no_unmanaged_programs(build):
    r = Rmd(build, "--emulate-cores=2", "--check-interval-ms=10")
    try:
        r.joined(1, 0)
        with program(COMPUTES):
            for _ in range(50):
                assert unmanaged(r) == {}
    finally:
        r.close()
