# SPDX-License-Identifier: GPL-3.0-or-later
"""What include/invasive-tool.h promises to a tool.  tool/count_events.c checks order and nesting
while the program runs, and counts; here the counts are looked at."""

import re
import subprocess
from pathlib import Path

import pytest

from lib.omp_programs import source_of

HERE = Path(__file__).parent
WARNINGS = ["-std=gnu17", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes",
            "-Wmissing-prototypes", "-Werror"]
LINE = re.compile(
    r"(?P<pid>\d+) regions (?P<region_begins>\d+) (?P<region_ends>\d+)"
    r" tasks (?P<task_begins>\d+) (?P<task_ends>\d+) idles (?P<idle_begins>\d+) (?P<idle_ends>\d+)"
    r" cores (?P<arrivals>\d+) (?P<departures>\d+) own (?P<own>\d+) borrowed (?P<borrowed>\d+)"
    r" wrong (?P<wrong>\d+)")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory, top, make_variable):
    """compiled(SOURCE, OPTION...) - the path of the compiled program."""
    directory = tmp_path_factory.mktemp("tool")

    def compile_file(source, *options):
        result = directory / Path(source).stem
        if not result.exists():
            subprocess.run(
                [*(make_variable("CC") or "gcc").split(), "-O2", *WARNINGS, f"-I{top}/include",
                 source, "-o", result, *options, "-lpthread", "-ldl"], check=True, timeout=60)
        return result

    return compile_file


@pytest.fixture
def count_events(build, compiled, run_program, tmp_path):
    """count_events(COMMAND, managed, env={}, ...) -> (the process, a dictionary of counts for each
    process that had a region or a core)."""
    if not (build / "lib/invasive/libgomp.so.1").exists():
        pytest.skip("libgomp-invasive is not built")
    tool = compiled(HERE / "tool/count_events.c", "-fPIC", "-shared")
    events = tmp_path / "events"

    def run(command, managed, env=None, **more):
        environment = {"INVASIVE_TOOL": str(tool), "COUNT_EVENTS": str(events), **(env or {})}
        libraries = build / "lib/invasive"
        if managed:
            command = [build / "invade", "--", *command]
        else:
            environment["LD_LIBRARY_PATH"] = f"{libraries}:{libraries.parent}"
        ran = run_program(command, environment, **{"timeout": 100, **more})
        text = events.read_text() if events.exists() else ""
        counts = [{name: int(value) for name, value in LINE.fullmatch(line).groupdict().items()}
                  for line in text.splitlines()]
        return ran, [c for c in counts if c["region_begins"] or c["arrivals"]]

    return run


def omp(compiled, name):
    return compiled(source_of(name), "-fopenmp")


def assert_balanced(counts, cores=1024):
    for count in counts:
        assert count["wrong"] == 0, count
        assert count["region_begins"] == count["region_ends"] > 0, count
        assert count["task_begins"] == count["task_ends"] >= count["region_begins"], count
        assert count["idle_begins"] >= count["idle_ends"], count
        assert 0 <= count["arrivals"] - count["departures"] <= cores, count


MANAGED = pytest.mark.parametrize("managed", [False, True], ids=["unmanaged", "managed"])


@MANAGED
@pytest.mark.parametrize("name", ["nested", "worksharing", "tasks", "thread_data", "cancellation",
                                  "regions_from_threads"])
def test_begins_and_ends_match_and_nest(count_events, compiled, name, managed):
    _, counts = count_events([omp(compiled, name)], managed, {"OMP_CANCELLATION": "true"})
    assert len(counts) == 1
    assert_balanced(counts)
    assert (counts[0]["arrivals"] > 0) == managed


REGIONS = """
#include <omp.h>
#include <stdio.h>
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++)
#pragma omp parallel num_threads(7) reduction(+ : sum)
        sum += omp_get_thread_num() + 1;
#pragma omp parallel if (0)
    sum++;
    printf("%d\\n", sum);
    return 0;
}
"""


@MANAGED
def test_every_region_and_every_implicit_task_is_told_once(
        count_events, compiled, tmp_path, managed):
    (tmp_path / "regions.c").write_text(REGIONS)
    ran, counts = count_events([compiled(tmp_path / "regions.c", "-fopenmp")], managed)
    assert ran.stdout == "2801\n"
    assert_balanced(counts)
    assert counts[0]["region_begins"] == 101 and counts[0]["task_begins"] == 701


@MANAGED
def test_events_go_on_in_the_child_of_a_fork(count_events, compiled, managed):
    _, counts = count_events([omp(compiled, "fork_child")], managed)
    assert len(counts) > 1
    assert_balanced(counts)


@MANAGED
def test_exit_in_the_middle_leaves_begins_without_ends_and_no_more(count_events, compiled, managed):
    ran, counts = count_events([omp(compiled, "exit_anywhere")], managed, check=False)
    assert ran.returncode == 7 and ran.stdout == "OK\n"
    for count in counts:
        assert count["wrong"] == 0
        for what in ("region", "task", "idle"):
            assert count[f"{what}_begins"] >= count[f"{what}_ends"]
    assert any(count["task_begins"] > count["task_ends"] for count in counts)


def test_cores_that_ranks_lend_each_other_are_told_to_both(count_events, build, mpiexec):
    """Rank 0 has next to no work and waits for rank 1."""
    program = build / "apps/imbalance/imbalance"
    if not program.exists():
        pytest.skip("apps are not built")
    _, counts = count_events(
        [mpiexec, "-n", "2", program, "--loads=1:30", "--iterations=20"], True)
    assert len(counts) == 2
    assert_balanced(counts)
    assert all(count["own"] > 0 for count in counts)
    assert sum(count["departures"] for count in counts) > 0
    assert any(count["borrowed"] > 0 for count in counts)


