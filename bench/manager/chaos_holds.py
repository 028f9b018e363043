# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a thread compute on a core that it does not hold?  For chaos, on the machine's own cores.

A core's word has one holder, whatever goes wrong; two threads on one core are seen only where the
threads are.  So affinities are compared with the words.  A thread that has just been evicted is on
a core that its process does not hold.  A core that is handed over has two threads for a moment.
Both last only until the next scheduling point.  What counts is processor time, which a busy machine
does not stretch: ENOUGH_S of it without a change of the core's word are many implicit tasks of any
program of chaos.

A process that was stopped has lost its hold, and finds that out at its next scheduling point.  In
the library's MPI_Finalize, which spins until the other ranks have come, there is none; and these
may be stopped for seconds.  So such a process's main thread has longer, until it holds a core
again.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

ENOUGH_S = 0.5
STOPPED_S = 10  # of a process that was stopped
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Hold:
    """The hold of a core: the thread that computes there."""

    cpu: int
    pid: int     # 0: none
    thread: int  # 0: not known
    epoch: int   # another one each time that the word changes


@dataclass
class Look:
    """A look at a thread that is pinned to a core and computes."""

    hold: Hold
    ticks: int       # of processor time that it has had
    wrong: int = 0   # of them on a core that it does not hold, in sequence
    told: bool = False


def holds_of(text: str) -> list[Hold]:
    words = [int(word) for word in text.split()]
    return [Hold(*words[i:i + 4]) for i in range(0, len(words), 4)]


def pinned_to(thread: int) -> int:
    """The only CPU that the thread may use; -1: it may use several."""
    cpus = os.sched_getaffinity(thread)
    return cpus.pop() if len(cpus) == 1 else -1


class Holds:
    def __init__(self):
        self.last: dict[tuple[int, int], Look] = {}
        self.looks = 0  # at threads that were pinned and computed
        self.stopped: set[int] = set()  # that go on since, and whose main thread holds no core yet

    def compare(self, text: str, pids: list[int]) -> list[str]:
        """What `holds` of rmd_member has answered, and the domain's processes.  Says which threads
        are found wrong, each once."""
        holds = {hold.cpu: hold for hold in holds_of(text)}
        before, self.last, found = self.last, {}, []
        self.stopped &= set(pids)
        for pid in pids:
            with contextlib.suppress(OSError):
                for task in list(Path(f"/proc/{pid}/task").iterdir()):
                    with contextlib.suppress(OSError):
                        found += self.look_at(pid, int(task.name), holds, before)
        return found

    def look_at(self, pid: int, thread: int, holds: dict[int, Hold],
                before: dict[tuple[int, int], Look]) -> list[str]:
        fields = Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()
        hold = holds.get(pinned_to(thread))
        if hold is None or fields[0] != "R":
            return []
        self.looks += 1
        now = Look(hold, int(fields[11]) + int(fields[12]))
        self.last[pid, thread] = now
        was = before.get((pid, thread))
        if hold.pid == pid and hold.thread == thread == pid:
            self.stopped.discard(pid)
        if (hold.pid == pid and hold.thread in (0, thread)) or not was or was.hold.cpu != hold.cpu:
            return []
        now.told, now.wrong = was.told, was.wrong
        if was.hold.epoch == hold.epoch and was.hold.thread == hold.thread:
            now.wrong += now.ticks - was.ticks
        enough = STOPPED_S if thread == pid and pid in self.stopped else ENOUGH_S
        if now.told or now.wrong < enough * TICKS:
            return []
        now.told = True
        return [f"thread {thread} of {pid} has computed on CPU {hold.cpu} for "
                f"{now.wrong / TICKS:.2f} s, which is held by {hold}"]
