# SPDX-License-Identifier: GPL-3.0-or-later
"""The library of tasks that wait for messages under sanitizers, with its test program."""

import subprocess

import pytest

SCENES = ["one", "all", "late", "truncated", "handler", "wrong"]
LEVELS = ["0", "3"]


@pytest.fixture(scope="module")
def compiled(top, tmp_path_factory):
    """compiled(MPI, FLAG...) - the test program, with the library, made with these flags.  Plugins
    of the MPI libraries stay loaded: an unloaded one has no names for its leaks."""
    def program(mpi, *flags):
        where = tmp_path_factory.mktemp("triggers")
        files = sorted((top / "mpi-shim/triggers").glob("*.c"))
        command = [mpi.mpicc, *flags, "-std=gnu17", "-O1", "-g", "-fopenmp", f"-I{top}",
                   f"-I{top / 'include'}"]
        subprocess.run([*command, "-fPIC", "-shared", *files, "-o", where / "libtriggers.so"],
                       check=True, timeout=100)
        (where / "stay.c").write_text("int dlclose(void *);\nint dlclose(void *p) { return !p; }\n")
        subprocess.run([*command, top / "mpi-shim/tests/triggers.c", where / "stay.c", f"-L{where}",
                        "-ltriggers", f"-Wl,-rpath,{where}", "-o", where / "triggers"],
                       check=True, timeout=100)
        return where / "triggers"

    return program


@pytest.fixture(scope="module")
def memory_checked(compiled, mpi):
    return compiled(mpi, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("scene", SCENES)
def test_no_wrong_address_and_nothing_undefined(mpi, run_program, stock_env, memory_checked,
                                                tmp_path, scene, level):
    """Leaks of the MPI libraries are not reported."""
    (tmp_path / "theirs").write_text("\n".join(f"leak:{name}" for name in (
        "libmpich", "libmpi.so", "libopen-pal", "libopen-rte", "libfabric", "libucs", "libucp",
        "libuct", "libhwloc", "libpmix", "libze_loader", "libpsm", "libgomp", "mca_", "dlopen",
        "libevent", "libibverbs", "vasprintf")))
    env = {"LSAN_OPTIONS": f"suppressions={tmp_path / 'theirs'}:print_suppressions=0",
           "UBSAN_OPTIONS": "print_stacktrace=1", "OMP_WAIT_POLICY": "passive"}
    done = run_program(mpi.run(2, memory_checked, level, scene), {**stock_env, **env},
                       timeout=100)
    assert done.stdout == "ok\n"
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr


@pytest.fixture(scope="module")
def threads_checked(compiled, mpi):
    return compiled(mpi, "-fsanitize=thread", "-Wno-tsan")


@pytest.mark.parametrize("scene", SCENES)
def test_no_thread_of_the_library_reads_what_another_is_writing(mpi, run_program, stock_env,
                                                                threads_checked, scene):
    """The OpenMP runtime and MPI are not made for it, so a report counts if it is at a line of the
    library.  Without randomized addresses: some kernels place mappings where ThreadSanitizer has
    its own.  Without UCX's hooks of memory calls, in which any program of MPICH crashes."""
    env = {**stock_env, "UCX_MEM_EVENTS": "no", "TSAN_OPTIONS": "exitcode=0"}
    done = run_program(["setarch", "-R", *mpi.run(2, threads_checked, "3", scene)], env,
                       timeout=200)
    assert "ok\n" in done.stdout
    reports = [line for line in (done.stdout + done.stderr).splitlines() if "SUMMARY" in line]
    assert not [line for line in reports if "mpi-shim/triggers/" in line]
