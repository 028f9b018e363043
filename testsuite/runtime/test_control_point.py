# SPDX-License-Identifier: GPL-3.0-or-later
"""inv_control_point in C, Fortran and Python: the value with the shortest iterations is found, and
stands in the report of invade with what was tried."""

import sys

import pytest

from lib.building.build import TOP
from lib.building.small_programs import Programs
from lib.manager.lending import LIBRARY, compile_fortran
from lib.report import parsed

# An iteration with value v sleeps |v - 6| ms and a little.
TUNED = r"""
#include "invasive.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void tune(const char *name, int iterations)
{
    int value = 2, first = 0;
    for (int i = 0; i < iterations; i++) {
        if (inv_control_point(name, 1, 8, &value) || value < 1 || value > 8)
            exit(1);
        first = i ? first : value;
        usleep(500 + 2000 * (unsigned)abs(value - 6));
    }
    printf("%d %d\n", first, value);
}

static int errors(void)
{
    int value = 3, refused = 0;
    char name[100] = "p0";
    for (int i = 0; i < 2; i++)
        refused += inv_control_point("upside down", 8, 2, &value) == -1 && errno == EINVAL;
    refused += inv_control_point("", 1, 2, &value) == -1 && errno == EINVAL;
    refused += inv_control_point("p", 1, 2, NULL) == -1 && errno == EINVAL;
    refused += inv_control_point(NULL, 1, 2, &value) == -1 && errno == EINVAL;
    memset(name, 'x', 48);
    refused += inv_control_point(name, 1, 2, &value) == -1 && errno == EINVAL;
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "p%d", i);
        refused += inv_control_point(name, 1, 5, &value) == -1 && errno == ENOSPC;
    }
    printf("%d %d\n", refused, value);
    return 0;
}

int main(int argc, char **argv)
{
    if (!strcmp(argv[1], "errors"))
        return errors();
#pragma omp parallel
    (void)argc;
    tune("speed", 150);
    if (!strcmp(argv[1], "forks")) {
        fflush(stdout);
        if (!fork()) {
            tune("speed", 20);
            return 0;
        }
        wait(NULL);
    }
    int other = 30;
    inv_control_point("other", 10, 20, &other);
    return 0;
}
"""


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    made = Programs(tmp_path_factory.mktemp("tuned"), ["cc"])
    return made.make("tuned", TUNED, "-fopenmp", f"-I{TOP / 'include'}", *LIBRARY)


def test_the_fastest_value_is_found_and_reported_with_what_was_tried(invade, run_program, tuned,
                                                                     tmp_path):
    file, text = tmp_path / "report.json", tmp_path / "report"
    out = run_program([invade, f"--report={file}", "--", tuned, "once"]).stdout.split()
    (process,) = parsed(file)["jobs"][0]["processes"]
    speed, other = process["control_points"]
    assert out == ["2", str(speed["value"])] and abs(speed["value"] - 6) <= 1
    assert (speed["name"], speed["low"], speed["high"], speed["first_value"]) == ("speed", 1, 8, 2)
    assert speed["settled"] and speed["searches"] == 1 and speed["iterations"] == 149
    tried = {one["value"]: one for one in speed["tried"]}
    assert sum(one["iterations"] for one in tried.values()) == 149
    assert 0 < tried[6]["median_seconds"] < tried[2]["median_seconds"] > 0.008
    assert (other["first_value"], other["value"], other["settled"]) == (20, 20, False)
    run_program([invade, f"--report={text}", "--", tuned, "once"])
    said = text.read_text()
    assert "control point speed, 1 to 8: " in said and " for 2, " in said
    assert "other, 10 to 20: 20; 0 values tried in 0 iterations, and the search not over" in said


def test_control_points_need_no_resource_manager(run_program, tuned):
    first, value = run_program([tuned, "once"]).stdout.split()
    assert first == "2" and abs(int(value) - 6) <= 1


def test_nothing_is_tuned_where_management_is_switched_off(run_program, tuned):
    out = run_program([tuned, "once"], env={"INVASIVE": "off"}).stdout.split()
    assert out == ["2", "2"]


def test_a_child_goes_on_with_what_its_parent_has_found(invade, run_program, tuned, tmp_path):
    file = tmp_path / "report.json"
    out = run_program([invade, f"--report={file}", "--", tuned, "forks"]).stdout.split()
    assert out[1] == out[2] == out[3]
    speed = parsed(file)["jobs"][0]["processes"][0]["control_points"][0]
    assert speed["iterations"] == 149  # not the child's


def test_a_wrong_call_is_refused_and_changes_nothing(run_program, tuned):
    done = run_program([tuned, "errors"])
    assert done.stdout.split() == ["7", "3"]
    assert done.stderr == ('libinvasive: inv_control_point("upside down"): low is larger than '
                           "high; the value stays as it is\n")


FORTRAN = """
program tunes
    use invasive
    use, intrinsic :: iso_c_binding, only: c_int
    implicit none
    integer(c_int) :: step, block = 40, error
    do step = 1, 3
        if (inv_control_point("block size  ", 1_c_int, 32_c_int, block) /= 0) error stop "tunes"
    end do
    error = inv_control_point("block", 5_c_int, 4_c_int, step)
    print "(3I3)", block, error, step
end program
"""


def test_a_fortran_program_has_control_points(run_program, tmp_path):
    done = run_program([compile_fortran(tmp_path, FORTRAN)])
    assert done.stdout.split() == ["32", "-1", "4"] and '("block"): low is larger' in done.stderr


PYTHON = """
import time, invasive
value = 2
for step in range(150):
    value = invasive.control_point("speed", 1, 8, value)
    time.sleep(0.0005 + 0.002 * abs(value - 6))
print(value)
for wrong in (("p", 2, 1, 1), ("", 1, 2, 1), ("x" * 48, 1, 2, 1)):
    try:
        invasive.control_point(*wrong)
    except ValueError as error:
        print(error)
"""


@pytest.mark.parametrize("managed", [True, False])
def test_a_python_program_has_control_points(invade, run_program, managed):
    command = [sys.executable, "-B", "-c", PYTHON]
    done = run_program([invade, *command] if managed else command,
                       env={"PYTHONPATH": str(TOP / "include")})
    value, *refused = done.stdout.splitlines()
    assert abs(int(value) - 6) <= 1 if managed else value == "2"
    assert refused[0] == "control point 'p': low 2 is larger than high 1" and len(refused) == 3
