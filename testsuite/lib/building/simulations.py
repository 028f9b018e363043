# SPDX-License-Identifier: GPL-3.0-or-later
"""apps/swe and apps/euler compiled with other flags than the build's: under sanitizers."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

FOR_MEMORY = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
PARTS = {
    "swe": "*.cc grid/*.cc output/**/*.cc parallel/*.cc scenario/**/*.cc solver/**/*.cc "
           "studies/*.cc",
    "euler": "*.cc basis/*.cc element/*.cc mesh/*.cc output/*.cc parallel/*.cc scenario/*.cc "
             "solver/*.cc"}
PROGRAMS = ("roofline.cc", "replay.cc")  # of their own


class Simulation:
    """One with these flags, as the Makefile makes it but in one go."""

    def __init__(self, name, top, make_variable, where, flags, libraries=()):
        own = name.upper()
        if not make_variable(f"{own}_LIBS"):
            pytest.skip(f"apps/{name} is not built: a library that it needs is not there")
        self.name, self.folder, self.where = name, top / "apps" / name, where
        self.compile_words = [
            "g++", "-std=c++17", "-O1", "-g", "-fopenmp", "-ffp-contract=off",
            f"-I{top / 'include'}", "-DMPICH_SKIP_MPICXX", "-DOMPI_SKIP_MPICXX", "-Wno-psabi",
            *flags, *make_variable(f"{own}_CPPFLAGS").split(),
            *make_variable("MPI_CPPFLAGS").split()]
        self.link_words = ["g++", *flags, "-fopenmp"]
        self.libraries = [*make_variable("MPI_LIBS").split(),
                          *make_variable(f"{own}_LIBS").split(), *libraries, "-lm"]
        sources = [file for part in PARTS[name].split() for file in sorted(self.folder.glob(part))
                   if file.name not in PROGRAMS]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.objects = list(pool.map(self.compile,
                                         [*sources, *(top / "apps/lib").glob("*/*.cc")]))

    def compile(self, source):
        target = self.where / (source.parent.name + "-" + source.stem + ".o")
        subprocess.run([*self.compile_words, "-c", source, "-o", target], check=True, timeout=600)
        return target

    def link(self, name, objects):
        subprocess.run([*self.link_words, *objects, *self.libraries, "-o", self.where / name],
                       check=True, timeout=100)
        return self.where / name

    def program(self, *more):
        return self.link(self.name, [*self.objects, *map(self.compile, more)])

    def other(self, source, *more):
        """With a main of its own; where it lies in the simulation's folder."""
        mine = [self.folder / source, *more]
        parts = [file for file in self.objects if file.name != f"{self.name}-{self.name}.o"]
        return self.link(mine[0].stem, [*map(self.compile, mine), *parts])

    def compile_test_of(self, name, *more):
        return self.other(f"tests/{name}.cc", *more)


@pytest.fixture(scope="module")
def staying(tmp_path_factory):
    """Plugins of the MPI libraries stay loaded: an unloaded one has no names for its leaks."""
    file = tmp_path_factory.mktemp("stay") / "stay.cc"
    file.write_text('extern "C" int dlclose(void *) { return 0; }\n')
    return file


@pytest.fixture(scope="module")
def compiled_for_memory(request, top, make_variable, tmp_path_factory):
    """The simulation that the test module names, with AddressSanitizer."""
    return Simulation(request.module.SIMULATION, top, make_variable,
                      tmp_path_factory.mktemp("asan"), FOR_MEMORY)


@pytest.fixture(scope="module")
def memory_checked(compiled_for_memory, staying):
    return compiled_for_memory.program(staying)


@pytest.fixture(scope="module")
def threads_checked(request, top, make_variable, tmp_path_factory):
    return Simulation(request.module.SIMULATION, top, make_variable,
                      tmp_path_factory.mktemp("tsan"), ["-fsanitize=thread", "-Wno-tsan"]).program()


@pytest.fixture
def no_race(run_program, threads_checked, sanitized, mpiexec):
    """no_race(WORD, ..., ranks=0) - runs the simulation, under mpiexec if there are ranks"""

    def run(*given, ranks=0):
        # without randomized addresses: some kernels place mappings where ThreadSanitizer has its
        # own; without UCX's hooks of memory calls, in which any program of MPICH crashes under it
        start = ["setarch", "-R", sanitized / "bin/invade"]
        start += ["--", mpiexec, "-n", ranks] if ranks else ["--threads=4", "--"]
        done = run_program([*start, threads_checked, *given],
                           {"UCX_MEM_EVENTS": "no", "OMP_WAIT_POLICY": "passive"}, timeout=300)
        assert "checksum" in done.stdout
        assert "ThreadSanitizer" not in done.stdout + done.stderr
        assert "unmanaged" not in done.stderr.lower()

    return run


@pytest.fixture
def address_env(tmp_path):
    """Leaks of the MPI libraries are not reported."""
    (tmp_path / "theirs").write_text("\n".join(f"leak:{name}" for name in (
        "libmpich", "libmpi.so", "libopen-pal", "libopen-rte", "libfabric", "libucs", "libucp",
        "libuct", "libhwloc", "libpmix", "libze_loader", "libpsm")))
    return {"LSAN_OPTIONS": f"suppressions={tmp_path / 'theirs'}:print_suppressions=0",
            "UBSAN_OPTIONS": "print_stacktrace=1", "OMP_NUM_THREADS": "3",
            "OMP_WAIT_POLICY": "passive"}
