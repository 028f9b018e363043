# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes until a process has shrunk or expanded on command.

A program that computes in parallel regions all the time is shrunk to half of its cores and
expanded to all again, by `rmctl`.  The time is rmd's: from the request to the moment when the core
table says that the process computes on none of the cores that it has lost, or may on those that it
has got; starting rmctl is not in it.  After each command it is checked that it computes on no more
cores than that, or on some of those that it has got.  On cores of this machine, and on 256 emulated
ones.  Charm++ took 2.7 s to shrink and 7.2 s to expand at 256.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import time

from common import BenchError, Context, Figure, Run, clean_environment

GOAL_MS = 10
COMMANDS = 25  # of each kind in a turn
START_S = 30


def rmctl(ctx: Context, socket: str, *words: str) -> dict:
    program = str(ctx.build / "bin" / "rmctl")
    done = subprocess.run([program, f"--socket={socket}", "--json", *words], capture_output=True,
                          text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise BenchError(f"rmctl {' '.join(words)}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def socket_of(launcher: int) -> str | None:
    """The private rmd of this `invade`, which names it by its own process."""
    found = re.findall(rf"@invasive-{os.getuid()}-{launcher}\S*",
                       open("/proc/net/unix", encoding="ascii").read())
    return found[0] if found else None


def computing_on(ctx: Context, socket: str, least: int, most: int) -> int | None:
    """The pid of the process, when it computes on so many cores.  Between its regions it has few,
    and there are two real ones to start all those threads on."""
    processes = rmctl(ctx, socket, "status")["domains"][0]["processes"]
    held = processes[0]["held_cores"] if processes else 0
    if held > most:
        raise BenchError(f"computes on {held} cores, not on {most} at most")
    return processes[0]["pid"] if held >= least else None


def wait_for(get, what: str):
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if value := get():
            return value
        time.sleep(0.002)
    raise BenchError(f"{what}: not after {START_S} s")


def turn(ctx: Context, variant: str, option: str, cores: int) -> Run:
    """One launch, and all commands in it."""
    program = str(ctx.build / "bench" / "command_program" / "command")
    start = time.monotonic()
    job = subprocess.Popen([str(ctx.build / "invade"), option, "--", program,
                            str(int(variant == "emulated"))], env=clean_environment({}),
                           stdin=subprocess.DEVNULL, start_new_session=True)
    took: dict[str, list[float]] = {"shrink": [], "expand": []}
    try:
        socket = wait_for(lambda: socket_of(job.pid), "rmd's socket")
        pid = wait_for(lambda: computing_on(ctx, socket, cores // 2 + 1, cores), "the program")
        for _ in range(COMMANDS):
            for verb, number in (("shrink", max(1, cores // 2)), ("expand", cores)):
                done = rmctl(ctx, socket, verb, str(pid), str(number))
                took[verb].append(done["microseconds"] / 1000)
                least = 1 if verb == "shrink" else cores // 2 + 1
                wait_for(lambda least=least, most=number: computing_on(ctx, socket, least, most),
                         f"{verb} to {number}, as the core table says")
    finally:
        os.killpg(job.pid, 15)
        job.wait(30)
    values = {f"{verb}_{name}_ms": f(times) for verb, times in took.items()
              for name, f in (("median", statistics.median), ("longest", max))}
    run = Run(variant, time.monotonic() - start, 0, values, "")
    ctx.runs.append(run)
    if ctx.verbose:
        print(f"    {variant}: " + ", ".join(f"{k} {v:.3f}" for k, v in values.items()), flush=True)
    return run


def malleable_command(ctx: Context) -> list[Figure]:
    cores = min(2, len(os.sched_getaffinity(0)))
    cpus = ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[:cores])
    kinds = {"real": (f"--cores={cpus}", cores), "emulated": ("--emulate-cores=256", 256)}
    runs = {kind: [turn(ctx, kind, *arguments) for _ in range(ctx.pairs)]
            for kind, arguments in kinds.items()}
    figures = []
    for kind, text in (("real", f"{cores} cores"), ("emulated", "256 emulated cores")):
        for verb in ("shrink", "expand"):
            median = statistics.median(r.values[f"{verb}_median_ms"] for r in runs[kind])
            longest = max(r.values[f"{verb}_longest_ms"] for r in runs[kind])
            figures.append(Figure(f"malleable-command-{verb}-{kind}", median, "ms", "<=", GOAL_MS,
                                  f"{text}: longest of {COMMANDS * ctx.pairs} {longest:.3f} ms"))
    worst = max(figures, key=lambda f: f.value)
    figures.append(Figure("malleable-command", worst.value, "ms", "<=", GOAL_MS,
                          f"the worst of these: {worst.name}"))
    return figures
