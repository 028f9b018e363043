# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the service survive everything at once?

MPI+OpenMP programs start and end under one rmd all the time; some block outside MPI, fork
children that compute, and have a control point.  Ranks are killed or stopped for a while, jobs are
suspended, rmd is killed or ended and started again, clients flood it, the machine becomes warm,
loses a sensor or a CPU, or has a quota (chaos_machine.py), and programs that are not managed
compute for some seconds.  Where we are root, processes of a second user come, take cores, are
stopped and die, and more users than rmd remembers ask it something.  Every half minute the bench
waits for the programs; then each core must be in one table and have no holder, and tokens must be
as many as cores.  Programs that were not killed must print the checksum that the stock runtime
prints.

The first process that joins decides the mode of the domain until the minute is over.  In turn: an
observer, so that cores have owners; a program of more ranks than there are cores, so that the mode
is anonymous; and an observer without processes of another user, so that threads move among all
cores (chaos_holds.py looks where they compute).

Now and then rmd is left alone for some seconds and writes a trace, in which every change of a core
must be one that the protocol allows.

A second may pass from the kill of rmd until the next one has taken over all tables.  systemd waits
a tenth of it before it starts rmd.  rmd has a session of its own, as a service: Linux shares the
processors among sessions (sched_autogroup), and within one by priority, so a bench of low priority
in rmd's session would wait for seconds to see that rmd is ready.

On the machine's own cores; --only 6,2 is a minute on six emulated ones, a minute on two, and so on.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import mpi_programs
from chaos_holds import Holds
from chaos_machine import THRESHOLD, Machine
from common import MPIEXEC, BenchError, Context, Figure, Run, clean_environment

SECOND_USER, GROUP, ASKERS = 60001, 60000, range(61000, 61040)
MPI_FILES = ("mpich_", "ucx_")  # of MPICH
OTHERS_FILES = ("vader_",)  # of Open MPI, which nothing here uses
JOB_S, QUIET_S, CYCLE_S, AGE_S = 90, 10, 60, 3
TRACE_S = 2
PAUSE_S = 0.1  # RestartSec of rmd/init/rmd.service.in
# How many programs at a time, of how many ranks at most.  A program that finds no core in time runs
# unmanaged, which tests nothing.  So few run where cores have owners; tokens are for all.
KINDS = {"owners": (1, 2), "tokens": (3, 99), "one user": (1, 2)}
MACHINES = {"real": [], "6": ["--emulate-cores=6"], "2": ["--emulate-cores=2"]}
MIXED = "mixed"  # bench/mpi/mixed.c
PROGRAMS = {  # ranks and arguments; one run takes a second or two
    "stencil 1": ("stencil", 1, ["--size=512", "--steps=600"]),
    "stencil 2": ("stencil", 2, ["--size=512", "--steps=400"]),
    "stencil 3": ("stencil", 3, ["--size=256", "--steps=400"]),
    "imbalance 2": ("imbalance", 2, ["--loads=1:3", "--work-ms=20", "--iterations=40",
                                     "--units-per-ms=1000"]),
    "imbalance 4": ("imbalance", 4, ["--loads=1:2:3:4", "--work-ms=20", "--iterations=30",
                                     "--units-per-ms=1000", "--wait=polled"]),
    "mixed 2": (MIXED, 2, ["40"]),
    "mixed 4": (MIXED, 4, ["20"]),
    "crowd 8": ("imbalance", 8, ["--loads=1:2", "--work-ms=20", "--iterations=20",
                                 "--units-per-ms=1000", "--wait=polled"]),
}
CROWD = "crowd 8"  # more than there are cores


