# SPDX-License-Identifier: GPL-3.0-or-later
"""A user and its subordinate user IDs (subuid(5), as containers use them) are one person with one
share, one limit and one rate limit.  Each ID has a table of its own."""

import contextlib
import os
import re
import subprocess
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.building.build import FEWER
from lib.manager.connections import counted_by, flood, idle_connections
from lib.manager.core_table import ELSEWHERE
from lib.manager.member import counts
from lib.manager.protocol import METRICS, request
from lib.manager.rmd import rmctl
from lib.manager.users import ALICE, BOB, CAROL
from lib.processes import processor_s
from lib.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.sanitize
as_root = pytest.mark.machine(os.getuid() == 0, "only root can be several users")
FIRST = 200000  # Alice's
RULES = settings(derandomize=True, deadline=None, database=None, max_examples=150 // FEWER,
                 suppress_health_check=list(HealthCheck))


# --- the file

def owners(text, passwd, uids):
    """(wrong lines, {uid: owner}), as the manual says."""
    ranges, wrong = [], 0
    for line in re.sub(rb"\n\Z", b"", text).split(b"\n"):
        line = line.rstrip(b" \t\r")
        if not line or line.startswith(b"#"):
            wrong += len(line) >= 512 or b"\0" in line
            continue
        found = re.fullmatch(rb"([^:\0]+):([0-9]+):([0-9]+)", line)
        first, count = (int(number) for number in found.groups()[1:]) if found else (0, 0)
        if not found or len(line) >= 512 or not first or not count or first + count > 2 ** 32 - 1:
            wrong += 1
            continue
        name = found.group(1)
        number = re.fullmatch(rb"[0-9]+", name) and int(name) < 2 ** 32 - 1 and int(name)
        known = {b"daemon": 1, b"bin": 2, b"root": 0}
        ranges.append((first, count, number if number or number == 0 else known.get(name, 0)))
    found = {}
    for uid in uids:
        inside = [owner for first, count, owner in ranges if first <= uid < first + count]
        found[uid] = inside[0] if inside and inside[0] and uid not in passwd else uid
    return wrong, found


