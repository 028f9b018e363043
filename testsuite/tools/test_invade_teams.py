# SPDX-License-Identifier: GPL-3.0-or-later
"""invade --report: parallel regions by function, what a team size costs, and teams that are too
small to borrow."""

import re
import subprocess

import pytest

from lib.machine import TWO_CORES
from lib.report import parsed

PROGRAM = r"""
#include <dlfcn.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void with_barriers(int regions, int barriers)
{
    for (int i = 0; i < regions; i++) {
#pragma omp parallel /* here */
        for (int b = 0; b < barriers; b++) {
#pragma omp barrier
        }
    }
}
static void with_loops(int regions)
{
    static double data[1000];
    for (int i = 0; i < regions; i++) {
#pragma omp parallel num_threads(3)
        {
#pragma omp for
            for (int k = 0; k < 1000; k++)
                data[k] += k;
#pragma omp for nowait
            for (int k = 0; k < 1000; k++)
                data[k] -= k;
        }
    }
}
static void with_tasks(int regions)
{
    int sum = 0;
    for (int i = 0; i < regions; i++) {
#pragma omp parallel
#pragma omp single
#pragma omp task
#pragma omp atomic
        sum++;
    }
}
int main(int argc, char **argv)
{
    const char *scene = argv[1];
    if (!strcmp(scene, "counts")) {
        with_barriers(100, 3);
        with_loops(50);
        with_tasks(20);
    } else if (!strcmp(scene, "short"))
        with_barriers(2000, 4);
    else if (!strcmp(scene, "killed")) {
        with_barriers(100, 3);
        raise(SIGKILL);
    } else if (!strcmp(scene, "sizes")) {
        omp_set_num_threads(3);
        with_barriers(2, 0);
        omp_set_num_threads(2);
        with_barriers(2, 0);
    } else if (!strcmp(scene, "library")) {
        void *library = dlopen(argv[2], RTLD_NOW);
        void (*run)(int) = (void (*)(int))dlsym(library, "run_regions");
        run(30);
    }
    return argc > 99;
}
"""

LIBRARY = """
void run_regions(int regions)
{
    static int many;
    for (int i = 0; i < regions; i++) {
#pragma omp parallel
#pragma omp atomic
        many++;
    }
}
"""

