# SPDX-License-Identifier: GPL-3.0-or-later
"""inv_assert (libinvasive/base/assertion.h): what it does in a build with assertions, and
that it costs nothing in one without."""

import signal
import subprocess

import pytest

PROGRAM = """
#include "libinvasive/base/assertion.h"
#include <stdio.h>
int main(int argc, char **argv)
{
    (void)argv;
    inv_assert(argc > 0);
    printf("printed\\n");
    fflush(stdout);
    inv_assert(argc == 2 && "percent %d");
    return 0;
}
"""


@pytest.fixture(scope="module")
def compile_program(top, make_variable, tmp_path_factory):
    """Compiles text with more options of the compiler; returns what it has made."""
    def compiled(text, *options):
        directory = tmp_path_factory.mktemp("assertion")
        source, made = directory / "program.c", directory / "made"
        source.write_text(text)
        subprocess.run([*make_variable("CC").split(), "-std=gnu17", "-O2", "-Wall", "-Wextra",
                        "-Werror", "-I", top, *options, "-o", made, source], check=True, timeout=60)
        return made
    return compiled


def test_a_broken_assertion_says_where_and_ends_the_process(compile_program):
    done = subprocess.run([compile_program(PROGRAM, "-DINV_ASSERTIONS")], capture_output=True,
                          text=True, check=False, timeout=20)
    assert done.returncode == -signal.SIGABRT and done.stdout == "printed\n"
    line, = done.stderr.splitlines()
    assert line.startswith("invasive: assertion failed: ")
    assert line.endswith('program.c:10: argc == 2 && "percent %d"')


def test_without_the_option_an_assertion_is_no_code(compile_program):
    stated = "int f(int *p) { *p += 1; inv_assert(*p > 0); return *p; }\n"
    header = '#include "libinvasive/base/assertion.h"\n'
    made = [compile_program(header + text, "-S", "-g0").read_text()
            for text in (stated, stated.replace("inv_assert(*p > 0); ", ""))]
    assert made[0] == made[1] and "abort" not in made[0]


def test_without_the_option_an_assertion_is_checked_for_its_types(compile_program):
    with pytest.raises(subprocess.CalledProcessError):
        compile_program('#include "libinvasive/base/assertion.h"\n'
                        "void f(void) { inv_assert(no_such); }\n", "-c")


def test_what_is_tested_has_assertions_and_what_is_installed_has_none(top):
    option = "--enable-assertions"
    assert option in (top / "run-tests").read_text()
    assert option not in (top / "quickstart").read_text()
