# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb's commands for implicit tasks (libgomp-invasive/gdb/), in a process and from a core file."""

import json
import re
import shutil
import subprocess

import pytest

from lib.omp_programs import source_of
from lib.processes import debugged
from lib.waiting import eventually

SCRIPT = "libgomp-invasive/gdb/libgomp_gdb.py"
LOOK = ("up", "info invasive", "invasive bt all",
        "python print('selected:', gdb.selected_frame().level(), gdb.selected_thread().is_valid())")


@pytest.fixture
def gdb(build):
    """gdb(COMMANDS, *MORE) - words that start gdb, which loads commands with our library"""
    if not shutil.which("gdb"):
        pytest.skip("gdb is missing")

    def words(commands, *more):
        return ["gdb", "-q", "-nx", "-batch", "-iex",
                f"add-auto-load-safe-path {build / 'lib/invasive'}",
                *(word for command in ("set breakpoint pending on", *commands)
                  for word in ("-ex", command)), *more]

    return words


@pytest.fixture
def suspended(omp_program):
    return omp_program("suspended", "-g", "-O0")


def line_of(text):
    lines = source_of("suspended").read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if text in line)


def assert_shown(text, some_suspended):
    """Of what gdb has printed: the list has all implicit tasks, and each backtrace says where its
    implicit task waits."""
    states = dict(re.findall(r"^  (\d\.\d) +(.*?)  ", text, re.MULTILINE))
    of_team = {name: state for name, state in states.items() if name.startswith("1.")}
    assert sorted(of_team) == ["1.0", "1.1", "1.2", "1.3"], text
    assert "Team 1: 4 implicit tasks of main._omp_fn" in text
    assert "Team 2: 2 implicit tasks of wait_for_others._omp_fn" in text
    assert list(of_team.values()).count("in a nested region") == 1, text
    assert any(state.startswith("on thread") for name, state in states.items() if name == "2.0")
    assert some_suspended == any("suspended in barrier" in state for state in states.values()), text
    stacks = dict(re.findall(r"^Implicit task (\d\.\d) .*:\n((?:#.*\n)+)", text, re.MULTILINE))
    assert sorted(stacks) == sorted(states), text
    for name, state in of_team.items():
        line = line_of("they wait here" if "barrier" in state else "num_threads(2)")
        where = rf" in wait_for_others \(me={name[2]}\) at \S*suspended\.c:{line}\n"
        assert re.search(where, stacks[name]), text
        assert "main._omp_fn" in stacks[name]
        if "suspended" in state:
            assert re.match("#1 .* in gomp_context_switch ", stacks[name]), text
    assert "corrupt" not in text and " ?? (" not in text, text
    assert "\nselected: 1 True\n" in text  # as the user had selected


@pytest.mark.timeout(240)
@pytest.mark.parametrize("condition, variables", [
    ("one-core", {}), ("unmanaged", {"INVASIVE_CONTEXTS": "off"})])
def test_gdb_shows_implicit_tasks_that_are_suspended(
        gdb, suspended, in_condition, run_program, tmp_path, condition, variables):
    words, environment, _ = in_condition(condition)
    core = tmp_path / "core"
    live = debugged(run_program, [*words, *gdb(
        ["break last_arrives", "run", *LOOK, f"gcore {core}", "delete", "continue"], suspended)],
        env={**environment, **variables}, timeout=100)
    assert_shown(live.stdout, some_suspended=not variables)
    assert "\nOK\n" in live.stdout and "exited normally" in live.stdout, live.stdout
    dead = debugged(run_program, gdb(LOOK, suspended, core), timeout=100)
    assert_shown(dead.stdout, some_suspended=not variables)


def test_gdb_executes_commands_on_the_stack_of_a_suspended_implicit_task(
        gdb, suspended, in_condition, run_program):
    words, environment, _ = in_condition("one-core")
    ran = debugged(run_program, [*words, *gdb(
        ["break last_arrives", "run", "invasive apply all frame apply all -q -s print 10 + squared",
         "invasive bt 2 -full", "invasive bt 7", "delete", "continue"], suspended)],
        env=environment, timeout=100)
    found = re.findall(r"^\$\d+ = (\d+)$", ran.stdout, re.MULTILINE)
    assert sorted(set(found)) == ["10", "11", "14", "19"], ran.stdout
    assert "squared = 4\n" in ran.stdout.split("Implicit task 1.2 ")[-1]
    assert "exited normally" in ran.stdout
    assert "no implicit task 7" in ran.stderr


