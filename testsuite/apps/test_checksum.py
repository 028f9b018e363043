# SPDX-License-Identifier: GPL-3.0-or-later
"""The applications do the same work, by their checksums, on any runtime, ranks and threads."""

import re

import pytest

pytestmark = pytest.mark.timeout(120)


def checksum(output: str) -> str:
    return re.search(r"^checksum ([0-9a-f]{16})$", output, re.M).group(1)


def app(build, name):
    path = build / "apps" / name / name
    if not path.exists():
        pytest.skip(f"{path} is not built here")
    return path


IMBALANCE = ["--units-per-ms=100", "--work-ms=20", "--iterations=5"]


@pytest.mark.smoke
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_artificial_checksum_is_the_same_with_any_number_of_threads(
        build, mpiexec, run_program, ranks):
    command = [mpiexec, "-n", ranks, app(build, "artificial"), "-T", "40"]
    sums = {checksum(run_program(command, {"OMP_NUM_THREADS": n}).stdout) for n in "123"}
    assert len(sums) == 1


def test_artificial_takes_the_roots_of_the_papers_formula(build, mpiexec, run_program):
    """--emulate counts roots: sum over t of (T-t)^2 + t^2."""
    steps = 16
    done = run_program([mpiexec, "-n", "2", app(build, "artificial"), "-T", steps, "--emulate",
                        "--emulate-root-ns=1"])
    assert int(checksum(done.stdout), 16) == sum((steps - t) ** 2 + t**2 for t in range(steps))


@pytest.mark.parametrize("wait", ["blocking", "polled"])
@pytest.mark.parametrize("regions", ["1", "7"])
def test_imbalance_checksum_is_the_same_with_any_number_of_threads_and_regions(
        build, mpiexec, run_program, wait, regions):
    command = [mpiexec, "-n", "2", app(build, "imbalance"), *IMBALANCE, f"--wait={wait}"]
    expected = checksum(run_program([*command, "--regions=1"], {"OMP_NUM_THREADS": "1"}).stdout)
    for threads in "13":
        done = run_program([*command, f"--regions={regions}"], {"OMP_NUM_THREADS": threads})
        assert checksum(done.stdout) == expected


def test_imbalance_gives_each_rank_its_load(build, mpiexec, run_program):
    """Loads 0:1 on two ranks are the work of one rank alone."""
    program = app(build, "imbalance")
    alone = run_program([mpiexec, "-n", "1", program, "--loads=1", *IMBALANCE])
    first = run_program([mpiexec, "-n", "2", program, "--loads=1:0", *IMBALANCE])
    second = run_program([mpiexec, "-n", "2", program, "--loads=0:1", *IMBALANCE])
    assert checksum(alone.stdout) == checksum(first.stdout) == checksum(second.stdout)


def test_imbalance_alternates_loads_without_changing_the_work(build, mpiexec, run_program):
    """Two iterations of 0:1 and 1:0 are two of either rank's."""
    command = [mpiexec, "-n", "2", app(build, "imbalance"), *IMBALANCE, "--loads=0:1"]
    assert checksum(run_program(command).stdout) == checksum(
        run_program([*command, "--alternate"]).stdout)
    assert checksum(run_program([*command, "--loads=1:2"]).stdout) != checksum(
        run_program([*command, "--loads=1:2", "--emulate"]).stdout)


STENCIL = ["--size=150", "--steps=12"]


@pytest.mark.smoke
def test_stencil_checksum_is_the_same_with_any_number_of_ranks_and_threads(
        build, mpiexec, run_program):
    sums = set()
    for ranks, threads in ((1, 1), (1, 3), (2, 1), (3, 2), (4, 1), (6, 1)):
        done = run_program([mpiexec, "-n", ranks, app(build, "stencil"), *STENCIL],
                           {"OMP_NUM_THREADS": str(threads)})
        sums.add((checksum(done.stdout), re.search(r"^largest_change (.*)$", done.stdout, re.M)[1]))
    assert len(sums) == 1


def test_stencil_depends_on_size_and_steps(build, mpiexec, run_program):
    """The checksum is of the temperatures, not of the shape of the program."""
    program = app(build, "stencil")
    sums = {checksum(run_program([mpiexec, "-n", "1", program, *STENCIL, more]).stdout)
            for more in ("--steps=12", "--steps=13", "--size=151")}
    assert len(sums) == 3


@pytest.mark.parametrize("arguments", [["--loads=1:x"], ["--work-ms=-1"], ["--wait=never"], ["x"]])
def test_imbalance_refuses_arguments_that_make_no_sense(build, mpiexec, run_program, arguments):
    done = run_program([mpiexec, "-n", "1", app(build, "imbalance"), *arguments], check=False)
    assert done.returncode != 0
    assert "seconds" not in done.stdout


@pytest.mark.smoke
@pytest.mark.parametrize("name, ranks, arguments", [
    ("artificial", "2", ["-T", "60"]),
    ("imbalance", "2", IMBALANCE),
    ("imbalance", "2", [*IMBALANCE, "--wait=polled"]),
    ("imbalance", "3", [*IMBALANCE, "--loads=1:2:3"]),
    ("imbalance", "5", IMBALANCE),
    ("imbalance", "2", [*IMBALANCE, "--loads=1:3", "--alternate"]),
    ("stencil", "2", STENCIL),
    ("stencil", "4", STENCIL),
    ("stencil", "9", STENCIL),
])
def test_result_under_invade_is_the_result_without(
        build, mpiexec, run_program, name, ranks, arguments):
    command = [mpiexec, "-n", ranks, app(build, name), *arguments]
    stock = run_program(command, {"OMP_NUM_THREADS": "1"})
    ours = run_program([build / "invade", "--", *command])
    assert checksum(stock.stdout) == checksum(ours.stdout)


def test_allreduce_sums_are_right_under_invade_with_more_ranks_than_cores(
        build, mpiexec, run_program):
    done = run_program([build / "invade", "--", mpiexec, "-n", "4", app(build, "allreduce"),
                        "--calls=500"])
    assert "wrong 0" in done.stdout


def test_regions_runs_with_more_threads_than_cores_under_invade(build, run_program):
    done = run_program([build / "invade", "--", app(build, "regions"), "--batch-ms=1"],
                       {"OMP_NUM_THREADS": "16"})
    assert re.search(r"^regions: 16 threads", done.stdout, re.M)
