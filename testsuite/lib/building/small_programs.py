# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that are compiled from a text."""

import subprocess
from pathlib import Path

from lib.building.build import BUILD, variable_of

SHARED = ("-shared", "-fPIC")


def compile_text(path, text, *flags, compiler=None):
    """Compiles this C to a program, or with SHARED to a library, and returns its path."""
    source = Path(f"{path}.c")
    source.write_text(text)
    words = (compiler or variable_of(BUILD, "CC") or "cc").split()
    subprocess.run([*words, "-o", path, source, *flags], check=True, timeout=60)
    return path


class Programs:
    """Compiles small programs into a directory."""

    def __init__(self, directory, compiler):
        self.directory, self.compiler = directory, compiler

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def make(self, name, source, *flags, compiler=None):
        path = self.directory / name
        words = [*(compiler or self.compiler), "-o", path, self.write(f"{name}.c", source), *flags]
        subprocess.run([str(word) for word in words], check=True, timeout=60)
        return path
