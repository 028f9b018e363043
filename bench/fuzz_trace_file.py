# SPDX-License-Identifier: GPL-3.0-or-later
"""Trace files that rmd has not written, for their reader: tools/invasive_trace.

A trace is made up as rmd would write it, chunk by chunk; then, several times over, chunks are left
out, doubled, or in another order, numbers in them are others, and bytes too.  The reader takes it
or says what is wrong (TraceError); of those that it takes a few are also checked, dumped, and
turned into what Chrome and Paraver read.  Everything else that happens is a failure.
"""

from __future__ import annotations

import dis
import inspect
import io
import json
import random
import struct
import sys
import time
import traceback
from pathlib import Path
from types import CodeType

import numpy as np
from common import TOP

DEEP = 300  # one in so many, and all while lines are noted
REUSED = 8  # times that a trace is changed into another one
TRACED = 3000  # inputs whose lines are noted
NUMBERS = (0, 1, 2, 3, 7, 8, 255, 256, 257, 511, 512, 1023, 1024, 8192, 65535, (1 << 31) - 1,
           1 << 31, (1 << 32) - 1, 1 << 47, (1 << 48) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
NOW = 10**12

sys.path.insert(0, str(TOP / "tools"))


def readers():
    from invasive_trace import check, chrome, dump, merge, paraver, series
    from invasive_trace import format as fmt
    return fmt, check, dump, chrome, paraver, merge, series


class Writer:
    """Makes traces of two or three cores and processes."""

    def __init__(self, seed: int):
        self.chance = random.Random(seed)
        self.fmt = readers()[0]
        self.made, self.left = [], 0

    def number(self, bits: int) -> int:
        n = self.chance.choice(NUMBERS) if self.chance.random() < 0.7 else \
            self.chance.getrandbits(bits)
        return n & (1 << bits) - 1

    def event(self, at: int, cores: int, words: list[int]) -> bytes:
        """A random event; most are changes of a core's word that follow one another."""
        fmt, chance = self.fmt, self.chance
        kind = fmt.CORE if chance.random() < 0.6 else chance.randint(fmt.TOKEN, fmt.WAIT)
        core, state, body = 0, fmt.DONE, self.number(64)
        if kind == fmt.CORE:
            core = chance.randrange(cores)
            state = fmt.INTENT if chance.random() < 0.1 else fmt.DONE
            before = words[core]
            after = chance.randrange(4) | chance.randrange(4) << 9 | chance.getrandbits(2) << 18
            epoch = (before >> 40) + 1
            body = after | (before & 0xfffff) << 20 | (epoch & 0xffffff) << 40
            words[core] = after | epoch << 40
        head = core | kind << 10 | state << 14 | at << 16
        return np.array([(head & (1 << 64) - 1, body)], fmt.EVENT).tobytes()

    def chunks(self) -> list[list]:
        """[kind, time, a, b, body] each."""
        fmt, chance = self.fmt, self.chance
        cores, at, chunks, events = chance.randint(1, 3), NOW, [], 0
        words = [0] * cores
        anonymous = 2 if chance.random() < 0.2 else 0
        first = np.array([(c, 0, 0) for c in range(cores)], fmt.FIRST).tobytes()
        chunks.append([fmt.TABLE, at, cores, anonymous, first])
        pids = {slot: 100 + slot for slot in range(chance.randint(1, 2))}
        for slot, pid in pids.items():
            chunks.append([fmt.PROCESSES, at, slot, pid,
                           fmt.PROCESS.pack(slot, len(pids), b"program")])
        for _ in range(chance.randint(0, 4)):
            count = chance.randint(1, 6)
            body = b"".join(self.event(at + i, cores, words) for i in range(count))
            at, events = at + 1000, events + count
            ring = chance.choice([*pids, fmt.RING_OF_RMD])
            chunks.append([fmt.EVENTS, at, ring, 0, bytes(8) + body])
        for slot, pid in pids.items():
            if chance.random() < 0.5:
                site = fmt.SITE.pack(1, 0, 4096, b"MPI_Wait", b"main", b"/a.out")
                chunks.append([fmt.SITES, at, slot, pid, site])
            if chance.random() < 0.5:
                chunks.append([fmt.GONE, at, slot, pid, bytes(8)])
        last = [w & 511 | (w >> 9 & 511) << 16 | (w >> 18 & 3) << 32 | (w >> 40) << 40
                for w in words]
        chunks.append([fmt.LAST, at, cores, 0, struct.pack(f"={cores}Q", *last)])
        chunks.append([fmt.END, at, 0, 0, struct.pack("=QQ", events, 0)])
        return chunks

    def change(self, chunks: list[list]) -> None:
        chance, i = self.chance, self.chance.randrange(len(chunks))
        how = chance.randrange(7)
        if how == 0:
            chunks.insert(chance.randrange(len(chunks)), list(chunks[i]))
        elif how == 1 and len(chunks) > 1:
            del chunks[i]
        elif how == 2:
            chunks[i], chunks[-1] = chunks[-1], chunks[i]
        elif how == 3:
            chunks[i][chance.randrange(4)] = self.number(32)
        elif how == 4:
            chunks[i][1] = self.number(64)
        elif chunks[i][4]:
            body = bytearray(chunks[i][4])
            at = chance.randrange(len(body)) & ~7
            word = struct.pack("=Q", self.number(64))
            body[at:at + 8] = word[:len(body) - at]
            if how == 6:
                del body[chance.randrange(len(body)):]
            chunks[i][4] = bytes(body)

    def trace(self) -> bytes:
        fmt, chance = self.fmt, self.chance
        if not self.left:
            self.made, self.left = self.chunks(), REUSED
        self.left -= 1
        chunks = [list(chunk) for chunk in self.made]
        for _ in range(chance.choice([0, 1, 1, 1, 2, 4])):
            self.change(chunks)
        data = bytearray(fmt.HEAD.pack(fmt.MAGIC, fmt.ORDER, fmt.VERSION, NOW, NOW))
        for kind, at, a, b, body in chunks:
            data += fmt.CHUNK.pack(kind & 0xffffffff, len(body), at, a, b) + body
        if chance.random() < 0.15:
            data[chance.randrange(len(data))] = chance.getrandbits(8)
        if chance.random() < 0.05:
            del data[chance.randrange(len(data)):]
        return bytes(data)


class Deep:
    """All outputs from a trace, except pictures."""

    def __init__(self):
        self.fmt, self.check, self.dump, self.chrome, self.paraver = readers()[:5]

    def read(self, trace) -> None:
        self.check.check(trace)
        self.dump.write(trace, io.StringIO())
        try:
            text = io.StringIO()
            self.chrome.write(trace, text)
            self.paraver.texts(trace)
        except self.fmt.TraceError:
            return
        json.loads(text.getvalue(), parse_constant=self.no_json)

    @staticmethod
    def no_json(word: str) -> None:
        raise ValueError(f"{word} is no JSON")


def lines_of(code: CodeType) -> set[tuple[str, int]]:
    """The lines of the functions in the code, without the first line of each function."""
    lines = set()
    if code.co_flags & inspect.CO_OPTIMIZED:
        lines = {(code.co_filename, line) for _, line in dis.findlinestarts(code)
                 if line and line != code.co_firstlineno}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            lines |= lines_of(inner)
    return lines


class Lines:
    """Which lines of the readers run."""

    def __init__(self):
        self.files = {module.__file__ for module in readers()}
        self.all, self.seen = set(), set()
        for name in self.files:
            self.all |= lines_of(compile(Path(name).read_text(), name, "exec"))

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename not in self.files:
            return None
        if event == "line":
            self.seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self

    def counts(self) -> tuple[int, int]:
        return len(self.seen & self.all), len(self.all)


def search(inputs: int, seed: int) -> dict[str, float]:
    """Reads so many traces; prints a failure, with the trace that reproduces it."""
    writer, lines = Writer(seed), Lines()
    parse, refused = writer.fmt.parse, writer.fmt.TraceError
    taken = failed = done = 0
    start = time.monotonic()
    deep = Deep()
    sys.settrace(lines)
    for done in range(1, inputs + 1):
        if done == TRACED:
            sys.settrace(None)
        data = writer.trace()
        try:
            trace = parse(data)
            taken += 1
            if taken % DEEP == 0 or done < TRACED:
                deep.read(trace)
        except refused:
            continue
        except Exception:
            sys.settrace(None)
            print(f"{traceback.format_exc()[-2000:]}\n{data.hex()}", file=sys.stderr)
            failed = 1
            break
    sys.settrace(None)
    covered, total = lines.counts()
    return {"inputs": float(done), "failed": float(failed), "edges": float(total),
            "covered": float(covered), "taken": float(taken), "seconds": time.monotonic() - start}


if __name__ == "__main__":
    print(json.dumps(search(int(sys.argv[1]), int(sys.argv[2]))))
