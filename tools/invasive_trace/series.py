# SPDX-License-Identifier: GPL-3.0-or-later
"""Cores over time: how many each process holds and owns, in total and in bins."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import format as fmt
from . import merge


@dataclass
class Spans:
    """Intervals in which one process was on one core: start and end (ns)."""

    core: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @property
    def total_ns(self) -> int:
        return int((self.end - self.start).sum())

    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """The times at which the number of cores changes, and the new numbers."""
        steps = np.concatenate([self.start, self.end])
        by = np.repeat([1, -1], len(self.start))
        order = np.argsort(steps, kind="stable")
        return steps[order], np.cumsum(by[order])

    def integral(self, edges: np.ndarray, clock: Clock | None = None) -> np.ndarray:
        """Core time until each edge, by this clock."""
        if not len(self.start):
            return np.zeros(len(edges))
        steps, level = self.levels()
        if clock:
            steps, edges = clock.at(steps), clock.at(edges)
        area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(steps))])
        return np.interp(edges, steps, area)


class Clock:
    """With more tokens taken than there are cores, these are shared: while n of them compute on c
    cores, this clock goes slower by c / n, so that a token's time is core time."""

    def __init__(self, taken: Spans, ncores: int):
        self.time, level = taken.levels()
        pace = ncores / np.maximum(level, ncores)
        self.passed = np.concatenate([[0.0], np.cumsum(pace[:-1] * np.diff(self.time))])

    def at(self, times: np.ndarray) -> np.ndarray:
        if not len(self.time):
            return np.asarray(times, float)
        outside = np.minimum(times - self.time[0], 0) + np.maximum(times - self.time[-1], 0)
        return np.interp(times, self.time, self.passed) + outside


@dataclass
class Wait:
    """A wait of at least 10 us that is over."""

    start: int
    end: int
    site: int


@dataclass
class Story:
    """The data of a trace on one process."""

    process: fmt.Process
    held: Spans
    owned: Spans
    borrowed_ns: int = 0  # core time on cores of others
    lent_used_ns: int = 0  # core time of other processes on its cores
    waits: list[Wait] = field(default_factory=list)
    announced: list[tuple[int, float]] = field(default_factory=list)  # workload
    clock: Clock | None = None  # for the time of held tokens; None: cores are held

    @property
    def computed_ns(self) -> float:
        """Core time that the process held; for tokens, the core time that they stood for."""
        ends = np.array([self.held.start.min(), self.held.end.max()]) if len(self.held.start) else \
            np.zeros(2)
        return float(np.diff(self.held.integral(ends, self.clock))[0])

    @property
    def waited_ns(self) -> int:
        return sum(wait.end - wait.start for wait in self.waits)

    def lifetime(self, table: fmt.Table) -> tuple[int, int]:
        start = max(self.process.start_ns, table.start_ns)
        return start, max(start, table.end_ns if self.process.end_ns is None
                          else self.process.end_ns)


@dataclass
class View:
    """A table as pictures need it, or all of a trace."""

    table: fmt.Table
    stories: list[Story]
    start_ns: int
    end_ns: int
    takings: int = 0  # how often a core has changed hands, and its owner
    owner_changes: int = 0
    report: dict | None = None  # of the whole trace

    @property
    def jobs(self) -> list[dict]:
        """The jobs of the report that have a process in this view."""
        here = {(story.process.pid, story.process.program) for story in self.stories}
        return [job for job in fmt.parts_of(self.report or {}, "jobs")
                if any((p.get("pid"), p.get("program")) in here
                       for p in fmt.parts_of(job, "processes"))]

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9

    def stacked(self, what: str, bins: int) -> tuple[np.ndarray, np.ndarray]:
        """Edges of the bins in seconds, and mean cores by process and bin; what: held or owned."""
        edges = np.linspace(self.start_ns, max(self.end_ns, self.start_ns + 1), bins + 1)
        width = np.diff(edges)
        rows = [np.diff(s.held.integral(edges, s.clock) if what == "held" else
                        s.owned.integral(edges)) / width for s in self.stories]
        return (edges - self.start_ns) / 1e9, np.array(rows).reshape(len(rows), bins)


def none() -> Spans:
    empty = np.zeros(0, np.int64)
    return Spans(empty, empty, empty)


