# SPDX-License-Identifier: GPL-3.0-or-later
"""Every event as a line of text, in order."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TextIO

from . import check, merge
from . import format as fmt


def change_text(before: int, after: int) -> str:
    parts = []
    for what, shift in (("holder", 0), ("owner", 9)):
        old, new = before >> shift & 511, after >> shift & 511
        if old != new:
            parts.append(f"{what} {check.name_of(old)} -> {check.name_of(new)}")
    for what, bit in (("reclaim", 18), ("handed", 19)):
        old, new = before >> bit & 1, after >> bit & 1
        if old != new:
            parts.append(f"{what} {'on' if new else 'off'}")
    return ", ".join(parts) or "no change"


def double(body: int) -> float:
    return struct.unpack("=d", struct.pack("=Q", body))[0]


def other_text(kind: int, body: int) -> str:
    if kind == fmt.TOKEN:
        return "token taken" if body == 1 else "token returned"
    if kind == fmt.WORKLOAD:
        return f"workload {double(body):g}"
    if kind == fmt.RANGE:
        return f"range {body & 0xffffffff} to {body >> 32 or 'all'} cores"
    if kind == fmt.ITERATION:
        return f"iteration {double(body):g} s"
    if kind == fmt.SPEEDUP:
        speedup = struct.unpack("=f", struct.pack("=I", body & 0xffffffff))[0]
        return f"speed-up {speedup:g} on {body >> 32} cores"
    if kind == fmt.SLEEP:
        return f"sleeps in wait at site {body}"
    return f"waited {(body & (1 << 48) - 1) / 1000:.1f} us at site {body >> 48}"


def lines_of(table: fmt.Table) -> Iterator[tuple[int, str]]:
    events = merge.events_of(table)
    for process in table.processes:
        yield process.start_ns, (f"slot {process.slot}: process {process.pid} ({process.program}, "
                                 f"rank {process.rank} of {process.size}) joins")
        if process.end_ns is not None:
            yield process.end_ns, f"slot {process.slot}: process {process.pid} is gone"
    for chain in [] if table.anonymous else merge.chains_of(table, events):
        fields = chain.fields.tolist()
        for time, ring, old, new in zip(chain.time[1:].tolist(), chain.ring[1:].tolist(), fields,
                                        fields[1:]):
            author = check.name_of(ring + 1) if ring >= 0 else "unknown"
            yield time, f"{author}: core {chain.core}: {change_text(old, new)}"
    others = events.of(events.kind != fmt.CORE)
    for time, ring, kind, body in zip(others.time.tolist(), others.ring.tolist(),
                                      others.kind.tolist(), others.body.tolist()):
        yield time, f"{check.name_of(ring + 1)}: {other_text(kind, body)}"


def write(trace: fmt.Trace, out: TextIO) -> None:
    for table in trace.tables:
        kind = ("emulated " if table.emulated else "") + ("tokens" if table.anonymous else "cores")
        out.write(f"{(table.start_ns - trace.monotonic_ns) / 1e9:.9f} table of {table.ncores} "
                  f"{kind}\n")
        for time, line in sorted(lines_of(table), key=lambda item: item[0]):
            out.write(f"{(time - trace.monotonic_ns) / 1e9:.9f} {line}\n")