def lower_sched_latency() -> None:
    """Low latency as under systemd (Nice of rmd/init/rmd.service.in), however nice the bench is."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)


@dataclass(frozen=True)
class Numbers:
    """What a member prints for a core without an owner or holder, for the owner of another user's
    core, and for the mode of a table without owners."""
    nobody: int
    elsewhere: int
    anonymous: int


def numbers_of(build: Path) -> Numbers:
    """By the headers, as the build's testsuite/lib/building/layout tells them; a core's word has
    the slot + 1."""
    program = build / "testsuite/lib/building/layout"
    if not program.exists():
        raise BenchError(f"no {program}: make check-programs")
    told = json.loads(subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True,
                                     timeout=60).stdout)["constants"]
    return Numbers(told["INV_NOBODY"] - 1, told["INV_ELSEWHERE"] - 1, told["INV_MODE_ANONYMOUS"])


class Member:
    """A process of testsuite/rmd/programs/rmd_member, which follows commands."""

    def __init__(self, program: Path, uid: int):
        if not program.exists():
            raise BenchError(f"no {program}: make check-programs")
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

    def mode_and_tokens(self) -> tuple[int, int]:
        """The table's mode, and its number of free tokens."""
        mode, free = map(int, self.ask("table").split()[:2])
        return mode, free

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
    suspended: float = 0  # until when; 0: it is not

    def ranks(self) -> list[int]:
        """The descendants of the launcher that run the program: ranks, and children of theirs."""
        parent, runs = {}, []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                pid = int(entry.name)
                parent[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                program = os.readlink(entry / "exe")
                if "/apps/" in program or Path(program).name.startswith(MIXED):
                    runs.append(pid)
        return [pid for pid in runs if self.is_above(pid, parent)]

    def is_above(self, pid: int, parent: dict[int, int]) -> bool:
        while pid > 1 and pid != self.process.pid:
            pid = parent.get(pid, 0)
        return pid == self.process.pid


class Chaos:
    def __init__(self, ctx: Context, seed: int):
        self.ctx, self.chance = ctx, random.Random(seed)
        self.numbers = numbers_of(ctx.build)
        self.work = Path(tempfile.mkdtemp(prefix="invasive-chaos-"))
        self.work.chmod(0o755)
        member = ctx.build / "testsuite/rmd/programs/rmd_member"
        if not member.exists():
            raise BenchError(f"no {member}: make check-programs")
        shutil.copy(member, self.work / "member")
        shutil.copy(ctx.build / "bin" / "rmctl", self.work / "rmctl")
        self.name = str(self.work / "rmd.sock")
        self.jobs: list[Job] = []
        self.unmanaged: list[subprocess.Popen] = []
        self.others: list[Member] = []
        self.asleep: dict[Member, float] = {}      # further ones, stopped: until when
        self.members: list[Member] = []
        self.wrong: list[str] = []
        self.counts = dict.fromkeys((
            "programs", "ranks", "ranks unmanaged", "kills", "stops", "suspended jobs",
            "changes of the machine", "unmanaged programs", "restarts", "floods",
            "processes of the second user", "of these stopped", "askers", "looks",
            "looks at threads", "traces", "changes"), 0)
        self.trace_until: float | None = None
        self.traced: list[str] = []  # whose: --user of rmctl trace
        self.ready_s = [0.0]                       # from the start of rmd
        self.taken_over_s: dict[signal.Signals, list[float]] = {signal.SIGKILL: [],
                                                                signal.SIGTERM: []}
        self.holds = Holds()
        self.machine = Machine(self.work / "root")
        self.mixed = mpi_programs.compiled(ctx, mpi_programs.LIBRARIES[0], "mixed.c", "-fopenmp")
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
                 f"--sys-root={self.machine.root}", *options], pass_fds=(writer,), stderr=log,
                start_new_session=True, preexec_fn=lower_sched_latency)
        os.close(writer)
        with os.fdopen(reader) as ready:
            if not ready.readline().startswith("ready "):
                raise BenchError("rmd does not start: " + (self.work / "log").read_text()[-2000:])
        self.ready_s.append(time.monotonic() - start)

    def look_at_rmd(self) -> None:
        """Only this bench may end rmd."""
        if self.rmd.poll() is not None:
            self.wrong.append(f"rmd ended by itself: {self.rmd.returncode}")
            self.trace_until = None
            self.begin(*self.options)

    def restart(self) -> None:
        if self.trace_until:
            return
        self.counts["restarts"] += 1
        how = self.chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        start = time.monotonic()
        self.rmd.send_signal(how)
        self.rmd.wait()
        gone_s = time.monotonic() - start
        time.sleep(self.chance.random() * 0.3)
        self.begin(*self.options)
        self.taken_over_s[how].append(gone_s + PAUSE_S + self.ready_s[-1])

    # --- programs

    def start_program(self, kind: str, stock: bool = False) -> subprocess.Popen:
        """Where stock libgomp has several threads, a child of a fork cannot use it."""
        app, ranks, arguments = PROGRAMS[kind]
        program = str(self.mixed) if app == MIXED else self.ctx.app(app)
        command = [MPIEXEC, "-n", str(ranks), program, *arguments]
        threads = "1" if stock and app == MIXED else "8"
        if not stock:
            command = [str(self.ctx.build / "invade"), f"--socket={self.name}", "--", *command]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, text=True, start_new_session=True,
                                env=clean_environment({"OMP_NUM_THREADS": threads}))

    def checksum(self, process: subprocess.Popen) -> str:
        output = process.communicate()[0]
        self.counts["ranks unmanaged"] += output.lower().count("running unmanaged")
        sums = [line.split()[1] for line in output.splitlines() if line.startswith("checksum ")]
        return sums[0] if process.returncode == 0 and sums else \
            f"exit code {process.returncode}: {output[-1500:]}"

    def start_job(self, kind: str = "") -> None:
        jobs, ranks = KINDS[self.kind]
        if len(self.jobs) >= jobs:
            return
        kind = kind or self.chance.choice([k for k, what in PROGRAMS.items() if what[1] <= ranks])
        self.counts["programs"] += 1
        self.counts["ranks"] += PROGRAMS[kind][1]
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

    def suspend_job(self) -> None:
        job = self.chance.choice(self.jobs) if self.jobs else None
        if job and not job.suspended and self.order("suspend", job):
            self.counts["suspended jobs"] += 1
            job.suspended = time.monotonic() + self.chance.choice([0.01, 0.2, 1, 3])

    def order(self, what: str, job: Job) -> bool:
        """By one of its processes: others may have left, or not joined yet."""
        return any(self.rmctl(what, "--wait=200", str(pid)).returncode in (0, 2)
                   for pid in job.ranks())

    def look_at_jobs(self) -> None:
        now = time.monotonic()
        for job in list(self.jobs):
            if job.suspended and now >= job.suspended and self.order("resume", job):
                job.suspended = 0
            for pid, until in list(job.stopped.items()):
                if now >= until:
                    del job.stopped[pid]
                    self.holds.stopped.add(pid)
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

    def rmctl(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.ctx.build / "bin/rmctl", f"--socket={self.name}", *words],
                              capture_output=True, text=True, check=False, timeout=JOB_S)

    def status(self) -> str:
        done = self.rmctl("status")
        return done.stdout + done.stderr

    # --- the machine

    def change_machine(self) -> None:
        self.counts["changes of the machine"] += 1
        self.machine.change(self.chance, [self.members[0].process.pid, *(
            pid for job in self.jobs for pid in job.ranks())])
        if self.chance.random() < 0.5:
            limit = self.chance.choice([str(THRESHOLD), "off"])
            self.rmctl("power", f"--threshold={limit}")  # may be refused during a flood

    def calm_machine(self) -> None:
        self.machine.calm()
        done = self.rmctl("power", "--threshold=off")
        self.wrong += [f"rmctl power: {done}"] if done.returncode else []

    # --- strangers

    def begin_unmanaged(self) -> None:
        """A program that never joins, and ends by itself."""
        self.unmanaged = [one for one in self.unmanaged if one.poll() is None]
        if not self.unmanaged:
            self.counts["unmanaged programs"] += 1
            self.unmanaged.append(subprocess.Popen(
                ["timeout", str(self.chance.choice([0.2, 1, 3])), sys.executable, "-c",
                 "while True: pass"]))

    def flood(self) -> None:
        self.counts["floods"] += 1
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for _ in range(300):
                one = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                one.setblocking(False)
                one.connect(self.name)
                one.send(self.chance.randbytes(self.chance.choice([1, 92, 104, 104, 116, 5000])))

    def trouble_by_second_user(self) -> None:
        """A process of another user that comes, takes cores, and dies with them.  Most of the time
        there is none: else one of two cores is left, and a second rank would be unmanaged."""
        if os.getuid() != 0:
            return
        if len(self.others) + len(self.asleep) < 2 and self.chance.random() < 0.15:
            member = Member(self.work / "member", SECOND_USER)
            if member.join(self.name):
                self.others.append(member)
                self.counts["processes of the second user"] += 1
            else:
                member.end()
            return
        if not self.others:
            return
        member = self.chance.choice(self.others)
        owners = member.table()[0]
        for core in range(len(owners)):
            member.ask(f"{self.chance.choice(['borrow', 'lend'])} {core}")
        fate = self.chance.random()
        if fate < 0.4:
            self.others.remove(member)
            member.end()
        elif fate < 0.6:
            self.others.remove(member)
            self.counts["of these stopped"] += 1
            member.process.send_signal(signal.SIGSTOP)
            self.asleep[member] = time.monotonic() + self.chance.choice([0.01, 0.5, 2, 5])

    def wake_others(self, now: float = float("inf")) -> None:
        """Lets stopped processes of the second user go on, or ends them."""
        for member, until in list(self.asleep.items()):
            if now < until:
                continue
            del self.asleep[member]
            if self.chance.random() < 0.3:
                member.end()
            else:
                member.process.send_signal(signal.SIGCONT)
                self.others.append(member)

    def ask(self) -> None:
        """rmd remembers a few of the users that only ask, and all users that have processes."""
        for uid in ASKERS if os.getuid() == 0 else ():
            self.counts["askers"] += 1
            subprocess.run([self.work / "rmctl", f"--socket={self.name}", "policy"], cwd="/",
                           user=uid, group=GROUP, extra_groups=[], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False, timeout=JOB_S)
        for words in (["status"], ["top", "--batch", "-n1"]) if os.getuid() == 0 else ():
            # the second user may be about to leave
            done = self.rmctl(*words, f"--user={SECOND_USER}")
            self.wrong += [f"rmctl {words}: {done}"] if done.returncode not in (0, 1) else []

    # --- a trace

    def begin_trace(self) -> None:
        """rmd may refuse a trace during a flood.  Seldom, as rmd is not killed meanwhile."""
        path = self.work / "trace"
        if not self.trace_until and self.have_owners() and self.chance.random() < 0.3:
            path.unlink(missing_ok=True)
            whose = [f"--user={SECOND_USER}"] if self.others and self.chance.random() < 0.5 else []
            if self.rmctl("trace", *whose, "start", str(path)).returncode == 0:
                self.trace_until, self.traced = time.monotonic() + TRACE_S, whose

    def stop_trace(self) -> None:
        """rmd may refuse this as well."""
        end = time.monotonic() + QUIET_S
        while (done := self.rmctl("trace", *self.traced, "stop")).returncode:
            if time.monotonic() > end:
                self.wrong.append(f"a trace is not stopped: {done.stderr}")
                return
            time.sleep(0.1)

    def look_at_trace(self, now: float = float("inf")) -> None:
        """A trace that lacks events, since its reader had too little time, proves nothing."""
        if not self.trace_until or now < self.trace_until:
            return
        self.trace_until = None
        self.stop_trace()
        done = subprocess.run([self.ctx.build / "bin/invade-trace", "check", self.work / "trace"],
                              capture_output=True, text=True, check=False, timeout=60)
        if done.returncode == 0:
            self.counts["traces"] += 1
            self.counts["changes"] += sum(map(int, re.findall(r"(\d+) changes", done.stdout)))
        elif "were lost" not in done.stdout + done.stderr:
            self.wrong.append(f"a trace: {(done.stdout + done.stderr)[-1500:]}")

    # --- what must hold

    def tables(self) -> list[Member]:
        """A member of each table, which reads it."""
        return self.members[:1] + self.others[:1]

    def tokens(self, who: Member) -> int | None:
        """The number of free tokens in the member's table; None: cores have owners."""
        mode, free = who.mode_and_tokens()
        return free if mode == self.numbers.anonymous else None

    def have_owners(self) -> bool:
        return self.tokens(self.members[0]) is None

    def in_two_tables(self) -> set[int]:
        """Cores that two users have, or may hold still."""
        there = [[core for core, (owner, holder) in enumerate(zip(*who.table()))
                  if owner != self.numbers.elsewhere or holder != self.numbers.nobody]
                 for who in self.tables()]
        return set.intersection(*map(set, there)) if len(there) > 1 else set()

    def look_at_tables(self) -> None:
        """A core may go from one user to the other between two looks, but not each time."""
        self.counts["looks"] += 1
        if len(self.others) and \
                self.in_two_tables() & self.in_two_tables() & self.in_two_tables():
            said = f"held twice: {self.members[0].table()} {self.others[0].table()}"
            self.wrong += [said] if said not in self.wrong else []  # once, not as long as it is so

    def look_at_threads(self) -> None:
        """Where users come and go, a process may have no core left, and go on beside other ones."""
        if self.have_owners() and not (self.others or self.asleep or self.options):
            self.wrong += self.holds.compare(self.members[0].ask("holds"),
                                             [pid for job in self.jobs for pid in job.ranks()])
            self.counts["looks at threads"] = self.holds.looks

    def lost(self) -> str:
        """What is lost when no process computes, "" for nothing: each core must be in one table and
        have no holder, and tokens, if there are any, be as many as cores in that table."""
        told = [(who.table(), self.tokens(who)) for who in self.tables()]
        for core in range(len(told[0][0][0])):
            if any(holders[core] != self.numbers.nobody for (_, holders), _ in told) or \
                    sum(owners[core] != self.numbers.elsewhere for (owners, _), _ in told) != 1:
                return f"core {core}: {told}"
        if any(free not in (None, sum(owner != self.numbers.elsewhere for owner in owners))
               for (owners, _), free in told):
            return f"tokens: {told}"
        return ""

    def quiet(self) -> None:
        """All programs have ended: is every core there?"""
        self.calm_machine()
        while self.jobs:
            self.look_at_jobs()
            time.sleep(0.02)
        self.wake_others()
        for member in self.others:
            for core in range(len(member.table()[0])):
                member.ask(f"lend {core}")
        end = time.monotonic() + QUIET_S
        while lost := self.lost():
            if time.monotonic() > end:
                self.wrong.append(f"lost {lost}")
                return
            time.sleep(0.05)

    def leftovers(self) -> None:
        """All processes have ended: rmd, its descriptor holder, sockets and memory go, too."""
        for who in [*self.others, *self.asleep, *self.members]:
            who.end()
        self.others, self.asleep, self.members = [], {}, []
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
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_text(errors="replace").replace("\0", " ")
                if str(self.work) in words:
                    mine.append(words)
        self.clear_up_after_mpi()
        return mine + sorted(name for name in set(os.listdir("/dev/shm")) - self.shared
                             if not name.startswith(MPI_FILES + OTHERS_FILES))

    def clear_up_after_mpi(self, age_s: float = JOB_S) -> None:
        """MPICH leaves its own files when ranks are killed in MPI_Init; ours have no names.  Other
        jobs on this machine may have files of the same names, but map the files that they make."""
        maps = ""
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                maps += (entry / "maps").read_text()
        for name in set(os.listdir("/dev/shm")) - self.shared:
            path = Path("/dev/shm", name)
            with contextlib.suppress(OSError):
                old = time.time() - path.stat().st_mtime > age_s
                if name.startswith(MPI_FILES) and old and str(path) not in maps:
                    path.unlink()

    # --- all of it

    def begin_domain(self, kind: str) -> None:
        """The observer joins, and stays: the domain keeps the mode of the first processes."""
        end = time.monotonic() + JOB_S
        while not self.members:
            if time.monotonic() > end:
                raise BenchError("the observer cannot join")
            if kind == "tokens":
                self.start_job(CROWD)
                while self.jobs and "anonymous tokens" not in self.status():
                    self.look_at_jobs()
                    time.sleep(0.02)
            observer = Member(self.work / "member", 0)
            if observer.join(self.name) and \
                    (self.tokens(observer) is not None) == (kind == "tokens"):
                self.members = [observer]
            else:  # the program has ended before
                observer.end()

    def cycle(self, until: float, machine: str, kind: str) -> None:
        self.kind = kind
        self.machine.cpus = list(range(int(machine))) if machine.isdigit() else \
            sorted(os.sched_getaffinity(0))
        self.machine.calm()
        (self.work / "rmd.conf").write_text("check-interval-ms = 200\n")
        self.begin(*MACHINES[machine])
        self.begin_domain(kind)
        what = [self.start_job] * 12 + [self.stop_ranks] * 3 + [self.kill_rank] * 2 + \
               [self.restart] * 2 + [self.flood, self.begin_trace, self.ask] + \
               [self.suspend_job] * 2 + [self.change_machine] * 2 + [self.begin_unmanaged] + \
               [self.trouble_by_second_user] * (0 if kind == "one user" else 6)
        quiet_at = time.monotonic() + 30
        while (now := time.monotonic()) < until:
            self.chance.choice(what)()
            self.look_at_rmd()
            self.look_at_jobs()
            self.wake_others(now)
            self.look_at_tables()
            self.look_at_threads()
            self.look_at_trace(now)
            if now >= quiet_at:
                self.quiet()
                quiet_at = now + 30
            time.sleep(self.chance.random() * 0.15)
        self.quiet()
        self.look_at_trace()
        self.leftovers()

    def told(self) -> str:
        return ", ".join(f"{n} {what}" for what, n in self.counts.items())

    def figures(self, under: str) -> list[Figure]:
        killed, ended = self.taken_over_s.values()
        note = (f"{len(killed)} times; where it had been asked to end "
                f"{max(ended, default=0):.2f} s at most")
        return [Figure("chaos-takeover", max(killed, default=0), "s from the kill of rmd to the "
                       "next one that has taken over all, at most", "<=", 1.0, note),
                Figure("chaos-takeover-median", statistics.median(killed or [0]), "s, median", "<=",
                       1.0),
                Figure("chaos", len(self.wrong), "lost cores, double holders, hangs, leftovers or "
                       "wrong results", "<=", 0, f"{under}: {self.told()}; rmd ready after "
                       f"{max(self.ready_s):.2f} s at most")]

    def close(self) -> None:
        for job in self.jobs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.process.pid, signal.SIGKILL)
            job.process.communicate()
        for who in [*self.others, *self.asleep, *self.members]:
            who.end()
        for program in self.unmanaged:
            program.wait()
        if hasattr(self, "rmd") and self.rmd.poll() is None:
            self.rmd.kill()
            self.rmd.wait()
        shutil.rmtree(self.work, ignore_errors=True)
        time.sleep(AGE_S)
        self.clear_up_after_mpi(AGE_S)


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
        while (start := time.monotonic()) < end - 5:
            machine, kind = machines[turn % len(machines)], list(KINDS)[turn // len(machines) % 3]
            one.cycle(min(end, start + CYCLE_S), machine, kind)
            turn += 1
            ctx.runs.append(Run(f"{machine} {kind}", time.monotonic() - start, 0, dict(one.counts),
                                ""))
            print(f"    {turn}: {machine} cores, {kind}: {one.told()}", flush=True)
    except SystemExit:
        running = [job.kind for job in one.jobs]
        print(f"    ended with {running} running\n{one.status()}", flush=True)
        raise
    finally:  # what has been found is told also when something else goes wrong
        for line in one.wrong:
            print("    WRONG " + line, flush=True)
        one.close()
    return one.figures(f"{minutes:g} minutes, seed {seed}")
