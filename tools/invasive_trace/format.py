# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a trace file as invasive-trace(5) describes it.

Strict: what is not as described is an error that says where.  Only the end may be missing, since
rmd may have been killed, or the disk may have been full: that is noted, not refused.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

MAGIC, VERSION, ORDER = b"invtrace", 1, 0x01020304
HEAD = struct.Struct("=8sIIQQ")
CHUNK = struct.Struct("=IIQII")
PROCESS = struct.Struct("=ii64s")
SITE = struct.Struct("=IIQ48s96s248s")
FIRST = np.dtype([("cpu", "=i4"), ("unused", "=u4"), ("word", "=u8")])
EVENT = np.dtype([("head", "=u8"), ("body", "=u8")])

MAX_CORES, MAX_SLOTS, MAX_SITES, MAX_PID = 1024, 256, 256, 1 << 22
RING_OF_RMD, RINGS = MAX_SLOTS, MAX_SLOTS + 1
RING_EVENTS, REPORT_MOST = 8192, 1 << 26
TABLE, EVENTS, PROCESSES, GONE, SITES, LAST, END, REPORT = range(1, 9)
CORE, TOKEN, WORKLOAD, RANGE, ITERATION, SPEEDUP, SLEEP, WAIT = range(1, 9)
INTENT, DONE = 1, 2


class TraceError(Exception):
    """The file is no trace, or not one of this version."""


@dataclass(frozen=True)
class Site:
    """A place in a program that calls an MPI function."""

    function: str
    symbol: str
    module: str
    offset: int


@dataclass
class Process:
    slot: int
    pid: int
    rank: int  # -1: none of MPI's
    size: int
    program: str
    start_ns: int
    end_ns: int | None = None  # None: it was there when the trace ended
    left: bool = False  # it goes on unmanaged
    sites: dict[int, Site] = field(default_factory=dict)
    unlike: bool = True  # no two processes of the trace have one rank

    @property
    def name(self) -> str:
        """The shortest name that is unique.  The number of a rank that is alone is not: several
        such programs may be in a trace."""
        return f"rank {self.rank}" if self.size > 1 and self.unlike else self.full_name

    @property
    def full_name(self) -> str:
        program = f"{self.program} {self.pid}"
        return f"rank {self.rank} of {program}" if self.size > 1 else program


@dataclass
class Table:
    """The events of one core table."""

    start_ns: int
    emulated: bool
    anonymous: bool
    cpus: np.ndarray
    first: np.ndarray  # words of the cores when it began
    last: np.ndarray | None = None  # and when it ended; None: the file is cut off
    end_ns: int = 0  # of the last chunk
    processes: list[Process] = field(default_factory=list)
    chunks: list[tuple[int, int, np.ndarray]] = field(default_factory=list)
    lost: dict[int, int] = field(default_factory=dict)  # events, by ring

    @property
    def ncores(self) -> int:
        return len(self.first)


@dataclass
class Trace:
    monotonic_ns: int
    realtime_ns: int
    tables: list[Table] = field(default_factory=list)
    ended: bool = False  # with an END chunk
    report: dict | None = None  # what `invade --report` says of the run; see invade(1), JSON
    cut: bool = False  # in the middle of a chunk


def text_of(raw: bytes, where: str) -> str:
    """A name from C, ended by a NUL.  A character that is not printable becomes '?'."""
    name, nul, _ = raw.partition(b"\0")
    if not nul:
        raise TraceError(f"{where}: a name without an end")
    return "".join(c if " " <= c <= "~" else "?" for c in name.decode("latin-1"))


def tell_jobs_apart(trace: Trace) -> None:
    """Ranks have no short names if the trace has several MPI jobs, at once or one after another."""
    processes = [p for table in trace.tables for p in table.processes]
    ranks = [p.rank for p in processes if p.size > 1]
    unlike = len(set(ranks)) == len(ranks)
    for process in processes:
        process.unlike = unlike


def number_in(report: dict, *path: str) -> float:
    """A number of a report, 0 where there is none or no finite one, as reports may be invalid."""
    for name in path:
        report = report.get(name) if isinstance(report, dict) else None
    good = isinstance(report, (int, float)) and not isinstance(report, bool)
    return report if good and abs(report) < 1e300 and math.isfinite(report) else 0


def parts_of(whole: dict, name: str) -> list[dict]:
    """The jobs of a report, or the processes of a job."""
    parts = whole.get(name)
    return [p for p in parts if isinstance(p, dict)] if isinstance(parts, list) else []


