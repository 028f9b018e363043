# SPDX-License-Identifier: GPL-3.0-or-later
"""What libgomp's own testsuite does not cover: the programs in programs/, each of which states its
promise in its first lines, with the stock library and with ours in all the states it can be in.
"""

import re

import pytest

from lib.omp_programs import CONDITIONS, SOURCES, source_of, tags


def cases():
    for path in sorted(SOURCES.rglob("*.c")):
        about = tags(path)
        if "helper" in about:
            continue
        for condition in CONDITIONS:
            if (condition == "emulated") != ("emulated" in about):
                continue
            if condition == "stock" and "mends" in about:
                continue
            if condition == "crowd" and "managed" in about:
                continue  # some of a crowd find no core in time, and run unmanaged
            if condition == "changing" and "changing" not in about:
                continue
            for argument in about.get("each", [""])[0].split() or [None]:
                name = f"{path.stem}-{argument}" if argument else path.stem
                # That a promise is OpenMP's, and not ours alone, changes with the program only.
                # One core is had by pairs and crowds, too.
                marks = [pytest.mark.full] if condition in ("stock", "one-core") else []
                yield pytest.param(path.stem, argument, condition, id=f"{name}-{condition}",
                                   marks=marks)


@pytest.mark.parametrize("name, argument, condition", list(cases()))
def test_each_program_keeps_its_promise(
        name, argument, condition, omp_program, in_condition, run_program):
    about = tags(source_of(name))
    words, environment, count = in_condition(condition)
    environment = {**environment, **dict(text.split("=", 1) for text in about.get("env", []))}
    command = [*words, omp_program(name)]
    if "plugin" in about:
        command.append(omp_program(about["plugin"][0], "-shared", "-fPIC"))
    elif argument:
        command.append(argument)
    ran = run_program(command, env=environment, timeout=90, check=False)
    wanted = int(about.get("status", ["0"])[0])
    assert ran.returncode == wanted, f"exit status {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    # Nothing but the program itself writes to its standard output.
    assert ran.stdout == "OK\n" * count, ran.stdout


@pytest.mark.parametrize("name", ["README.md", "doc/design.md", "doc/man/invasive.7"])
def test_what_is_said_of_results_is_what_results_c_checks(top, name):
    """Namely: static loops and tasks bitwise, reduction clauses in the order of threads."""
    text = re.sub(r"\s+", " ", (top / name).read_text())
    assert re.search(r"static loops? (and tasks|that sums).{0,40}bitwise|bitwise for static loops "
                     "and tasks", text)
    assert re.search(r"reduction.{0,120}in the order in which (the )?(these|threads)", text)
    assert "so results do not depend" not in text and "and so its results" not in text
