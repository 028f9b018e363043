# SPDX-License-Identifier: GPL-3.0-or-later
"""Every function of the shim's table does in a managed program what it does without us: results,
error classes, error handlers.  The programs compare results with what they must be."""

import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("what_mpi_leaves_when_it_is_killed_goes")

RANKS = [1, 2, 3, pytest.param(5, marks=pytest.mark.full)]  # alone; pinned; more than cores
PROGRAMS = ["every", "construct", "onesided", "files"]
# Functions that none of these calls: they need a name server, a socket to another job, or groups
# that MPICH 4.0 does not know (test_sessions.py).
NOT_CALLED = {"Comm_join", "Lookup_name", "Publish_name", "Unpublish_name",
              "Intercomm_create_from_groups"}
GROWING = "construct"  # also starts processes, and opens ports
GROWING_TRIES, GROWING_S = 4, 60


@pytest.fixture
def managed(mpi, managed):
    """managed(RANKS, NAME, ARGUMENTS...): one of mpi-shim/tests/functions."""

    def run(ranks, name, *arguments, **more):
        return managed(ranks, mpi.program(f"mpi-shim/tests/functions/{name}"), *arguments, **more)

    return run


def possible(mpi, name, ranks):
    """Open MPI 4.1 has no one-sided communication in a job of one rank."""
    return not (mpi.name == "openmpi" and name == "onesided" and ranks == 1)


def arguments_of(name, tmp_path):
    return [tmp_path / "file"] if name == "files" else []


def check(process, ranks):
    lines = process.stdout.splitlines()
    assert not [line for line in lines if line.startswith("WRONG")]
    assert sum(line.startswith("--- rank") for line in lines) == ranks
    assert sum(line.startswith("ok ") for line in lines) >= ranks
    return {line.split()[1] for line in lines if line.startswith("called ")}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.timeout(300)
def test_every_result_is_what_it_must_be(managed, mpi, tmp_path, name, ranks):
    if possible(mpi, name, ranks):  # too slow without us to compare with a stock run
        process = managed(ranks, name, *arguments_of(name, tmp_path), timeout=240)
        check(process, ranks)
        assert "not managed" not in process.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_result_is_what_it_must_be_with_a_core_for_each_of_four_ranks(managed, tmp_path,
                                                                            name):
    process = managed(4, name, *arguments_of(name, tmp_path), cores="--emulate-cores=4",
                      timeout=110)
    check(process, 4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_result_is_what_it_must_be_where_the_library_does_not_call_us(managed, tmp_path,
                                                                            name):
    """Then waits have non-blocking forms and arrival barriers, as with MPI_THREAD_MULTIPLE."""
    process = managed(4, name, *arguments_of(name, tmp_path), cores="--emulate-cores=4",
                      timeout=110, env={"INVASIVE_MPI_TASKS": "1"})
    check(process, 4)


def test_every_result_is_what_it_must_be_with_non_blocking_forms_of_collectives(managed):
    """More ranks than cores, and the library does not call us."""
    check(managed(5, "every", timeout=110, env={"INVASIVE_MPI_TASKS": "1"}), 5)


def grow(managed, how):
    """Tries a job again that does not end: Debian's PMIx may leave a new process without an answer
    (test_spawn.py)."""
    for _ in range(GROWING_TRIES - 1):
        try:
            return managed(2, GROWING, how, timeout=GROWING_S)
        except subprocess.TimeoutExpired:
            pass
    return managed(2, GROWING, how, timeout=GROWING_S)


@pytest.mark.timeout(GROWING_TRIES * GROWING_S + 30)
@pytest.mark.parametrize("how", ["spawn", "port"])
def test_processes_that_are_started_or_met_later_take_part(managed, mpi, how):
    """Blocking and non-blocking collectives do not match: all sides must choose the same."""
    if mpi.name == "openmpi":  # Debian's MPICH is built without either
        check(grow(managed, how), 2)


@pytest.mark.parametrize("env", [{}, {"INVASIVE_MPI_TASKS": "1"}], ids=["watched", "polled"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_errors_have_the_same_class_and_the_same_handler(managed, mpi, run_program, tmp_path,
                                                         ranks, env):
    """Both where the wait is inside the library's function and where it is ours."""
    program = mpi.program("mpi-shim/tests/functions/errors")
    if not possible(mpi, "onesided", ranks):
        return
    with_us = managed(ranks, "errors", tmp_path / "ours", env=env)
    without = run_program(mpi.run(ranks, program, tmp_path / "theirs"))
    assert without.stdout.count("class ") > 60 * ranks
    assert with_us.stdout == without.stdout


@pytest.mark.timeout(600)
def test_every_function_of_the_table_is_called_by_a_test(managed, mpi, table, run_program,
                                                         tmp_path):
    """Every function that the library has, at least once, in a managed run."""
    called = set()
    for name in PROGRAMS:
        called |= check(managed(2, name, *arguments_of(name, tmp_path)), 2)
    for how in ["spawn", "port"] if mpi.name == "openmpi" else []:
        called |= check(grow(managed, how), 2) | {"Comm_connect"}  # rank 1; rank 0 reports
    errors = managed(2, "errors", tmp_path / "errors").stdout.splitlines()
    called |= {line.split()[1] for line in errors if line.startswith("called ")}
    every = mpi.program("mpi-shim/tests/functions/every")
    library = next(word for line in run_program(["ldd", every]).stdout.splitlines()
                   if "libmp" in line for word in line.split() if "/" in word)
    symbols = set(run_program(["nm", "-D", "--defined-only", library]).stdout.split())
    has = {f.name for f in table if f.kind != "use" and f"MPI_{f.name}" in symbols}
    spare = NOT_CALLED | ({"Errhandler_set"} if mpi.name == "openmpi" else {
        "Comm_spawn", "Comm_spawn_multiple", "Comm_accept", "Comm_connect"})
    assert has - called - {"Init_thread"} - spare == set()


def test_the_tables_prototypes_are_those_of_mpi_h(mpi, table, run_program, tmp_path):
    source = tmp_path / "prototypes.c"
    lines = ["#include <mpi.h>", "#include <stdint.h>"]
    for f in table:
        words = any(kind == "word" for kind, _ in f.args)
        if f.kind == "list" or words or f.name in ("Errhandler_set", "Pready_list"):
            continue  # no arguments, or const differs
        if f.name.startswith("Request_get_status_"):
            continue  # of MPI 4.1: test_abi.py
        if not f.optional or mpi.name == "mpich":
            lines.append(f"int (*p_{f.name})({f.params()}) = MPI_{f.name};")
    source.write_text("\n".join(lines) + "\n")
    run_program([mpi.mpicc, "-Werror", "-Wno-deprecated-declarations", "-fsyntax-only", source])


def test_the_manual_lists_every_function_of_the_table(table_module, table, top):
    assert table_module.manual(table) in (top / "doc/man/mpi-shim.7").read_text(), (
        "put the output of manual() in mpi-shim/gen/table.py between 'begin table' and 'end table'")