@pytest.mark.parametrize("debug_information, said", [
    ("none", "/invasive/libgomp.so.1 is stripped: "), ("separate", "is in no parallel region"),
    ("stock", "does not run with libgomp-invasive")])
def test_gdb_says_why_it_lists_no_implicit_tasks(
        gdb, suspended, run_program, top, build, tmp_path, debug_information, said):
    environment = {}
    if debug_information != "stock":
        library = tmp_path / "invasive"
        shutil.copytree(build / "lib/invasive", library)
        environment = {"LD_LIBRARY_PATH": f"{library}:{build / 'lib'}"}
        tools = [["objcopy", "--only-keep-debug", "libgomp.so.1", "libgomp.so.1.debug"],
                 ["strip", "-g", "libgomp.so.1"],
                 ["objcopy", "--add-gnu-debuglink=libgomp.so.1.debug", "libgomp.so.1"]]
        for words in tools if debug_information == "separate" else tools[1:2]:
            subprocess.run(words, cwd=library, check=True, timeout=60)
    commands = [f"source {top / SCRIPT}", "break main", "run", "info invasive", "kill"]
    ran = debugged(run_program, gdb(commands, suspended), env=environment, timeout=100)
    assert said in ran.stdout + ran.stderr, ran.stdout + ran.stderr


def test_gdb_reads_registers_from_where_the_switches_save_them(gdb, top, run_program):
    ran = run_program(gdb([f"source {top / SCRIPT}",
                           "python import json; print(json.dumps(LAYOUTS))"]))
    layouts = json.loads(ran.stdout)
    folder = top / "libgomp-invasive/context"
    switch = (folder / "switch_x86_64.h").read_text().split("gomp_context_entry", 1)[0]
    pushed = ["rip", *re.findall(r"pushq %(\w+)", switch)]
    assert layouts["x86-64"] == [
        {name: 8 * (len(pushed) - i) for i, name in enumerate(pushed)}, "rsp", 8 + 8 * len(pushed)]
    switch = (folder / "switch_aarch64.h").read_text().split("gomp_context_entry", 1)[0]
    saved = {"pc" if name == "x30" else name: int(offset)
             for name, offset in re.findall(r"cfi_rel_offset (x\d+), (\d+)", switch)}
    assert len(saved) == 12
    assert layouts["aarch64"] == [saved, "sp", int(re.search(r"sub sp, sp, #(\d+)", switch)[1])]


ON_AARCH64 = """
static int pretends_shadow_stack(void) { return 0; }
#include "libgomp-invasive/context/switch_aarch64.h"
static void *outside, *inside;
static void __attribute__((noinline)) look(void) { __asm__ volatile("" ::: "memory"); }
static void __attribute__((noinline)) suspend(int n)
{
    gomp_context_swap(&inside, outside, 0);
}
static void first(void *carried, void *arg)
{
    for (;; (void)carried)
        suspend(*(int *)arg);
}
int main(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    int n = 21;
    inside = prepare(stack + sizeof stack, first, &n);
    gomp_context_swap(&outside, inside, 0);
    look();
    return unswitchable() != 0;
}
"""
BACKTRACE = """python
with unwinder.use(int(gdb.parse_and_eval("inside"))):
    backtrace(unwinder.first(), "")
"""


@pytest.mark.full
def test_gdb_shows_a_suspended_stack_of_aarch64(gdb, top, run_program, tmp_path, short_path):
    compiler, emulator, debugger = "aarch64-linux-gnu-gcc", "qemu-aarch64", "gdb-multiarch"
    for name in (compiler, emulator, debugger):
        if not shutil.which(name):
            pytest.skip(f"{name} is missing")
    source, program, socket = tmp_path / "program.c", tmp_path / "program", short_path / "gdb"
    source.write_text(ON_AARCH64)
    run_program([compiler, "-O0", "-g", "-static", f"-I{top}", source, "-o", program])
    with subprocess.Popen([emulator, "-g", socket, program]) as emulated:
        try:
            eventually(socket.exists, True)
            ran = run_program([debugger, *gdb([f"source {top / SCRIPT}", f"target remote {socket}",
                                               "break look", "continue", BACKTRACE, "backtrace",
                                               "kill"], program)[1:]])
        finally:
            emulated.kill()
    suspended, own = ran.stdout.split("#0 ", 2)[-2:]
    assert re.search(r"^#1 .* in suspend \(n=21\) at .*\n#2 .* in first \(.*\n#3 .* in "
                     r"gomp_context_entry \(\)", suspended, re.MULTILINE), ran.stdout
    assert re.match(r" *look \(\).*\n#1 .* in main \(\)", own), ran.stdout