def test_tokens_of_more_processes_than_cores_are_told(count_events, build, mpiexec):
    program = build / "apps/imbalance/imbalance"
    if not program.exists():
        pytest.skip("apps are not built")
    _, counts = count_events([mpiexec, "-n", "5", program, "--iterations=5"], True)
    assert len(counts) == 5
    assert_balanced(counts)
    assert all(count["arrivals"] > 0 for count in counts)


# --- loading

@pytest.mark.parametrize("path, start, complaint", [
    ("/nonexistent/tool.so", None, "cannot open shared object"),
    ("libm.so.6", None, "defines no function inv_tool_start"),
    (None, "7", "inv_tool_start returned 7"),
])
def test_tool_that_cannot_be_had_is_named_in_one_line(
        count_events, compiled, path, start, complaint):
    env = {"INVASIVE_TOOL": path} if path else {"COUNT_EVENTS_START": start}
    ran, counts = count_events([omp(compiled, "many_regions")], False, env)
    assert ran.stdout == "OK\n" and not counts
    assert len(ran.stderr.splitlines()) == 1
    assert complaint in ran.stderr and "Going on without it" in ran.stderr


REGISTER = """
#include <errno.h>
#include <invasive-tool.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
static _Atomic int begins, arrivals, departures, others;
static void begin(const void *r, void (*f)(void *), unsigned n, unsigned l)
{ (void)r; (void)f; (void)n; (void)l; begins++; }
static void other(const void *r, void (*f)(void *), unsigned n, unsigned l)
{ (void)r; (void)f; (void)n; (void)l; others++; }
static void arrived(int core, enum inv_tool_arrival how) { (void)core; (void)how; arrivals++; }
static void left(int core, enum inv_tool_departure how) { (void)core; (void)how; departures++; }
#define FAIL(...) return printf(__VA_ARGS__), 1
int main(int argc, char **argv)
{
    struct inv_tool tool = {.region_begin = begin, .core_arrived = arrived, .core_left = left};
    struct inv_tool second = {.region_begin = other};
    int sum = 0;
    (void)argv;
    inv_tool_unregister(); /* none: nothing */
    if (inv_tool_register(NULL, INV_TOOL_VERSION) != -1 || errno != EINVAL) FAIL("NULL\\n");
    if (inv_tool_register(&tool, 0) != -1 || errno != EINVAL) FAIL("version 0\\n");
    if (inv_tool_register(&tool, INV_TOOL_VERSION + 1) != -1 || errno != EINVAL) FAIL("new\\n");
#pragma omp parallel num_threads(3) reduction(+ : sum)
    sum++;
    if (inv_tool_register(&tool, INV_TOOL_VERSION) != 0) FAIL("register\\n");
    if ((arrivals > departures) != (argc > 1)) FAIL("%d cores are held\\n", arrivals);
    if (inv_tool_register(&second, INV_TOOL_VERSION) != -1 || errno != EBUSY) FAIL("twice\\n");
    tool.region_begin = other; /* it was copied */
#pragma omp parallel num_threads(3) reduction(+ : sum)
    sum++;
    inv_tool_unregister();
#pragma omp parallel num_threads(3) reduction(+ : sum)
    sum++;
    if (inv_tool_register(&second, INV_TOOL_VERSION) != 0) FAIL("register again\\n");
#pragma omp parallel num_threads(3) reduction(+ : sum)
    sum++;
    printf("%d regions, %d of the second tool, sum %d\\n", begins, others, sum);
    return 0;
}
"""


@MANAGED
def test_program_registers_one_tool_at_a_time(
        build, compiled, run_program, tmp_path, managed):
    (tmp_path / "register.c").write_text(REGISTER)
    program = compiled(tmp_path / "register.c", "-fopenmp", f"-L{build}/lib", "-linvasive",
                       f"-Wl,-rpath,{build}/lib", "-Wl,-z,now")
    libraries = build / "lib/invasive"
    if managed:
        ran = run_program([build / "invade", "--", program, "managed"])
    else:
        ran = run_program([program], {"LD_LIBRARY_PATH": f"{libraries}:{libraries.parent}"})
    assert ran.stdout == "1 regions, 1 of the second tool, sum 12\n"


def test_example_writes_a_line_for_each_event(build, compiled, run_program, top, tmp_path):
    tool = compiled(top / "doc/examples/trace_tool.c", "-fPIC", "-shared")
    run_program([build / "invade", "--", omp(compiled, "many_regions")],
                {"INVASIVE_TOOL": str(tool), "TRACE": str(tmp_path / "trace")})
    lines = "".join(path.read_text() for path in tmp_path.glob("trace.*")).splitlines()
    for event in ("region 0x.* begins: function 0x.*, 3 implicit tasks, level 1",
                  "region 0x.* ends", "task 0 of 0x.* begins", "task 2 of 0x.* ends", "idle",
                  "core .* arrives: own"):
        assert any(re.search(rf"^\d+\.\d{{9}} \d+ {event}$", line) for line in lines), event


def test_header_compiles_alone_in_c_and_cxx(top, tmp_path):
    for compiler, suffix in (("gcc", "c"), ("g++", "cc")):
        source = tmp_path / f"alone.{suffix}"
        source.write_text("#include <invasive-tool.h>\nint main(void)\n"
                          "{ return inv_tool_register(0, INV_TOOL_VERSION) == 0; }\n")
        subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                        f"-I{top / 'include'}", source], check=True, timeout=60)
