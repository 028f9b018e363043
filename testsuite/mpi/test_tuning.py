# SPDX-License-Identifier: GPL-3.0-or-later
"""invade --tune: the team size, the time for which threads spin and the time between two looks for
messages are tried and chosen by iteration time, in programs that allow it, and results stay as they
are."""

import pytest

from lib.building.small_programs import compile_text
from lib.report import parsed

pytestmark = pytest.mark.timeout(300)

CORES = "--emulate-cores=4"  # the default team has 4 threads; 1 and 2 are tried

# An iteration sleeps for 5.5 ms, and 10 ms longer for each factor of two that what is tuned differs
# from argv[3].  What is tuned: `team`, or the percents that the runtime uses (struct inv_tuning).
# argv[2]: iterations.  Prints the size of the last team, and a sum that is the same with each.
PROGRAM = r"""
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef MPI
#include <mpi.h>
#endif
#ifdef TOLD
#include <omp.h>
#endif

static const volatile unsigned *tuned;
static double cell[64];

static unsigned step(const char *what)
{
    unsigned team = 0;
#pragma omp parallel reduction(+ : team) CLAUSE
    {
        team++;
#pragma omp for schedule(static)
        for (int i = 0; i < 64; i++)
            cell[i] = sqrt(cell[i] + i);
    }
    if (!tuned)
        tuned = (unsigned *)dlsym(RTLD_DEFAULT, "inv_tuning");
    return !strcmp(what, "team") ? team : tuned ? tuned[!strcmp(what, "spin") ? 1 : 2] : 100;
}

int main(int argc, char **argv)
{
    int rank = 0, iterations = atoi(argv[2]);
    unsigned now = 0;
    double best = atof(argv[3]), sum = 0;
    (void)argc;
#ifdef MPI
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
#ifdef TOLD
    sum = 0 * omp_get_max_threads();
#endif
    for (int i = 0; i < iterations; i++) {
        now = step(argv[1]);
        usleep(5500 + (unsigned)(10000 * fabs(log2(now / best))));
#ifdef MPI
        double all;
        MPI_Allreduce(&cell[i % 64], &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
#endif
    }
    for (int i = 0; i < 64; i++)
        sum += cell[i];
    printf("%d %u %a\n", rank, now, sum);
#ifdef MPI
    MPI_Finalize();
#endif
    return 0;
}
"""


def compiled(folder, *flags, clause="", text=PROGRAM):
    return compile_text(folder / "tuned", text, "-O1", "-fopenmp", f"-DCLAUSE={clause}", *flags,
                        "-lm", "-ldl")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("tuning"))


@pytest.fixture
def tune(invade, run_program, tmp_path):
    """tune(COMMAND..., option="--tune"): what the command prints, and the control points of each
    process"""

    def run(*command, option="--tune", **more):
        file = tmp_path / "report.json"
        out = run_program([invade, CORES, *([option] if option else []), f"--report={file}",
                           "--", *command], timeout=250, **more).stdout.split()
        points = [{p["name"]: p for p in process["control_points"]}
                  for job in parsed(file)["jobs"] for process in job["processes"]]
        return out, points

    return run


@pytest.mark.parametrize("option, name, best, own, most", [("team", "omp.team", 2, 4, 4),
                                                           ("spin", "wait.spin", 400, 100, 400)])
def test_the_fastest_value_is_found_and_reported(tune, program, option, name, best, own, most):
    (_, last, total), (points,) = tune(program, option, 300, best, option=f"--tune={option}")
    assert set(points) == {name}
    point = points[name]
    assert point["settled"] and point["searches"] == 1 and int(last) == point["value"] == best
    assert point["first_value"] == own and point["high"] == most
    tried = {one["value"]: one for one in point["tried"]}
    assert tried[best]["median_seconds"] < tried[own]["median_seconds"]
    assert point["iterations"] <= 22 * 6
    stock, _ = tune(program, option, 300, best, option=None)
    assert stock == ["0", str(own), total]


def test_parameters_are_tuned_one_after_the_other(tune, program):
    _, (points,) = tune(program, "team", 400, 4)
    assert set(points) == {"omp.team", "wait.spin"}  # there is no other rank
    assert points["omp.team"]["value"] == 4 and points["omp.team"]["settled"]


def test_nothing_is_tuned_unless_asked(tune, program):
    (_, last, _), (points,) = tune(program, "team", 100, 2, option=None)
    assert last == "4" and points == {}


def test_a_short_program_stays_as_it_is(tune, program):
    (_, last, _), (points,) = tune(program, "team", 12, 2)
    assert last == "4" and points == {}


THREADPRIVATE = PROGRAM.replace(
    "static double cell[64];",
    "static double cell[64];\nint mine;\n#pragma omp threadprivate(mine)"
).replace("team++", "mine = team++")


@pytest.mark.parametrize("made, env, threads", [
    ({"flags": ["-DTOLD"]}, {}, "4"), ({"clause": "num_threads(3)"}, {}, "3"),
    ({"text": THREADPRIVATE}, {}, "4"),
    ({}, {"OMP_NUM_THREADS": "3"}, "3"), ({}, {"OMP_DYNAMIC": "false"}, "4")])
def test_a_team_stays_where_its_size_may_matter(tune, tmp_path_factory, made, env, threads):
    made = dict(made)
    relies = compiled(tmp_path_factory.mktemp("relies"), *made.pop("flags", []), **made)
    (_, last, _), (points,) = tune(relies, "team", 100, 2, option="--tune=team", env=env)
    assert last == threads and points == {}


@pytest.mark.parametrize("option, name, best", [("team", "omp.team", 2), ("poll", "mpi.poll", 25)])
def test_the_first_rank_chooses_for_all(tune, mpi, tmp_path, option, name, best):
    folder = tmp_path / "made"
    folder.mkdir()
    cflags, libs = mpi.flags
    ranks = compiled(folder, "-DMPI", *cflags, *libs)
    out, points = tune(*mpi.run(2, ranks, option, 300, best), option=f"--tune={option}")
    assert [set(p) for p in points] == [{name}, set()]
    point = points[0][name]
    assert point["settled"] and point["value"] == best and len(point["tried"]) >= 3
    assert out[1] == out[4] == str(best)
    stock, _ = tune(*mpi.run(2, ranks, option, 300, best), option=None)
    assert stock[2] == out[2] == out[5]


@pytest.mark.parametrize("wrong", ["--tune=", "--tune=team,", "--tune=size", "--tune=spin;poll"])
def test_a_wrong_list_is_refused(invade, run_program, wrong):
    done = run_program([invade, wrong, "--", "true"], check=False)
    assert done.returncode == 125 and "use a list of team, spin and poll" in done.stderr
