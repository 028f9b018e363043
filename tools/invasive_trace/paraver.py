# SPDX-License-Identifier: GPL-3.0-or-later
"""Paraver's .prv, .pcf and .row.  A task is a process, and its thread number c computes on core c;
so the CPU view shows who has which core, and the thread view how many cores a process has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from . import format as fmt
from . import series

RUNNING = 1
OWNER, WAIT, WORKLOAD = 61000001, 61000002, 61000003


def lines_of(view: series.View) -> Iterator[tuple[int, str]]:
    """Each with the time by which they are in order."""
    base = view.start_ns
    for task, story in enumerate(view.stories, 1):
        held, owned = story.held, story.owned
        where = f"1:{task}"
        for core, start, end in zip(held.core.tolist(), held.start.tolist(), held.end.tolist()):
            if end > start:
                yield start, (f"1:{core + 1}:{where}:{core + 1}:{start - base}:{end - base}:"
                              f"{RUNNING}")
        for core, start, end in zip(owned.core.tolist(), owned.start.tolist(),
                                    owned.end.tolist()):
            yield start, f"2:{core + 1}:{where}:{core + 1}:{start - base}:{OWNER}:1"
            yield end, f"2:{core + 1}:{where}:{core + 1}:{end - base}:{OWNER}:0"
        for wait in story.waits:
            yield wait.start, f"2:0:{where}:1:{wait.start - base}:{WAIT}:{wait.site + 1}"
            yield wait.end, f"2:0:{where}:1:{wait.end - base}:{WAIT}:0"
        for when, workload in story.announced:
            if workload < 1e12:
                yield when, f"2:0:{where}:1:{when - base}:{WORKLOAD}:{round(workload * 1000)}"


def head(trace: fmt.Trace, view: series.View) -> str:
    began = (trace.realtime_ns + view.start_ns - trace.monotonic_ns) / 1e9
    date = time.strftime("%d/%m/%y at %H:%M", time.gmtime(max(began, 0)))
    cores, tasks = view.table.ncores, len(view.stories)
    threads = ",".join([f"{cores}:1"] * tasks)
    return f"#Paraver ({date}):{view.end_ns - view.start_ns}_ns:1({cores}):1:{tasks}({threads})"


def pcf(view: series.View) -> str:
    sites = {}  # the same number may be another place in another program
    for story in view.stories:
        for number, site in story.process.sites.items():
            sites.setdefault(number + 1, f"{site.function} {site.symbol}".strip())
    values = "\n".join(f"{n}      {name}" for n, name in sorted(sites.items()))
    return f"""DEFAULT_OPTIONS

LEVEL               THREAD
UNITS               NANOSEC

STATES
0    Idle
1    Running

STATES_COLOR
0    {{117,195,255}}
1    {{0,0,255}}

EVENT_TYPE
0    {OWNER}    Owns the core
VALUES
0      no
1      yes

EVENT_TYPE
0    {WAIT}    Waits in
VALUES
0      End
{values}

EVENT_TYPE
0    {WORKLOAD}    Announced workload, thousandths
"""


def row(view: series.View) -> str:
    cores = range(view.table.ncores)
    threads = [f"{s.process.name} core {c}" for s in view.stories for c in cores]
    tasks = [f"{s.process.name} ({s.process.program} {s.process.pid})" for s in view.stories]
    levels = [("CPU", [f"core {c}" for c in cores]), ("NODE", ["node"]), ("TASK", tasks),
              ("THREAD", threads)]
    return "\n".join(f"LEVEL {level} SIZE {len(names)}\n" + "\n".join(names) + "\n"
                     for level, names in levels)


def write(trace: fmt.Trace, prv: Path) -> list[Path]:
    """Of the table in which most happened.  Returns the files."""
    view = max(series.views_of(trace), key=lambda v: v.seconds)
    lines = sorted(lines_of(view), key=lambda line: line[0])
    files = [prv, prv.with_suffix(".pcf"), prv.with_suffix(".row")]
    files[0].write_text("\n".join([head(trace, view), *(line for _, line in lines)]) + "\n")
    files[1].write_text(pcf(view))
    files[2].write_text(row(view))
    return files
