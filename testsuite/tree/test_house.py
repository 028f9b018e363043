# SPDX-License-Identifier: GPL-3.0-or-later
"""The source tree keeps its rules (doc/design.md, The house)."""

import re
import subprocess
import warnings
from collections import Counter

import pytest

from lib.building import house

# What is still wrong, which may only become less: lower the number with what you mend.
AT_MOST = {"circles of includes": 0, "files in the largest circle": 0,
           "circles between folders": 0, "includes of a higher layer": 0,
           "functions in the largest knot of the OpenMP runtime": 3,
           "files in the fullest folder": 20,
           "file-scope variables": 83, "pronouns in comments and documents": 5}
# What there must be: raise the number with what you add.
AT_LEAST = {"assertions": 500}


@pytest.fixture(scope="module")
def tracked(top):
    files = house.tracked(top)
    if files is None:
        pytest.skip("not a git checkout (package git)")
    return files


@pytest.fixture(scope="module")
def figures(top, tracked):
    return house.figures(top, tracked, house.modules(top, tracked))


@pytest.mark.parametrize("what", AT_MOST)
def test_what_breaks_the_rules_of_the_house_does_not_become_more(figures, what):
    assert figures[what] <= AT_MOST[what]


def test_each_folder_of_the_product_has_a_layer(tracked):
    """Includes of a folder without a layer are not checked."""
    there = {file.parent.as_posix() for file in tracked if house.of_product(file)}
    assert sorted(house.LAYERS) == sorted(there)


def test_only_the_folder_of_the_domain_sees_its_members(top, tracked):
    assert not [file for file in tracked if house.of_product(file)
                and file.parent.as_posix() not in ("rmd/domain", "rmd/domain/watch")
                and any(name.endswith("domain_inside.h")
                        for name in house.INCLUDE.findall((top / file).read_text()))]


@pytest.mark.parametrize("what", AT_LEAST)
def test_what_the_rules_of_the_house_ask_for_does_not_become_less(figures, what):
    assert figures[what] >= AT_LEAST[what]


@pytest.fixture(scope="module")
def modules_of_tests(top):
    return sorted((top / "testsuite").rglob("test_*.py"))


def test_no_test_module_imports_from_another(modules_of_tests):
    names = "|".join(["conftest", *(path.stem for path in modules_of_tests)])
    assert not [(path.name, line) for path in modules_of_tests
                for line in path.read_text().splitlines()
                if re.match(rf"(from|import) ({names})\b", line)]


def test_a_test_module_has_a_name_of_its_own(modules_of_tests):
    """pytest imports modules by their names, without their folders."""
    assert len({path.name for path in modules_of_tests}) == len(modules_of_tests)


def test_a_folder_has_at_most_twenty_files(tracked):
    count = Counter(file.parent for file in tracked)
    assert not {folder: number for folder, number in count.items() if number > 20}


def test_names_of_tests_have_nouns_for_pronouns(modules_of_tests):
    names = [name for path in modules_of_tests
             for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)]
    assert not [name for name in names if house.PRONOUN.search(name.replace("_", " "))]


def test_a_word_of_the_glossary_has_one_row_which_names_files_that_exist(top):
    rows = re.findall(r"^\| (.*?) \|.*\|(.*)\|$", (top / "doc/glossary.md").read_text(),
                      re.MULTILINE)
    assert not [word for word, count in Counter(word for word, _ in rows).items() if count > 1]
    named = [re.sub(r"\[ch\]$", "h", name) for _, where in rows
             for name in re.findall(r"`([^`]*/[^`]*\.[^`]*)`", where)]
    assert len(named) > 100
    assert not [name for name in named if not list(top.glob(name))]


def test_messages_of_commits_are_counted(top, tmp_path):
    """Those of this checkout are told as a warning: what is pushed already cannot be mended."""
    def git(*words):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *words],
                       check=True, timeout=60, stdout=subprocess.DEVNULL)

    git("init", "--quiet")
    for message in (["one; two"], ["three", "-m", "because"], ["four"]):
        git("commit", "--allow-empty", "--no-gpg-sign", "--quiet", "-m", *message)
    assert list(house.messages(tmp_path).values()) == [3, 1, 2]
    assert list(house.messages(tmp_path, 2).values()) == [2, 0, 1]
    git("tag", "v1")
    assert list(house.messages(tmp_path).values()) == [0, 0, 0]
    if house.tracked(top) is not None:
        warnings.warn(", ".join(f"{name}: {n}" for name, n in house.messages(top).items()),
                      stacklevel=1)


def test_circles_are_found():
    graph = {1: {2}, 2: {3}, 3: {1}, 4: {1}, 5: set()}
    assert house.circles(graph) == [[1, 2, 3]]


def test_variables_of_the_process_are_found():
    text = """#define M(x) static int x
static const int limit = 3;  /* static int none; */
static const char *name, *const fixed = "a;b";
extern int elsewhere;
static __thread int own;
int shared[2] = {1, 2};
static struct pair {
    int first, second;
} pair __attribute__((aligned(64)));
struct only_a_type { int a; };
static int (*call)(int a, int b);
static _Atomic(void *) cache;
static int function(int a)
{
    static int count;
    int usual = a;
    for (;;) {
        static const int limits[] = {1, 2};
        static bool again = true;
    }
}
"""
    assert [name.split()[-1].strip("*") for name in house.variables(text)] == [
        "name", "shared[2]", "pair", "b)", "cache", "count", "again"]


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
