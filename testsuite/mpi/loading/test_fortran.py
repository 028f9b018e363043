# SPDX-License-Identifier: GPL-3.0-or-later
"""Fortran programs, by mpif.h, `use mpi` and `use mpi_f08`: the same results, and their waits go
through the shim."""

import json
import platform
import re
import shutil
import subprocess

import pytest

from lib.machine import TWO_CORES
from lib.processes import debugged

INTERFACES = ["USE_MPIF_H", "USE_MPI", "USE_MPI_F08"]
WAITS = ["receive", "wait_for_one", "test_for_one", "wait_for_all", "wait_for_any", "probe",
         "exchange", "to_bottom", "barrier", "allreduce", "rooted"]  # procedures of waits.F90


@pytest.fixture(scope="session")
def compiled(mpi, top, tmp_path_factory):
    """compiled(INTERFACE) - waits.F90 with this interface and the MPI in turn."""
    compiler = shutil.which(f"mpif90.{mpi.name}")
    if not compiler or not shutil.which("gfortran"):
        pytest.skip(f"mpif90.{mpi.name} and gfortran are needed")
    programs = {}

    def program(interface):
        if interface not in programs:
            where = tmp_path_factory.mktemp(f"{mpi.name}-{interface}")
            made = subprocess.run([compiler, f"-D{interface}", "-O1", "-o", "waits",
                                   top / "mpi-shim/tests/waits.F90"], check=False, cwd=where,
                                  capture_output=True, text=True, timeout=100)
            assert made.returncode == 0, made.stderr
            programs[interface] = where / "waits"
        return programs[interface]

    return program


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_fortran_program_sees_what_it_sees_without_us(mpi, managed, run_program, compiled,
                                                        interface, ranks):
    command = [compiled(interface), "all", 1, 4]
    with_us, stock = managed(ranks, *command), run_program(mpi.run(ranks, *command))
    assert stock.stdout.count("\n") > 20
    assert sorted(with_us.stdout.splitlines()) == sorted(stock.stdout.splitlines())
    ranks_managed = re.findall(r"^ *(\d+) +\d+ +waits ", with_us.stderr, re.M)
    assert len(ranks_managed) == ranks


@pytest.mark.parametrize("interface", INTERFACES)
def test_every_wait_of_a_fortran_program_is_seen(invade, mpi, run_program, compiled, tmp_path,
                                                 interface):
    """Rank 0 computes 9 ms before each of 15 calls of each kind: rank 1 waits, and the report says
    so of the procedure that has called."""
    report = tmp_path / "report.json"
    run_program([invade, TWO_CORES, f"--report={report}", "--", mpi.mpiexec, "-n", 2,
                 compiled(interface), "all", 9, 15], timeout=100)
    processes = json.loads(report.read_text())["jobs"][0]["processes"]
    waited = dict.fromkeys(WAITS, 0.0)
    for site in next(p for p in processes if p["rank"] == 1)["call_sites"]:
        procedure = str(site["symbol"]).rpartition("_MOD_")[2]
        if procedure in waited:
            waited[procedure] += site["waited_seconds"]
    assert min(waited.values()) >= 0.05, waited


@pytest.mark.parametrize("interface", INTERFACES)
def test_what_fortran_bindings_call_is_ours(build, table, mpi, run_program, compiled, interface):
    """All functions that the bindings could call, not only those of this program: the dynamic
    linker tells where it has bound each function of the table."""
    wrapped = {f.name for f in table if f.kind not in ("use", "list")}
    ours = build / "lib/invasive/libinvasive-mpi.so"
    done = run_program([compiled(interface), "errors", 0, 1],
                       env={"LD_PRELOAD": f"{build}/lib/invasive/libinvasive-process.so {ours}",
                            "LD_BIND_NOW": "1", "LD_DEBUG": "bindings"})
    bindings = re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `P?MPI_(\w+)'",
                          done.stderr)
    fortran = {(name, target) for user, target, name in bindings
               if re.search(r"libmpi(chfort|_mpifh|_usempi\w+)\.so", user) and name in wrapped}
    assert len(fortran) > 50
    assert {target for _, target in fortran} == {str(ours)}


GDB = "".join(f"""
break shim_{name}
commands
silent
info symbol shim_thread.site
cont
end
""" for name in ("Wait", "Sendrecv", "Barrier"))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only written for x86-64")
@pytest.mark.parametrize("interface", INTERFACES)
def test_the_place_of_a_call_is_in_the_fortran_program(build, run_program, compiled, interface,
                                                       tmp_path):
    """Not the one place in MPI's Fortran library that calls the C function."""
    if not shutil.which("gdb"):
        pytest.skip("gdb is missing")
    script = tmp_path / "script"
    script.write_text("set pagination off\nset breakpoint pending on\nset confirm off\n" + GDB
                      + "run all 0 1\n")
    done = debugged(run_program, [build / "invade", TWO_CORES, "--", "gdb", "-q", "-batch", "-x",
                                  script, compiled(interface)])
    places = re.findall(r"^(\w+) \+ \d+ in section", done.stdout, re.M)
    assert {"common_parts_MOD_barrier", "common_parts_MOD_exchange", "common_parts_MOD_errors"} <= {
        place.lstrip("_") for place in places}
