# SPDX-License-Identifier: GPL-3.0-or-later
"""house.py [TOP] - how the source tree keeps its rules: circles of includes, the fullest folder,
assertions, and pronouns in place of nouns.  Prints a figure a line, and the circles."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

CODE = ("include", "libinvasive", "libgomp-invasive/overlay", "mpi-shim", "rmd", "tools")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
PRONOUN = re.compile(r"\b(who|whom|whoever|nobody|somebody|everybody)\b", re.IGNORECASE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
ASSERTION = re.compile(r"\b(inv_|gomp_|rmd_|shim_)?assert\s*\(")


def tracked(top: Path) -> list[Path] | None:
    """Files of the checkout, which may be another user's; None: `top` is no checkout."""
    listed = subprocess.run(["git", "-c", f"safe.directory={top}", "-C", str(top), "ls-files"],
                            capture_output=True, text=True, check=False, timeout=60)
    if listed.returncode != 0:
        return None
    return [Path(line) for line in listed.stdout.splitlines() if (top / line).is_file()]


def modules(top: Path, files: list[Path]) -> dict[Path, set[Path]]:
    """{module: modules that it includes}; a header and the file of the same name are one module."""
    sources = [f for f in files if f.suffix in (".c", ".h") and str(f.parent) in CODE
               and not f.name.startswith("test_")]
    by_name: dict[str, list[Path]] = defaultdict(list)
    for file in sources:
        by_name[file.name].append(file)
    graph: dict[Path, set[Path]] = defaultdict(set)
    for file in sources:
        module = file.with_suffix("")
        graph[module] |= set()
        for name in INCLUDE.findall((top / file).read_text(errors="replace")):
            known = by_name.get(Path(name).name, [])
            here = [k for k in known if k.parent == file.parent] or known
            if len(here) == 1 and here[0].with_suffix("") != module:
                graph[module].add(here[0].with_suffix(""))
    return graph


def circles(graph: dict[Path, set[Path]]) -> list[list[Path]]:
    """Strongly connected components of more than one module (Tarjan), the largest first."""
    index: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    found: list[list[Path]] = []

    def visit(node: Path) -> None:
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


def figures(top: Path, files: list[Path], found: list[list[Path]]) -> dict[str, int]:
    """All figures by name; `found` are the circles."""
    code = [f for f in files if f.suffix in (".c", ".h") and str(f.parent).startswith(CODE)]
    folders = Counter(f.parent for f in files if str(f.parent) in CODE)
    return {
        "circles of includes": len(found),
        "files in the largest circle": len(found[0]) if found else 0,
        "circles between folders": sum(len({m.parent for m in c}) > 1 for c in found),
        "files in the fullest folder": max(folders.values()),
        "assertions": sum(len(ASSERTION.findall((top / f).read_text(errors="replace")))
                          for f in code),
        "pronouns in comments and documents": pronouns(top, files),
    }


def main() -> None:
    top = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    files = tracked(top)
    if files is None:
        sys.exit(f"house.py: {top} is no git checkout")
    found = circles(modules(top, files))
    for name, value in figures(top, files, found).items():
        print(f"{name}: {value}")
    for circle in found:
        print("circle:", *circle)


if __name__ == "__main__":
    main()
