# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the service survive everything at once?

MPI+OpenMP programs start and end under one rmd all the time, while ranks of theirs are killed or
stopped for a while, rmd is killed or ended and started again, clients flood it, and, where we are
root, processes of a second user come, take cores and die.  Every half minute the programs are
waited for; then each core must be in one table and in nobody's hands.  Programs that nobody has
killed must print the checksum that the stock runtime prints.

On the machine's own cores; --only 6,2 is a minute on six emulated ones, a minute on two, and so on.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from common import MPIEXEC, BenchError, Context, Figure, clean_environment

GUEST, GROUP = 60001, 60000
ELSEWHERE, NOBODY = 0xFFFE, -1
MPI_FILES = ("mpich_", "ucx_")  # of MPICH
JOBS, JOB_S, QUIET_S, CYCLE_S = 3, 90, 10, 60
MACHINES = {"real": [], "6": ["--emulate-cores=6"], "2": ["--emulate-cores=2"]}
PROGRAMS = {  # ranks and arguments; one run takes a second or two
    "stencil 1": ("stencil", 1, ["--size=512", "--steps=600"]),
    "stencil 2": ("stencil", 2, ["--size=512", "--steps=400"]),
    "stencil 3": ("stencil", 3, ["--size=256", "--steps=400"]),
    "imbalance 2": ("imbalance", 2, ["--loads=1:3", "--work-ms=20", "--iterations=40",
                                     "--units-per-ms=1000"]),
    "imbalance 4": ("imbalance", 4, ["--loads=1:2:3:4", "--work-ms=20", "--iterations=30",
                                     "--units-per-ms=1000", "--wait=polled"]),
}


class Member:
    """testsuite/rmd_member, which does as it is told."""

    def __init__(self, program: Path, uid: int):
        self.process = subprocess.Popen([program], text=True, bufsize=1, cwd="/",
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, user=uid if uid else None,
                                        group=GROUP if uid else None)

    def ask(self, command: str) -> str:
        self.process.stdin.write(command + "\n")
        return self.process.stdout.readline().strip()

    def join(self, name: str) -> bool:
        return self.ask(f"join {name} -1 -1 -1").isdigit()

    def table(self) -> tuple[list[int], list[int]]:
        """Owners and holders."""
        words = [int(word) for word in self.ask("table").split()[2:]]
        return words[0::3], words[1::3]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@dataclass
class Job:
    kind: str
    process: subprocess.Popen
    limit: float
    hurt: bool = False
    stopped: dict[int, float] = field(default_factory=dict)  # pid: until when

    def ranks(self) -> list[int]:
        """Its descendants that run the program."""
        parent, runs = {}, []
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                pid = int(entry.parent.name)
                parent[pid] = int(entry.read_text().rpartition(")")[2].split()[1])
                if "/apps/" in os.readlink(entry.parent / "exe"):
                    runs.append(pid)
        return [pid for pid in runs if self.is_above(pid, parent)]

    def is_above(self, pid: int, parent: dict[int, int]) -> bool:
        while pid > 1 and pid != self.process.pid:
            pid = parent.get(pid, 0)
        return pid == self.process.pid