class Reader:
    """One pass over the bytes."""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0
        self.where = "at byte 0"
        self.trace: Trace | None = None
        self.written = 0  # events
        self.readers = {TABLE: self.table, EVENTS: self.event_chunk, PROCESSES: self.process,
                        GONE: self.gone, SITES: self.sites, LAST: self.last, END: self.end,
                        REPORT: self.report}

    def need(self, condition: bool, what: str) -> None:
        if not condition:
            raise TraceError(f"{self.where}: {what}")

    def read(self) -> Trace:
        self.need(len(self.data) >= HEAD.size, "this is no trace: too short")
        magic, order, version, monotonic, realtime = HEAD.unpack_from(self.data)
        self.need(magic == MAGIC, "this is no trace")
        self.need(order == ORDER, "written on a machine with another byte order")
        self.need(version == VERSION, f"version {version}, and I know {VERSION}")
        self.trace = Trace(monotonic, realtime)
        self.at = HEAD.size
        while self.at < len(self.data):
            if not self.chunk():
                self.trace.cut = True
                break
        tell_jobs_apart(self.trace)
        return self.trace

    def chunk(self) -> bool:
        """Read the next chunk; False: it is not whole."""
        self.where = f"at byte {self.at}"
        if len(self.data) - self.at < CHUNK.size:
            return False
        kind, size, time, a, b = CHUNK.unpack_from(self.data, self.at)
        self.need(kind in self.readers, f"a chunk of unknown kind {kind}")
        self.need(self.trace.ended == (kind == REPORT) and not self.trace.report,
                  "more after the end" if self.trace.ended else "a report before the end")
        self.need(size <= (REPORT_MOST if kind == REPORT else 8 + RING_EVENTS * EVENT.itemsize),
                  f"a chunk of {size} bytes")
        self.need(0 < time < 1 << 63, "a time that cannot be")
        begin = self.at + CHUNK.size
        if len(self.data) - begin < size:
            return False
        self.at = begin + size
        self.readers[kind](memoryview(self.data)[begin:self.at], time, a, b)
        return True

    def now(self) -> Table:
        self.need(bool(self.trace.tables), "before the first core table")
        return self.trace.tables[-1]

    def table(self, body: memoryview, time: int, a: int, b: int) -> None:
        self.need(1 <= a <= MAX_CORES and b <= 3, "a table that cannot be")
        self.need(len(body) == a * FIRST.itemsize, "a table of the wrong size")
        first = np.frombuffer(body, FIRST)
        self.trace.tables.append(Table(time, bool(b & 1), bool(b & 2), first["cpu"].copy(),
                                       first["word"].astype(np.uint64), end_ns=time))

    def event_chunk(self, body: memoryview, time: int, a: int, b: int) -> None:
        table = self.now()
        self.need(a < RINGS and b == 0, f"ring {a}")
        self.need(len(body) > 8 and (len(body) - 8) % EVENT.itemsize == 0,
                  "events of the wrong size")
        lost = struct.unpack_from("=Q", body)[0]
        self.need(lost >= table.lost.get(a, 0), "fewer lost events than before")
        events = np.frombuffer(body[8:], EVENT)
        state, kind = events["head"] >> 14 & 3, events["head"] >> 10 & 15
        core = events["head"] & 1023
        self.need(bool(((state == INTENT) | (state == DONE)).all()), "an event in no state")
        self.need(bool(((kind >= CORE) & (kind <= WAIT)).all()), "an event of unknown kind")
        self.need(bool((core[kind == CORE] < table.ncores).all()), "an event of no core")
        table.lost[a] = lost
        self.written += len(events)
        table.chunks.append((a, time, events))
        table.end_ns = max(table.end_ns, time)

    def process(self, body: memoryview, time: int, a: int, b: int) -> None:
        table = self.now()
        self.need(a < MAX_SLOTS and 0 < b <= MAX_PID, f"process {b} in slot {a}")
        self.need(len(body) == PROCESS.size, "a process of the wrong size")
        self.need(self.member(a) is None, f"two processes in slot {a}")
        rank, size, program = PROCESS.unpack(body)
        self.need(rank >= -1 and size >= -1, f"rank {rank} of {size}")
        table.processes.append(
            Process(a, b, rank, size, text_of(program, self.where), time))

    def member(self, slot: int) -> Process | None:
        """The process that is in the slot now."""
        for process in reversed(self.now().processes):
            if process.slot == slot:
                return process if process.end_ns is None else None
        return None

    def named(self, slot: int, pid: int) -> Process:
        process = self.member(slot)
        self.need(process is not None and process.pid == pid,
                  f"process {pid} is not in slot {slot}")
        return process

    def gone(self, body: memoryview, time: int, a: int, b: int) -> None:
        process = self.named(a, b)
        self.need(len(body) == 8, "the wrong size")
        process.end_ns = max(time, process.start_ns)
        process.left = any(body)

    def sites(self, body: memoryview, time: int, a: int, b: int) -> None:
        del time
        process = self.named(a, b)
        self.need(len(body) % SITE.size == 0, "call sites of the wrong size")
        for number, _, offset, function, symbol, module in SITE.iter_unpack(body):
            self.need(number < MAX_SITES, f"call site {number}")
            process.sites[number] = Site(text_of(function, self.where),
                                         text_of(symbol, self.where),
                                         text_of(module, self.where), offset)

    def last(self, body: memoryview, time: int, a: int, b: int) -> None:
        del b
        if a == 0 and not len(body):  # the trace has ended between two tables
            return
        table = self.now()
        self.need(table.last is None, "a table that ends twice")
        self.need(a == table.ncores and len(body) == 8 * a, "words of the wrong number")
        table.last = np.frombuffer(body, "=u8").astype(np.uint64)
        table.end_ns = max(table.end_ns, time)

    def end(self, body: memoryview, time: int, a: int, b: int) -> None:
        del time
        self.need(len(body) == 16 and a == b == 0, "an end of the wrong size")
        written = struct.unpack("=QQ", body)[0]
        self.need(written == self.written, f"{self.written} events, and there should be {written}")
        self.trace.ended = True

    def report(self, body: memoryview, time: int, a: int, b: int) -> None:
        del time
        self.need(a == b == 0, "a report of something")
        try:
            report = json.loads(bytes(body))
        except (ValueError, RecursionError):
            report = None
        self.need(isinstance(report, dict) and number_in(report, "invade_report") == 1,
                  "a report that is none")
        self.trace.report = report


def parse(data: bytes) -> Trace:
    """The trace in these bytes; TraceError when they are no trace."""
    return Reader(data).read()


def load(path: str | Path) -> Trace:
    try:
        return parse(Path(path).read_bytes())
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from error
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
