# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks agree in set-up by messages (mpi-shim/setup/agreement.c): all ranks get the same result,
for any number of ranks and whichever is late, and no message of the program is mistaken for one of
these."""

import pytest


@pytest.fixture(scope="session")
def agreement(mpi, top, build, tmp_path_factory):
    """The command that compiles mpi-shim/tests/agreement.c for this MPI, and what comes of it."""
    program = tmp_path_factory.mktemp("agreement") / mpi.name
    includes = [f"-I{path}" for path in (build, top, top / "include")]
    return [mpi.mpicc, "-O1", "-std=gnu17", "-Wall", "-Wextra", "-Werror", *includes,
            top / "mpi-shim/tests/agreement.c", top / "mpi-shim/setup/agreement.c",
            "-o", program], program


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7])
def test_all_ranks_agree_on_what_each_has_said(agreement, mpi, run_program, ranks):
    command, program = agreement
    if not program.exists():
        run_program(command)
    assert run_program(mpi.run(ranks, program), timeout=100).stdout == "agreed\n"
