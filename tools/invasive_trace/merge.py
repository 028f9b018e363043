# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the events of all rings in order, and proves that none is missing.

Every change of a core's word counts its epoch up by one, and an event has the word's fields before
and after it.  So the events of a core are a chain: they are ordered by epoch, whatever their times;
from the first word to the last no epoch may be missing; and the fields after one event are those
before the next.  An intent whose writer was killed counts where no other event has its epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import format as fmt

NOBODY, ELSEWHERE = 0, 511  # as holder and owner; else slot + 1
EPOCHS = 1 << 24


@dataclass
class Events:
    """The events of one table, in the order of time, then of their rings."""

    time: np.ndarray  # CLOCK_MONOTONIC, ns
    ring: np.ndarray
    kind: np.ndarray
    intent: np.ndarray
    core: np.ndarray
    body: np.ndarray

    def of(self, mask: np.ndarray) -> Events:
        return Events(self.time[mask], self.ring[mask], self.kind[mask], self.intent[mask],
                      self.core[mask], self.body[mask])

    def __len__(self) -> int:
        return len(self.time)


@dataclass
class Chain:
    """The states of one core: state i holds from time[i] on; state 0 is the first one."""

    core: int
    time: np.ndarray
    fields: np.ndarray  # holder, owner << 9, reclaim << 18, handed << 19
    ring: np.ndarray  # of the process that made the change; -1: unknown
    restored: int = 0  # events that only their successors tell of
    gaps: list[str] = field(default_factory=list)  # what is missing or does not fit

    @property
    def holder(self) -> np.ndarray:
        return self.fields & 511

    @property
    def owner(self) -> np.ndarray:
        return self.fields >> 9 & 511


def events_of(table: fmt.Table) -> Events:
    if not table.chunks:
        none = np.zeros(0, np.int64)
        return Events(none, none, none, none.astype(bool), none, none.astype(np.uint64))
    head = np.concatenate([events["head"] for _, _, events in table.chunks])
    body = np.concatenate([events["body"] for _, _, events in table.chunks])
    lengths = [len(events) for _, _, events in table.chunks]
    ring = np.repeat([ring for ring, _, _ in table.chunks], lengths)
    chunk_time = np.repeat(np.array([time for _, time, _ in table.chunks], np.uint64), lengths)
    # 48 bits of the time; the chunk's is later.
    age = (chunk_time - (head >> np.uint64(16))) & np.uint64((1 << 48) - 1)
    time = (chunk_time - np.minimum(age, chunk_time)).astype(np.int64)
    order = np.argsort(time, kind="stable")
    return Events(time, ring, (head >> 10 & 15).astype(np.int64), (head >> 14 & 3) == fmt.INTENT,
                  (head & 1023).astype(np.int64), body).of(order)


def fields_of_word(word: int) -> int:
    """A word of the table in the form that events have."""

    def short(name: int) -> int:
        return name if name <= fmt.MAX_SLOTS else ELSEWHERE if name == 0xffff else 510

    return (short(word & 0xffff) | short(word >> 16 & 0xffff) << 9 | (word >> 32 & 1) << 18 |
            (word >> 33 & 1) << 19)


