# SPDX-License-Identifier: GPL-3.0-or-later
"""Chrome's trace events (JSON), for Perfetto and chrome://tracing: a track for each core with its
holder, and for each process its waits, what it announces, and how many cores it owns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TextIO

import numpy as np

from . import format as fmt
from . import series

CORES = 1  # as a "process" of the file; the real ones come after it


def owned_counter(story: series.Story) -> Iterator[tuple[int, int]]:
    """The times at which the number of owned cores changes, and the new numbers."""
    spans = story.owned
    times = np.concatenate([spans.start, spans.end])
    by = np.repeat([1, -1], len(spans.start))
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(by[order])
    last = np.append(np.diff(times) != 0, True) if len(times) else times.astype(bool)
    return zip(times[last].tolist(), level[last].tolist())


def events_of(view: series.View) -> Iterator[dict]:
    def us(time: int) -> float:
        return (time - view.start_ns) / 1e3

    yield {"ph": "M", "name": "process_name", "pid": CORES, "args": {"name": "cores"}}
    if not view.table.anonymous:
        for core in range(view.table.ncores):
            yield {"ph": "M", "name": "thread_name", "pid": CORES, "tid": core,
                   "args": {"name": f"core {core}"}}
    for number, story in enumerate(view.stories, CORES + 1):
        process = story.process
        yield {"ph": "M", "name": "process_name", "pid": number,
               "args": {"name": process.full_name}}
        held = story.held
        for core, start, end in zip(held.core.tolist(), held.start.tolist(), held.end.tolist()):
            if end > start:
                yield {"ph": "X", "cat": "core", "name": process.name, "pid": CORES, "tid": core,
                       "ts": us(start), "dur": (end - start) / 1e3}
        for wait in story.waits:
            site = process.sites.get(wait.site)
            yield {"ph": "X", "cat": "wait", "name": site.function if site else "wait",
                   "pid": number, "tid": 0, "ts": us(wait.start),
                   "dur": (wait.end - wait.start) / 1e3}
        for time, cores in owned_counter(story):
            yield {"ph": "C", "name": "cores owned", "pid": number, "ts": us(time),
                   "args": {"cores": cores}}
        for time, workload in story.announced:
            yield {"ph": "C", "name": "workload", "pid": number, "ts": us(time),
                   "args": {"workload": workload}}


def write(trace: fmt.Trace, out: TextIO) -> None:
    view = series.whole(trace)
    out.write('{"displayTimeUnit":"ns","traceEvents":[\n')
    comma = ""
    for event in events_of(view):
        out.write(comma + json.dumps(event, separators=(",", ":")))
        comma = ",\n"
    out.write("\n]}\n")
