# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of sockets that are too long or too short for an address: each program says how long the
name is, how long it may be, and where to change it."""

import subprocess

import pytest

from lib.waiting import PATIENCE_S, until

FIT = 107  # bytes of sockaddr_un's path, but the end of the text

pytestmark = pytest.mark.sanitize


def path_of(length):
    """A path of so many bytes, whose directory is not there."""
    return "/nowhere-of-tests/".ljust(length, "x")


def sentence(name):
    kind = "name" if name.startswith("@") else "path"
    return f"socket {kind} '{name}' has {len(name)} bytes, at most {FIT} fit: "


@pytest.fixture
def say(build, stock_env):
    """say(PROGRAM, WORD..., env={}) - exit code and the lines of standard error"""

    def run(program, *words, env=None):
        done = subprocess.run([build / "bin" / program, *map(str, words)], check=False,
                              capture_output=True, text=True, env={**stock_env, **(env or {})},
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        return done.returncode, done.stderr.splitlines()

    return run


@pytest.fixture
def rmd(build, stock_env, tmp_path):
    """rmd(NAME) - starts a resource manager there; returns its messages until it listens"""
    started = []

    def start(name):
        log = tmp_path / f"rmd{len(started)}.log"
        with open(log, "w", encoding="utf-8") as file:
            started.append(subprocess.Popen(
                [build / "bin" / "rmd", f"--socket={name}", "--emulate-cores=2"],
                stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=stock_env))
        assert until(lambda: "serving 2" in log.read_text(), PATIENCE_S), log.read_text()
        return log.read_text()

    yield start
    for process in started:
        process.terminate()
    for process in started:
        process.wait(PATIENCE_S)


@pytest.mark.parametrize("name", [path_of(FIT + 1), path_of(300), "@".ljust(131, "x")],
                         ids=["path", "long path", "abstract"])
def test_invade_says_how_long_the_name_may_be_and_runs_the_command(say, name):
    assert say("invade", f"--socket={name}", "--", "sh", "-c", "exit 3") == (
        3, [f"invade: {sentence(name)}use --socket with another one. Running unmanaged."])


def test_invade_says_so_of_the_variable_and_uses_another_manager(say):
    name = path_of(FIT + 1)
    code, lines = say("invade", "--", "sh", "-c", "exit 3", env={"INVASIVE_SOCKET": name})
    assert code == 3
    assert lines[0] == f"invade: {sentence(name)}set INVASIVE_SOCKET to another one."


@pytest.mark.parametrize("command", ["status", "policy", "events", "metrics", "drain", "trace"])
@pytest.mark.parametrize("option", [True, False], ids=["option", "variable"])
def test_every_command_of_rmctl_says_how_long_the_name_may_be(say, command, option):
    name = path_of(131)
    words = [command, *{"drain": ["0"], "trace": ["stop"]}.get(command, [])]
    advice = "use --socket with" if option else "set INVASIVE_SOCKET to"
    assert say("rmctl", *[f"--socket={name}"] * option, *words,
               env={} if option else {"INVASIVE_SOCKET": name}) == (
        1, [f"rmctl: {sentence(name)}{advice} another one"])


ALLOWED = {"socket": "a path from / on, or @NAME, of 2 to 107 characters",
           "metrics": "a path from / on, @NAME, 127.0.0.1:PORT or [::1]:PORT"}


@pytest.mark.parametrize("key", ALLOWED)
@pytest.mark.parametrize("where", ["option", "file"])
def test_rmd_says_how_long_the_name_may_be(say, tmp_path, key, where):
    name = path_of(FIT + 1)
    said = f"{sentence(name)}use {ALLOWED[key]}"
    if where == "option":
        code, lines = say("rmd", f"--{key}={name}")
        assert code == 64 and lines[0] == f"rmd: --{key}: {said}"
        return
    file = tmp_path / "rmd.conf"
    file.write_text(f"{key} = {name}\n")
    code, lines = say("rmd", f"--check-config={file}")
    assert (code, lines) == (1, [f"rmd: {file}:1: key '{key}': {said}"])


def test_a_name_of_one_byte_is_said_to_be_too_short(say):
    said = "socket path 'x' has 1 byte, at least 2 are needed: "
    assert say("rmctl", "--socket=x", "status") == (
        1, [f"rmctl: {said}use --socket with another one"])
    assert say("invade", "--socket=x", "--", "true") == (
        0, [f"invade: {said}use --socket with another one. Running unmanaged."])


def test_of_a_name_of_thousands_of_bytes_the_beginning_is_shown(say):
    name = path_of(4000)
    assert say("rmctl", f"--socket={name}", "status") == (
        1, [f"rmctl: socket path '{name[:300]}...' has 4000 bytes, at most {FIT} fit: use --socket "
            "with another one"])


PROGRAM = """
#include <invasive.h>
#include <stdio.h>
int main(void)
{
    inv_announce_workload(1);
    return printf("managed %d\\n", inv_claim_now().managed) < 0;
}
"""


def test_a_program_says_how_long_the_name_may_be_and_runs_unmanaged(build, top, stock_env, tmp_path,
                                                                    make_variable):
    name = path_of(FIT + 1)
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run([*(make_variable("CC") or "cc").split(), f"-I{top}/include",
                    tmp_path / "program.c", "-o", tmp_path / "program", f"-L{build}/lib",
                    "-l:libinvasive.so.0", f"-Wl,-rpath,{build}/lib"], check=True, timeout=60)
    done = subprocess.run([tmp_path / "program"], check=False, capture_output=True, text=True,
                          env={**stock_env, "INVASIVE_SOCKET": name}, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, "managed 0\n")
    assert done.stderr == (f"invasive: {sentence(name)}set INVASIVE_SOCKET to another one. "
                           "Running unmanaged.\n")


def test_the_longest_name_works_and_its_holders_name_is_said_not_to_fit(say, rmd, short_path):
    name = f"{short_path}/".ljust(FIT, "x")
    warning = next(line for line in rmd(name).splitlines() if "core tables" in line)
    assert "core tables are not kept for a restart: socket path " in warning
    assert f"has {FIT + len('.keep1')} bytes, at most {FIT} fit: use a shorter --socket" in warning
    assert say("rmctl", f"--socket={name}", "status") == (0, [])
    assert say("invade", f"--socket={name}", "--", "true") == (0, [])
