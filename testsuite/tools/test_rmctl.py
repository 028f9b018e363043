# SPDX-License-Identifier: GPL-3.0-or-later
"""rmctl as operators and users meet it: looking, commands and their rights, events, metrics.

Members are rmd_member (rmd/programs), which give cores up when they are told to, and not
before."""

import contextlib
import json
import os
import pty
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time

import pytest

from lib.machine import CPUS, two_cpus
from lib.manager.core_table import ELSEWHERE, NOBODY
from lib.manager.fake_system import put_online
from lib.manager.member import counts
from lib.manager.rmd import Rmd, rmctl
from lib.manager.users import ALICE, BOB
from lib.terminal import Top
from lib.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.sanitize
ENV = {k: v for k, v in os.environ.items() if k != "INVASIVE_SOCKET"}


# INVADE RMCTL ARGUMENT... - a listener with a name like a private rmd's closes each connection
HANGS_UP = """
import os, socket, subprocess, sys, threading
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(f"\\0invasive-{os.getuid()}-refuses")
listener.listen()

def hang_up():
    while True:
        listener.accept()[0].close()

threading.Thread(target=hang_up, daemon=True).start()
sys.exit(subprocess.run([sys.argv[1], "--emulate-cores=2", "--", "env", "-u", "INVASIVE_SOCKET",
                         *sys.argv[2:]], timeout=30).returncode)
"""


