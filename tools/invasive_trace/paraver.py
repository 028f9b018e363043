# SPDX-License-Identifier: GPL-3.0-or-later
"""Paraver's .prv, .pcf and .row.  A task is a process, and its thread number c computes on core c;
so the CPU view shows the holder of each core, the thread view how many cores a process has."""

from __future__ import annotations

import time
from collections.abc import Iterator

from . import format as fmt
from . import places, series

RUNNING = 1
UNNAMED = 1  # a place that waits and is not recorded; 0 is the end of a wait
OWNER, WAIT, WORKLOAD = 61000001, 61000002, 61000003
MOST_WORKLOAD = 1e15  # its thousandths are an integer of 64 bits


def numbers_of(view: series.View) -> dict[fmt.Site | None, int]:
    """A number for each place that waits; it may have another one in each program."""
    numbers = {None: UNNAMED}
    for story in view.stories:
        for _, site in sorted(story.process.sites.items()):
            numbers.setdefault(site, UNNAMED + len(numbers))
    return numbers


def lines_of(view: series.View) -> Iterator[tuple[int, str]]:
    """Lines with their times, by which they are sorted."""
    base, numbers = view.start_ns, numbers_of(view)
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
            place = numbers[story.process.sites.get(wait.site)]
            yield wait.start, f"2:0:{where}:1:{wait.start - base}:{WAIT}:{place}"
            yield wait.end, f"2:0:{where}:1:{wait.end - base}:{WAIT}:0"
        for when, workload in story.announced:
            value = round(min(workload, MOST_WORKLOAD) * 1000)
            yield when, f"2:0:{where}:1:{when - base}:{WORKLOAD}:{value}"


def head(trace: fmt.Trace, view: series.View) -> str:
    began = (trace.realtime_ns + view.start_ns - trace.monotonic_ns) / 1e9
    date = time.strftime("%d/%m/%y at %H:%M", time.gmtime(max(began, 0)))
    cores, tasks = view.table.ncores, len(view.stories)
    threads = ",".join([f"{cores}:1"] * tasks)
    return f"#Paraver ({date}):{view.end_ns - view.start_ns}_ns:1({cores}):1:{tasks}({threads})"


def pcf(view: series.View) -> str:
    values = "\n".join(f"{n}      {site.function} {places.said(site)}"
                       for site, n in numbers_of(view).items() if site)
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
{UNNAMED}      (not recorded)
{values}

EVENT_TYPE
0    {WORKLOAD}    Announced workload, thousandths
"""


def row(view: series.View) -> str:
    cores = range(view.table.ncores)
    threads = [f"{s.process.name} core {c}" for s in view.stories for c in cores]
    tasks = [s.process.full_name for s in view.stories]
    levels = [("CPU", [f"core {c}" for c in cores]), ("NODE", ["node"]), ("TASK", tasks),
              ("THREAD", threads)]
    return "\n".join(f"LEVEL {level} SIZE {len(names)}\n" + "\n".join(names) + "\n"
                     for level, names in levels)


def texts(trace: fmt.Trace) -> dict[str, str]:
    """{suffix: content of the file}"""
    view = series.whole(trace)
    lines = sorted(lines_of(view), key=lambda line: line[0])
    return {".prv": "\n".join([head(trace, view), *(line for _, line in lines)]) + "\n",
            ".pcf": pcf(view), ".row": row(view)}
