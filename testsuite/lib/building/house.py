# SPDX-License-Identifier: GPL-3.0-or-later
"""house.py [TOP] - how the source tree keeps its rules: circles of includes, includes of a higher
layer, functions of several files that call each other in a circle, the fullest folder, file-scope
variables, assertions, pronouns in place of nouns, lines, and messages of commits.  Prints a figure
a line, the circles, and the includes of a higher layer.

house.py --variables [TOP] - the file-scope variables, with static ones of functions."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TypeVar

Node = TypeVar("Node")
Function = tuple[str, str]  # file, name
CODE = ("include", "libinvasive", "libgomp-invasive", "mpi-shim", "rmd", "client", "tools")
RUNTIME = "libgomp-invasive"
# Its folders of files that upstream does not have, from below.
OWN_FOLDERS = tuple(re.search(
    r'^folders="(.*)"$', (Path(__file__).parents[3] / RUNTIME / "build.sh").read_text(),
    re.MULTILINE).group(1).split())
# Those of files that replace or wrap upstream's.
REPLACING = ("overlay", "overlay/worksharing")
TESTS = ("mpi-shim/tests",)
# Folders from the lowest to the highest: a file includes files of its own folder and of lower ones.
LAYERS = ("include", "libinvasive/base", "libinvasive/table", "libinvasive/launch",
          "libinvasive/process", "libinvasive/record", "libinvasive/hold",
          "libinvasive/member", "libinvasive",
          *(f"{RUNTIME}/{folder}" for folder in (*OWN_FOLDERS, *REPLACING)),
          "mpi-shim/abi", "mpi-shim/dispatch", "mpi-shim/ranks", "mpi-shim/measure",
          "mpi-shim/wait", "mpi-shim/arrival", "mpi-shim/calls", "mpi-shim/setup",
          "mpi-shim/triggers",
          "rmd/loop", "rmd/host", "rmd/power", "rmd/policy", "rmd/placement",
          "rmd/config", "rmd/journal", "rmd/domain", "rmd/domain/watch", "rmd/quota",
          "rmd/restart", "rmd/users", "rmd/serve", "rmd", "client", "tools/rmctl/simulate",
          "tools/rmctl", "tools/invade")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
PRONOUN = re.compile(r"\b(who|whom|whoever|nobody|somebody|everybody)\b", re.IGNORECASE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'')
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
# From the beginning of a line to the brace of a function: specifiers, name, parameters.
DEFINITION = re.compile(r"^(\w[\w\s*]*?(?:__attribute__ ?\(\([^;{}]*?\)\)[\w\s*]*?)*)\b(\w+) ?"
                        r"\(([^;{}]*)\)\n\{", re.MULTILINE)
NAME = re.compile(r"(?<![\w.>])(?<!struct )(?<!enum )[A-Za-z_]\w*")
ASSERTION = re.compile(r"\b(inv_|gomp_|rmd_|shim_)?assert\s*\(")

NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|'
                      r"^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
# No object that lives as long as the process, or none of this file.
NO_VARIABLE = re.compile(r"\b(typedef|extern|__thread|_Thread_local|_Static_assert)\b")
STATIC = re.compile(r"\bstatic\b")


def tracked(top: Path) -> list[Path] | None:
    """Files of the checkout, which may be another user's; None: `top` is no checkout."""
    listed = subprocess.run(["git", "-c", f"safe.directory={top}", "-C", str(top), "ls-files"],
                            capture_output=True, text=True, check=False, timeout=60)
    if listed.returncode != 0:
        return None
    return [Path(line) for line in listed.stdout.splitlines() if (top / line).is_file()]


def messages(top: Path, most: int = 50) -> dict[str, int]:
    """Of the commits since the last tag, or of the last `most`: how many, with ";" in the subject,
    without a body."""
    def git(*words: str) -> str:
        return subprocess.run(["git", "-c", f"safe.directory={top}", "-C", str(top), *words],
                              capture_output=True, text=True, check=False, timeout=60).stdout

    tag = git("describe", "--tags", "--abbrev=0").strip()
    log = git("log", "--no-merges", "--format=%s%x00%b%x01",
              *([f"{tag}..HEAD"] if tag else ["-n", str(most)]), "--")
    commits = [commit.strip("\n").split("\0") for commit in log.split("\1")[:-1]]
    return {"commits since the last tag" if tag else "last commits": len(commits),
            "of these with ; in the subject": sum(";" in subject for subject, _ in commits),
            "of these without a body": sum(not body.strip() for _, body in commits)}


