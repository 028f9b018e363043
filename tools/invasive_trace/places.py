# SPDX-License-Identifier: GPL-3.0-or-later
"""Function and source line of the places that call MPI, by addr2line where it is installed, as
`invade --report` has them; else what the process has said itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import PurePath

from . import format as fmt

PATIENCE_S = 10  # a large debugging section takes some seconds to read


def said(site: fmt.Site) -> str:
    return site.symbol or f"{PurePath(site.module).name}+{site.offset:#x}"


def asked(module: str, sites: list[fmt.Site]) -> list[str]:
    """What addr2line says of sites of one module: two lines each; [] where it cannot."""
    tool = shutil.which("addr2line") or shutil.which("eu-addr2line")
    if not tool or not module.startswith("/") or not os.path.isfile(module):
        return []
    addresses = [hex(site.offset - 1) for site in sites]  # they say where the call returns to
    env = {k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"}  # asks the network
    try:
        done = subprocess.run([tool, "-f", "-C", "-e", module, *addresses], env=env, text=True,
                              capture_output=True, check=False, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.splitlines()
    return lines if done.returncode == 0 and len(lines) == 2 * len(sites) else []


def names_of(sites: list[fmt.Site]) -> dict[tuple[str, int], str]:
    """{(module, offset): "solver.c:12 (step)"} of all of them."""
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