@pytest.fixture
def beside_one_that_hangs_up(build):
    """beside_one_that_hangs_up(WORD...) - what rmctl says where a private rmd of ours answers and
    another one does not: exit code, stdout, stderr"""
    alone = ["unshare", *([] if os.getuid() == 0 else ["-Ur"]), "-n"]  # no rmd of others is there
    if subprocess.run([*alone, "true"], check=False, stderr=subprocess.DEVNULL,
                      timeout=60).returncode:
        pytest.skip("no namespace for a network")

    def run(*words):
        done = subprocess.run([*alone, sys.executable, "-c", HANGS_UP, build / "bin/invade",
                               build / "bin/rmctl", *words], check=False, text=True, env=ENV,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        return done.returncode, done.stdout, done.stderr

    return run


def pid(member):
    return member.process.pid


# --- several rmd

def test_a_policy_that_one_of_several_rmd_does_not_take_is_a_failure(beside_one_that_hangs_up):
    code, out, err = beside_one_that_hangs_up("policy", "fair")
    assert code == 1 and out.count("domain @invasive-") == 1 and ": policy fair\n" in out
    assert err.startswith("rmctl: cannot tell rmd at @invasive-") and "-refuses: " in err
    code, out, err = beside_one_that_hangs_up("policy", "fair", "--json")
    done, error = map(json.loads, out.splitlines())
    assert code == 1 and [d["policy"] for d in done["domains"]] == ["fair"]
    assert "-refuses: " in error["error"] and error["error"] in err


def test_to_look_at_the_policies_of_those_that_answer_is_no_failure(beside_one_that_hangs_up):
    code, out, err = beside_one_that_hangs_up("policy")
    assert (code, err) == (0, "") and out.count("domain @invasive-") == 1


# --- looking

def test_status_as_json_says_what_the_tables_say(rmd, ask):
    r = rmd(4)
    one, other = r.joined(2, 0, 1)
    one.ask("borrow 2")
    other.ask("reclaim 2")
    other.ask("want 1")
    other.ask("graph 1 1 4 3.5")
    other.ask("announce 2.5 0 0")
    domain, = ask(r, "status")["domains"]
    assert (domain["rmd"], domain["ncores"], domain["mode"]) == (r.process.pid, 4, "pinned")
    assert domain["cores"][2] == {"core": 2, "cpu": None, "owner": 1, "holder": 0,
                                  "thread": 2**31 - 1, "asked_back": True, "why_away": None,
                                  "speed": 1.0}
    process = domain["processes"][1]
    assert process["pid"] == pid(other) and process["rank"] == 1 and process["wants_cores"]
    assert process["workload"] == 2.5 and process["scalability"] == [[1, 1], [4, 3.5]]
    assert process["owned_cores"] == 2 and process["counters"]["reclaims"] == 1


def test_status_says_what_is_ordered_and_why_a_core_is_away(rmd, ask, tell, tmp_path):
    put_online(tmp_path, "0-2,4-5")
    r = rmd(6, f"--sys-root={tmp_path}", "--check-interval-ms=20")
    one, = r.joined(1, 0)
    eventually(lambda: one.owners()[3], ELSEWHERE)
    ask(r, "drain", "5")
    ask(r, "shrink", pid(one), 2)
    ask(r, "limit", "--job-cores=3")
    ask(r, "policy", "equal")
    domain, = ask(r, "status")["domains"]
    assert [c["why_away"] for c in domain["cores"]] == [None, None, "resting", "offline", "resting",
                                                        "drained"]
    assert not any(core["asked_back"] for core in domain["cores"])
    assert (domain["drained"], domain["offline"]) == ([5], [3])
    assert domain["users"] == [{"uid": os.getuid(), "processes": 1, "policy": "equal",
                                "limits": {"cores": None, "job_cores": 3}, "quota": None,
                                "quota_cores": None, "has": [0, 1, 2, 4]}]
    assert domain["orders"] == [{"uid": os.getuid(), "pid": pid(one), "rank": 0, "at_least": None,
                                 "at_most": 2, "pinned_to": None, "suspended": False,
                                 "priority": 50}]
    text = tell(r, "status")[1]
    assert "policy equal, limits: cores all, cores of a launch 3; drained: 5; offline: 3" in text
    assert f"process {pid(one)} rank 0 owns 2 cores at most (shrink)" in text
    assert re.search(r"^ +5 .* drained$", text, re.M) and "asked" not in text
    ask(r, "pin", pid(one), "1,2")
    text = tell(r, "status")[1]
    assert f"process {pid(one)} rank 0 is pinned to 1-2; else owns 2 cores at most" in text
    order, = ask(r, "status")["domains"][0]["orders"]
    assert (order["pinned_to"], order["at_most"]) == ([1, 2], 2)


def test_policy_as_json_names_all_and_the_chosen_one(rmd, ask):
    r = rmd(2)
    assert ask(r, "policy", "fair")["domains"] == [{"socket": r.name, "uid": os.getuid(),
                                                    "policy": "fair"}]
    assert set(ask(r, "policy")["policies"]) > {"workload", "fair", "energy"}


# --- JSON

COMMANDS = {  # what each command is given, at least once
    "status": [""], "top": ["--batch -n 2 --delay=0.05"], "policy": ["", "fair"],
    "shrink": ["{pid} 2", "{pid} --reset"], "expand": ["{pid} 1"], "pin": ["{pid} 0"],
    "suspend": ["{pid}"], "resume": ["{pid}"], "priority": ["{pid} 40"],
    "limit": ["", "--job-cores=3"], "drain": ["3", "", "--undo 3"], "power": [""],
    "events": [""],
    "trace": ["start {file}", "stop"], "metrics": [""], "help": [""],
    "simulate": ["--machine=4 --generate=constant,pieces=3 --schedules=lending",
                 "--machine=4 --generate=constant,pieces=3 --schedules=makespan --decisions"]}
ASKS_NOBODY = {"help", "simulate"}


def documents(text):
    """All JSON values of a text; nothing else is in it."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(text):
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return found


def with_json(words, where):
    return ["--json", *words] if where == "before" else [*words, "--json"]


def all_commands(tell, r, where, **names):
    """name, exit code, stdout and stderr of each command, with --json before or after its name"""
    for name, several in COMMANDS.items():
        for text in several:
            words = [name, *(word.format(**names) for word in text.split())]
            yield (name, *tell(r, *with_json(words, where)))


@pytest.mark.parametrize("where", ["before", "after"])
def test_every_command_prints_json(rmd, tell, ask, where, tmp_path):
    r = rmd(4)
    one, _ = r.joined(2, 0, 1)
    assert {command["name"] for command in ask(r, "help")["commands"]} == set(COMMANDS)
    for name, code, out, err in all_commands(tell, r, where, pid=pid(one), file=tmp_path / "t"):
        found = documents(out)
        assert (code, err) == (0, "") and found, name
        assert all(isinstance(v, dict) and "error" not in v for v in found), name


@pytest.mark.parametrize("where", ["before", "after"])
def test_every_command_that_fails_says_why_in_json(rmd, tell, where, tmp_path):
    r = rmd(4)
    r.close()
    for name, code, out, err in all_commands(tell, r, where, pid=1, file=tmp_path / "t"):
        if name not in ASKS_NOBODY:
            assert code == 1 and r.name in err, name
            error = documents(out)[-1]["error"]
            assert error and error in err, name
    r = rmd(4)
    for words in (["shrink", "1", "2"], ["drain", "0-3"], ["trace", "stop"],
                  ["trace", "start", "/nowhere/t"],
                  ["simulate", "--generate=study", "--schedules=none"]):
        code, out, err = tell(r, *with_json(words, where))
        assert code == 1 and documents(out)[-1]["error"] in err, words


# --- what the manual says of them

def section(top, page, name):
    text = (top / "doc/man" / page).read_text()
    return re.search(rf"^\.Sh {name}\n(.*?)^\.Sh", text, re.M | re.S)[1]


def subsections(text):
    """{title: text}; the text before the first title has the title ""."""
    titles = re.split(r"^\.Ss (.*)\n", "\n" + text, flags=re.M)
    return dict(zip([""] + titles[1::2], titles[0::2]))


def fields(text):
    """The fields in a part of the section JSON; a list counts as its elements."""
    found, prefix = set(), ""
    for each, names in re.findall(r"^Of each of\n\.Li (\S+)|^\.It Li (.*)", text, re.M):
        prefix = each + "." if each else prefix
        found |= {(prefix + name).rstrip("[]") for name in names.split(" , ") if name}
    return found


def paths(value, at=""):
    """The fields in a value that rmctl has printed."""
    if isinstance(value, list):
        return {at.rstrip("[]")}.union(*(paths(v, at + "[]") for v in value))
    if not isinstance(value, dict):
        return {at.rstrip("[]")}
    if at.rpartition(".")[2] in ("policies", "labels"):
        value = {"NAME": ""} if value else {}
    return {at.rstrip("[]")}.union(*(paths(v, f"{at}.{k}".lstrip(".")) for k, v in value.items()))


def leaves(found):
    """The fields that have no fields in them."""
    return {f for f in found if not any(re.match(re.escape(f) + r"[.\[]", g) for g in found)} - {""}


def test_the_manual_lists_the_fields_of_json(rmd, tell, top, tmp_path):
    r = rmd(4)
    one, _ = r.joined(2, 0, 1)
    printed = {}
    names = {"pid": pid(one), "file": tmp_path / "t"}
    for name, _, out, _ in [*all_commands(tell, r, "after", **names),
                            *all_commands(tell, r, "after", **names),
                            ("shrink", *tell(r, "shrink", "1", "1", "--json")),
                            ("power", *tell(r, "power", "--threshold=70", "--json")),
                            ("status", *tell(r, "status", "--json")),
                            ("trace", *tell(r, "trace", "stop", "--json"))]:
        printed.setdefault(name, set()).update(*(paths(v) for v in documents(out)))
    manual = subsections(section(top, "rmctl.1", "JSON"))
    manual.pop("")
    manual["simulate"] = section(top, "rmctl-simulate.1", "JSON")
    assert sorted(n for title in manual for n in title.split(", ")) == sorted(COMMANDS)
    for title, text in manual.items():
        all_of_them = set().union(*(printed[name] for name in title.split(", ")))
        # Of events that are lost, of programs that compute beside and of chips, of which there may
        # be none.
        rare = {field for field in fields(text)
                if field == "count" or field.startswith(("domains[].unmanaged[].", "chips[]."))}
        assert leaves(fields(text)) == leaves(all_of_them | rare), title


def test_numbers_have_no_digits_that_were_not_measured(rmd, tell):
    r = rmd(4)
    one, = r.joined(1, 0)
    for cores in (1, 2, 3, 2, 1, 4):
        out = tell(r, "shrink", pid(one), cores, "--json")[1]
        assert json.loads(out)["microseconds"] > 0
        for digits in re.findall(r"[0-9]+\.[0-9]+", out):
            assert len(digits.replace(".", "").strip("0")) <= 12, out


def test_the_manual_lists_the_metrics_and_their_labels(rmd, tell, top):
    r = rmd(4)
    r.joined(2, 0, 1)
    printed = {name: {label for labels, _ in values for label in labels}
               for name, (_, values) in exposition(tell(r, "metrics")[1]).items()}
    manual = {}
    for text in subsections(section(top, "rmctl.1", "METRICS")).values():
        labels = re.search(r"^Labels:\n\.Li (.*) \.$", text, re.M)
        for name in re.findall(r"^\.It Li (.*)", text, re.M):
            manual[name] = set(labels[1].split(" , ")) if labels else set()
    assert manual == printed


def test_the_manual_lists_the_events_and_what_they_have(rmd, tell, ask, top):
    r = rmd(4)
    one, other = r.joined(2, 0, 1)
    for words in (["shrink", pid(one), 1], ["expand", pid(one), 1], ["shrink", pid(one), "--reset"],
                  ["expand", pid(one), "--reset"], ["pin", pid(one), "0"], ["policy", "equal"],
                  ["suspend", pid(one)], ["resume", pid(one)], ["priority", pid(one), 40],
                  ["drain", "3"],
                  ["limit", "--job-cores=2"]):
        ask(r, *words)
    other.ask(f"leave {r.name}")
    one.kill()
    eventually(lambda: "death" in tell(r, "events")[1], True)
    text = section(top, "rmctl.1", "EVENTS")
    manual = {name: set(" , ".join(re.findall(r"^\.Li (.*?)(?: :)?$", about, re.M)).split(" , "))
              & {"before", "cores", "processes", "priority", "microseconds", "count",
                 "text"}
              for name, about in re.findall(r"^\.It Li (.*)\n((?:(?!\.It).*\n)*)", text, re.M)}
    kinds = re.search(r"kinds\[INV_EVENT_KINDS\] = \{(.*?)\};",
                      (top / "tools/rmctl/rmctl_events.c").read_text(), re.S)[1]
    assert set(manual) == set(re.findall(r'"(\w+)"', kinds))
    printed = {}
    for event in documents(tell(r, "events", "--json")[1]):
        extra = set(event) - {"number", "time", "event", "uid", "pid", "rank"}
        printed.setdefault(event["event"], set()).update(extra)
    assert printed == {name: manual[name] for name in set(manual) - {"lost", "config"}}


# --- shrink, expand, pin

def test_shrink_and_expand_move_cores_until_they_are_taken_back(rmd, ask):
    r = rmd(8)
    one, other = r.joined(2, 0, 1)
    done = ask(r, "shrink", pid(one), 2)
    assert done["outcome"] == "done" and done["owned_cores"] == 2 and done["microseconds"] > 0
    assert counts(one, 0, 1) == [2, 6]
    assert ask(r, "expand", "rank:1", 7)["owned_cores"] == 7
    assert counts(one, 0, 1) == [1, 7]
    ask(r, "expand", pid(other), "--reset")
    ask(r, "shrink", pid(one), "--reset")
    assert counts(one, 0, 1) == [4, 4]


def test_orders_survive_policies_announcements_and_other_processes(rmd, ask):
    r = rmd(12)
    one, other = r.joined(2, 0, 1)
    ask(r, "shrink", pid(one), 3)
    for policy in ("equal", "makespan", "fair", "jobs", "throughput", "workload"):
        ask(r, "policy", policy)
        assert counts(one, 0) == [3], policy
    one.ask("announce 9 5 12")  # it wants five at least
    assert counts(one, 0) == [3]
    third = r.member()
    third.slot = third.join()
    assert counts(one, 0)[0] <= 3
    third.kill()
    other.kill()
    eventually(lambda: counts(one, 0), [3])


def test_an_order_is_not_got_rid_of_by_leaving_or_exec(rmd, ask):
    r = rmd(8)
    one, other = r.joined(2, 0, 1)
    ask(r, "shrink", pid(one), 2)
    assert one.ask(f"leave {r.name}") == "0"
    assert one.join(0, 2, 2) == one.slot and counts(other, one.slot, other.slot) == [2, 6]
    one.say("exec")
    assert one.join(0, 2, 2) == one.slot and counts(other, one.slot, other.slot) == [2, 6]
    ask(r, "shrink", pid(one), "--reset")
    assert one.ask(f"leave {r.name}") == "0"
    assert one.join(0, 2, 2) == one.slot and counts(other, one.slot, other.slot) == [4, 4]


def test_a_process_that_comes_back_leaves_cores_to_the_process_they_were_pinned_to_meanwhile(
        rmd, ask):
    r = rmd(8)
    one, other, third = r.joined(3, 0, 1, 2)
    ask(r, "pin", pid(one), "0-3")
    assert one.ask(f"leave {r.name}") == "0"
    ask(r, "pin", pid(other), "2-5")
    assert one.join(0, 3, 3) == one.slot
    assert other.owners()[:6] == [one.slot] * 2 + [other.slot] * 4
    assert counts(third, third.slot) == [2]
    assert one.ask(f"leave {r.name}") == "0"
    ask(r, "pin", pid(third), "0-1")
    assert one.join(0, 3, 3) == one.slot  # nothing is left of that order
    assert counts(third, one.slot, other.slot, third.slot) == [2, 4, 2]


def test_cores_that_have_no_owner_after_shrink_cannot_be_borrowed(rmd, ask):
    r = rmd(4, "--reclaim-bound-us=60000000")
    one, = r.joined(1, 0)
    assert one.ask("borrow 3") == "1"
    command = tell_later(r, "shrink", "--wait=30000", pid(one), 1)
    eventually(lambda: one.table()[4][3], 1)  # asked back
    assert command.poll() is None  # not before it is given up
    assert one.ask("lend 3") == "1"
    assert finished(command)["owned_cores"] == 1
    assert one.owners() == [0, ELSEWHERE, ELSEWHERE, ELSEWHERE]
    assert [one.ask(f"borrow {core}") for core in (1, 2, 3)] == ["0"] * 3
    ask(r, "shrink", pid(one), "--reset")
    assert one.owners() == [0] * 4 and one.ask("borrow 3") == "1"


def tell_later(r, *words):
    return subprocess.Popen([r.build / "bin" / "rmctl", f"--socket={r.name}", "--json",
                             *map(str, words)], stdout=subprocess.PIPE, text=True, env=ENV)


def finished(command):
    out, _ = command.communicate(timeout=PATIENCE_S)
    return json.loads(out)


def test_a_process_that_does_not_give_up_a_core_loses_it_when_the_bound_has_passed(rmd, ask):
    r = rmd(4, "--reclaim-bound-us=20000")
    one, = r.joined(1, 0)
    one.ask("borrow 3")
    assert ask(r, "shrink", pid(one), 1)["microseconds"] >= 20000
    assert one.holders() == [NOBODY] * 4


def test_what_does_not_come_about_in_time_is_said_and_stays_in_force(rmd, tell, ask):
    r = rmd(4, "--reclaim-bound-us=60000000")
    one, = r.joined(1, 0)
    one.ask("borrow 3")
    code, out, err = tell(r, "shrink", pid(one), 1, "--wait=1")
    assert code == 2 and out == "" and "in force" in err and "rmctl status" in err
    assert one.owners()[1:] == [ELSEWHERE] * 3
    assert tell(r, "shrink", pid(one), 1, "--wait=0")[0] == 2
    one.ask("lend 3")
    assert ask(r, "shrink", pid(one), 1)["outcome"] == "done"


def test_pinned_cores_are_the_processs_alone(rmd, ask):
    r = rmd(8)
    one, other = r.joined(2, 0, 1)
    ask(r, "pin", pid(one), "0,5-6")
    assert one.owners() == [0, 1, 1, 1, 1, 0, 0, 1]
    other.ask("announce 100 0 0")
    one.ask("announce 1 0 0")
    ask(r, "policy", "throughput")
    assert one.owners() == [0, 1, 1, 1, 1, 0, 0, 1]
    other.kill()
    eventually(lambda: one.owners(), [0] + [ELSEWHERE] * 4 + [0, 0] + [ELSEWHERE])
    ask(r, "pin", pid(one), "--reset")
    assert one.owners() == [0] * 8


def test_a_pinned_process_leaves_the_others_their_share(rmd, ask):
    r = rmd(8)
    members = r.joined(3, 0, 1, 2)
    ask(r, "pin", pid(members[2]), "6-7")
    ask(r, "policy", "equal")
    assert counts(members[0], 0, 1, 2) == [3, 3, 2]
    ask(r, "pin", pid(members[1]), "0")
    assert counts(members[0], 0, 1, 2) == [5, 1, 2]
    assert members[0].owners()[0] == 1


def test_pins_wait_while_they_would_leave_a_process_without_a_core(rmd, ask):
    r = rmd(2)
    one, = r.joined(1, 0)
    ask(r, "pin", pid(one), "0-1")
    other = r.member()
    other.slot = other.join()
    assert counts(one, one.slot, other.slot) == [1, 1]
    assert one.ask(f"leave {r.name}") == "0"
    assert one.join() == one.slot and counts(one, one.slot, other.slot) == [1, 1]
    other.kill()
    eventually(lambda: counts(one, one.slot), [2])
    ask(r, "drain", "1")
    third = r.member()
    third.slot = third.join()
    assert counts(one, one.slot, third.slot) in ([1, 0], [0, 1])  # there is one core only
    ask(r, "drain", "1", "--undo")
    assert counts(one, one.slot, third.slot) == [1, 1]


def test_cores_that_another_user_gets_are_taken_from_pinned_processes(service, ask):
    s = service("emulate-cores = 4\nreclaim-bound-us = 1000\n")
    one, other = s.member(ALICE), s.member(ALICE)
    ask(s, "pin", pid(one), "0-2")
    assert counts(one, one.slot, other.slot) == [3, 1]
    bob = s.member(BOB)
    eventually(lambda: counts(bob, 0), [2])
    assert counts(one, one.slot, other.slot) == [1, 1]
    bob.kill()
    eventually(lambda: counts(one, one.slot, other.slot), [3, 1])


def test_physical_cores_that_go_together_are_ordered_together(rmd, tell, ask):
    r = rmd(8, "--smt=core", machine="core:4 pu:2")
    one, other = r.joined(2, 0, 1)
    code, _, err = tell(r, "pin", pid(one), "0,1,4")
    assert code == 1 and "core 5" in err
    ask(r, "pin", pid(one), "0,1,4,5")
    assert one.owners() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert ask(r, "drain", "2-3")["drained_cores"] == 2
    assert "core 7" in tell(r, "drain", "6")[2]


@pytest.mark.parametrize("words,code,why", [
    (("shrink", "{one}", "9"), 1, "use 1 to 8"),
    (("shrink", "1", "2"), 1, "process 1 is not managed here"),
    (("expand", "{one}", "8"), 1, "7 cores at most"),
    (("pin", "{one}", "0-7"), 1, "left without a core"),
    (("pin", "{one}", "3,8"), 1, "no core 8"),
    (("shrink", "rank:7", "2"), 1, "no process of yours is rank 7"),
    (("shrink",), 64, "which process"),
    (("shrink", "a", "b"), 64, "process 'a': use a pid, or rank:N"),
    (("shrink", "{one}"), 64, "how many cores?"),
    (("shrink", "{one}", "two"), 64, "'two': use a number"),
    (("shrink", "{one}", "2", "--reset"), 64, "--reset stands alone"),
    (("pin", "{one}", "a-b"), 64, "no list of cores"),
    (("pin", "{one}"), 64, "which cores? Use a list such as 0-3,8"),
    (("drain", "--undo"), 64, "which cores? Use a list such as 0-3,8"),
    (("drain", "0-7"), 1, "drain fewer"),
    (("drain", "11"), 1, "no core 11"),
    (("limit", "--cores=0"), 64, "--cores '0': use a number from 1 to 1024, or all"),
    (("limit", "--job-cores=x"), 64, "--job-cores 'x': use a number from 1 to 1024, or all"),
    (("limit", "--user=nobody-of-this-name"), 64, "no user"),
    (("events", "--since=x"), 64, "--since 'x'"),
    (("top", "--delay=0"), 64, "0.05"),
])
def test_what_cannot_be_is_refused_and_changes_nothing(rmd, tell, words, code, why):
    r = rmd(8)
    one, other = r.joined(2, 0, 1)
    said = tell(r, *(word.format(one=pid(one)) for word in words))
    assert said[0] == code and said[1] == "" and why in said[2], said
    assert code == 64 or r.name in said[2] or "rank" in why
    assert counts(one, 0, 1) == [4, 4]


def test_what_is_refused_says_no_numbers_of_cores_in_json(rmd, tell):
    r = rmd(4)
    one, _ = r.joined(2, 0, 1)
    for words in (["drain", "0-3"], ["shrink", "1", "2"], ["pin", pid(one), "0-3"],
                  ["limit", "--user=60003", "--cores=2"]):
        code, out, _ = tell(r, *words, "--json")
        told = json.loads(out)
        assert (code, told["outcome"]) == (1, "refused") and told["error"] == told["text"]
        assert not [key for key in told if "cores" in key], told


def test_where_no_rmd_answers_a_rank_is_no_better_than_a_pid(rmd, tell):
    r = rmd(2)
    r.close()
    by_pid, by_rank = (tell(r, "expand", process, "1") for process in ("1", "rank:0"))
    assert by_rank == by_pid and "is it running?" in by_rank[2]


def test_an_operator_is_told_how_another_users_process_is_named(service, by):
    s = service("emulate-cores = 4\n")
    alone = by(s, 0, "expand", "rank:0", 1)[2]
    s.member(ALICE)
    for uid, named in ((0, True), (BOB, False)):
        code, out, err = by(s, uid, "expand", "rank:0", 1)
        assert (code, out) == (1, "") and "no process of yours is rank 0: use a pid" in err
        assert ("rmctl status --user=USER" in err) == named
    assert "--user" not in alone


def test_help_of_a_command_is_what_it_says_itself(build):
    about = rmctl(build, "help", "shrink")
    assert about == rmctl(build, "shrink", "--help") and about[0] == 0
    assert "rmctl shrink" in about[1] and "--reset" in about[1]
    assert rmctl(build, "help", "help") == rmctl(build, "help")
    one, = json.loads(rmctl(build, "help", "shrink", "--json")[1])["commands"]
    assert one["name"] == "shrink"
    for words, why in ((["shirk"], "no command 'shirk'"), (["complete"], "no command"),
                       (["top", "policy"], "'policy' is one argument too many")):
        code, out, err = rmctl(build, "help", *words)
        assert (code, out) == (64, "") and why in err


def test_a_process_with_tokens_cannot_be_shrunk(rmd, tell):
    r = rmd(2)
    one, = r.joined(5, 0)
    code, _, err = tell(r, "shrink", pid(one), 1)
    assert code == 1 and "more processes than cores" in err


def test_orders_go_with_the_process(rmd, ask):
    r = rmd(4)
    one, = r.joined(1, 0)
    ask(r, "shrink", pid(one), 1)
    one.kill()
    eventually(lambda: ask(r, "status")["domains"][0]["processes"], [])
    other = r.member()
    other.join()
    assert other.owners() == [0] * 4


# --- drain

def test_drained_cores_have_no_owner_until_the_drain_is_undone(rmd, ask):
    r = rmd(4, "--reclaim-bound-us=60000000")
    one, other = r.joined(2, 0, 1)
    assert one.ask("borrow 1") == "1"
    command = tell_later(r, "drain", "--wait=30000", "1-2")
    eventually(lambda: one.owners()[1:3], [ELSEWHERE] * 2)
    assert command.poll() is None
    assert one.ask("lend 1") == "1"
    assert finished(command)["outcome"] == "done"
    assert [m.ask(f"borrow {core}") for core in (1, 2) for m in (one, other)] == ["0"] * 4
    assert counts(one, 0, 1) == [1, 1]
    assert ask(r, "drain", "--undo", "1-2")["drained_cores"] == 0
    assert counts(one, 0, 1) == [2, 2]
    assert one.ask("borrow 1") == "1"


def test_a_drained_core_is_taken_when_the_bound_has_passed(rmd, ask):
    r = rmd(4, "--reclaim-bound-us=20000")
    one, = r.joined(1, 0)
    one.ask("borrow 3")
    assert ask(r, "drain", "3")["microseconds"] >= 20000
    assert one.holders() == [NOBODY] * 4 and one.owners() == [0, 0, 0, ELSEWHERE]


def test_tokens_are_fewer_while_cores_are_drained(rmd, ask):
    r = rmd(3)
    one, = r.joined(5, 0)
    assert one.table()[1] == 3
    ask(r, "drain", "0")
    assert one.table()[1] == 2
    ask(r, "drain", "--undo", "0")
    assert one.table()[1] == 3


def test_drain_without_a_list_tells_what_is_drained(rmd, ask, tell):
    r = rmd(4)
    assert tell(r, "drain")[:2] == (0, "0 cores drained\n")
    ask(r, "drain", "1-2")
    assert tell(r, "drain") == (0, "2 cores drained: 1-2\n", "")
    said = ask(r, "drain")
    assert (said["drained_cores"], said["drained"]) == (2, [1, 2])


@two_cpus
def test_affinity_follows_a_drain(build, ask):
    with contextlib.closing(Rmd(build, f"--cores={CPUS[0]},{CPUS[1]}")) as r:
        one, = r.joined(1, 0)
        before = os.sched_getaffinity(pid(one))
        ask(r, "drain", "1")
        assert os.sched_getaffinity(pid(one)) == before - {CPUS[1]}
        ask(r, "drain", "--undo", "1")
        assert os.sched_getaffinity(pid(one)) == before


# --- users and rights

@pytest.fixture
def by(build, public, several_users):
    """by(SERVICE, USER, WORD...) - what rmctl says to this user; SERVICE None: of any it finds"""
    shutil.copy(build / "bin" / "rmctl", public / "rmctl")

    def run(s, uid, *words):
        which = [f"--socket={s.name}"] if s else []
        done = subprocess.run([public / "rmctl", *which, *map(str, words)], cwd="/",
                              user=uid, group=60000, extra_groups=[], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False, env=ENV)
        return done.returncode, done.stdout, done.stderr

    return run


def test_names_that_strangers_listen_on_are_no_rmd(by):
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stranger.bind(f"\0invasive-{ALICE}-test{os.getpid()}")
    os.seteuid(BOB)  # the kernel notes the user that listens
    try:
        stranger.listen()
    finally:
        os.seteuid(0)
    with stranger:
        assert by(None, ALICE, "policy")[::2] == (1, "rmctl: no rmd of yours is running; start a "
                                                  "program under invade\n")


def test_a_user_steers_its_own_processes_and_root_all(service, by):
    s = service("emulate-cores = 8\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    code, _, err = by(s, BOB, "shrink", pid(alice), 1)
    assert code == 1 and "or not yours" in err and counts(alice, 0) == [4]
    assert by(s, ALICE, "shrink", pid(alice), 2)[0] == 0 and counts(alice, 0) == [2]
    assert by(s, 0, "shrink", pid(bob), 3)[0] == 0 and counts(bob, 0) == [3]
    core = bob.owners().index(0)
    code, _, err = by(s, ALICE, "pin", pid(alice), core)
    assert code == 1 and "another user's" in err
    assert "only root" in by(s, ALICE, "drain", 0)[2]
    assert by(s, 0, "drain", "0-1")[0] == 0
    assert "only root" in by(s, ALICE, "drain", "--undo", 0)[2]
    code, _, err = by(s, 0, "drain", "2-6")
    assert code == 1 and "2 users need at least one each" in err


def test_status_shows_root_the_orders_of_all_and_a_user_its_own(service, by):
    s = service(f"emulate-cores = 8\n[user {ALICE}]\nmax-cores = 3\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    assert by(s, 0, "shrink", pid(bob), 1)[0] == 0
    assert by(s, BOB, "policy", "fair")[0] == 0
    domain, = json.loads(by(s, 0, "status", "--json")[1])["domains"]
    assert [u["uid"] for u in domain["users"]] == [0, ALICE, BOB]
    assert [u["policy"] for u in domain["users"]] == ["workload", "workload", "fair"]
    assert [u["limits"]["cores"] for u in domain["users"]] == [None, 3, None]
    assert [len(u["has"]) for u in domain["users"]] == [0, 3, 5]
    assert [(o["uid"], o["pid"], o["at_most"]) for o in domain["orders"]] == [(BOB, pid(bob), 1)]
    assert by(s, 0, "drain", "7")[0] == 0
    cores = json.loads(by(s, 0, "status", "--json")[1])["domains"][0]["cores"]
    assert [c["why_away"] for c in cores] == ["other-user"] * 7 + ["drained"]
    text = by(s, 0, "status")[1]
    assert f"order: process {pid(bob)} of user {BOB} owns 1 core at most" in text
    assert re.search(rf"^user {ALICE}: 1 process, policy workload, limits: cores 3, .* has cores "
                     rf"\d", text, re.M)
    domain, = json.loads(by(s, ALICE, "status", "--json")[1])["domains"]
    assert [u["uid"] for u in domain["users"]] == [ALICE] and domain["orders"] == []
    why = {core["why_away"] for core in domain["cores"] if core["owner"] == "away"}
    assert why == {"other-user", "drained"} and counts(alice, 0) == [3]


def test_a_user_is_limited_by_itself_and_by_root_until_the_limit_is_reset(service, by):
    s = service(f"emulate-cores = 8\n[user {ALICE}]\nmax-cores = 6\n")
    alice = s.member(ALICE)
    assert counts(alice, 0) == [6]
    said = json.loads(by(s, ALICE, "limit", "--json")[1])
    assert (said["uid"], said["cores"], said["job_cores"]) == (ALICE, 6, None)
    assert by(s, ALICE, "limit", "--cores=all")[0] == 0 and counts(alice, 0) == [6]
    assert by(s, ALICE, "limit", "--cores=3")[0] == 0 and counts(alice, 0) == [3]
    assert by(s, ALICE, "limit", "--reset")[0] == 0 and counts(alice, 0) == [6]
    assert by(s, 0, "limit", f"--user={ALICE}", "--cores=all")[0] == 0 and counts(alice, 0) == [8]
    assert by(s, 0, "limit", f"--user={ALICE}", "--job-cores=5")[0] == 0
    assert counts(alice, 0) == [5]
    code, _, err = by(s, BOB, "limit", f"--user={ALICE}", "--cores=1")
    assert code == 1 and "only root" in err
    assert by(s, 0, "limit", f"--user={ALICE}", "--reset")[0] == 0 and counts(alice, 0) == [6]


def test_to_ask_for_a_users_limits_does_not_make_it_known(service, by):
    s = service(f"emulate-cores = 8\n[user {BOB}]\nmax-cores = 6\nmax-job-cores = 5\n")
    s.member(ALICE)
    said = json.loads(by(s, 0, "limit", f"--user={BOB}", "--json")[1])
    assert (said["uid"], said["cores"], said["job_cores"]) == (BOB, 6, 5)
    domain, = json.loads(by(s, 0, "status", "--json")[1])["domains"]
    assert [u["uid"] for u in domain["users"]] == [0, ALICE]
    assert by(s, 0, "limit", f"--user={BOB}", "--cores=4")[0] == 0  # this one has to be noted
    domain, = json.loads(by(s, 0, "status", "--json")[1])["domains"]
    assert [(u["uid"], u["limits"]["cores"]) for u in domain["users"]][2:] == [(BOB, 4)]


LOOKS = (["status"], ["top", "-n1"], ["policy"], ["policy", "fair"], ["trace", "start", "{file}"],
         ["trace", "stop"])


def of_user(uid, words, file=""):
    return [words[0], f"--user={uid}", *(word.format(file=file) for word in words[1:])]


def test_an_operator_sees_and_steers_the_domain_of_a_user(service, by):
    s = service("emulate-cores = 8\n")
    alice, bob = s.member(ALICE), s.member(BOB)
    s.member(BOB)
    bob.ask(f"borrow {bob.owners().index(0)}")
    assert by(s, 0, "shrink", pid(bob), 1)[0] == 0
    for words in (["status"], ["top", "-n1"]):
        code, out, err = by(s, 0, *of_user(BOB, words), "--json")
        domain, = json.loads(out)["domains"]
        assert (code, err) == (0, "") and len(domain["processes"]) == 2
        assert domain["processes"][0]["pid"] == pid(bob)
        assert domain["processes"][0]["held_cores"] == 1
        assert [u["uid"] for u in domain["users"]] == [BOB]
        assert [(o["uid"], o["pid"]) for o in domain["orders"]] == [(BOB, pid(bob))]
        away = {c["core"] for c in domain["cores"] if c["why_away"] == "other-user"}
        assert away == {c for c, owner in enumerate(alice.owners()) if owner == 0}
        assert f"user {BOB}, " in by(s, 0, *of_user(BOB, words))[1]
    assert by(s, 0, "policy", f"--user={BOB}", "equal") == (
        0, f"domain {s.name}: user {BOB}, policy equal\n", "")
    said = {uid: json.loads(by(s, uid, "policy", "--json")[1])["domains"][0]["policy"]
            for uid in (0, ALICE, BOB)}
    assert said == {0: "workload", ALICE: "workload", BOB: "equal"}
    assert by(s, BOB, "policy", "fair")[0] == 0  # the last word counts
    assert "policy fair\n" in by(s, 0, "policy", f"--user={BOB}")[1]


def test_a_user_with_a_number_above_the_middle_has_that_one_in_json(service, by):
    """Such users come from user namespaces and directories; none is a negative number."""
    s, uid = service("emulate-cores = 4\n"), (1 << 31) + ALICE
    member = s.member(uid)
    assert by(s, uid, "shrink", pid(member), 1)[0] == 0
    status, policy = (json.loads(by(s, uid, word, "--json")[1])["domains"][0]
                      for word in ("status", "policy"))
    limit = json.loads(by(s, uid, "limit", "--json")[1])
    joined = next(e for e in map(json.loads, by(s, uid, "events", "--json")[1].splitlines())
                  if e["event"] == "join")
    told = [status["users"][0], status["orders"][0], policy, limit, joined]
    assert [t["uid"] for t in told] == [uid] * len(told)


def test_a_user_named_by_name_is_the_one_of_this_number(service, by):
    s = service("emulate-cores = 4\n")
    alice = s.member(ALICE)
    name = pwd.getpwuid(ALICE).pw_name
    domain, = json.loads(by(s, 0, "status", f"--user={name}", "--json")[1])["domains"]
    assert [p["pid"] for p in domain["processes"]] == [pid(alice)]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_another_users_domain_is_for_operators(service, by, public, words):
    s = service("emulate-cores = 8\n")
    alice, _ = s.member(ALICE), s.member(BOB)
    public.chmod(0o777)
    for whose in (ALICE, 0, 60009):  # a user that is not known is not told from one that is
        code, out, err = by(s, BOB, *of_user(whose, words, public / "t"))
        assert (code, out) == (1, "") and (words[0] == "trace" or s.name in err)
        assert "only root and the user that runs rmd" in err and f"user {whose}:" in err
        assert "without --user" in err
    assert "policy workload" in by(s, ALICE, "policy")[1] and counts(alice, 0) == [4]
    code, _, err = by(s, BOB, *of_user(BOB, words, public / "t"))
    assert code == (words == ["trace", "stop"]) and "only root" not in err


@pytest.mark.parametrize("words", [w for w in LOOKS if w[0] != "policy"], ids=" ".join)
def test_a_user_without_processes_does_not_become_known(service, by, public, words):
    s = service("emulate-cores = 8\n")
    bob = s.member(BOB)
    bob.kill()
    s.hears("the last process has gone")
    by(s, 0, "status")  # root's own domain is made

    def descriptors():
        return len(os.listdir(f"/proc/{s.process.pid}/fd"))

    before = descriptors()
    for whose in (ALICE, BOB):
        code, out, err = by(s, 0, *of_user(whose, words, public / "t"))
        assert (code, out) == (1, "")
        assert f"user {whose} has no managed process now" in err or "no trace" in err
    assert by(s, 0, "policy", f"--user={ALICE}")[0] == 0
    eventually(lambda: descriptors() <= before, True)  # connections may end a little later
    samples = exposition(by(s, 0, "metrics")[1])["invasive_user_cores"][1]
    assert {labels["user"] for labels, _ in samples} == {"0", str(BOB)}


def test_a_policy_may_be_chosen_for_a_user_that_is_still_to_come(service, by):
    s = service(f"emulate-cores = 8\n[user {BOB}]\npolicy = equal\n")
    assert "policy equal\n" in by(s, 0, "policy", f"--user={BOB}")[1]
    assert by(s, 0, "policy", f"--user={ALICE}", "jobs")[0] == 0
    s.member(ALICE)
    assert "policy jobs\n" in by(s, ALICE, "policy")[1]
    s.kill_and_start_again()
    assert "policy jobs\n" in by(s, 0, "policy", f"--user={ALICE}")[1]


def test_an_operator_sees_the_users_that_a_new_rmd_has_taken_back(service, by):
    s = service("emulate-cores = 4\n")
    alice = s.member(ALICE)
    s.kill_and_start_again()
    domain, = json.loads(by(s, 0, "status", f"--user={ALICE}", "--json")[1])["domains"]
    assert [p["pid"] for p in domain["processes"]] == [pid(alice)]
    assert domain["rmd"] == s.process.pid


def test_an_operator_takes_a_trace_of_a_user(service, by, public, tmp_path):
    s = service("emulate-cores = 4\n")
    alice = s.member(ALICE)
    public.chmod(0o777)
    file, own = tmp_path / "t", public / "own"
    assert by(s, 0, "trace", f"--user={ALICE}", "start", file) == (0, "", "")
    assert file.stat().st_uid == 0 and file.stat().st_mode & 0o077 == 0
    alice.ask("borrow 0")
    assert "a trace is being taken already" in by(s, ALICE, "trace", "start", own)[2]
    code, _, err = by(s, ALICE, "trace", "stop")
    assert code == 1 and "an operator has begun this trace" in err
    assert by(s, 0, "trace", "stop")[0] == 1  # root's own: there is none
    alice.kill()
    s.hears("the last process has gone")
    assert by(s, 0, "trace", f"--user={ALICE}", "stop") == (0, "", "")
    assert b"member" in file.read_bytes()
    s.member(ALICE)
    assert by(s, ALICE, "trace", "start", own) == (0, "", "")  # and her own again, which root
    assert by(s, 0, "trace", f"--user={ALICE}", "stop") == (0, "", "")  # may end


def test_top_goes_on_when_the_user_that_it_watches_has_gone(service):
    s = service("emulate-cores = 4\n")
    alice = s.member(ALICE)
    with subprocess.Popen([s.build / "bin" / "rmctl", f"--socket={s.name}", "top",
                           "--batch", f"--user={ALICE}", "--delay=0.05"], text=True,
                          stdout=subprocess.PIPE, env=ENV) as top:
        def says(text):
            while text not in (line := top.stdout.readline()):
                assert line
        try:
            says("1 process,")
            alice.kill()
            says(f"user {ALICE} has no managed process now")
            s.member(ALICE)
            says("1 process,")
        finally:
            top.kill()


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_launchs_own_rmd_has_no_other_users(rmd, tell, tmp_path, words):
    r = rmd(8)
    code, out, err = tell(r, *of_user(BOB, words, tmp_path / "t"))
    assert (code, out) == (1, "")
    assert f"user {BOB} has no processes here: this rmd serves user {os.getuid()} only" in err


@pytest.mark.parametrize("limits", [[], ["--cores=2"], ["--reset"]], ids=["asked", "set", "reset"])
def test_of_a_launchs_own_rmd_no_other_user_gets_cores(rmd, ask, tell, limits):
    r = rmd(8)
    one, = r.joined(1, 0)
    code, _, err = tell(r, "limit", f"--user={BOB}", *limits)
    assert code == 1 and f"this rmd serves user {os.getuid()} only" in err
    ask(r, "limit", "--job-cores=all")  # cores are divided again
    assert counts(one, 0) == [8]
    domain, = ask(r, "status")["domains"]
    assert [u["uid"] for u in domain["users"]] == [os.getuid()]


def test_events_and_metrics_are_of_ones_own_processes_and_of_all_for_root(service, by):
    s = service("emulate-cores = 4\n")
    s.member(ALICE)
    s.member(BOB)
    for uid, sees in ((ALICE, {ALICE}), (0, {ALICE, BOB})):
        events = [json.loads(line) for line in by(s, uid, "events", "--json")[1].splitlines()]
        assert {e["uid"] for e in events if e["event"] == "join"} == sees
        samples = json.loads(by(s, uid, "metrics", "--json")[1])["samples"]
        assert {int(m["labels"]["user"]) for m in samples if "pid" in m["labels"]} == sees


# --- events

def test_events_tell_what_has_happened(rmd, ask, tell):
    r = rmd(4)
    one, other = r.joined(2, 0, 1)
    ask(r, "shrink", pid(one), 1)
    ask(r, "policy", "equal")
    ask(r, "drain", "3")
    other.ask(f"leave {r.name}")
    one.kill()
    eventually(lambda: "death" in tell(r, "events")[1], True)
    events = [json.loads(line) for line in tell(r, "events", "--json")[1].splitlines()]
    seen = [e["event"] for e in events]
    assert {"join", "owner", "shrink", "effect", "drain", "share", "leave", "death"} <= set(seen)
    assert [e["number"] for e in events] == list(range(1, len(events) + 1))
    drain, = (e for e in events if e["event"] == "drain")
    assert drain["cores"] == 1 and drain["text"] == "3"
    owner = next(e for e in events if e["event"] == "owner" and e["pid"] == pid(one))
    assert (owner["before"], owner["cores"], owner["text"]) == (0, 2, "0-1")
    first = tell(r, "events", f"--since={len(events)}", "--json")[1]
    assert json.loads(first) == events[-1]
    assert tell(r, "events", f"--since={len(events) + 1}") == (0, "", "")
    another_rmds = tell(r, "events", f"--since={len(events) + 2}", "--json")[1]
    assert len(another_rmds.splitlines()) == len(events)


def test_events_say_nothing_twice_and_no_empty_list(rmd, ask, tell):
    r = rmd(4)
    one, = r.joined(1, 0)
    ask(r, "shrink", pid(one), 1)
    ask(r, "limit", "--job-cores=3")
    ask(r, "drain", "3")
    ask(r, "drain", "--undo", "3")
    lines = tell(r, "events")[1].splitlines()
    effect = next(line for line in lines if " effect " in line)
    assert re.search(rf" process {pid(one)} owns 1 core: 0 \(after \d+ us\)$", effect)
    limits = [line for line in lines if "cores of a launch 3" in line]
    assert limits and all(line.count(f"user {os.getuid()}") == 1 for line in limits)
    drains = [line for line in lines if " drain " in line]
    assert drains[0].endswith(" 1 core drained: 3") and drains[1].endswith(" 0 cores drained")


def test_a_client_that_follows_events_hears_of_what_comes(rmd, build):
    r = rmd(2)
    with subprocess.Popen([build / "bin" / "rmctl", f"--socket={r.name}", "events", "--follow",
                           "--json"], stdout=subprocess.PIPE, text=True, env=ENV) as follower:
        assert json.loads(follower.stdout.readline())["event"] == "share"
        one, = r.joined(1, 0)
        assert json.loads(follower.stdout.readline())["event"] == "join"
        assert json.loads(follower.stdout.readline())["event"] == "owner"
        one.kill()
        assert json.loads(follower.stdout.readline())["event"] == "death"
        r.control.close()  # rmd ends, and so does the follower
        assert follower.wait(PATIENCE_S) == 0


def test_a_client_that_reads_too_slowly_is_told_how_much_was_lost(rmd, build):
    """The ring has 4096 events; rmd does not wait for a client that does not read."""
    r = rmd(2)
    one, other = r.joined(2, 0, 1)
    with subprocess.Popen([build / "bin" / "rmctl", f"--socket={r.name}", "events", "--follow",
                           "--json"], stdout=subprocess.PIPE, text=True, env=ENV) as follower:
        first = json.loads(follower.stdout.readline())
        assert first["number"] == 1
        follower.send_signal(signal.SIGSTOP)
        with subprocess.Popen([build / "testsuite/rmd/programs/rmd_member"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as many:
            lines = f"leave {r.name}\njoin {r.name} -1 -1 -1\n" * 2500
            many.communicate(lines, timeout=60)
        follower.send_signal(signal.SIGCONT)
        numbers, lost = [1], 0
        while not lost:
            event = json.loads(follower.stdout.readline())
            if event["event"] == "lost":
                lost = event["count"]
                assert event["number"] == numbers[-1] + lost
            else:
                assert event["number"] == numbers[-1] + 1  # nothing is left out unsaid
                numbers.append(event["number"])
        follower.kill()


# --- completion

def completed_by_bash(build, top, home, line):
    """Completions that bash offers after this line, which begins with rmctl."""
    words = [piece for word in line.split(" ") for piece in re.split("([=:])", word)
             if piece or not word]
    words += [""] if words[-1] in ("=", ":") else []  # as bash cuts words
    script = f'''source {top}/tools/rmctl/completion/rmctl
        COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
        COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}
        eval "$(complete -p rmctl | sed 's/complete -F \\([^ ]*\\) .*/\\1/')"
        printf '%s\\n' "${{COMPREPLY[@]}}"'''
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=True, cwd=home,
                          env={**ENV, "PATH": f"{build / 'bin'}:{ENV['PATH']}"})
    assert done.stderr == ""
    return done.stdout.split()


# In a zsh with a terminal, ^X is a key that notes what TAB would offer.
ZSH_SETUP = r"""
fpath=($COMPLETIONS $fpath)
autoload -Uz compinit && compinit -D -u
asked() {
    compadd() {
        local -a offered
        builtin compadd -O offered "$@"
        print -rl -- $offered >>$SAID
        builtin compadd "$@"
    }
    _main_complete
    unfunction compadd
    compstate[insert]= compstate[list]=
    print -r -- -- >>$SAID
}
zle -C asked complete-word asked
bindkey '^X' asked
precmd() { print -r -- -- >>$SAID; precmd() { : } }
"""

ZSH_TYPE = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $1"
integer answers=0
answered() {
    until [[ -r $SAID && $(grep -cx -- -- $SAID) -gt $answers ]] {
        sleep 0.02
        zpty -r -t shell >$HOME/seen
    }
    answers+=1
}
answered
for line in "${@:2}"; do
    zpty -w -n shell $'\C-u'$line$'\C-x'
    answered
done
zpty -d shell
"""


def completed_by_zsh(build, top, home, *lines):
    """Completions that zsh offers, line by line, on a terminal of its own (zpty)."""
    said = home / "said"
    (home / "setup").write_text(ZSH_SETUP)
    subprocess.run(["zsh", "-f", "-c", ZSH_TYPE, "zsh", home / "setup", *lines], check=True,
                   timeout=90, cwd=home,
                   env={**ENV, "PATH": f"{build / 'bin'}:{ENV['PATH']}", "HOME": str(home),
                        "COMPLETIONS": str(top / "tools/rmctl/completion"), "SAID": str(said)})
    return [answer.split() for answer in re.split(r"^--$", said.read_text(), flags=re.M)[1:-1]]


@pytest.fixture(params=["bash", "zsh"])
def completed(request, build, top, tmp_path):
    """completed(LINE...) - what the shell offers, line by line"""
    if not shutil.which(request.param):
        pytest.skip(f"needs package {request.param}")
    if request.param == "bash":
        return lambda *lines: [completed_by_bash(build, top, tmp_path, line) for line in lines]
    return lambda *lines: completed_by_zsh(build, top, tmp_path, *lines)


def test_shells_complete_commands_options_and_arguments(rmd, completed, monkeypatch):
    r = rmd(2)
    members = r.joined(2, 0, 1)
    monkeypatch.setitem(ENV, "INVASIVE_SOCKET", r.name)
    some, everything, policies, undo, socket_first, options, pids = completed(
        "rmctl s", "rmctl ", "rmctl policy th", "rmctl --json drain --u", "rmctl -s @a drain --u",
        "rmctl -", "rmctl pin ")
    assert some == ["status", "shrink", "suspend", "simulate"]
    assert {"top", "drain", "events", "help"} <= set(everything) and "complete" not in everything
    assert policies == ["throughput"] and undo == socket_first == ["--undo"]
    assert "--socket=" in options
    assert {str(pid(member)) for member in members} < set(pids)


def test_shells_complete_what_a_command_takes_and_no_more(
        rmd, ask, completed, monkeypatch, tmp_path):
    r = rmd(4)
    r.joined(2, 0, 1)
    ask(r, "drain", "2")
    monkeypatch.setitem(ENV, "INVASIVE_SOCKET", r.name)
    (tmp_path / "some.trace").touch()
    (tmp_path / "other.csv").touch()
    offered = {
        "rmctl trace ": ["start", "stop"],
        "rmctl trace start so": ["some.trace"],
        "rmctl trace stop ": [],
        "rmctl policy workload ": [],
        "rmctl help tr": ["trace"],
        "rmctl help trace ": [],
        "rmctl drain ": ["0", "1", "3"],
        "rmctl drain --undo ": ["2"],
        "rmctl drain 0,": ["0,0", "0,1", "0,3"],
        f"rmctl -s {r.name} pin rank:1 ": ["0", "1", "2", "3"],
        "rmctl shrink 1 ": ["1", "2", "3", "4"],
        "rmctl limit --user=roo": ["root"],
        "rmctl top --user=roo": ["root"],
        "rmctl policy --user=root th": ["throughput"],
        "rmctl trace --user root ": ["start", "stop"],
        "rmctl status --u": ["--user="],
        "rmctl limit --job-cores=": ["all"],
        "rmctl simulate --workload=ot": ["other.csv"],
        "rmctl simulate -w ot": ["other.csv"],
        "rmctl simulate --generate=st": ["study"],
        "rmctl simulate --generate=study,pi": ["study,pieces="],
        "rmctl simulate --schedules=static,thr": ["static,throughput"],
        "rmctl simulate --announce=": ["measured", "ahead"],
        "rmctl top --delay=": [],
        "rmctl events --s": ["--since=", "--socket="],
    }
    *answers, simulate, ranks = completed(*offered, "rmctl simulate --", "rmctl suspend rank:")
    for line, words in zip(offered, answers):
        assert set(words) == set(offered[line]), line  # zsh looks for files twice
    assert {"--machine=", "--workload=", "--decisions", "--json", "--socket="} <= set(simulate)
    assert {word.rpartition(":")[2] for word in ranks} == {"0", "1"}


# --- metrics

LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({LABEL}(?:,{LABEL})*)?\}})? (\S+)")