class Chaos:
    def __init__(self, ctx: Context, seed: int):
        self.ctx, self.chance = ctx, random.Random(seed)
        self.work = Path(tempfile.mkdtemp(prefix="invasive-chaos-"))
        self.work.chmod(0o755)
        member = ctx.build / "testsuite" / "rmd_member"
        if not member.exists():
            raise BenchError(f"no {member}: make check-programs")
        shutil.copy(member, self.work / "member")
        self.name = str(self.work / "rmd.sock")
        self.jobs: list[Job] = []
        self.guests: list[Member] = []
        self.members: list[Member] = []
        self.wrong: list[str] = []
        self.counts = dict.fromkeys(("programs", "kills", "stops", "restarts", "floods", "guests",
                                     "looks"), 0)
        self.longest_s = 0.0
        self.sums = {kind: self.checksum(self.start_program(kind, stock=True)) for kind in PROGRAMS}
        self.shared = set(os.listdir("/dev/shm"))

    # --- rmd

    def begin(self, *options: str) -> None:
        self.options = options
        reader, writer = os.pipe()
        start = time.monotonic()
        with (self.work / "log").open("a") as log:
            self.rmd = subprocess.Popen(
                [self.ctx.build / "bin/rmd", "--foreground", f"--socket={self.name}",
                 "--socket-group=*", f"--config={self.work}/rmd.conf", f"--ready-fd={writer}",
                 *options], pass_fds=(writer,), stderr=log)
        os.close(writer)
        with os.fdopen(reader) as ready:
            if not ready.readline().startswith("ready "):
                raise BenchError("rmd does not start: " + (self.work / "log").read_text()[-2000:])
        self.longest_s = max(self.longest_s, time.monotonic() - start)

    def restart(self) -> None:
        self.counts["restarts"] += 1
        self.rmd.send_signal(self.chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        self.rmd.wait()
        time.sleep(self.chance.random() * 0.3)
        self.begin(*self.options)

    # --- programs

    def start_program(self, kind: str, stock: bool = False) -> subprocess.Popen:
        app, ranks, arguments = PROGRAMS[kind]
        command = [MPIEXEC, "-n", str(ranks), self.ctx.app(app), *arguments]
        if not stock:
            command = [str(self.ctx.build / "invade"), f"--socket={self.name}", "--", *command]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, text=True, start_new_session=True,
                                env=clean_environment({"OMP_NUM_THREADS": "8"}))

    @staticmethod
    def checksum(process: subprocess.Popen) -> str:
        output = process.communicate()[0]
        sums = [line.split()[1] for line in output.splitlines() if line.startswith("checksum ")]
        return sums[0] if process.returncode == 0 and sums else \
            f"exit code {process.returncode}: {output[-1500:]}"

    def start_job(self) -> None:
        if len(self.jobs) >= JOBS:
            return
        kind = self.chance.choice(list(PROGRAMS))
        self.counts["programs"] += 1
        self.jobs.append(Job(kind, self.start_program(kind), time.monotonic() + JOB_S))

    def kill_rank(self) -> None:
        job = self.chance.choice(self.jobs) if self.jobs else None
        ranks = job.ranks() if job else []
        if ranks:
            self.counts["kills"] += 1
            job.hurt = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.chance.choice(ranks), signal.SIGKILL)

    def stop_ranks(self) -> None:
        job = self.chance.choice(self.jobs) if self.jobs else None
        for pid in job.ranks() if job else []:
            if self.chance.random() < 0.6 and pid not in job.stopped:
                self.counts["stops"] += 1
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                job.stopped[pid] = time.monotonic() + self.chance.choice([0.01, 0.2, 1, 3])

    def look_at_jobs(self) -> None:
        now = time.monotonic()
        for job in list(self.jobs):
            for pid, until in list(job.stopped.items()):
                if now >= until:
                    del job.stopped[pid]
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
            if job.process.poll() is None and now < job.limit:
                continue
            self.jobs.remove(job)
            if job.process.returncode is None:
                self.wrong.append(f"{job.kind} has not ended after {JOB_S} s:\n{self.status()}")
                os.killpg(job.process.pid, signal.SIGKILL)
                job.process.communicate()
            elif (found := self.checksum(job.process)) != self.sums[job.kind] and not job.hurt:
                self.wrong.append(f"{job.kind}: {found}, not {self.sums[job.kind]}")

    def status(self) -> str:
        done = subprocess.run([self.ctx.build / "bin/rmctl", f"--socket={self.name}", "status"],
                              capture_output=True, text=True, check=False, timeout=20)
        return done.stdout + done.stderr

    # --- strangers

    def flood(self) -> None:
        self.counts["floods"] += 1
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for _ in range(300):
                one = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                one.setblocking(False)
                one.connect(self.name)
                one.send(self.chance.randbytes(self.chance.choice([1, 92, 92, 5000])))

    def guest(self) -> None:
        """A process of another user that comes, takes cores, and dies with them."""
        if os.getuid() != 0:
            return
        if len(self.guests) < 2:
            guest = Member(self.work / "member", GUEST)
            if guest.join(self.name):
                self.guests.append(guest)
                self.counts["guests"] += 1
            else:
                guest.end()
            return
        guest = self.chance.choice(self.guests)
        owners = guest.table()[0]
        for core in range(len(owners)):
            guest.ask(f"{self.chance.choice(['borrow', 'lend'])} {core}")
        if self.chance.random() < 0.3:
            self.guests.remove(guest)
            guest.end()

    # --- what must hold

    def held_twice(self) -> set[int]:
        tables = [who.table()[1] for who in (self.members[:1] + self.guests[:1])]
        return {core for core, holders in enumerate(zip(*tables))
                if len(holders) > 1 and all(holder != NOBODY for holder in holders)}

    def look_at_tables(self) -> None:
        """A core may go from one user to the other between two looks, but not each time."""
        self.counts["looks"] += 1
        if len(self.guests) and self.held_twice() & self.held_twice() & self.held_twice():
            self.wrong.append(f"held twice: {self.members[0].table()} {self.guests[0].table()}")

    def at_rest(self) -> list[int]:
        """Cores that are in nobody's hands, each in one table."""
        tables = [who.table() for who in (self.members[:1] + self.guests[:1])]
        return [core for core in range(len(tables[0][0]))
                if all(holders[core] == NOBODY for _, holders in tables) and
                sum(owners[core] != ELSEWHERE for owners, _ in tables) == 1]

    def quiet(self) -> None:
        """All programs have ended: is every core there?"""
        while self.jobs:
            self.look_at_jobs()
            time.sleep(0.02)
        for guest in self.guests:
            for core in range(len(guest.table()[0])):
                guest.ask(f"lend {core}")
        end = time.monotonic() + QUIET_S
        ncores = len(self.members[0].table()[0])
        while len(self.at_rest()) < ncores:
            if time.monotonic() > end:
                self.wrong.append("lost cores: " + "; ".join(
                    str(who.table()) for who in self.members + self.guests))
                return
            time.sleep(0.05)

    def leftovers(self) -> None:
        """Nobody is left who needs it: rmd, its keeper, sockets and shared memory go."""
        for who in self.guests + self.members:
            who.end()
        self.guests, self.members = [], []
        self.rmd.terminate()
        try:
            if self.rmd.wait(20) != 0:
                self.wrong.append(f"rmd ended with {self.rmd.returncode}")
        except subprocess.TimeoutExpired:
            self.wrong.append("rmd does not end")
            self.rmd.kill()
        end = time.monotonic() + QUIET_S
        while (left := self.left()) and time.monotonic() < end:
            time.sleep(0.1)
        if left:
            self.wrong.append(f"left: {left}")

    def left(self) -> list[str]:
        mine = [str(path) for path in self.work.glob("rmd.sock*")]
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if str(self.work) in entry.read_text():
                    mine.append(entry.read_text().replace("\0", " "))
        self.clear_up_after_mpi()
        return mine + sorted(name for name in set(os.listdir("/dev/shm")) - self.shared
                             if not name.startswith(MPI_FILES))

    def clear_up_after_mpi(self) -> None:
        """MPICH leaves its own files when ranks are killed in MPI_Init; ours have no names.  Of the
        same names there may be files of others on this machine."""
        maps = ""
        for entry in Path("/proc").glob("[0-9]*/maps"):
            with contextlib.suppress(OSError):
                maps += entry.read_text()
        for name in set(os.listdir("/dev/shm")) - self.shared:
            path = Path("/dev/shm", name)
            with contextlib.suppress(OSError):
                old = time.time() - path.stat().st_mtime > JOB_S
                if name.startswith(MPI_FILES) and old and str(path) not in maps:
                    path.unlink()

    # --- all of it

    def cycle(self, until: float, options: list[str]) -> None:
        (self.work / "rmd.conf").write_text("check-interval-ms = 200\n")
        self.begin(*options)
        self.members = [Member(self.work / "member", 0)]
        if not self.members[0].join(self.name):
            raise BenchError("the observer cannot join")
        what = [self.start_job] * 12 + [self.stop_ranks] * 3 + [self.kill_rank] * 2 + \
               [self.restart] * 2 + [self.flood] + [self.guest] * 6
        quiet_at = time.monotonic() + 30
        while (now := time.monotonic()) < until:
            self.chance.choice(what)()
            self.look_at_jobs()
            self.look_at_tables()
            if now >= quiet_at:
                self.quiet()
                quiet_at = now + 30
            time.sleep(self.chance.random() * 0.15)
        self.quiet()
        self.leftovers()

    def close(self) -> None:
        for job in self.jobs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.process.pid, signal.SIGKILL)
            job.process.communicate()
        for who in self.guests + self.members:
            who.end()
        if hasattr(self, "rmd") and self.rmd.poll() is None:
            self.rmd.kill()
            self.rmd.wait()
        shutil.rmtree(self.work, ignore_errors=True)


