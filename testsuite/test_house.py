# SPDX-License-Identifier: GPL-3.0-or-later
"""The source tree keeps its rules (doc/design.md, The house)."""

import house
import pytest

# What is still wrong, which may only become less: lower the number with what you mend.
AT_MOST = {"circles of includes": 6, "files in the largest circle": 16,
           "circles between folders": 1, "includes of a higher layer": 27,
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


def test_no_files_of_the_resource_manager_include_each_other_in_a_circle(top):
    files = house.tracked(top)
    if files is None:
        pytest.skip("not a git checkout (package git)")
    assert not [circle for circle in house.circles(house.modules(top, files))
                if circle[0].parts[0] in ("rmd", "client", "tools")]


def test_only_the_folder_of_the_domain_sees_its_members(top):
    files = house.tracked(top)
    if files is None:
        pytest.skip("not a git checkout (package git)")
    assert not [file for file in files if house.of_product(file)
                and file.parent.as_posix() != "rmd/domain"
                and any(name.endswith("domain_inside.h")
                        for name in house.INCLUDE.findall((top / file).read_text()))]


@pytest.mark.parametrize("what", AT_LEAST)
def test_what_the_rules_of_the_house_ask_for_does_not_become_less(figures, what):
    assert figures[what] >= AT_LEAST[what]


def test_circles_are_found():
    graph = {1: {2}, 2: {3}, 3: {1}, 4: {1}, 5: set()}
    assert house.circles(graph) == [[1, 2, 3]]