def exposition(text):
    """A parser of the text format 0.0.4: {name: (type, [(labels, value)])}; fails on what is none.
    All lines of a metric stand together, after its HELP and TYPE."""
    metrics, current = {}, None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split()[2]
            assert current not in metrics and len(line.split()) > 3
            metrics[current] = [None, []]
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name == current and kind in ("counter", "gauge") and metrics[name][0] is None
            assert (kind == "counter") == name.endswith("_total")
            metrics[name][0] = kind
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name == current and metrics[name][0]
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
            assert labels not in [seen for seen, _ in metrics[name][1]]
            metrics[name][1].append((labels, float(value)))
    return metrics


def http(where, request, patience=PATIENCE_S):
    family = socket.AF_INET if isinstance(where, tuple) else socket.AF_UNIX
    with socket.socket(family) as s:
        s.connect(where)  # waits where others queue; with a time limit it would fail at once
        s.settimeout(patience)
        s.sendall(request)
        data = b""
        while chunk := s.recv(65536):
            data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    return head.decode(), body.decode()


GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(params=["path", "abstract", "tcp"])
def served(request, rmd, short_path):
    """An rmd that serves metrics, and where"""
    if request.param == "tcp":
        where = ("127.0.0.1", free_port())
        option = f"127.0.0.1:{where[1]}"
    elif request.param == "path":
        where = option = str(short_path / "metrics.sock")
    else:
        option = f"@rmctl-test-{os.getpid()}-metrics"
        where = "\0" + option[1:]
    r = rmd(4, f"--metrics={option}")
    r.metrics = where
    yield r
    if request.param == "path":
        r.close()
        assert not os.path.exists(where)