def chaos(ctx: Context) -> list[Figure]:
    minutes = getattr(ctx, "minutes", 30)
    seed = getattr(ctx, "seed", None) or int(time.time())
    machines = list(ctx.only) or ["real"]
    if not set(machines) <= set(MACHINES):
        raise BenchError(f"--only: cores are {', '.join(MACHINES)}")
    one = Chaos(ctx, seed)
    end = time.monotonic() + minutes * 60
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    try:
        turn = 0
        while time.monotonic() < end - 5:
            machine = machines[turn % len(machines)]
            one.cycle(min(end, time.monotonic() + CYCLE_S), MACHINES[machine])
            turn += 1
            told = ", ".join(f"{n} {what}" for what, n in one.counts.items())
            print(f"    {turn}: {machine} cores: {told}", flush=True)
    except SystemExit:
        running = [job.kind for job in one.jobs]
        print(f"    ended with {running} running\n{one.status()}", flush=True)
        raise
    finally:
        one.close()
    for line in one.wrong:
        print("    WRONG " + line)
    told = ", ".join(f"{n} {what}" for what, n in one.counts.items())
    note = (f"{minutes:g} minutes, seed {seed}: {told}; rmd ready after {one.longest_s:.2f} s "
            "at most")
    return [Figure("chaos", len(one.wrong), "lost cores, double holders, hangs, leftovers or wrong "
                   "results", "<=", 0, note)]
