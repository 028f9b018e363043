# SPDX-License-Identifier: GPL-3.0-or-later
"""What ranks tell each other in set-up, by messages (mpi-shim/council.c): all of them get it
right, however many there are and whoever is late, and no message of the program is mistaken for one
of these."""

import pytest


@pytest.fixture(scope="session")
def council(mpi, top, build, tmp_path_factory):
    """The command that compiles mpi-shim/tests/council.c for this MPI, and what comes of it."""
    program = tmp_path_factory.mktemp("council") / f"council-{mpi.name}"
    includes = [f"-I{build}", f"-I{build / 'mpi-shim'}",
                *(f"-I{top / name}" for name in ("include", "libinvasive", "mpi-shim"))]
    return [mpi.mpicc, "-O1", "-std=gnu17", "-Wall", "-Wextra", "-Werror", *includes,
            top / "mpi-shim/tests/council.c", top / "mpi-shim/council.c", "-o", program], program


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7])
def test_all_ranks_agree_on_what_each_has_said(council, mpi, run_program, ranks):
    command, program = council
    if not program.exists():
        run_program(command)
    assert run_program(mpi.run(ranks, program), timeout=100).stdout == "agreed\n"
