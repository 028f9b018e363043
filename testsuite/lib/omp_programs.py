# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs in runtime/programs, each of which states its promise in its first lines, and the
states that the runtime can be in."""

import os
import re
import subprocess

import pytest

from lib.building.build import TOP

SOURCES = TOP / "testsuite/runtime/programs"
WARNINGS = "-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror".split()


# How the program runs: how often at once in one domain, and invade's options.
CONDITIONS = {
    "stock": None,
    "unmanaged": None,
    "managed": (1, []),
    "one-core": (1, ["--cores={first}"]),
    "pair": (2, []),  # cores are lent and reclaimed between the two
    "crowd": (3, ["--cores={two}"]),  # more processes than cores: one of them owns none
    "changing": (1, []),  # cores come and go every millisecond; for programs tagged so
    "emulated": (1, ["--emulate-cores=8"]),  # likewise, and these run in no other
}


# Runs its first argument COUNT times at once; fails if one of them does.
AT_ONCE = """
count=$1; shift; pids=; bad=0
while [ $count -gt 0 ]; do "$@" & pids="$pids $!"; count=$((count - 1)); done
for pid in $pids; do wait $pid || bad=$?; done
exit $bad
"""


def source_of(name):
    """The file of a program, in whichever folder it is."""
    found, = SOURCES.rglob(f"{name}.*")
    return found


def tags(path):
    """The @words in the comment at the head of a program: {word: [texts]}"""
    head = path.read_text().split("*/\n#include", 1)[0]
    found = {}
    for word, text in re.findall(r"^ \* @(\w+) ?(.*)$", head, re.MULTILINE):
        found.setdefault(word, []).append(text)
    return found


@pytest.fixture(scope="session")
def omp_program(tmp_path_factory, make_variable):
    """omp_program(NAME) - the path of such a program, compiled by the first test that needs
    it."""
    directory = tmp_path_factory.mktemp("omp")
    compiler = (make_variable("CC") or "gcc").split()

    def compile_program(name, *options):
        program = directory / name
        if not program.exists():
            source = source_of(name)
            openmp = [] if "plain" in tags(source) else ["-fopenmp"]
            subprocess.run(
                [*compiler, "-O2", *WARNINGS, *openmp, *options, source, "-o", program]
                + ["-lpthread", "-ldl", "-lm"],
                check=True, timeout=60,
            )
        return program

    return compile_program


@pytest.fixture(scope="session")
def shake(build, top, tmp_path_factory, make_variable):
    """The program that makes the cores of its command change."""
    program = tmp_path_factory.mktemp("shake") / "shake"
    libraries = build / "lib/invasive"
    subprocess.run(
        [*(make_variable("CC") or "gcc").split(), "-O2",
         top / "testsuite/runtime/builds/upstream/shake.c"]
        + [f"-I{top}", f"-I{top}/include", f"-L{libraries}", "-l:libinvasive-process.so"]
        + [f"-Wl,-rpath,{libraries}", "-o", program],
        check=True, timeout=60,
    )
    return program


@pytest.fixture
def in_condition(build, request):
    """in_condition(NAME) -> (words before the command, environment, how many run at once)"""

    def prepare(condition):
        if condition == "stock":  # more threads than cores, that spin by turns, take half a minute
            return [], {"OMP_WAIT_POLICY": "passive"}, 1
        if condition == "unmanaged":
            library = build / "lib/invasive"
            if not (library / "libgomp.so.1").exists():
                pytest.skip("libgomp-invasive is not built")
            return [], {"LD_LIBRARY_PATH": f"{library}:{library.parent}"}, 1
        invade = build / "invade"
        if not invade.exists():
            pytest.skip("invade is not built")
        count, options = CONDITIONS[condition]
        cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
        two = ",".join(cpus[:2])
        words = [str(invade), *(o.format(first=cpus[0], two=two) for o in options), "--"]
        if condition == "changing":
            words.append(request.getfixturevalue("shake"))
        if count > 1:
            words += ["sh", "-c", AT_ONCE, "sh", str(count)]
        return words, {}, count

    return prepare