def test_a_file_in_the_place_of_the_metrics_socket_is_left_there(build, short_path):
    file = short_path / "thesis.txt"
    file.write_text("all of it")
    done = subprocess.run([build / "bin" / "rmd", f"--socket={short_path}/rmd.sock", "--private",
                           f"--metrics={file}", "--emulate-cores=2"], capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1 and file.read_text() == "all of it"
    assert f"cannot serve metrics at {file}: something is there that is no socket" in done.stderr
    assert not (short_path / "rmd.sock").exists()


def test_metrics_are_prometheus_text(served, tell):
    one, other = served.joined(2, 0, 1)
    one.ask("borrow 2")
    one.ask("lend 2")
    tell(served, "shrink", pid(one), 1)
    head, body = http(served.metrics, GET)
    assert head.startswith("HTTP/1.1 200 OK\r\n") and "text/plain; version=0.0.4" in head
    assert f"Content-Length: {len(body)}" in head
    metrics = exposition(body)
    assert metrics["invasive_cores"] == ["gauge", [({}, 4.0)]]
    assert metrics["invasive_commands_total"] == ["counter", [({}, 1.0)]]
    by_pid = {int(labels["pid"]): value
              for labels, value in metrics["invasive_process_owned_cores"][1]}
    assert by_pid == {pid(one): 1, pid(other): 3}
    labels = {labels["program"] for labels, _ in metrics["invasive_process_lends_total"][1]}
    assert labels == {"member"}
    assert set(exposition(tell(served, "metrics")[1])) == set(metrics)


@pytest.mark.parametrize("request_,status", [
    (b"GET / HTTP/1.1\r\n\r\n", 404), (b"GET /metricsx HTTP/1.1\r\n\r\n", 404),
    (b"POST /metrics HTTP/1.1\r\n\r\n", 405), (b"\r\n\r\n", 400), (b"GET /metrics\r\n\r\n", 400),
    (b"\0" * 5000, 400), (b"A" * 5000, 400), (b"GET /metrics HTTP/1.1\n\n", 200),
    (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", 200), (b"HEAD /metrics HTTP/1.1\r\n\r\n", 200),
    (b"GET " + b"/" * 4090 + b" HTTP/1.1\r\n\r\n", 400)])
def test_what_is_no_request_for_metrics_is_answered_so(rmd, request_, status):
    name = f"@rmctl-test-{os.getpid()}-http"
    rmd(2, f"--metrics={name}")
    head, body = http("\0" + name[1:], request_)
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert bool(body) != request_.startswith(b"HEAD")


def test_slow_and_hostile_collectors_keep_no_other_out(rmd, tell):
    """More collectors than rmd has room for: they send nothing, half a head, or do not read."""
    name = f"@rmctl-test-{os.getpid()}-slow"
    r = rmd(2, f"--metrics={name}")
    with contextlib.ExitStack() as stack:
        for i in range(60):
            s = stack.enter_context(socket.socket(socket.AF_UNIX))
            s.connect("\0" + name[1:])
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall((b"", b"GET /met", GET)[i % 3])
        assert exposition(http("\0" + name[1:], GET)[1])
        assert tell(r, "status")[0] == 0


@pytest.mark.parametrize("where", ["metrics", "0.0.0.0:9100", "127.0.0.1:0", "127.0.0.1:99999",
                                   "127.0.0.1:", "@", "/" + "x" * 200, "[::1]", "localhost:80"])
def test_metrics_are_served_on_this_machine_only(build, where):
    done = subprocess.run([build / "bin" / "rmd", f"--metrics={where}"], check=False,
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode != 0 and "127.0.0.1:PORT" in done.stderr


# --- top

def test_top_prints_frames_where_there_is_no_terminal(rmd, tell, ask):
    r = rmd(4)
    one, _ = r.joined(2, 0, 1)
    one.ask("borrow 0")
    one.ask("borrow 3")
    code, out, err = tell(r, "top", "-n", "2", "--delay=0.05")
    assert (code, err) == (0, "") and out.count("rmctl top") == 2 and "\x1b" not in out
    assert "    0 |#. +|" in out and "    1 |  ..|" in out and " idle | -- |" in out
    code, out, _ = tell(r, "top", "--batch", "-n", "2", "--delay=0.05", "--json")
    frames = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(frames) == 2
    first, second = (frame["domains"][0]["processes"][0] for frame in frames)
    assert first["held_cores"] == 2 and second["lends_per_s"] == 0 and not second["efficiency"]


def act(one, other):
    """`one` borrows 3 times; `other`, which owns cores 2 and 3, reclaims 3 times, lends 5 times,
    and spends 30 of 40 ms outside of MPI's waits"""
    for _ in range(3):
        assert (one.ask("borrow 2"), other.ask("reclaim 2")) == ("1", "asked")
        assert [m.ask(f"{what} 2") for m, what in
                ((one, "lend"), (other, "borrow"), (other, "lend"))] == ["1"] * 3
    for _ in range(2):
        assert (other.ask("borrow 3"), other.ask("lend 3")) == ("1", "1")
    other.ask("spend 30 10")


def test_top_tells_rates_and_efficiency_of_what_has_been_done(rmd, build):
    r = rmd(4)
    one, other = r.joined(2, 0, 1)
    act(one, other)  # before the first look: not counted
    begin = time.monotonic()
    with subprocess.Popen([build / "bin" / "rmctl", f"--socket={r.name}", "top", "--json", "-n2",
                           "--delay=2"], stdout=subprocess.PIPE, text=True, env=ENV) as top:
        first = json.loads(top.stdout.readline())["domains"][0]["processes"]
        top.send_signal(signal.SIGSTOP)
        act(one, other)
        top.send_signal(signal.SIGCONT)
        second = json.loads(top.stdout.readline())["domains"][0]["processes"]
    seconds = time.monotonic() - begin  # more than between the two looks
    done = [{"borrows": 3}, {"lends": 5, "reclaims": 3}]
    for before, after, did in zip(first, second, done):
        rates = {n: after[f"{n}_per_s"] for n in ("lends", "borrows", "reclaims", "evictions")}
        assert {n: after["counters"][n] - before["counters"][n] for n in did} == did
        assert {n: bool(rate) for n, rate in rates.items()} == {n: n in did for n in rates}
        assert all(n / seconds <= rates[name] <= n / 2 for name, n in did.items())
    assert second[1]["lends_per_s"] / second[1]["reclaims_per_s"] == pytest.approx(5 / 3)
    assert second[0]["borrows_per_s"] == pytest.approx(second[1]["reclaims_per_s"])
    assert (second[0]["efficiency"], second[1]["efficiency"]) == (None, pytest.approx(0.75))


def test_top_shows_what_is_ordered_as_status_does(rmd, tell):
    r = rmd(6)
    one, _ = r.joined(2, 0, 1)
    for order in (["shrink", str(pid(one)), "1"], ["drain", "5"], ["limit", "--cores=5"],
                  ["policy", "fair"]):
        code, _, err = tell(r, *order)
        assert (code, err) == (0, "")
    _, status, _ = tell(r, "status")
    _, top, _ = tell(r, "top", "-n1")
    ordered = [line for line in status.splitlines()
               if line.startswith(("order: ", "policy "))]
    assert len(ordered) == 2 and "policy fair, limits: cores 5" in ordered[0]
    assert "drained: 5" in ordered[0] and "at most (shrink)" in ordered[1]
    assert [line for line in top.splitlines() if line in ordered] == ordered
    tells = [json.loads(tell(r, *words, "--json")[1])["domains"][0]
             for words in (["status"], ["top", "-n1"])]
    keys = ("users", "orders", "drained", "offline")
    assert [tells[0][k] for k in keys] == [tells[1][k] for k in keys]
    assert [c["why_away"] for c in tells[1]["cores"]].count("drained") == 1


def test_top_ends_at_once_whenever_the_signal_comes(rmd, build):
    """Just after a frame rmctl top is about to sleep for an hour."""
    r = rmd(4)
    r.joined(1, 0)
    for number in range(20):
        with subprocess.Popen([build / "bin" / "rmctl", f"--socket={r.name}", "top", "--batch",
                               "--delay=3600"], stdout=subprocess.PIPE) as top:
            try:
                while b"cores x processes" not in top.stdout.readline():
                    assert top.poll() is None
                time.sleep(number % 10 * 2e-5)
                top.terminate()
                assert top.wait(PATIENCE_S) == 0
            finally:
                top.kill()


@pytest.fixture
def terminal(build):
    opened = []

    def start(r, *options):
        opened.append(Top(build, r, *options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


ALTERNATE, NORMAL = "\x1b[?1049h", "\x1b[?1049l"


@pytest.mark.parametrize("how", ["q", "SIGTERM", "ctrl-c", "frames"])
def test_top_leaves_the_terminal_as_it_was(rmd, terminal, how):
    r = rmd(4)
    r.joined(2, 0, 1)
    t = terminal(r, *(["-n", "3"] if how == "frames" else []))
    t.until("cores x processes")
    assert ALTERNATE in t.said and "\x1b[3" in t.said  # in colour
    if how in ("q", "ctrl-c"):
        os.write(t.fd, b"q" if how == "q" else b"\x03")
    elif how != "frames":
        os.kill(t.pid, getattr(signal, how))
    t.until(NORMAL)
    assert t.wait() == 0
    for mode in (termios.ECHO, termios.ICANON):
        assert termios.tcgetattr(t.fd)[3] & mode


def test_top_follows_the_size_of_the_terminal(rmd, terminal):
    r = rmd(64)
    r.joined(1, 0)
    t = terminal(r)
    t.until("|" + "." * 64 + "\x1b")
    t.resize(30, 40)
    t.until("|" + "." * 32 + "\x1b")
    t.resize(3, 10)
    t.said = ""
    t.resize(30, 100)
    t.until("|" + "." * 64 + "\x1b")
    os.write(t.fd, b"q")
    assert t.wait() == 0


def test_top_says_how_many_lines_a_terminal_has_no_room_for(rmd, terminal, tell):
    r = rmd(8)
    r.joined(8, *range(8))
    lines = tell(r, "top", "-n1")[1].rstrip().count("\n") + 1
    t = terminal(r)
    t.resize(lines - 3, 100)
    t.until("4 more lines: ")
    # The first frame may be of the size before.
    frame = t.said.rpartition("4 more lines: ")[0].rpartition("rmctl top")[2]
    assert "    4 |" in frame and "    5 |" not in frame
    t.resize(lines, 100)
    t.until(" idle |--------|")
    os.write(t.fd, b"q")
    assert t.wait() == 0 and "more lines" not in t.said.rpartition("rmctl top")[2]


def test_top_says_when_it_does_not_know_the_terminal(rmd, build):
    r = rmd(2)
    main, other = pty.openpty()
    done = subprocess.run([build / "bin" / "rmctl", f"--socket={r.name}", "top", "-n1"],
                          stdin=other, stdout=other, stderr=subprocess.PIPE, text=True,
                          env={**ENV, "TERM": "no-such-terminal"}, timeout=PATIENCE_S, check=False)
    os.close(main)
    os.close(other)
    assert done.returncode == 1 and "no-such-terminal" in done.stderr and "--batch" in done.stderr