MANY = """
static int many;
template<int N> void regions()
{
    for (int i = 0; i <= N; i++) {
#pragma omp parallel
#pragma omp atomic
        many++;
    }
    if constexpr (N > 0)
        regions<N - 1>();
}
int main() { regions<79>(); }
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory, make_variable):
    """compiled(NAME, TEXT, OPTIONS..., with_="CC"): a program or library of this text"""
    directory = tmp_path_factory.mktemp("teams")

    def run(name, text, *options, with_="CC"):
        source = directory / f"{name}.{'c' if with_ == 'CC' else 'cc'}"
        source.write_text(text)
        subprocess.run([*make_variable(with_).split(), "-O1", "-g", "-fopenmp", *options, "-o",
                        directory / name, source, "-ldl"], check=True)
        return directory / name

    return run


@pytest.fixture(scope="module")
def teams(compiled):
    return compiled("teams", PROGRAM)


@pytest.fixture
def job(invade, run_program, tmp_path):
    """job(COMMAND..., options=[], env={}): the only job of the report on the command"""

    def run(*command, options=(TWO_CORES,), **more):
        file = tmp_path / "report.json"
        run_program([invade, *options, f"--report={file}", *command], **more)
        job, = parsed(file)["jobs"]
        return job

    return run


@pytest.fixture
def hints(invade, run_program):
    """hints(COMMAND..., options=[], env={}): lines of its report that recommend a size of teams"""

    def run(*command, options=(TWO_CORES,), **more):
        said = run_program([invade, *options, "--report", *command], **more).stderr
        return [line for line in said.splitlines() if "would save" in line]

    return run


def of(job, function):
    found, = [f for f in job["parallel_regions"] if (f["symbol"] or "").startswith(function)]
    return found


def line_of(text):
    return next(i + 1 for i, line in enumerate(PROGRAM.splitlines()) if text in line)


# --- what is counted

def test_regions_threads_and_barriers_are_counted_by_function(job, teams):
    whole = job(teams, "counts", env={"OMP_NUM_THREADS": "4"})
    numbers = {name: tuple(of(whole, name)[k] for k in ("regions", "threads", "barriers"))
               for name in ("with_barriers", "with_loops")}
    assert numbers == {"with_barriers": (100, 400, 300), "with_loops": (50, 150, 50)}
    p, = whole["processes"]
    assert p["team_threads"] == 4 and p["parallel_regions"] == whole["parallel_regions"]


def test_functions_have_the_source_line_where_their_regions_begin(job, teams):
    f = of(job(teams, "counts", env={"OMP_NUM_THREADS": "4"}), "with_barriers")
    assert f["source"].split("/")[-1] == f"teams.c:{line_of('/* here */')}"
    assert f["module"] == str(teams) and int(f["offset"], 16) > 0


def test_functions_of_libraries_have_the_library_as_their_module(job, teams, compiled):
    library = compiled("library.so", LIBRARY, "-shared", "-fPIC")
    f = of(job(teams, "library", library, env={"OMP_NUM_THREADS": "2"}), "run_regions")
    assert f["module"] == str(library) and f["regions"] == 30
    assert f["source"].split("/")[-1].startswith("library.so.c:")


def test_time_in_regions_is_a_part_of_the_process(job, teams):
    whole = job(teams, "counts", env={"OMP_NUM_THREADS": "4"})
    f = of(whole, "with_barriers")
    assert 0 < f["elapsed_seconds"] < whole["elapsed_seconds"]
    assert 0 < f["outside_core_seconds"] <= 2 * f["elapsed_seconds"]


def test_of_regions_with_tasks_no_time_outside_of_code_is_told(job, teams):
    f = of(job(teams, "counts", env={"OMP_NUM_THREADS": "4"}), "with_tasks")
    assert f["regions"] == 20 and f["outside_core_seconds"] is None


def test_more_threads_than_cores_switch_at_barriers(job, teams):
    whole = job(teams, "short", env={"OMP_NUM_THREADS": "8"})
    f = of(whole, "with_barriers")
    assert 4 * f["regions"] < f["context_switches"] + f["sleeps"] <= 40 * f["regions"]
    p, = whole["processes"]
    assert p["context_switch_seconds"] is None or 0 < p["context_switch_seconds"] <= 2e-6


def test_functions_without_room_are_counted_together(job, compiled):
    program = compiled("many", MANY, "-std=c++17", with_="CXX")
    whole = job(program, env={"OMP_NUM_THREADS": "2"})
    named = [f for f in whole["parallel_regions"] if f["offset"]]
    other, = [f for f in whole["parallel_regions"] if not f["offset"]]
    assert len(named) == 63 and other["module"] is other["source"] is None
    assert sum(f["regions"] for f in named) + other["regions"] == 80 * 81 // 2
    assert sorted(f["regions"] for f in named) == list(range(18, 81))


def test_regions_of_a_killed_process_are_reported(job, teams):
    whole = job(teams, "killed", env={"OMP_NUM_THREADS": "4"}, check=False)
    assert whole["processes"][0]["end"] == "killed"
    assert of(whole, "with_barriers")["barriers"] == 300


def test_the_largest_team_is_told_also_of_a_program_that_chooses_it(job, teams):
    p, = job(teams, "sizes")["processes"]
    assert p["team_threads"] == 3


def test_regions_of_all_ranks_are_added_up(job, mpi):
    whole = job(*mpi.run(2, mpi.program("apps/imbalance/imbalance"), "--loads=1:1",
                         "--work-ms=2", "--iterations=20"))
    assert whole["parallel_regions"]
    for f in whole["parallel_regions"]:
        parts = [g for p in whole["processes"] for g in p["parallel_regions"]
                 if g["offset"] == f["offset"]]
        assert f["processes"] == len(parts)
        for name in ("regions", "threads", "barriers"):
            assert f[name] == sum(g[name] for g in parts)


# --- what a team size costs

@pytest.fixture
def told(invade, run_program, build, tmp_path):
    """told(REGIONS, then="sleep 0.1", env={}, options=[]): the lines "would save" of a report on a
    member of a domain of four cores that has written down what rmd_member's command says, and
    what the shell's command `then` prints; the member runs as long as this command"""

    def run(regions, then="sleep 0.1", env=None, options=()):
        script, member = tmp_path / "script", build / "testsuite/rmd/programs/rmd_member"
        script.write_text(f"join SOCKET 0 1 1\nrecord LAUNCH 1 0\nregions {regions}\n")
        edits = "s!SOCKET!$INVASIVE_SOCKET!;s/LAUNCH/${INVASIVE_REPORT%%:*}/"
        command = f'(sed "{edits}" {script}; {then}) | {member}'
        said = run_program([invade, "--emulate-cores=4", *options, "--report", "sh", "-c",
                            command], env=env).stderr
        assert "member" in said
        return [line for line in said.splitlines() if "would save" in line]

    return run


HINT = (r"12,400,000 regions of \S+ us with 3 barriers each: (\S+) would save about \S+ s, "
        "100 % of the time")