@pytest.fixture
def ask(build, tmp_path):
    """ask(TEXT, IDS OF PASSWD, UIDS) - what rmd makes of such files, as `owners` has it"""

    def go(text, passwd, uids):
        (tmp_path / "subuid").write_bytes(text)
        (tmp_path / "passwd").write_text("".join(f"u{uid}:x:{uid}:1::/:/bin/sh\n"
                                                 for uid in passwd))
        done = subprocess.run([build / "testsuite/rmd/programs/rmd_subuid", tmp_path / "subuid",
                               tmp_path / "passwd", *map(str, uids)], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0 and done.stderr == ""
        wrong, *rest = map(int, done.stdout.split())
        return wrong, dict(zip(uids, rest))

    return go


@pytest.mark.parametrize("text, wrong, uid, owner", [
    (b"", 0, 5, 5),
    (b"7:100:10\n", 0, 100, 7),
    (b"7:100:10\n", 0, 109, 7),
    (b"7:100:10\n", 0, 110, 110),
    (b"7:100:10\n", 0, 99, 99),
    (b"7:100:10", 0, 100, 7),
    (b"daemon:100:10\n", 0, 100, 1),
    (b"no-such-user:100:10\n", 0, 100, 100),
    (b"root:100:10\n", 0, 100, 100),
    (b"0:100:10\n", 0, 100, 100),
    (b"# 7:100:10\n\n  \n", 0, 100, 100),
    (b"7:100:10\r\n", 0, 100, 7),
    (b"7:100:10\n8:105:10\n", 0, 105, 7),  # the first one that has it
    (b"8:105:10\n7:100:10\n", 0, 105, 8),
    (b"7:0:10\n", 1, 5, 5),
    (b"7:100:0\n", 1, 100, 100),
    (b"7:4294967290:5\n", 0, 4294967294, 7),
    (b"7:4294967290:6\n", 1, 4294967294, 4294967294),
    (b"7:100:99999999999999999999\n", 1, 100, 100),
    (b"7:-100:10\n7:+100:10\n7:0x64:10\n7: 100:10\n7:100\n7\n:100:10\n7:100:10:1\n", 8, 100, 100),
    (b"7:100:10\0\n", 1, 100, 100),
    (b"x" * 600 + b":100:10\n7:100:10\n", 1, 100, 7),
])
def test_an_id_is_the_one_in_whose_range_it_is(ask, text, wrong, uid, owner):
    assert ask(text, [], [uid]) == (wrong, {uid: owner})
    assert owners(text, [], [uid]) == (wrong, {uid: owner})


def test_an_id_with_a_line_in_passwd_is_a_user_whatever_ranges_say(ask):
    assert ask(b"7:100:10\n", [100], [100, 101]) == (0, {100: 100, 101: 7})


def test_many_lines_are_read(ask):
    text = b"".join(b"%d:%d:10\n" % (n + 1, 100000 + 10 * n) for n in range(20000))
    assert ask(text, [], [100000, 299999, 300000]) == (0, {100000: 1, 299999: 20000,
                                                           300000: 300000})


LINES = st.lists(st.one_of(
    st.builds(lambda name, first, count: b"%s:%d:%d" % (name, first, count),
              st.sampled_from([b"7", b"8", b"daemon", b"bin", b"root", b"0", b"nobody-knows", b""]),
              st.integers(0, 40), st.integers(0, 20)),
    st.sampled_from([b"", b"#", b"7:4294967290:5", b"7:30:4294967295", b"7:5:5 ", b"a:b:c", b":::",
                     b"7:007:0005"]),
    st.binary(max_size=12)), max_size=8).map(b"\n".join)


@RULES
@given(text=LINES, passwd=st.sets(st.integers(1, 60), max_size=3))
def test_any_file_says_what_its_good_lines_say(ask, text, passwd):
    uids = [*range(1, 62), 4294967290, 4294967294]
    assert ask(text, sorted(passwd), uids) == owners(text, passwd, uids)


# --- users

@pytest.fixture
def with_ranges(service, public):
    """with_ranges(TEXT, CORES, MORE="") - a service whose file of subordinate IDs has this text"""

    def start(text, cores, more=""):
        (public / "subuid").write_text(text)
        return service(f"emulate-cores = {cores}\nsubuid-file = {public / 'subuid'}\n"
                       f"check-interval-ms = 20\n{more}")

    return start


def shares(*members):
    return [member.owners().count(0) for member in members]


@as_root
def test_a_persons_ids_share_what_one_user_has(with_ranges):
    s = with_ranges(f"{ALICE}:{FIRST}:1000\n", 8)
    alice, first, second = s.member(ALICE), s.member(FIRST), s.member(FIRST + 999)
    bob, other = s.member(BOB), s.member(FIRST + 1000)  # not in the range
    eventually(lambda: sorted(shares(bob, other)), [2, 3])
    eventually(lambda: sum(shares(alice, first, second)), 8 - sum(shares(bob, other)))
    assert min(shares(alice, first, second)) >= 1 or sum(shares(alice, first, second)) == 2
    assert s.said().count(f"a subordinate ID of user {ALICE}") == 2
    assert {alice.slot, first.slot, second.slot} == {0}, "each has a table of its own"
    first.close()
    second.close()
    eventually(lambda: shares(alice)[0] >= 2, True)


@as_root
def test_a_person_with_many_ids_shuts_no_other_out(with_ranges):
    s = with_ranges(f"{ALICE}:{FIRST}:1000\n", 4)
    ids = [s.member(FIRST + n) for n in range(4)]
    assert shares(*ids) == [1, 1, 1, 1]
    refused = s.member(FIRST + 4, join=False).ask(f"join {s.name} -1 -1 -1")
    assert refused == "refused 3 other user IDs of yours have all cores of your share already"
    bob, carol = s.member(BOB), s.member(CAROL)
    assert {bob.slot, carol.slot} == {0}
    eventually(lambda: sum(shares(*ids)) + sum(shares(bob, carol)), 4)
    assert min(shares(bob, carol)) >= 1 and sum(shares(*ids)) in (1, 2)


@as_root
def test_limits_are_for_all_of_a_persons_ids_together(with_ranges, build):
    s = with_ranges(f"{ALICE}:{FIRST}:1000\n", 8, f"[user {ALICE}]\nmax-cores = 3\n")
    alice, first, second = s.member(ALICE), s.member(FIRST), s.member(FIRST + 1)
    assert shares(alice, first, second) == [1, 1, 1]
    code, said, _ = rmctl(build, f"--socket={s.name}", "limit", f"--user={ALICE}", "--cores=6")
    assert code == 0, said
    eventually(lambda: shares(alice, first, second), [2, 2, 2])
    code, said, _ = rmctl(build, f"--socket={s.name}", "limit", f"--user={FIRST}", "--cores=1")
    assert code == 0, said
    eventually(lambda: sorted(shares(alice, first, second)), [1, 2, 3])
    assert shares(first) == [1]


@as_root
def test_connections_are_counted_for_the_person(with_ranges):
    s = with_ranges(f"{ALICE}:{FIRST}:1000\n", 2)
    with contextlib.ExitStack() as stack:
        for n in range(5):  # 128 of a person are kept
            stack.enter_context(idle_connections(s, FIRST + n, 60))
        assert len(os.listdir(f"/proc/{s.process.pid}/fd")) < 128 + 60
        assert s.member(BOB).slot == 0


@as_root
def test_a_persons_ids_have_one_account_of_rmds_time(with_ranges):
    """A tenth of a processor and what is granted at once, however many of them ask all the time."""
    seconds, granted, ids = 3, 0.2, 10
    s = with_ranges(f"{ALICE}:{FIRST}:1000\n", 256, "log-level = warning\n")
    members = [s.member(FIRST + n) for n in range(ids)]
    before, begun = processor_s(s.process), time.monotonic()
    floods = [flood(s, FIRST + n, request(METRICS), seconds) for n in range(ids)]
    bob, asked = counted_by(floods, lambda: s.member(BOB).slot)
    spent, lasted = processor_s(s.process) - before, time.monotonic() - begun
    assert bob == 0 and len(members) == ids and min(asked) > 0
    assert spent < granted + 0.15 * lasted + 0.2, (spent, lasted, asked)


@as_root
def test_the_file_may_change_while_rmd_runs(with_ranges, public):
    s = with_ranges("", 6)
    alice, first, bob = s.member(ALICE), s.member(FIRST), s.member(BOB)
    assert shares(alice, first, bob) == [2, 2, 2]
    (public / "subuid").write_text(f"nonsense\n{ALICE}:{FIRST}:10\n")
    eventually(lambda: shares(bob), [3])
    s.hears("1 lines that are not USER:FIRST:COUNT")
    (public / "subuid").unlink()
    eventually(lambda: shares(alice, first, bob), [2, 2, 2])
    (public / "new").write_text(f"{BOB}:{FIRST}:10\n")
    (public / "new").rename(public / "subuid")
    eventually(lambda: shares(alice), [3])
    (public / "subuid").unlink()
    (public / "subuid").mkdir()  # cannot be read: what was known goes on
    s.hears("stay as they were known")
    assert shares(alice) == [3] and counts(bob, ELSEWHERE) != [6]


@as_root
def test_none_makes_every_id_a_user(service):
    s = service("emulate-cores = 6\nsubuid-file = none\n")
    members = [s.member(uid) for uid in (ALICE, FIRST, BOB)]
    assert shares(*members) == [2, 2, 2]
