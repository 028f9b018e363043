# SPDX-License-Identifier: GPL-3.0-or-later
"""A trace as a workload that `rmctl simulate` reads, see rmctl-simulate(1): what was computed,
apart from the cores that were there for it.

A job is cut where its ranks have met: when all of them but one have waited at the same time, and do
no longer.  In between each rank has a piece of work, the core time that it has held outside waits;
where it has announced a scalability graph S, c cores for a second are a work of S(c) seconds.  A
process that is alone is cut every 10 ms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import format as fmt
from . import merge, series

ALONE_NS, ALONE_PIECES = 10_000_000, 100_000
POINTS = 8  # of a graph
HEADER = "time,process,job,work,scalability,repeat,min,max\n"


@dataclass
class Member:
    """A process, and what it had announced while it did most of its work."""

    story: series.Story
    start: int
    end: int
    graph: list[tuple[int, float]] = field(default_factory=list)
    least: int = 0
    most: int = 0


@dataclass
class Announcement:
    """An announcement, in force from its time on; a value that it lacks is not known any more."""

    time: int
    least: int
    most: int
    points: list[tuple[int, float]] = field(default_factory=list)

    @property
    def graph(self) -> list[tuple[int, float]]:
        """The points of the graph if they are valid, else none."""
        cores = [0, *(c for c, _ in self.points), fmt.MAX_CORES + 1]
        good = all(a < b for a, b in zip(cores, cores[1:])) and \
            all(np.isfinite(s) and s > 0 for _, s in self.points)
        return self.points if good and len(self.points) <= POINTS else []


def announcements_of(events: merge.Events) -> list[Announcement]:
    """The announcements of one process: a range or none, a workload, points of a graph or none."""
    said: list[Announcement] = []
    least = most = 0
    parts = events.of(np.isin(events.kind, (fmt.RANGE, fmt.WORKLOAD, fmt.SPEEDUP)))
    speedups = (parts.body & np.uint64(0xffffffff)).astype("=u4").view("=f4").tolist()
    for time, kind, body, speedup in zip(parts.time.tolist(), parts.kind.tolist(),
                                         parts.body.tolist(), speedups):
        if kind == fmt.RANGE:
            least, most = body & 0xffffffff, body >> 32
        elif kind == fmt.WORKLOAD:
            said.append(Announcement(time, least, most))
            least = most = 0
        elif said:
            said[-1].points.append((body >> 32, speedup))
    return said


def heaviest(values: list, areas: np.ndarray, times: np.ndarray) -> tuple:
    """The value with the most core time; if none has any, the one that was in force longest."""
    total: dict = {}
    for value, area, time in zip(values, areas.tolist(), times.tolist()):
        before = total.get(value, (0.0, 0))
        total[value] = (before[0] + area, before[1] + time)
    return max(total, key=total.__getitem__)


def member_of(view: series.View, story: series.Story, events: merge.Events) -> Member:
    """A member by its heaviest announcement: the last one may come from inv_retreat at the end."""
    member = Member(story, *story.lifetime(view.table))
    said = announcements_of(events.of((events.ring == story.process.slot) &
                                      (events.time >= member.start) &
                                      (events.time <= member.end)))
    if said:
        edges = np.array([*(a.time for a in said), member.end], np.int64)
        weights = np.diff(story.held.integral(edges, story.clock)), np.diff(edges)
        member.least, member.most = heaviest([(a.least, a.most) for a in said], *weights)
        member.graph = list(heaviest([tuple(a.graph) for a in said], *weights))
    return member


def jobs_of(members: list[Member]) -> list[list[Member]]:
    """The ranks of each MPI job; a process without MPI is a job of its own."""
    jobs: list[list[Member]] = []
    for member in sorted(members, key=lambda m: (m.start, m.story.process.rank)):
        process = member.story.process
        for job in reversed(jobs):
            first = job[0].story.process
            if process.rank >= 0 and first.rank >= 0 and first.size == process.size and \
                    len(job) < first.size and member.start < max(m.end for m in job) and \
                    all(m.story.process.rank != process.rank for m in job):
                job.append(member)
                break
        else:
            jobs.append([member])
    return [sorted(job, key=lambda m: m.story.process.rank) for job in jobs]


def joined(waits: list[series.Wait]) -> list[tuple[int, int]]:
    """Waits of several threads at one time are one."""
    spans: list[tuple[int, int]] = []
    for wait in sorted(waits, key=lambda w: w.start):
        if spans and wait.start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], wait.end))
        else:
            spans.append((wait.start, wait.end))
    return spans


def cuts_of(job: list[Member], least_ns: int) -> list[int]:
    """The times at which the job begins, its ranks meet, and the job ends."""
    begin, end = min(m.start for m in job), max(m.end for m in job)
    if len(job) == 1:
        step = max(ALONE_NS, least_ns, (end - begin) // ALONE_PIECES)
        return [begin, *range(begin + step, end - step // 2, step), end]
    steps = sorted(step for member in job for a, b in joined(member.story.waits)
                   for step in ((a, 1), (b, -1)))
    cuts, waiting = [begin], 0
    for time, by in steps:
        met = by < 0 and waiting >= len(job) - 1
        waiting += by
        if met and time - cuts[-1] >= least_ns and end - time >= least_ns:
            cuts.append(time)
    return [*cuts, end]


def outside(spans: series.Spans, waits: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """The times at which the number of held cores changes, and the new numbers; 0 in waits."""
    held = np.concatenate([spans.start, spans.end]).astype(np.int64)
    by = np.repeat([1, -1], len(spans.start))
    bounds = np.array([t for span in waits for t in span], np.int64)
    inside = np.resize([1, -1], len(bounds))
    times = np.concatenate([held, bounds])
    order = np.argsort(times, kind="stable")
    cores = np.cumsum(np.concatenate([by, np.zeros(len(bounds), int)])[order])
    waiting = np.cumsum(np.concatenate([np.zeros(len(held), int), inside])[order])
    return times[order], np.where(waiting > 0, 0, cores)


def speed(graph: list[tuple[int, float]], cores: np.ndarray) -> np.ndarray:
    """S(c); between the points, and beyond the last one as steep as before it."""
    points = [(0, 0.0)] + [(1, 1.0)] * (not graph or graph[0][0] > 1) + graph
    (c1, s1), (c2, s2) = points[-2:]
    more = fmt.MAX_CORES + 1
    points.append((more, s2 + (more - c2) * (s2 - s1) / (c2 - c1)))
    return np.interp(cores, [c for c, _ in points], [s for _, s in points])


def work_of(member: Member, cuts: list[int]) -> np.ndarray:
    """Seconds of work on one core between the cuts."""
    times, cores = outside(member.story.held, joined(member.story.waits))
    if not len(times):
        return np.zeros(len(cuts) - 1)
    rate = speed(member.graph, cores)
    if member.story.clock:
        times, cuts = member.story.clock.at(times), member.story.clock.at(np.array(cuts))
    area = np.concatenate([[0.0], np.cumsum(rate[:-1] * np.diff(times))])
    return np.maximum(np.diff(np.interp(cuts, times, area)), 0) / 1e9


class Names:
    """Names without characters of the format, and no two alike."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def of(self, text: str) -> str:
        name = "".join("_" if c in ',#"' else c for c in text)[:50]
        self.seen[name] = number = self.seen.get(name, 0) + 1
        return name if number == 1 else f"{name}~{number}"


