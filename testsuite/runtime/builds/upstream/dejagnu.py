# SPDX-License-Identifier: GPL-3.0-or-later
"""Compile libgomp's testsuite once, by DejaGnu, and keep the programs for the replay.

DejaGnu decides which tests apply, with which options and environment, and judges the compilation;
`cc` and `record` in this directory take the place of compiler and execution so that every program
is kept. DejaGnu takes minutes for this. The programs do not depend on the library under test (they
bind to any libgomp.so.1 at run time), so all libraries and conditions share one pass.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FORMAT = 3  # of the record; a change makes old ones be compiled again
LANGUAGES = {"c": "c.exp", "c++": "c++.exp", "fortran": "fortran.exp"}
COMPILERS = {"GCC": "gcc", "GXX": "g++", "GFORTRAN": "gfortran"}

# Parts of the source package that the testsuite needs, and what must stay away: the OpenACC drivers
# are called c.exp, c++.exp and fortran.exp as well, and runtest selects by that name. (Their tests
# may stay: one of them is included by an OpenMP test.)
NEEDED = ["libgomp", "gcc/testsuite/lib", "include"]
UNWANTED = ["libgomp/testsuite/libgomp.oacc*/*.exp", "libgomp/testsuite/libgomp.g*"]

# What DejaGnu's libgomp-test-support.exp says of offloading: there is none here.
SUPPORT = "".join(
    f'set {name} ""\n'
    for name in (
        "cuda_driver_include cuda_driver_lib hsa_runtime_lib offload_plugins offload_targets "
        "offload_additional_options offload_additional_lib_paths"
    ).split()
)


def find_source():
    """The compiler's source package that matches gcc, or None."""
    major = output("gcc", "-dumpversion").split(".")[0]
    found = sorted(Path("/usr/src").glob(f"gcc-{major}*/gcc-{major}*.tar.*"))
    return found[-1] if found else None


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def stamp(source):
    """What the kept programs depend on: another compiler or source means another pass."""
    status = source.stat()
    return {
        "format": FORMAT,
        "source": [str(source), status.st_size, int(status.st_mtime)],
        "compilers": [output(name, "--version").splitlines()[0] for name in COMPILERS.values()],
    }


def extract(source, tree):
    """Unpack the needed parts of the compiler's source, a tar archive or a directory, into TREE."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    if source.is_dir():
        for part in NEEDED:
            shutil.copytree(source / part, tree / part, symlinks=True)
        for pattern in UNWANTED:
            for unwanted in tree.glob(pattern):
                shutil.rmtree(unwanted) if unwanted.is_dir() else unwanted.unlink()
    else:
        command = ["tar", "-xf", source, "-C", tree, "--strip-components=1", "--anchored"]
        command += ["--wildcards", "--no-wildcards-match-slash"]
        command += [f"--exclude=*/{pattern}" for pattern in UNWANTED]
        command += [f"*/{part}" for part in NEEDED]
        subprocess.run(command, check=True)
    if not (tree / "libgomp/testsuite/libgomp.c/c.exp").exists():
        sys.exit(f"upstream: {source} holds no libgomp testsuite")
    # affinity-1 includes the configured library's config.h, for this one line.
    (tree / "libgomp/config.h").write_text("#define HAVE_PTHREAD_AFFINITY_NP 1\n")


def write_settings(directory, tree):
    """The files that runtest expects in its working directory, for "installed" mode: the system
    compiler links with its own library, and nothing is taken from a build tree.
    """
    boards = directory / "boards"
    boards.mkdir()
    # The name must be unix: DejaGnu takes any other board for a remote machine.
    (boards / "unix.exp").write_text(
        f'load_generic_config "unix"\nset_board_info compiler "[find_gcc]"\n'
        f'set_board_info exec_shell "{HERE}/record"\n'
    )
    (directory / "libgomp-test-support.exp").write_text(SUPPORT)
    triplet = output("gcc", "-dumpmachine")
    (directory / "site.exp").write_text(
        f'set tool libgomp\nset srcdir "{tree}/libgomp/testsuite"\nset objdir "{directory}"\n'
        + "".join(f'set {role}_triplet "{triplet}"\n' for role in ("build", "host", "target"))
        + "".join(f'set {n}_UNDER_TEST "{HERE}/cc {c}"\n' for n, c in COMPILERS.items())
        + f'lappend boards_dir "{boards}"\n'
    )


def run_language(language, names, tree, work, programs, jobs, limit):
    """Run JOBS runtest processes that share the tests of LANGUAGE, all or those named; return the
    compiler's failures as DejaGnu names them.
    """
    # libgomp.exp looks for an entry `libgomp` here and in four ancestors and, if there is one,
    # tests that build tree instead, without C++. So each process runs five levels down.
    shards = work / "dejagnu" / language / "this" / "is" / "deep"
    tickets = shards / "tickets"
    tickets.mkdir(parents=True)
    environment = dict(os.environ)
    for name in list(environment):
        if name.startswith(("OMP_", "GOMP_", "INVASIVE", "DEJAGNU")):
            del environment[name]
    environment.update(
        UPSTREAM_RECORD=str(programs),
        UPSTREAM_TESTS=f"{tree}/libgomp/testsuite",
        UPSTREAM_LANGUAGE=language,
        GCC_RUNTEST_PARALLELIZE_DIR=str(tickets),  # GCC's own way to share out the tests
    )
    select = LANGUAGES[language] + ("=" + " ".join(names) if names else "")
    running = []
    for shard in range(jobs):
        directory = shards / str(shard)
        directory.mkdir()
        write_settings(directory, tree)
        with open(directory / "output", "wb") as log:
            running.append(
                subprocess.Popen(
                    ["runtest", "--tool", "libgomp", select],
                    cwd=directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
    try:
        for process in running:
            process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        sys.exit(f"upstream: runtest took more than {limit} s; its output is in {shards}")
    finally:
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return [
        line.rstrip("\n")
        for summary in sorted(shards.glob("*/libgomp.sum"))
        for line in open(summary, encoding="utf-8", errors="replace")
        if line.startswith(("FAIL", "ERROR", "UNRESOLVED")) and "execution test" not in line
        and "output pattern" not in line
    ]


def prepare(work, source, subset, quick_files, jobs, limit=1800):
    """Return the directory of the programs of SUBSET ("quick" or "full") below WORK, compiled now
    unless that was done before, and the list of the compiler's failures.

    quick_files: {language: names of source files} that make up the quick subset.
    """
    wanted = stamp(source)
    for name in ("full", subset):
        # A complete pass serves the quick subset too.
        try:
            kept = json.loads((work / name / "stamp.json").read_text())
        except (OSError, ValueError):
            continue
        if kept["stamp"] == wanted and (name == "full" or kept["names"] == quick_files):
            return work / name / "programs", kept["failures"]

    directory = work / subset
    shutil.rmtree(directory, ignore_errors=True)
    programs = directory / "programs"
    programs.mkdir(parents=True)
    tree = directory / "source"
    extract(source, tree)
    failures = []
    for language in LANGUAGES:
        names = None if subset == "full" else quick_files[language]
        failures += run_language(language, names, tree, directory, programs, jobs, limit)
        if not any(entry.name.startswith(language + ":") for entry in programs.iterdir()):
            sys.exit(f"upstream: DejaGnu compiled no {language} program; see {directory}/dejagnu")
    (directory / "stamp.json").write_text(
        json.dumps({"stamp": wanted, "names": quick_files, "failures": failures}, indent=1)
    )
    return programs, failures