def unwrapped(epochs: np.ndarray, start: int) -> np.ndarray:
    """Changes since `start`, of epochs that are nearly in order."""
    steps = np.diff(epochs, prepend=start)
    steps = (steps + EPOCHS // 2) % EPOCHS - EPOCHS // 2
    return np.cumsum(steps)


def happened(number: np.ndarray, before: np.ndarray, after: np.ndarray, intent: np.ndarray,
             last_fields: int | None) -> np.ndarray:
    """Which of the events of a core took place; they are in the order of their numbers."""
    keep = ~intent
    certain = number[keep]
    for i in np.flatnonzero(intent):
        at = np.searchsorted(certain, number[i])
        if at < len(certain) and certain[at] == number[i]:
            continue
        if at < len(certain) and certain[at] == number[i] + 1:
            fields = int(before[keep & (number == number[i] + 1)][0])
        else:
            fields = last_fields if at == len(certain) else None
        if fields is not None and int(after[i]) == fields and not (
                keep & intent & (number == number[i])).any():
            keep[i] = True
    return keep


def chain_of(table: fmt.Table, core: int, events: Events) -> Chain:
    """The chain of one core, from the events of this core."""
    word = int(table.first[core])
    first, start = fields_of_word(word), word >> 40
    number = unwrapped((events.body >> np.uint64(40)).astype(np.int64), start)
    order = np.argsort(number, kind="stable")
    events, number = events.of(order), number[order]
    after = (events.body & np.uint64(0xfffff)).astype(np.int64)
    before = (events.body >> np.uint64(20) & np.uint64(0xfffff)).astype(np.int64)
    end, last = None, None
    if table.last is not None:
        last = fields_of_word(int(table.last[core]))
        # an epoch has 24 bits: it tells the number of changes but for multiples of EPOCHS
        nearest = int(number[-1]) if len(number) else 0
        off = (int(table.last[core]) >> 40) - (start + nearest) % EPOCHS
        end = nearest + (off + EPOCHS // 2) % EPOCHS - EPOCHS // 2
    keep = number > 0
    if end is not None:
        keep &= number <= end
    at_end = last if end is not None and end == number[keep].max(initial=0) else None
    keep[keep] = happened(number[keep], before[keep], after[keep], events.intent[keep], at_end)
    return link(Chain(core, *(np.zeros(0, np.int64),) * 3), table.start_ns, first, events.of(keep),
                number[keep], before[keep], after[keep], end, last)


def link(chain: Chain, start_ns: int, first: int, events: Events, number: np.ndarray,
         before: np.ndarray, after: np.ndarray, end: int | None, last: int | None) -> Chain:
    """Note what is missing between the events and does not fit, and fill in what they tell."""
    numbers = np.concatenate([[0], number])
    time = np.concatenate([[start_ns], events.time])
    fields = np.concatenate([[first], after])
    ring = np.concatenate([[-1], events.ring])
    steps = np.diff(numbers)
    for i in np.flatnonzero(steps == 0):
        chain.gaps.append(f"change {numbers[i]} happened twice")
    for i in np.flatnonzero(steps > 2):
        chain.gaps.append(f"{steps[i] - 1} changes are missing after change {numbers[i]}")
    for i in np.flatnonzero((steps == 1) & (fields[:-1] != before)):
        chain.gaps.append(f"change {numbers[i + 1]} does not begin where change {numbers[i]} ended")
    hole = np.flatnonzero(steps >= 2)  # the state before event `hole` is what that one has seen
    chain.restored = int((steps == 2).sum())
    time, ring = np.insert(time, hole + 1, events.time[hole]), np.insert(ring, hole + 1, -1)
    fields = np.insert(fields, hole + 1, before[hole])
    if end is not None and end > numbers[-1]:
        if end - numbers[-1] > 1:
            chain.gaps.append(f"{end - numbers[-1]} changes are missing at the end")
        else:
            chain.restored += 1
        time, ring = np.append(time, time[-1]), np.append(ring, -1)
        fields = np.append(fields, last)
    elif last is not None and int(fields[-1]) != last:
        chain.gaps.append("the last change does not lead to the last word")
    chain.time, chain.fields, chain.ring = np.maximum.accumulate(time), fields, ring
    return chain


def chains_of(table: fmt.Table, events: Events | None = None) -> list[Chain]:
    """A chain for each core, in pinned mode."""
    events = events_of(table) if events is None else events
    changes = events.of(events.kind == fmt.CORE)
    order = np.argsort(changes.core, kind="stable")
    changes = changes.of(order)
    bounds = np.searchsorted(changes.core, np.arange(table.ncores + 1))
    return [chain_of(table, core, changes.of(slice(bounds[core], bounds[core + 1])))
            for core in range(table.ncores)]
