# SPDX-License-Identifier: GPL-3.0-or-later
"""Binary interfaces of MPI libraries: the standard one of MPI 5.0, and an unknown one."""

import re

import pytest

from lib.machine import TWO_CORES

# Functions that wait for no other rank: what is known on the spot, and what only begins something.
LOCAL = r"""
    (Type|Info|Group|Op|T|Attr|Keyval|Status|Errhandler|Error|Add_error|Remove_error|Get|Abi|Cart
      |Graph|Pack|Unpack|Aint|Grequest)_\w+
    | (File|Win|Comm|Session)_(get|call)_\w+ | \w+_(toint|fromint|f2c|c2f)
    | \w+_(create|free)_(keyval|errhandler) | \w+_(delete|get|set)_attr
    | \w+_set_(name|errhandler) | Win_(attach|detach) | Buffer_attach | \w+_attach_buffer
    | \w*[Ii]flush(_buffer)? | File_(iread|iwrite)(_at)? | File_(delete|seek)
    | Register_datarep | Pack | Unpack | Address | Abort | Put | Get | Accumulate | Reduce_local
    | Compare_and_swap | Fetch_and_op | Comm_compare | Comm_set_info | Graphdims_get
    | Dist_graph_neighbors(_count)? | Test_cancelled | Win_shared_query | Win_sync | Wtime | Wtick
    | Initialized | Finalized | Query_thread | Is_thread_main | Pcontrol | Alloc_mem | Free_mem
    | Dims_create | Topo_test | Open_port | Close_port"""


def test_our_header_has_the_values_of_the_standards_header(
        standard_mpi, make_variable, top, run_program, tmp_path):
    header = (top / "mpi-shim/abi/mpi.h").read_text()
    names = re.findall(r"^#define (MPI_\w+) ", header, re.M)
    assert len(names) > 50
    theirs = ["-DMPI_ABI", f"-I{standard_mpi}/include"]
    values = []
    for name, flags in (("ours", [f"-I{top}/mpi-shim/abi"]), ("theirs", theirs)):
        run_program([*make_variable("CC").split(), "-o", tmp_path / name, *flags,
                     "-DNAMES=" + "".join(f"P({n})" for n in names),
                     top / "testsuite/mpi/programs/abi_values.c"])
        values.append(run_program([tmp_path / name]).stdout)
    assert values[0] == values[1]


def test_what_its_library_has_is_in_the_table_or_waits_for_no_rank(
        standard_mpi, table, run_program):
    library = standard_mpi / "lib/libmpi_abi.so.1"
    defined = run_program(["nm", "-D", "--defined-only", library]).stdout
    names = set(re.findall(r" MPI_(\w+?)(?:_c)?$", defined, re.M))
    assert len(names) > 400
    known = {f.name.removesuffix("_c") for f in table}
    local = re.compile(LOCAL, re.X)
    assert not [name for name in sorted(names - known) if not local.fullmatch(name)]


@pytest.fixture
def compiled(standard_mpi, make_variable, top, run_program, tmp_path):
    """compiled(NAME) - mpi-shim/tests/NAME.c for the standard interface."""

    def program(name):
        compiler = make_variable("CC").split()[0]
        run_program([standard_mpi / "bin/mpicc_abi", f"-cc={compiler}", "-pthread", "-o",
                     tmp_path / name, top / f"mpi-shim/tests/{name}.c"])
        return tmp_path / name

    return program


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.timeout(300)
def test_calls_by_the_standard_interface_give_what_they_give_without_us(
        standard_mpi, build, run_program, compiled, ranks):
    env = {"LD_LIBRARY_PATH": str(standard_mpi / "lib")}
    mpiexec = [standard_mpi / "bin/mpiexec", "-n", ranks, compiled("calls")]
    with_us = run_program([build / "invade", TWO_CORES, "--report", "--", *mpiexec], env=env)
    assert with_us.stdout == run_program(mpiexec, env=env).stdout
    managed = re.findall(r"^ *\d+ +\d+ +calls +[\d.]+ +[\d.]+ ", with_us.stderr, re.M)
    assert len(managed) == ranks


