# SPDX-License-Identifier: GPL-3.0-or-later
"""The source tree keeps its rules (doc/design.md, The house)."""

import house
import pytest

# What is still wrong, which may only become less: lower the number with what you mend.
AT_MOST = {"circles of includes": 5, "files in the largest circle": 12,
           "circles between folders": 0, "includes of a higher layer": 0,
           "functions in the largest knot of the OpenMP runtime": 3,
           "files in the fullest folder": 58,
           "pronouns in comments and documents": 10}
# What there must be: raise the number with what you add.
AT_LEAST = {"assertions": 476}


@pytest.fixture(scope="module")
def figures(top):
    files = house.tracked(top)
    if files is None:
        pytest.skip("not a git checkout (package git)")
    return house.figures(top, files, house.modules(top, files))


@pytest.mark.parametrize("what", AT_MOST)
def test_what_breaks_the_rules_of_the_house_does_not_become_more(figures, what):
    assert figures[what] <= AT_MOST[what]


def test_nothing_of_the_resource_manager_includes_a_higher_layer(top):
    files = house.tracked(top)
    if files is None:
        pytest.skip("not a git checkout (package git)")
    assert not [(module, other) for module, other in house.upward(house.modules(top, files))
                if module.parts[0] in ("rmd", "client", "tools")]


@pytest.mark.parametrize("what", AT_LEAST)
def test_what_the_rules_of_the_house_ask_for_does_not_become_less(figures, what):
    assert figures[what] >= AT_LEAST[what]


def test_circles_are_found():
    graph = {1: {2}, 2: {3}, 3: {1}, 4: {1}, 5: set()}
    assert house.circles(graph) == [[1, 2, 3]]


def test_functions_of_several_files_that_need_each_other_are_found(tmp_path):
    folder = tmp_path / house.RUNTIME
    folder.mkdir()
    (folder / "a.c").write_text("static void own (int x)\n{\n    below(x); /* own() */\n}\n"
                                "extern int declared (void);\n"
                                "bool __attribute__((cold)) first (void)\n{\n    own(1);\n}\n")
    (folder / "b.c").write_text('void below (struct first *x)\n'
                                '{\n    say("first");\n    start(first, x);\n}\n'
                                "int apart (void)\n{\n    return x.first + declared();\n}\n")
    files = [file.relative_to(tmp_path) for file in folder.iterdir()]
    knot, = house.knots(house.calls(tmp_path, files, house.RUNTIME))
    assert [name for _, name in knot] == ["first", "own", "below"]
