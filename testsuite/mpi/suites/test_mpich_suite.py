# SPDX-License-Identifier: GPL-3.0-or-later
"""MPICH's own test programs, from Debian's source package, pass under invade where they pass
without."""

import re
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]
PROGRAM_S = 30
MOST_RANKS = 10
KINDS = ["attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "io", "pt2pt",
         "rma", "topo"]
LANGUAGES = ["", "cxx/", "f77/", "f90/", "f08/", "errors/"]
THREADS = ["threads/coll", "threads/comm", "threads/init", "threads/part", "threads/pt2pt",
           "threads/rma"]
DIRECTORIES = [f"{language}{kind}" for language in LANGUAGES for kind in KINDS] + THREADS + ["part"]
# No such directory, or nothing in it.
NONE = {"cxx/group", "cxx/topo", "f77/errhan", "f77/group", "f90/errhan", "f90/group", "f08/errhan",
        "f08/group", "errors/errhan", "errors/info", "errors/init"}


def apt_options(where):
    """For apt-get: the source packages of where the binary ones come from, and lists in WHERE."""
    columns = "deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)"
    targets = subprocess.run(["apt-get", "indextargets", "--format", columns,
                              "Created-By: Packages", "Origin: Debian"], capture_output=True,
                             text=True, check=False).stdout
    (where / "sources.list").write_text("".join(sorted(set(targets.splitlines(True)))))
    (where / "lists/partial").mkdir(parents=True)
    return ["-q", "-o", f"Dir::Etc::sourcelist={where}/sources.list",
            "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={where}/lists",
            "-o", "Dir::Cache::srcpkgcache=", "-o", "Dir::Cache::pkgcache="]


@pytest.fixture(scope="session")
def mpich_tests(tmp_path_factory):
    """The directory of the tests in the unpacked source."""
    where = tmp_path_factory.mktemp("mpich")
    options = apt_options(where)
    for command in ["update"], ["--download-only", "source", "mpich"]:
        got = subprocess.run(["apt-get", *options, *command], cwd=where, timeout=900, check=False,
                             capture_output=True, text=True)
        if got.returncode != 0:
            pytest.skip(f"cannot get the source package of mpich: {got.stderr[-500:]}")
    archive = next(where.glob("mpich_*.orig.tar.*"))
    subprocess.run(["tar", "xf", archive, "--wildcards", "*/test/mpi", "*/confdb"], cwd=where,
                   check=True)
    return next(where.glob("mpich-*")) / "test/mpi"


@pytest.fixture(scope="session")
def configured(mpich_tests, stock_env, tmp_path_factory):
    """A configured directory in which make builds the programs."""
    where = tmp_path_factory.mktemp("made")
    compilers = [f"{variable}={wrapper}.mpich" for variable, wrapper in
                 (("MPICC", "mpicc"), ("MPICXX", "mpicxx"), ("MPIFC", "mpif90"),
                  ("MPIF77", "mpif77"), ("MPIEXEC", "mpiexec"))]
    subprocess.run([mpich_tests / "configure", "CC=gcc", *compilers, "--disable-maintainer-mode"],
                   cwd=where, env=stock_env, timeout=900, check=True, capture_output=True)
    # configure knows whether there is mpi_f08 only as a part of MPICH's own.
    subprocess.run(["make", "-s", "-C", where / "util", "libmtest_f08.la",
                    "am_libmtest_f08_la_OBJECTS=mtest_f08.lo"], env=stock_env, timeout=300,
                   check=True, capture_output=True)
    return where


def programs(directory, source):
    """(name, ranks, arguments, environment) of each line of testlist that can run here."""
    path = directory / "testlist"
    text = (path if path.exists() else source / "testlist").read_text()
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if len(words) < 2 or not words[1].isdigit() or int(words[1]) > MOST_RANKS:
            continue
        options = [word.partition("=")[::2] for word in words[2:]]
        if any(key in ("mem", "strict", "xfail") for key, _ in options) or "CVAR" in line:
            continue  # needs gigabytes; fails; about settings of MPICH
        yield (words[0], words[1], [value for key, value in options if key == "arg"],
               dict(value.split("=", 1) for key, value in options if key == "env"))


@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)  # others lack what the tools of it use
@pytest.mark.parametrize("name", [name for name in DIRECTORIES if name not in NONE])
def test_what_passes_without_us_passes_with_us(configured, mpich_tests, mpi, invade, run_program,
                                               name):
    directory = configured / name

    def passes(launcher, ranks, command, env):
        try:
            done = run_program([*launcher, *mpi.run(ranks, *command)], env=env, cwd=directory,
                               timeout=PROGRAM_S, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0 and re.search("^ *No Errors", done.stdout, re.M) is not None

    failed, passed = [], 0
    for program, ranks, arguments, env in programs(directory, mpich_tests / name):
        made = run_program(["make", "-s", program], cwd=directory, timeout=300, check=False)
        command = [f"./{program}", *arguments]
        if made.returncode != 0:
            continue
        if passes([invade, "--"], ranks, command, env):
            passed += 1
        elif passes([], ranks, command, env):
            failed.append((ranks, *command))
    print(f"{name}: {passed} passed", file=sys.stderr)
    assert not failed
    assert passed > 0