@pytest.mark.parametrize("scene", ["poll", "threads", "uneven"])
def test_waits_by_the_standard_interface_end(standard_mpi, build, run_program, compiled, scene):
    done = run_program([build / "invade", TWO_CORES, "--", standard_mpi / "bin/mpiexec", "-n", 2,
                        compiled("scenes"), scene],
                       env={"LD_LIBRARY_PATH": str(standard_mpi / "lib")})
    assert done.stdout == "done\n"


# Two children; what all of them make of collectives over the intercommunicator, and merged.
SPAWN = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Comm others, all;
    int rank, size, codes[2] = {7, 7}, sum = 0, root = 0, gathered[3] = {0};
    char *none[] = {NULL};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&others);
    int child = others != MPI_COMM_NULL;
    if (!child) {
        MPI_Comm_spawn(argv[0], none, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, codes);
        printf("parent: codes %d %d\n", codes[0], codes[1]);
    }
    int mine = 1 + rank + 10 * child, from = !child ? rank == 0 ? MPI_ROOT : MPI_PROC_NULL : 0;
    for (int i = 0; i < 20; i++) {
        MPI_Barrier(others);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, others);
        root = !child && rank == 0 ? 100 + i : 0;
        MPI_Bcast(&root, 1, MPI_INT, from, others);
    }
    MPI_Allgather(&mine, 1, MPI_INT, gathered, 1, MPI_INT, others);
    printf("%s %d: %d %d, %d %d\n", child ? "child" : "parent", rank, sum, root, gathered[0],
           child ? 0 : gathered[1]);
    MPI_Intercomm_merge(others, child, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, 3, &root, 1, MPI_INT,
                 (rank + size - 1) % size, 3, all, MPI_STATUS_IGNORE);
    MPI_Scan(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
    printf("merged %d of %d: %d %d\n", rank, size, root, sum);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&others);
    printf("disconnected: %d\n", others == MPI_COMM_NULL);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("parents", [1, 2])
@pytest.mark.usefixtures("what_mpi_leaves_when_it_is_killed_goes")
def test_spawned_processes_by_the_standard_interface_do_what_they_do_without_us(
        standard_mpi, build, run_program, make_variable, tmp_path, parents):
    (tmp_path / "spawn.c").write_text(SPAWN)
    run_program([standard_mpi / "bin/mpicc_abi", f"-cc={make_variable('CC').split()[0]}", "-o",
                 tmp_path / "spawn", tmp_path / "spawn.c"])
    env = {"LD_LIBRARY_PATH": str(standard_mpi / "lib")}
    mpiexec = [standard_mpi / "bin/mpiexec", "-n", parents, tmp_path / "spawn"]
    with_us = run_program([build / "invade", TWO_CORES, "--report", "--", *mpiexec], env=env)
    theirs = sorted(run_program(mpiexec, env=env).stdout.splitlines())
    assert theirs.count("disconnected: 1") == parents + 2
    assert sorted(with_us.stdout.splitlines()) == theirs
    managed = re.findall(r"^ *\d+ +\d+ +spawn +[\d.]+ +[\d.]+ ", with_us.stderr, re.M)
    assert len(managed) == parents + 2


@pytest.fixture
def fake(make_variable, top, run_program, tmp_path):
    cc = [*make_variable("CC").split(), "-Wall", "-Wextra", "-Werror"]
    sources = top / "testsuite/mpi/programs"
    run_program([*cc, "-shared", "-fPIC", "-o", tmp_path / "libmpi.so", sources / "fake_mpi.c"])
    run_program([*cc, "-o", tmp_path / "program", sources / "fake_program.c",
                 tmp_path / "libmpi.so", f"-Wl,-rpath,{tmp_path}"])
    return tmp_path / "program"


def test_an_unknown_binary_interface_is_passed_through_and_said_once(build, run_program, fake):
    stock = run_program([fake])
    with_us = run_program([build / "invade", TWO_CORES, "--", fake])
    assert stock.stdout == "3 barriers\n"
    # One more: the library calls itself when it is asked for its version.
    assert with_us.stdout == "4 barriers\n"
    assert with_us.stderr.count("not managed") == 1
    off = run_program([build / "invade", "--off", "--", fake])
    assert (off.stdout, off.stderr) == ("3 barriers\n", "")
