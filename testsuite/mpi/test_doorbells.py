# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that sleep in MPI are woken by the ranks that they wait for, not by a timer."""

import itertools
import shutil

import pytest

from lib.building.build import FEWER
from lib.machine import TWO_CORES

SLICE_S, LIMIT_S = 40, 20  # no wait takes half as long as a ring that is lost would make it take


@pytest.fixture
def program(mpi, top, tmp_path, run_program):
    """mpi-shim/tests/doorbells.c for this MPI."""
    path = tmp_path / "doorbells"
    run_program([mpi.mpicc, "-O1", "-std=gnu17", "-pthread", top / "mpi-shim/tests/doorbells.c",
                 "-o", path])
    return path


@pytest.fixture(scope="module")
def trees():
    """What rings_only has made, by MPI library."""
    return {}


def has_source(name, top, build):
    """A build tree that has been used before has objects of files that are gone, too."""
    return any((tree / name.with_suffix(".c")).exists() for tree in (top, build))


@pytest.fixture
def rings_only(trees, mpi, top, build, make_variable, tmp_path_factory, run_program):
    """A build tree whose shim, but for wait.c the same, sleeps for SLICE_S where it would sleep for
    a millisecond."""
    if mpi.name in trees:
        return trees[mpi.name]
    tree = tmp_path_factory.mktemp(f"rings-only-{mpi.name}")
    for part in ("bin", "lib"):
        shutil.copytree(build / part, tree / part, symlinks=True)
    library = f"libinvasive-mpi-{mpi.name}.so"
    prefix = f"lib_invasive_{library}".replace("-", "_").replace(".", "_")
    objects = [p for p in sorted((build / "mpi-shim").rglob(f"{prefix}-*.o"))
               if has_source(p.relative_to(build).with_name(p.name[len(prefix) + 1:]), top, build)
               and not p.stem.endswith("-wait")]
    assert objects
    run_program([*make_variable("CC").split(), "-O2", "-std=gnu17", "-shared", "-fPIC",
                 "-fvisibility=hidden", "-pthread",
                 f"-DSHIM_LONG_SLICE_NS=INT64_C({SLICE_S}000000000)",
                 f"-I{build}", f"-I{top}", f"-I{top / 'include'}",
                 f"-I{top / 'libinvasive'}", *mpi.flags[0],
                 top / "mpi-shim/wait/wait.c", *objects, *mpi.flags[1], "-lm",
                 "-o", tree / "lib/invasive" / library], timeout=100)
    trees[mpi.name] = tree / "bin/invade"
    return trees[mpi.name]


def shape(ranks, cores):
    return f"--emulate-cores={ranks}" if cores == "pinned" else TWO_CORES


@pytest.mark.timeout(240)
@pytest.mark.parametrize("ranks, cores", [(2, "pinned"), *itertools.product(
    [4, 8, 16], ["pinned", "anonymous"])])  # two ranks have a core each
def test_no_wake_up_is_lost_by_ranks_that_wait_in_every_way(rings_only, program, mpi, run_program,
                                                            ranks, cores):
    rounds = {2: 800, 4: 400, 8: 200, 16: 100}[ranks] // FEWER
    done = run_program([rings_only, shape(ranks, cores), "--",
                        *mpi.run(ranks, program, ranks, rounds, LIMIT_S)], timeout=200)
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.parametrize("ranks", [2, 5])
def test_two_threads_of_a_rank_wait_while_a_third_computes(build, program, mpi, run_program, ranks):
    done = run_program([build / "invade", TWO_CORES, "--", *mpi.run(ranks, program, "threads")],
                       timeout=110)
    assert done.stdout == "done\n"
