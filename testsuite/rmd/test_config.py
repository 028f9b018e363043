# SPDX-License-Identifier: GPL-3.0-or-later
"""rmd.conf(5): rmd refuses a file that it does not understand in full, and names file, line, key
and the allowed values."""

import os
import subprocess

import pytest

from lib.waiting import PATIENCE_S

pytestmark = pytest.mark.sanitize
POLICIES = ("workload", "equal", "throughput", "makespan", "jobs", "fair", "energy", "interference")
POLICY = "use workload, equal, throughput, makespan, jobs, fair, energy or interference"
EVERY_KEY = """\
# a comment
  # and one that is not at the left
cores = 0-1023
smt = first
policy = interference
energy-loss = 0
move-cost-us = 0
pay-within-ms = 3600000
power-cap = 62.5%
reclaim-bound-us=1
lend-blocked = no
\tmax-cores = 1024\t
max-job-cores = all

socket = @name
socket-group = *
enforce = none
enforce-on = descendants
cgroup = auto
check-interval-ms = 60000
log-level = debug
subuid-file = /etc/subuid
[user 0]
max-cores = 3
max-job-cores = 2
enforce-on = user
policy = workload
[ user  7 ]
"""


@pytest.fixture
def check(build, tmp_path):
    """check(TEXT) - exit code of rmd --check-config, and what it says without the file's name"""

    def go(text):
        path = tmp_path / "rmd.conf"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = subprocess.run([build / "bin" / "rmd", f"--check-config={path}"],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.stdout == ""
        for line in done.stderr.splitlines():
            assert line.startswith(f"rmd: {path}:"), line
        return done.returncode, done.stderr.replace(f"rmd: {path}:", "").splitlines()

    return go


@pytest.mark.parametrize("text", ["", "\n", "#", EVERY_KEY.replace("[ user", "[user"),
                                  "policy = equal", "emulate-cores = 1024", "#" + "x" * 1022,
                                  "emulate-cores = package:2 core:4 pu:2", "power-cap = 95W",
                                  *(f"policy = {name}" for name in POLICIES)])
def test_a_good_file_is_taken_without_a_word(check, text):
    assert check(text) == (0, [])


@pytest.mark.parametrize("line, complaint", [
    ("polcy = equal", "key 'polcy' is unknown: allowed are cores, "),
    ("Policy = equal", "key 'Policy' is unknown: allowed are "),
    ("policy = fairest", f"key 'policy': 'fairest' is not allowed: {POLICY}"),
    ("policy =", f"key 'policy': '' is not allowed: {POLICY}"),
    ("policy = equal # why", "key 'policy': 'equal # why' is not allowed"),
    ("cores = 3-1", "key 'cores': '3-1' is not allowed: use a list of CPUs such as 0-3,8"),
    ("cores = 0,", "key 'cores': '0,' is not allowed"),
    ("cores = 99999", "key 'cores': '99999' is not allowed"),
    ("emulate-cores = 0", "key 'emulate-cores': '0' is not allowed: use a number from 1 to 1024"),
    ("emulate-cores = 1025", "key 'emulate-cores': '1025' is not allowed"),
    ("emulate-cores = package:2000", "'package:2000' is not allowed: use a number from 1 to 1024, "
                                     "with speeds such as 4x1.0,4x0.6, or a machine with so many "
                                     "cores such as package:2 core:4"),
    ("emulate-cores = package:2 core:90000 pu:2", "'package:2 core:90000 pu:2' is not allowed"),
    ("emulate-cores = planet:2", "key 'emulate-cores': 'planet:2' is not allowed"),
    ("smt = both", "key 'smt': 'both' is not allowed: use each, core or first"),
    ("energy-loss = 100", "key 'energy-loss': '100' is not allowed: use a number from 0 to 99"),
    ("energy-loss = 5%", "key 'energy-loss': '5%' is not allowed"),
    ("move-cost-us = -1", "key 'move-cost-us': '-1' is not allowed: use a number from 0 to "
                          "60000000"),
    ("pay-within-ms = 0", "key 'pay-within-ms': '0' is not allowed: use a number from 1 to "
                          "3600000"),
    ("power-cap = 0", "key 'power-cap': '0' is not allowed: use watts, such as 95, or a "
                      "percentage, such as 80%"),
    ("temperature-limit = 29", "key 'temperature-limit': '29' is not allowed: use degrees "
     "Celsius from 30 to 120"),
    ("power-cap = 101%", "key 'power-cap': '101%' is not allowed"),
    ("power-cap = 0x5f", "key 'power-cap': '0x5f' is not allowed"),
    ("power-cap = 95 W", "key 'power-cap': '95 W' is not allowed"),
    ("[user 0]\nsmt = core", "key 'smt' is not one of a user: allowed are policy, "),
    ("[user 0]\nenergy-loss = 1", "key 'energy-loss' is not one of a user"),
    ("reclaim-bound-us = 0", "key 'reclaim-bound-us': '0' is not allowed: use a number from 1 to "
                             "60000000"),
    ("lend-blocked = 1", "key 'lend-blocked': '1' is not allowed: use yes or no"),
    ("reclaim-bound-us = 60000001", "key 'reclaim-bound-us': '60000001' is not allowed"),
    ("reclaim-bound-us = 18446744073709551617", "is not allowed"),
    ("reclaim-bound-us = 5ms", "key 'reclaim-bound-us': '5ms' is not allowed"),
    ("reclaim-bound-us = -5", "key 'reclaim-bound-us': '-5' is not allowed"),
    ("reclaim-bound-us = +5", "key 'reclaim-bound-us': '+5' is not allowed"),
    ("reclaim-bound-us = 0x10", "key 'reclaim-bound-us': '0x10' is not allowed"),
    ("max-cores = 0", "key 'max-cores': '0' is not allowed: use a number from 1 to 1024, or all"),
    ("max-job-cores = 1025", "key 'max-job-cores': '1025' is not allowed"),
    ("socket = rmd.sock", "key 'socket': 'rmd.sock' is not allowed: use a path from / on, or "
                          "@NAME"),
    ("socket = @", "key 'socket': socket name '@' has 1 byte, at least 2 are needed"),
    ("socket = /" + "x" * 107, "xx' has 108 bytes, at most 107 fit"),
    ("socket-group = no-such-group", "key 'socket-group': 'no-such-group' is not allowed: use the "
                                     "name of a group that there is"),
    ("socket-group = 4294967295", "key 'socket-group': '4294967295' is not allowed"),
    ("enforce = strictly", "key 'enforce': 'strictly' is not allowed: use none, affinity or "
                           "cpuset"),
    ("enforce-on = all", "key 'enforce-on': 'all' is not allowed: use descendants or user"),
    ("cgroup = here", "key 'cgroup': 'here' is not allowed: use auto or a path from / on"),
    ("subuid-file = subuid", "key 'subuid-file': 'subuid' is not allowed: use none or a path from"),
    ("check-interval-ms = 9", "key 'check-interval-ms': '9' is not allowed: use a number from 10"),
    ("log-level = loud", "key 'log-level': 'loud' is not allowed: use error, warning, notice, "),
    ("policy", "'policy' is not allowed: use KEY = VALUE, [user NAME] or # COMMENT"),
    ("= equal", "'= equal' is not allowed: use KEY = VALUE"),
    ("[user]", "'[user]' is no section: allowed is [user NAME]"),
    ("[group 1]", "'[group 1]' is no section: allowed is [user NAME]"),
    ("[user 1", "'[user 1' is no section"),
    ("[users 1]", "'[users 1]' is no section"),
    ("[user ]", "there is no such user"),
    ("[user no-such-user]", "[user no-such-user]: there is no such user"),
    ("[user 4294967295]", "there is no such user"),
    ("policy = \0equal", "a NUL byte: only text is allowed"),
    ("policy = equal\r", "a carriage return: only text is allowed"),
    ("policy = \x1b[31m", "a control character: only text is allowed"),
    ("#" + "x" * 1023, "a line of 1024 bytes: at most 1023 are allowed"),
    ("[user 0]\nsocket = /x", "key 'socket' is not one of a user: allowed are policy, "),
    ("[user 0]\npolicy = x", "key 'policy': 'x' is not allowed"),
    ("[user 0]\n[user root]", "[user root]: a second section for this user: use one"),
    ("policy = equal\npolicy = equal", "key 'policy' is there a second time: use it once"),
    ("[user 0]\nmax-cores = 1\nmax-cores = 1", "key 'max-cores' is there a second time"),
    ("cores = 0\nemulate-cores = 2", "keys 'cores' and 'emulate-cores' exclude each other"),
])
def test_an_error_names_file_line_key_and_what_is_allowed(check, line, complaint):
    code, said = check("# first\n" + line + "\n# last\n")
    where = 4 if "exclude" in complaint else 1 + len(line.splitlines() or [line])
    if "\r" in line or "\x1b" in line:
        where = 2
    assert code == 1 and len(said) == 1
    assert said[0].startswith(f"{where}: ") and complaint in said[0], said


def test_every_error_is_told_but_not_too_many(check):
    code, said = check("x = 1\npolicy = equal\nnonsense\n")
    assert code == 1 and [line.split(":")[0] for line in said] == ["1", "3"]
    code, said = check("x = 1\n" * 30)
    assert code == 1 and len(said) == 21 and said[-1] == " 10 more errors"


def test_what_follows_a_refused_section_does_not_hold_for_all_users(check):
    code, said = check("[user no-such-user]\nmax-cores = 1\nmax-cores = 2\n")
    assert code == 1 and len(said) == 1


def test_more_sections_than_there_is_room_for_are_refused(check):
    assert check("".join(f"[user {uid}]\n" for uid in range(256))) == (0, [])
    code, said = check("".join(f"[user {uid}]\n" for uid in range(257)))
    assert code == 1 and said == ["257: [user 256]: more than 256 users: use max-cores for all"]


def test_a_file_that_is_too_large_or_missing_or_a_directory_is_refused(check, build, tmp_path):
    code, said = check("#\n" * (1 << 19) + "#")
    assert code == 1 and "at most 1048576 are allowed" in said[0]
    for path in (tmp_path / "missing", tmp_path):
        done = subprocess.run([build / "bin" / "rmd", f"--check-config={path}"],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 1 and f"{path}: cannot be read: " in done.stderr


@pytest.mark.machine(os.getuid() == 0, "only root's configuration is for others")
def test_a_file_that_every_user_may_write_to_is_refused(build, tmp_path):
    path = tmp_path / "rmd.conf"
    path.write_text("policy = equal\n")
    path.chmod(0o666)
    done = subprocess.run([build / "bin" / "rmd", f"--check-config={path}"],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1 and "all users may write to it: use chmod o-w" in done.stderr


@pytest.mark.parametrize("option, complaint", [
    ("--policy=fairest", f"--policy: 'fairest' is not allowed: {POLICY}"),
    ("--smt=both", "--smt: 'both' is not allowed: use each, core or first"),
    ("--energy-loss=100", "--energy-loss: '100' is not allowed: use a number from 0 to 99"),
    ("--power-cap=ten", "--power-cap: 'ten' is not allowed: use watts"),
    ("--emulate-cores=planet:2", "--emulate-cores: 'planet:2' is not allowed: use a number"),
    ("--max-cores=0", "--max-cores: '0' is not allowed: use a number from 1 to 1024, or all"),
    ("--cores=x", "--cores: 'x' is not allowed: use a list of CPUs"),
    ("--log-level=loud", "--log-level: 'loud' is not allowed"),
    ("stray", "'stray' is no option"),
])
def test_a_wrong_option_is_refused_and_named(build, option, complaint):
    done = subprocess.run([build / "bin" / "rmd", option], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    assert done.returncode == 64 and complaint in done.stderr and done.stdout == ""


@pytest.mark.parametrize("options", [("--cores=0", "--emulate-cores=2"),
                                     ("--emulate-cores=2", "--cores=0")])
def test_real_and_emulated_cores_exclude_each_other_on_the_command_line(build, options):
    for command, code in (([build / "bin" / "rmd", f"--socket=@none-{os.getpid()}"], 64),
                          ([build / "bin" / "invade", "echo", "ran"], 125)):
        done = subprocess.run([command[0], *options, *command[1:]], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        assert (done.returncode, done.stdout) == (code, "")
        assert "--cores and --emulate-cores exclude each other" in done.stderr


def test_an_option_wins_over_the_other_kind_of_cores_in_the_configuration(build, tmp_path):
    config = tmp_path / "rmd.conf"
    for key, option, said in (("emulate-cores = 3", f"--cores={min(os.sched_getaffinity(0))}", "1"),
                              ("cores = 0", "--emulate-cores=3", "3")):
        config.write_text(key + "\n")
        ready, write_ready = os.pipe()
        with subprocess.Popen([build / "bin" / "rmd", f"--socket=@none-{os.getpid()}",
                               f"--config={config}", option, f"--ready-fd={write_ready}"],
                              pass_fds=(write_ready,), stderr=subprocess.DEVNULL) as rmd:
            os.close(write_ready)
            try:
                with os.fdopen(ready) as told:
                    assert told.readline() == f"ready {said}\n"
            finally:
                rmd.terminate()


def test_the_example_says_what_holds_without_it(check, top):
    text = (top / "rmd/init/rmd.conf").read_text()
    assert check(text) == (0, [])
    meant = text.replace("alice", "root").replace("socket-group = invasive", "socket-group = *")
    lines = [line[1:] if line[:1] == "#" and line[1:2] not in (" ", "") else line
             for line in meant.splitlines()]
    assert check("\n".join(lines)) == (0, [])
    assert sum(" = " in line for line in lines) == 25


@pytest.mark.timeout(300)
def test_arbitrary_bytes_do_no_harm(build, run_program):
    """100,000 texts; since some are valid, the invalid ones come near to it."""
    done = run_program([build / "testsuite/rmd/programs/rmd_config_fuzz", 100000, 1], timeout=280)
    good, of = done.stdout.split(" good of ")
    assert 1000 < int(good) < int(of) == 100000