def of_product(file: Path) -> bool:
    """Is it C of what is installed, not of tests?"""
    folder = f"{file.parent}/"
    return (file.suffix in (".c", ".h") and folder.startswith(tuple(f"{c}/" for c in CODE))
            and not folder.startswith(tuple(f"{t}/" for t in TESTS))
            and not file.name.startswith("test_"))


def modules(top: Path, files: list[Path]) -> dict[Path, set[Path]]:
    """A header and the file of the same name are one module; which other ones it includes."""
    sources = [f for f in files if of_product(f)]
    by_name: dict[str, list[Path]] = defaultdict(list)
    for file in sources:
        by_name[file.name].append(file)
    graph: dict[Path, set[Path]] = defaultdict(set)
    for file in sources:
        module = file.with_suffix("")
        graph[module] |= set()
        for name in INCLUDE.findall((top / file).read_text(errors="replace")):
            known = by_name.get(Path(name).name, [])
            if "/" in name:  # by path from the top, or relative
                paths = (Path(name), Path(os.path.normpath(file.parent / name)))
                here = [k for k in known if k in paths]
            else:
                here = ([k for k in known if k.parent == file.parent] or
                        [k for k in known if k.parts[0] in (file.parts[0], "include")])
            if len(here) == 1 and here[0].with_suffix("") != module:
                graph[module].add(here[0].with_suffix(""))
    return graph


def functions(text: str) -> list[tuple[str, bool, str]]:
    """The functions that C in our style defines: name, whether it is static, body."""
    text = STRING.sub("0", COMMENT.sub(" ", text))
    text = DIRECTIVE.sub("", text)
    return [(d[2], "static" in d[1].split(), text[d.end():text.find("\n}", d.end())])
            for d in DEFINITION.finditer(text)]


def calls(top: Path, files: list[Path], part: str) -> dict[Function, set[Function]]:
    """Which function names which other one, to call it or to have it called, in the sources below
    `part`; what is called by a pointer that another function has set does not count."""
    local: dict[str, dict[str, str]] = {}
    shared: dict[str, Function] = {}
    for file in files:
        if not of_product(file) or file.parts[0] != part:
            continue
        local[str(file)] = {}
        for name, static, body in functions((top / file).read_text(errors="replace")):
            local[str(file)][name] = body
            if not static or file.suffix == ".h":
                shared[name] = (str(file), name)
    return {(file, name): {(file, other) if other in known else shared[other]
                           for other in NAME.findall(body) if other in known or other in shared}
            for file, known in local.items() for name, body in known.items()}


def knots(graph: dict[Function, set[Function]]) -> list[list[Function]]:
    """Functions of more than one file that call each other in a circle, the most first."""
    return [c for c in circles(graph) if len({file for file, _ in c}) > 1]


def circles(graph: dict[Node, set[Node]]) -> list[list[Node]]:
    """Strongly connected components of more than one node (Tarjan), the largest first."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    found: list[list[Node]] = []

    def visit(node: Node) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted((c for c in found if len(c) > 1), key=len, reverse=True)


def upward(graph: dict[Path, set[Path]]) -> list[tuple[Path, Path]]:
    """Includes of a file in a higher layer."""
    level = {Path(folder): i for i, folder in enumerate(LAYERS)}
    return sorted((module, other) for module, others in graph.items() for other in others
                  if module.parent in level and other.parent in level
                  and level[other.parent] > level[module.parent])


def statements(text: str) -> list[tuple[int, str]]:
    """Statements and definitions of C without comments and strings: the depth of braces of each and
    its text, in which "{}" stands for what is in braces.  Those in a function's body follow it."""
    found = []
    opened: list[tuple[str, bool]] = []  # the text before the brace; is it a body?
    now = ""
    for char in text:
        if char == "{":
            body = now.rstrip().endswith((")", "else", "do", ":")) or not now.strip()
            opened.append((now, body))
            now = ""
        elif char == "}":
            before, body = opened.pop() if opened else ("", True)
            now = "" if body else before + "{}"
        elif char == ";" and all(body for _, body in opened):
            found.append((len(opened), " ".join(now.split())))
            now = ""
        else:
            now += char
    return found