@pytest.mark.sanitize
def test_a_team_that_costs_much_is_told_with_a_better_size(told):
    line, = told("12400000 32 3 100000")
    assert re.fullmatch(HINT, line)[1] == "--threads=4"
    line, = told("12400000 32 3 100000", env={"OMP_NUM_THREADS": "32"})
    assert re.fullmatch(HINT, line)[1] == "OMP_NUM_THREADS=4"


@pytest.mark.sanitize
def test_nothing_is_told_of_a_team_of_the_cores_or_one_that_costs_next_to_nothing(told):
    assert told("12400000 4 3 100000") == []
    assert told("1 32 3 1") == []


def that_would_save(percent):
    """A command that runs for a second, then prints regions of which smaller teams would save so
    much of that time: 28 of 31 of the regions' time, since 28 of the 31 threads without a core are
    more than the cores."""
    ms = f"(($(date +%s%N) - began) * {percent} * 31 / 28 / 100000000)"
    return f"began=$(date +%s%N); sleep 1; echo regions 12400000 32 3 $({ms})"


@pytest.mark.parametrize("percent, lines", [(2, 0), (4, 1)])
def test_a_better_size_is_told_where_it_saves_more_than_three_percent_of_the_time(
        told, percent, lines):
    assert len(told("1 32 3 1", then=that_would_save(percent))) == lines


def test_only_a_team_of_more_threads_than_cores_costs_something(job, teams):
    assert job(teams, "short", env={"OMP_NUM_THREADS": "2"})["team_cost_seconds"] == 0
    for env, options in (({"OMP_NUM_THREADS": "32"}, ()), ({}, ("--threads=32",))):
        whole = job(teams, "short", env=env, options=(TWO_CORES, *options))
        f = of(whole, "with_barriers")
        assert 0 < f["team_cost_seconds"] < f["elapsed_seconds"]
        assert whole["team_cost_seconds"] >= f["team_cost_seconds"]


# --- implicit tasks that are kernel threads

OWN_DATA = """_Thread_local int of_each;
int main(void)
{
    for (int i = 0; i < 200; i++)
#pragma omp parallel num_threads(8)
    {
#pragma omp atomic
        of_each++;
#pragma omp barrier
    }
    return 0;
}
"""


@pytest.mark.parametrize("variable, by", [("elastic", None), ("strict", "INVASIVE_BIND"),
                                          ("", "ties")])
def test_what_makes_kernel_threads_of_implicit_tasks_is_told(
        job, invade, run_program, compiled, variable, by):
    program = compiled("ties", OWN_DATA) if by == "ties" else \
        compiled("free", OWN_DATA.replace("_Thread_local int", "int"))
    env = {"INVASIVE_BIND": variable} if variable else {}
    p, = job(program, env=env)["processes"]
    assert p["kernel_threads_by"] == by
    said = run_program([invade, TWO_CORES, "--report", program], env=env).stderr
    told = re.findall("are kernel threads, which .* in a region, because of (.*): see", said)
    assert told == ([by] if by else [])


# --- teams that are too small

@pytest.fixture
def imbalance(mpi):
    return mpi.run(2, mpi.program("apps/imbalance/imbalance"), "--loads=1:9", "--work-ms=20",
                   "--iterations=20")


def test_teams_that_cannot_borrow_are_told(job, hints, imbalance):
    line, = hints(*imbalance, env={"OMP_NUM_THREADS": "1"})
    assert line.startswith("2 of 2 ranks had teams of 1 thread at most, beside cores that others")
    small = job(*imbalance, env={"OMP_NUM_THREADS": "1"})
    assert [p["team_threads"] for p in small["processes"]] == [1, 1]
    assert small["small_teams_seconds"] > 0.03 * small["elapsed_seconds"]


def test_ranks_that_are_many_a_core_are_not_said_to_have_small_teams(job, hints, mpi):
    command = mpi.run(8, mpi.program("apps/imbalance/imbalance"), "--loads=1:1:1:1:1:1:1:9",
                      "--work-ms=20", "--iterations=10")
    whole = job(*command)
    assert [p["team_threads"] for p in whole["processes"]] == [1] * 8
    assert whole["small_teams_seconds"] is None
    assert not any("had teams of" in line for line in hints(*command))


def test_teams_that_can_borrow_are_not_said_to_be_small(job, hints, imbalance):
    assert job(*imbalance)["small_teams_seconds"] is None
    assert not any("had teams of" in line for line in hints(*imbalance))


def test_programs_without_regions_are_not_said_to_have_small_teams(hints, mpi):
    command = mpi.run(2, mpi.program("mpi-shim/tests/waits"), "places")
    assert hints(*command, env={"OMP_NUM_THREADS": "1"}) == []
