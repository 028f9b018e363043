# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a thread compute where it does not sit?  For chaos, on the machine's own cores.

A core's word has one holder, whatever goes wrong; two threads on one core are seen only where the
threads are.  So affinities are compared with the words.  A thread that has just been evicted is on
a core that its process does not hold, and a seat on its way to another thread has two for a moment,
both only until the next scheduling point.  What counts is processor time, which a busy machine does
not stretch: ENOUGH_S of it without a change of the core's word are many implicit tasks of any
program of chaos.

Who has been stopped has lost its seat, and finds that out at its next scheduling point.  In the
library's MPI_Finalize, which spins until the others have come, there is none; and these may be
stopped for seconds.  So such a process's main thread has longer, until it is on a seat again.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

ENOUGH_S = 0.5
STOPPED_S = 10  # of who has been stopped
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Seat:
    """Of a core: who computes there."""

    cpu: int
    pid: int     # 0: nobody
    thread: int  # 0: not known
    epoch: int   # another one each time that the word changes


@dataclass
class Look:
    """At a thread that is pinned to a core and computes."""

    seat: Seat
    ticks: int       # of processor time that it has had
    wrong: int = 0   # of them where it does not sit, one after the other
    told: bool = False


def seats_of(text: str) -> list[Seat]:
    words = [int(word) for word in text.split()]
    return [Seat(*words[i:i + 4]) for i in range(0, len(words), 4)]


def pinned_to(thread: int) -> int:
    """The only CPU that it may use, -1: there are others."""
    cpus = os.sched_getaffinity(thread)
    return cpus.pop() if len(cpus) == 1 else -1


class Seats:
    def __init__(self):
        self.last: dict[tuple[int, int], Look] = {}
        self.looks = 0  # at threads that were pinned and computed
        self.stopped: set[int] = set()  # that go on since, and whose main thread has no seat yet

    def look(self, text: str, pids: list[int]) -> list[str]:
        """What `seats` of rmd_member has answered, and the domain's processes.  Says which threads
        are found wrong, each once."""
        seats = {seat.cpu: seat for seat in seats_of(text)}
        before, self.last, found = self.last, {}, []
        self.stopped &= set(pids)
        for pid in pids:
            with contextlib.suppress(OSError):
                for task in list(Path(f"/proc/{pid}/task").iterdir()):
                    with contextlib.suppress(OSError):
                        found += self.look_at(pid, int(task.name), seats, before)
        return found

    def look_at(self, pid: int, thread: int, seats: dict[int, Seat],
                before: dict[tuple[int, int], Look]) -> list[str]:
        fields = Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()
        seat = seats.get(pinned_to(thread))
        if seat is None or fields[0] != "R":
            return []
        self.looks += 1
        now = Look(seat, int(fields[11]) + int(fields[12]))
        self.last[pid, thread] = now
        was = before.get((pid, thread))
        if seat.pid == pid and seat.thread == thread == pid:
            self.stopped.discard(pid)
        if (seat.pid == pid and seat.thread in (0, thread)) or not was or was.seat.cpu != seat.cpu:
            return []
        now.told, now.wrong = was.told, was.wrong
        if was.seat.epoch == seat.epoch and was.seat.thread == seat.thread:
            now.wrong += now.ticks - was.ticks
        enough = STOPPED_S if thread == pid and pid in self.stopped else ENOUGH_S
        if now.told or now.wrong < enough * TICKS:
            return []
        now.told = True
        return [f"thread {thread} of {pid} has computed on CPU {seat.cpu} for "
                f"{now.wrong / TICKS:.2f} s, where {seat} sits"]