class SlotSpans:
    """Spans of all cores by slot; the process depends on which one was in the slot then."""

    def __init__(self, table: fmt.Table, chains: list[merge.Chain]):
        parts = []
        for chain in chains:
            changed = np.flatnonzero(np.diff(chain.fields & 0x3ffff, prepend=-1))
            time, holder, owner = chain.time[changed], chain.holder[changed], chain.owner[changed]
            ends = np.append(time[1:], max(table.end_ns, int(time[-1])))
            parts.append((np.full(len(ends), chain.core), time, ends, holder, owner))
        joined = [np.concatenate(column) for column in zip(*parts)] if parts else [
            np.zeros(0, np.int64)] * 5
        self.core, self.start, self.end, self.holder, self.owner = joined
        self.takings = sum(int((np.diff(p[3]) != 0).sum()) for p in parts)
        self.owner_changes = sum(int((np.diff(p[4]) != 0).sum()) for p in parts)

    def of(self, name: int, column: np.ndarray, start: int, end: int) -> np.ndarray:
        return (column == name) & (self.end > start) & (self.start < end)

    def joined(self, spans: Spans) -> Spans:
        """Joins spans of a core that follow each other without a gap."""
        first = np.append(True, (spans.core[1:] != spans.core[:-1]) |
                          (spans.start[1:] != spans.end[:-1]))[:len(spans.core)]
        last = np.append(first[1:], True)[:len(spans.core)]
        return Spans(spans.core[first], spans.start[first], spans.end[last])

    def spans(self, mask: np.ndarray, start: int, end: int) -> Spans:
        return Spans(self.core[mask], np.maximum(self.start[mask], start),
                     np.minimum(self.end[mask], end))


def token_spans(events: merge.Events, start: int, end: int) -> Spans:
    """Of the tokens that a process took and returned: the last to be taken is the first to go."""
    free, spans = [], []
    for time, by in zip(events.time.tolist(), events.body.astype(np.int64).tolist()):
        if by > 0:
            free.append(time)
        elif free:
            began = free.pop()
            spans.append((len(free), began, time))
    spans += [(i, time, end) for i, time in enumerate(free)]
    columns = list(zip(*spans)) or [[], [], []]
    core, first, last = (np.array(column, np.int64) for column in columns)
    return Spans(core, np.clip(first, start, end), np.clip(last, start, end))


def story_of(table: fmt.Table, process: fmt.Process, slots: SlotSpans,
             events: merge.Events) -> Story:
    story = Story(process, none(), none())
    start, end = story.lifetime(table)
    name = process.slot + 1
    mine = events.of((events.ring == process.slot) & (events.time >= start) & (events.time <= end))
    if table.anonymous:
        story.held = token_spans(mine.of(mine.kind == fmt.TOKEN), start, end)
    else:
        held = slots.of(name, slots.holder, start, end)
        owned = slots.of(name, slots.owner, start, end)
        story.held = slots.joined(slots.spans(held, start, end))
        story.owned = slots.joined(slots.spans(owned, start, end))
        story.borrowed_ns = slots.spans(held & (slots.owner != name), start, end).total_ns
        story.lent_used_ns = slots.spans(
            owned & (slots.holder != name) & (slots.holder != merge.NOBODY), start, end).total_ns
    waits = mine.of(mine.kind == fmt.WAIT)
    for time, body in zip(waits.time.tolist(), waits.body.tolist()):
        begin = max(time - (body & (1 << 48) - 1), start)
        story.waits.append(Wait(begin, max(time, begin), body >> 48))
    loads = mine.of(mine.kind == fmt.WORKLOAD)
    values = loads.body.astype("=u8").view("=f8")
    story.announced = [(t, v) for t, v in zip(loads.time.tolist(), values.tolist())
                       if np.isfinite(v) and v >= 0]
    return story


def joined(parts: list[Spans]) -> Spans:
    return Spans(*(np.concatenate(column) for column in zip(
        *((spans.core, spans.start, spans.end) for spans in parts)))) if parts else none()


def view_of(table: fmt.Table, report: dict | None = None) -> View:
    events = merge.events_of(table)
    chains = [] if table.anonymous else merge.chains_of(table, events)
    slots = SlotSpans(table, chains)
    stories = [story_of(table, p, slots, events)
               for p in sorted(table.processes, key=lambda p: (p.start_ns, p.rank, p.slot))]
    if table.anonymous:
        clock = Clock(joined([s.held for s in stories]), table.ncores)
        for story in stories:
            story.clock = clock
    start = min((s.lifetime(table)[0] for s in stories), default=table.start_ns)
    end = max((s.lifetime(table)[1] for s in stories), default=table.end_ns)
    return View(table, sorted(stories, key=lambda s: (s.process.rank, s.process.start_ns)),
                start, max(end, start + 1), slots.takings, slots.owner_changes, report)


def views_of(trace: fmt.Trace) -> list[View]:
    """A view of each table in which there were processes; TraceError if there is none."""
    views = [view_of(table, trace.report) for table in trace.tables if table.processes]
    if not views:
        raise fmt.TraceError("no process used MPI or GCC's OpenMP runtime under invade in this "
                             "trace")
    return views


def whole(trace: fmt.Trace) -> View:
    """All tables on one axis of time, on which they follow each other, with the cores of the
    largest."""
    views = views_of(trace)
    tables = [view.table for view in views]
    largest = max(tables, key=lambda table: table.ncores)
    table = fmt.Table(min(t.start_ns for t in tables), largest.emulated,
                      all(t.anonymous for t in tables), largest.cpus, largest.first,
                      end_ns=max(t.end_ns for t in tables))
    return View(table, [story for view in views for story in view.stories],
                min(view.start_ns for view in views), max(view.end_ns for view in views),
                sum(view.takings for view in views), sum(view.owner_changes for view in views),
                trace.report)
