# SPDX-License-Identifier: GPL-3.0-or-later
"""What a call of the public interface costs: a reinvade that changes nothing, and a blocking one
that rmd has to decide on, beside the same question and answer by a System V message queue, as in
the paper (5.3), and by bare futexes.

The limit of a reinvade that changes nothing is the time to read some words.  The limit of a
blocking one is the time to wake rmd, and for rmd to decide.  A blocking one can take less than a
bare round trip, which wakes two threads: the caller of inv_reinvade spins until the answer comes.
"""

from __future__ import annotations

import statistics

from common import Context, Figure


def invade_call(ctx: Context) -> list[Figure]:
    program = str(ctx.build / "bench" / "invade_call")
    turns = ctx.turns(lambda: ctx.invade([program], variant="calls"))

    def of(key: str) -> float:
        return statistics.median(turn[0].values[key] for turn in turns)

    ratio = statistics.median(t[0].values["blocking_us"] / t[0].values["futex_us"] for t in turns)
    return [
        Figure("invade-call-nonblocking", of("reinvade_ns"), "ns", "<=", 20,
               f"nothing to do; with a claim {of('reinvade_claim_ns'):.1f} ns, blocking "
               f"{of('reinvade_blocking_ns'):.1f} ns; a look into an empty message queue "
               f"{of('sysv_look_ns'):.0f} ns; announcing something new {of('tell_us'):.2f} us"),
        Figure("invade-call", ratio, "x a bare futex round trip", "<=", 1.1,
               f"blocking, something new: {of('blocking_us'):.1f} us (95 % within "
               f"{of('blocking_p95_us'):.1f}); System V message queue {of('sysv_us'):.1f} "
               f"({of('sysv_p95_us'):.1f}), futexes {of('futex_us'):.1f} "
               f"({of('futex_p95_us'):.1f})"),
    ]
