# SPDX-License-Identifier: GPL-3.0-or-later
"""Function and source line of the places that call MPI, by addr2line where it is installed, as
`invade --report` has them; else what the process has said itself.

A trace may be another user's, and so may be the files that it names.  As root the tool reads
debugging sections of root's files only."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import PurePath

from . import format as fmt

PATIENCE_S = 10  # a large debugging section takes some seconds to read


def said(site: fmt.Site) -> str:
    return site.symbol or f"{PurePath(site.module).name}+{site.offset:#x}"


@contextlib.contextmanager
def trusted(module: str) -> Iterator[int]:
    """The file if it is root's or the caller's, whatever its name is by now.  Else OSError."""
    file = os.open(module, os.O_PATH | os.O_CLOEXEC)  # opens no device, and waits for no pipe
    try:
        what = os.fstat(file)
        if not stat.S_ISREG(what.st_mode) or what.st_uid not in (0, os.geteuid()):
            raise PermissionError(module)
        yield file
    finally:
        os.close(file)


def asked(module: str, sites: list[fmt.Site]) -> list[str]:
    """What addr2line says of sites of one module: two lines each; [] where it cannot."""
    tool = shutil.which("addr2line") or shutil.which("eu-addr2line")
    if not tool or not module.startswith("/"):
        return []
    addresses = [hex(site.offset - 1) for site in sites]  # they say where the call returns to
    env = {k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"}  # asks the network
    try:
        with trusted(module) as file:
            done = subprocess.run([tool, "-f", "-C", "-e", f"/proc/self/fd/{file}", *addresses],
                                  env=env, text=True, capture_output=True, check=False,
                                  timeout=PATIENCE_S, stdin=subprocess.DEVNULL, errors="replace",
                                  pass_fds=[file])
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.splitlines()
    return lines if done.returncode == 0 and len(lines) == 2 * len(sites) else []


def names_of(sites: list[fmt.Site]) -> dict[tuple[str, int], str]:
    """{(module, offset): "solver.c:12 (step)"} of all sites."""
    found = {(site.module, site.offset): said(site) for site in sites}
    for module in {site.module for site in sites}:
        here = [site for site in sites if site.module == module]
        lines = asked(module, here)
        for site, function, place in zip(here, lines[::2], lines[1::2]):
            file, _, number = place.split(" ")[0].rpartition(":")
            if file and "?" not in file and number.isdigit() and int(number):
                name = site.symbol if function.startswith("?") else function
                found[site.module, site.offset] = f"{PurePath(file).name}:{number} ({name})"
    return found