def declarators(statement: str) -> list[str]:
    """int *a = f(x, y), b[2] -> ["int *a = f(x, y)", "b[2]"]"""
    parts, depth, now = [], 0, ""
    for char in statement:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(now)
            now = ""
        else:
            now += char
    return [*parts, now]


def variables(text: str) -> list[str]:
    """What a C file defines that lives as long as the process and is not constant."""
    code = NOT_CODE.sub(" ", text)
    found = []
    for depth, statement in statements(ATTRIBUTE.sub(" ", code)):
        static = STATIC.match(statement)
        if NO_VARIABLE.search(statement) or (depth and not static):
            continue
        for part in declarators(statement):
            name = part.split("=")[0].strip()
            pointee, star, rest = name.rpartition("*")
            constant = "const" in (rest if star else statement.split("=")[0]).split()
            function = re.search(r"\w\s*\([^*]", name) and "_Atomic(" not in name
            type_only = re.fullmatch(r"(struct|union|enum)( \w+)?( ?\{\})?", name)
            if name and not constant and not function and not type_only:
                found.append(name)
    return found


def pronouns(top: Path, files: list[Path]) -> int:
    """The number of pronouns in comments of C and C++, and in documents."""
    count = 0
    for file in files:
        if file.suffix in (".c", ".h", ".cc", ".cpp"):
            text = " ".join(COMMENT.findall((top / file).read_text(errors="replace")))
        elif file.suffix in (".md", ".1", ".5", ".7", ".8"):
            text = (top / file).read_text(errors="replace")
        else:
            continue
        count += len(PRONOUN.findall(text))
    return count


def lines_of_code(text: str) -> int:
    """Those of C with more than a comment."""
    return sum(bool(line.strip()) for line in COMMENT.sub("", text).splitlines())


def figures(top: Path, files: list[Path], graph: dict[Path, set[Path]]) -> dict[str, int]:
    """graph: of the modules."""
    found = circles(graph)
    code = [f for f in files if of_product(f)]
    tangled = knots(calls(top, files, RUNTIME))
    folders = Counter(f.parent for f in code)
    return {
        "circles of includes": len(found),
        "files in the largest circle": len(found[0]) if found else 0,
        "circles between folders": sum(len({m.parent for m in c}) > 1 for c in found),
        "includes of a higher layer": len(upward(graph)),
        "functions in the largest knot of the OpenMP runtime": len(tangled[0]) if tangled else 0,
        "files in the fullest folder": max(folders.values()),
        "file-scope variables": len(variables_of_product(top, files)),
        "assertions": sum(len(ASSERTION.findall((top / f).read_text(errors="replace")))
                          for f in code),
        "pronouns in comments and documents": pronouns(top, files),
        "lines of code of the product": sum(lines_of_code((top / f).read_text(errors="replace"))
                                            for f in code),
        "lines of the repository": sum((top / f).read_bytes().count(b"\n") for f in files
                                       if not (top / f).is_symlink()),
    }


def variables_of_product(top: Path, files: list[Path]) -> list[tuple[Path, str]]:
    return [(file, name) for file in files if of_product(file) and file.suffix == ".c"
            for name in variables((top / file).read_text(errors="replace"))]


def main() -> None:
    parser = argparse.ArgumentParser(description="How the source tree keeps its rules.")
    parser.add_argument("top", nargs="?", type=Path, default=Path(__file__).resolve().parents[3],
                        metavar="TOP", help="a checkout")
    parser.add_argument("--variables", action="store_true", help="list the file-scope variables")
    asked = parser.parse_args()
    top = asked.top
    files = tracked(top)
    if files is None:
        sys.exit(f"house.py: {top} is no git checkout")
    if asked.variables:
        for file, name in variables_of_product(top, files):
            print(f"{file}: {name}")
        return
    graph = modules(top, files)
    for name, value in {**figures(top, files, graph), **messages(top)}.items():
        print(f"{name}: {value}")
    for circle in circles(graph):
        print("circle:", *circle)
    for knot in knots(calls(top, files, RUNTIME)):
        print("knot:", *(f"{Path(file).name}:{name}" for file, name in knot))
    for module, other in upward(graph):
        print("higher layer:", module, "includes", other)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # house.py | head
    main()
