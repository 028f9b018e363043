# SPDX-License-Identifier: GPL-3.0-or-later
"""What a trace proves: each core's changes without a gap, and none that the protocol forbids.

A core's word names one holder.  Two holders at once would show as a process that becomes the holder
while another one is.  Only the owner may take a core so, after the reclaim bound.  Only rmd may
change owners.
"""

from __future__ import annotations

import numpy as np

from . import format as fmt
from . import merge

RMD = fmt.RING_OF_RMD + 1  # rmd as the author of a change
MOST = 20  # findings of a kind that are written out


def name_of(name: int) -> str:
    return {merge.NOBODY: "no process", merge.ELSEWHERE: "another domain", RMD: "rmd",
            0: "no process"}.get(name, f"slot {name - 1}")


def wrong_changes(chain: merge.Chain) -> list[str]:
    """Changes that their author may not make."""
    if len(chain.fields) < 2:
        return []
    before, after, by = chain.fields[:-1], chain.fields[1:], chain.ring[1:] + 1
    held, holds = before & 511, after & 511
    owned, owns = before >> 9 & 511, after >> 9 & 511
    handed = after >> 19 & 1
    known = by > 0
    returned = (by == RMD) & (holds == owned)  # to a thread that was asleep in the kernel
    rules = (
        ("owner changed, and not by rmd", (owned != owns) & (by != RMD)),
        ("taken from its holder, and not by its owner",
         (held != 0) & (holds != 0) & (held != holds) & ~((holds == by) & (owned == by))
         & ~returned),
        ("taken for another that does not sleep",
         (held == 0) & (holds != 0) & (holds != by) & (handed == 0) & ~returned),
        ("given up, and neither by its holder nor by rmd",
         (held != 0) & (holds == 0) & (by != held) & (by != RMD)),
        ("taken by a process that it is not reserved for",
         (held == 0) & (holds != 0) & (before >> 18 & 1 == 1) & (holds != owned)),
    )
    found = []
    for what, wrong in rules:
        for i in np.flatnonzero(wrong & known)[:MOST]:
            found.append(f"core {chain.core}: {what}: {name_of(int(held[i]))} -> "
                         f"{name_of(int(holds[i]))}, owner {name_of(int(owned[i]))} -> "
                         f"{name_of(int(owns[i]))}, by {name_of(int(by[i]))} at "
                         f"{chain.time[i + 1]} ns")
    return found


def held_by_nobody(table: fmt.Table, chain: merge.Chain) -> list[str]:
    """A core that a slot holds for a time in which no process has the slot.  rmd notes a process
    before the process can take a core, and its end after it has given up all cores."""
    found = []
    holder, ends = chain.holder, np.append(chain.time[1:], table.end_ns)
    for name in np.unique(holder[holder != merge.NOBODY]).tolist():
        members = sorted((p for p in table.processes if p.slot + 1 == name),
                         key=lambda p: p.start_ns)
        first = np.array([p.start_ns for p in members], np.int64)
        last = np.array([table.end_ns if p.end_ns is None else p.end_ns for p in members],
                        np.int64)
        held = np.flatnonzero(holder == name)
        start, end = chain.time[held], ends[held]
        member = np.searchsorted(first, start, side="right") - 1
        known = member >= 0
        known[known] = end[known] <= last[member[known]]
        found += [f"core {chain.core}: held by {name_of(name)} from {start[i]} to {end[i]} ns, "
                  "where no process is" for i in np.flatnonzero(~known)[:MOST]]
    return found


def check_table(table: fmt.Table) -> tuple[list[str], str]:
    """Findings, and a line on what has been checked."""
    events = merge.events_of(table)
    findings = [f"{n} events of {name_of(ring + 1)} were lost"
                for ring, n in sorted(table.lost.items()) if n]
    if table.anonymous:
        return findings, (f"{len(events)} events; more processes than cores, so that which process "
                          f"holds which core is not recorded, and cannot be checked")
    chains = merge.chains_of(table, events)
    for chain in chains:
        findings += [f"core {chain.core}: {gap}" for gap in chain.gaps[:MOST]]
        findings += wrong_changes(chain) + held_by_nobody(table, chain)
    changes = sum(len(chain.time) - 1 for chain in chains)
    restored = sum(chain.restored for chain in chains)
    return findings, (f"{len(events)} events, {changes} changes of {table.ncores} cores in "
                      f"order" + (f", {restored} restored" if restored else ""))


def check(trace: fmt.Trace) -> tuple[list[str], list[str]]:
    """Findings, of which there should be none, and lines on what has been checked."""
    findings, lines = [], []
    if trace.cut:
        findings.append("the file ends in the middle of a chunk")
    elif not trace.ended:
        findings.append("the file has no end: rmd was killed, or could not write")
    for table in trace.tables:
        found, line = check_table(table)
        findings += found
        lines.append(line)
    return findings, lines