def lines_of(job: list[Member], origin: int, least_ns: int, jobs: Names, processes: Names) -> str:
    cuts = cuts_of(job, least_ns)
    first = job[0].story.process
    name = jobs.of(f"{first.program}.{first.pid}")
    lines = []
    for member in job:
        process = member.story.process
        rank = f".{process.rank}" if process.rank >= 0 else ""
        label = processes.of(f"{process.program}.{process.pid}{rank}")
        graph = " ".join(f"{c}:{s:.6g}" for c, s in member.graph)
        time = max(member.start - origin, 0) / 1e9
        lines += [f"{time:.9g},{label},{name},{work:.9g},{graph},1,{member.least},{member.most}\n"
                  for work in work_of(member, cuts)]
    return "".join(lines)


def text(trace: fmt.Trace, source: Path, least_ns: int) -> str:
    """The whole file."""
    views = series.views_of(trace)
    origin = min(view.start_ns for view in views)
    jobs, processes = Names(), Names()
    lines = [f"# what {source.name} says was computed\n", HEADER]
    for view in views:
        events = merge.events_of(view.table)
        members = [member_of(view, story, events) for story in view.stories]
        lines += [lines_of(job, origin, least_ns, jobs, processes) for job in jobs_of(members)]
    return "".join(lines)
