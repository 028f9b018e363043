# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of the OpenMP runtime, compiled with the headers of upstream's libgomp and of the folders
below them, and linked with a program that stands for the folders above them."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from lib.building.build import TOP
from lib.building.house import OWN_FOLDERS
from lib.building.sources import runtime_file

# overlay/ is above all folders, but for the headers that stand for upstream's: they come to each
# file with upstream's libgomp.h.
UPSTREAM = ("bar.h", "simple-bar.h")
PROGRAMS = TOP / "testsuite/runtime/structures/programs"


def up_to(folder):
    """The folder and those below it."""
    return OWN_FOLDERS[:OWN_FOLDERS.index(folder) + 1]


@pytest.fixture(scope="session")
def part_headers(build, top, make_variable, tmp_path_factory):
    """part_headers(FOLDERS) - the compiler's options for the headers of those folders, and of
    upstream's libgomp, as the build has configured it."""
    if make_variable("GCC_SOURCE") in ("", "no"):
        pytest.skip("configured without the source of libgomp")
    work, source = build / "libgomp-invasive/libgomp-build", build / "libgomp-invasive/src"
    configured = re.search("^config_path = (.*)$", (work / "Makefile").read_text(), re.MULTILINE)
    upstream = tmp_path_factory.mktemp("upstream")
    for name in UPSTREAM:
        shutil.copy(top / "libgomp-invasive/overlay" / name, upstream)
    last = [work, upstream, *(source / "libgomp/config" / part for part in configured[1].split()),
            source / "libgomp", source / "include", source]

    def options(folders):
        first = [*(top / "libgomp-invasive" / folder for folder in folders), top, top / "include"]
        return ["-DHAVE_CONFIG_H", "-DINV_ASSERTIONS", "-pthread",
                *(word for folder in first for word in ("-I", folder)),
                *(word for folder in last for word in ("-isystem", folder))]

    return options


@pytest.fixture(scope="session")
def compile_part(top, make_variable, part_headers, tmp_path_factory):
    """compile_part(PROGRAM, FILES, FOLDER, SANITIZERS) - the command that runs a program of
    runtime/structures/programs: it is linked with files of FOLDER and of those below it."""

    def compile_all(program, files, folder, sanitizers):
        result = tmp_path_factory.mktemp(program) / program
        source = top / "libgomp-invasive"
        files = [runtime_file(top, name) for name in files]
        assert {file.parent.relative_to(source).as_posix() for file in files} <= {*up_to(folder)}
        subprocess.run(
            [*make_variable("CC").split(), "-std=gnu17", "-O1", "-g", *part_headers(up_to(folder)),
             "-Wall", "-Wextra", "-Wshadow", "-Werror", "-Wno-tsan", "-Wno-unused-function",
             f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all",
             PROGRAMS / f"{program}.c", PROGRAMS / "upstream.c", *files, "-o", result],
            check=True, timeout=100)
        # without randomized addresses: some kernels place mappings where the sanitizer has its own
        return ["setarch", "-R", result]

    return compile_all


@pytest.fixture(params=["thread", "address,undefined"])
def run_stress(request, compile_part, run_program):
    """run_stress(PROGRAM, FILES, FOLDER) - what a program says, compiled as by compile_part, whose
    threads do something 2000 times; no sanitizer complains."""

    def run(program, files, folder):
        command = compile_part(program, files, folder, request.param)
        result = run_program([*command, "2000"], timeout=220,
                             env={"TSAN_OPTIONS": "halt_on_error=1"})
        assert result.stderr == ""
        return result.stdout

    return run


class Conversation:
    """A program that answers each line with a line."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(self, *words):
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise AssertionError(f"{words}: the program has ended: {self.process.stderr.read()}")
        return answer.rstrip("\n")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """At the end of its input the program ends, without memory that it has lost."""
        if kind:
            self.process.kill()
        said = self.process.communicate(timeout=60)[1]
        assert kind or (self.process.returncode, said) == (0, "")
