# SPDX-License-Identifier: GPL-3.0-or-later
"""What all benchmarks share: running a program stock or under invade, in turns, and judging.

A benchmark is a function that takes a Context and returns a list of Figures.  It runs its
variants in turns (A B A B ...), so that what changes on the machine meanwhile meets all of them,
and takes the median of the ratios within each turn.  Everything that ran is kept for the record.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
MPIEXEC = "mpiexec.mpich"


class BenchError(Exception):
    """A program that we measure did not do what it should."""


class NoEnd(BenchError):
    """A program did not end in time."""


class Ended(KeyboardInterrupt):
    """A signal told us to end; Programs end those that they have started on its way."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number  # as a shell has it


class Ending:
    """SIGTERM and SIGHUP do what SIGINT does."""

    def __init__(self):
        self.number = 0  # of the signal that came first
        self.held = False

    def watch(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
                signal.signal(number, self.come)

    def come(self, number: int, _frame) -> None:
        if self.number:
            return  # we are about to end, and that does not take long
        self.number = number
        if not self.held:
            raise Ended(number)

    @contextlib.contextmanager
    def hold(self):
        """Holds signals that come meanwhile, and handles them afterwards."""
        self.held = True
        try:
            yield
        finally:
            self.held = False
        if self.number:
            raise Ended(self.number)


ENDING = Ending()


class Programs:
    """In a `with`: programs that are started in it have ended after it, however it is left."""

    END_S = 5  # until those are killed that were told to end

    def __init__(self):
        self.all: list[subprocess.Popen] = []

    def __enter__(self) -> Programs:
        return self

    def start(self, command: list[str], env: dict[str, str], **more) -> subprocess.Popen:
        with ENDING.hold():  # between the start of a program and our knowledge of it
            self.all.append(subprocess.Popen(command, env=clean_environment(env), text=True,
                                             stdin=subprocess.DEVNULL, **more))
        return self.all[-1]

    def piped(self, command: list[str], env: dict[str, str]) -> subprocess.Popen:
        return self.start(command, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __exit__(self, *_) -> None:
        """invade and mpiexec pass SIGTERM on to what they have started, but cannot pass SIGKILL."""
        left = [program for program in self.all if program.poll() is None]
        for program in left:
            program.terminate()
        end = time.monotonic() + self.END_S
        for program in left:
            try:
                program.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
            for pipe in (program.stdout, program.stderr):
                if pipe:
                    pipe.close()


@contextlib.contextmanager
def resource_manager(ctx: Context, *options: str):
    """An rmd that answers, for programs that come and go: the name of its socket."""
    socket = f"@invasive-bench-{os.getpid()}"
    with Programs() as programs:
        rmd = programs.start([str(ctx.build / "bin" / "rmd"), f"--socket={socket}",
                              "--log-level=error", *options], {})
        wait_for_answer(ctx, rmd, socket)
        yield socket


RMCTL_TIMEOUT_S = 20


def wait_for_answer(ctx: Context, rmd: subprocess.Popen, socket: str,
                    patience_s: float = 20) -> None:
    """A process that starts before rmd can be reached would run unmanaged."""
    command = [str(ctx.build / "bin" / "rmctl"), f"--socket={socket}", "status"]
    end = time.monotonic() + patience_s
    while True:
        if rmd.poll() is not None:
            raise BenchError(f"rmd ended before it answered: exit code {rmd.returncode}")
        try:
            asked = subprocess.run(command, env=clean_environment({}), text=True, check=False,
                                   capture_output=True, stdin=subprocess.DEVNULL,
                                   timeout=RMCTL_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"rmd at {socket}: rmctl got no answer in {RMCTL_TIMEOUT_S} s") \
                from error
        if asked.returncode == 0:
            return
        if rmd.poll() is None and time.monotonic() > end:
            raise BenchError(f"rmd at {socket}: no answer after {patience_s:g} s: "
                             f"{asked.stderr.strip()[-500:]}")
        time.sleep(0.02)


@dataclass
class Run:
    """One run of one program."""

    variant: str
    wall_s: float
    cpu_s: float  # of all processes that it started and waited for
    values: dict  # "name number" lines of its output
    output: str = field(repr=False)


@dataclass
class Figure:
    """A measured number with the goal that the project has for it."""

    name: str
    value: float
    unit: str
    op: str  # "<=" or ">="
    goal: float
    note: str = ""

    @property
    def reached(self) -> bool:
        # Judged as printed, so that line and exit code cannot disagree.
        value = float(f"{self.value:.3g}" if self.value >= 100 else f"{self.value:.3f}")
        return value <= self.goal if self.op == "<=" else value >= self.goal

    def line(self) -> str:
        value = f"{self.value:.3g}" if self.value >= 100 else f"{self.value:.3f}"
        return f"{self.name}: {value} {self.unit} (goal {self.op} {self.goal:g})"


class Context:
    """Where the build is, how often to repeat, and all runs so far."""

    def __init__(self, build: Path, pairs: int, timeout_s: float = 120, verbose: bool = True,
                 only: tuple[str, ...] = (), selection: dict[str, list[str]] | None = None):
        self.build = build
        # What a benchmark compiles or downloads; elsewhere when the build is not ours to write to.
        self.work = Path(os.environ.get("INVASIVE_BENCH_WORK") or build / "bench-openmp")
        self.pairs = pairs
        self.only = only  # constructs or kernels to measure; all when empty
        self.selection = selection or {}
        self.timeout_s = timeout_s
        self.verbose = verbose
        self.runs: list[Run] = []
        self.progress = sys.stdout  # where lines go that are no result
        if not (build / "invade").exists():
            raise BenchError(f"no build in {build}: build as DEVELOPERS.md says, "
                             "or set INVASIVE_BUILD")

    def selected(self, kind: str, name: str) -> bool:
        """Is `name` one of the settings or runtimes (`kind`) that were asked for?"""
        return name in self.selection.get(kind, [name])

    def check_only(self, *known: str) -> None:
        """Refuses words of --only that the benchmark does not know; all, when it has no parts."""
        unknown = ", ".join(sorted(set(self.only) - set(known)))
        if unknown and not known:
            raise BenchError(f"--only: {unknown}: this benchmark is one whole")
        if unknown:
            raise BenchError(f"--only: {unknown} is none of {', '.join(known)}")

    def app(self, name: str) -> str:
        return str(self.build / "apps" / name / name)

    def mpi(self, ranks: int, *program: str, mpiexec: str = MPIEXEC) -> list[str]:
        return [mpiexec, "-n", str(ranks), *program]

    def stock(self, command: list[str], threads: int | None = 1, variant: str = "stock",
              **env: str) -> Run:
        if threads is not None:
            env["OMP_NUM_THREADS"] = str(threads)
        return self.run(variant, command, env)

    def unmanaged(self, command: list[str], threads: int, variant: str = "unmanaged") -> Run:
        """With our OpenMP runtime preloaded, without a resource manager."""
        library = self.build / "lib" / "invasive" / "libgomp.so.1"
        return self.stock(command, threads=threads, variant=variant, LD_PRELOAD=str(library))

    def invade(self, command: list[str], threads: int | None = None, variant: str = "invade",
               **env: str) -> Run:
        """Under invade the team size is our own default unless a benchmark says otherwise."""
        if threads is not None:
            env["OMP_NUM_THREADS"] = str(threads)
        return self.run(variant, [str(self.build / "invade"), "--", *command], env)

    def run(self, variant: str, command: list[str], env: dict[str, str],
            says_it: bool = True) -> Run:
        """says_it: what comes on stderr is worth a line."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        with Programs() as programs:
            program = programs.piped(command, env)
            try:
                out, err = program.communicate(timeout=self.timeout_s)
            except subprocess.TimeoutExpired as error:
                raise NoEnd(f"{variant}: {' '.join(command)}: no end after "
                            f"{self.timeout_s:g} s") from error
        wall = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if program.returncode != 0:
            raise BenchError(f"{variant}: {' '.join(command)}: exit code {program.returncode}\n"
                             f"{out[-2000:]}{err[-2000:]}")
        all_managed(variant, err)
        if says_it and err.strip():
            print(f"    {variant} said: {err.strip()[-400:]}", file=sys.stderr)
        cpu = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        run = Run(variant, wall, cpu, parse_values(out), out)
        self.runs.append(run)
        return run

    def checksum(self, variant: str, program: subprocess.Popen) -> str:
        """The output of a program that Programs.piped has started, when it has ended well."""
        try:
            out, err = program.communicate(timeout=self.timeout_s)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{variant}: no end after {self.timeout_s:g} s") from error
        if program.returncode:
            raise BenchError(f"{variant}: exit code {program.returncode}: {err[-500:]}")
        all_managed(variant, err)
        if err.strip():
            print(f"    {variant} said: {err.strip()[-300:]}", file=sys.stderr)
        return str(parse_values(out).get("checksum"))

    def say(self, text: str) -> None:
        print(f"    {text}", file=self.progress, flush=True)

    def turn(self, *variants) -> tuple[Run, ...]:
        """Call each of the variants once.  Prints one line."""
        turn = tuple(variant() for variant in variants)
        if self.verbose:
            self.say("   ".join(describe(r) for r in turn))
        return turn

    def turns(self, *variants) -> list[tuple[Run, ...]]:
        """Call each of the variants in turn, self.pairs times."""
        return [self.turn(*variants) for _ in range(self.pairs)]

    def turns_until(self, enough, *variants) -> list[tuple[Run, ...]]:
        """At least self.pairs turns, and until enough(turns), but at most four times as many."""
        result = self.turns(*variants)
        while len(result) < 4 * self.pairs and not enough(result):
            result.append(self.turn(*variants))
        return result


def all_managed(variant: str, said: str) -> None:
    """A process that cannot reach rmd, or is refused, goes on unmanaged and says so.  Then another
    program was measured than was meant.  Stock runs have no such message."""
    for line in said.splitlines():
        if "running unmanaged" in line.lower():
            raise BenchError(f"{variant}: {line.strip()}")


def describe(run: Run) -> str:
    values = [f"{v:.4g} {k}" for k, v in run.values.items()
              if k in ("seconds", "ms", "us_per_call", "us_per_region", "us_per_decision")]
    return f"{run.variant}: {', '.join(values)} (wall {run.wall_s:.2f} s, cpu {run.cpu_s:.2f} s)"


def clean_environment(extra: dict[str, str]) -> dict[str, str]:
    """The environment without what would steer either runtime, and with `extra`."""
    steering = ("OMP_", "GOMP_", "KMP_", "INVASIVE", "LD_PRELOAD", "MPIR_CVAR_", "HYDRA_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(steering)}
    env.update(extra)
    return env


def parse_values(output: str) -> dict:
    """Lines of the form "name number"; checksums are kept as text."""
    values: dict = {}
    for line in output.splitlines():
        match = re.fullmatch(r"([a-z][a-z0-9_-]*) ([0-9a-f.+-]+)", line.strip())
        if not match:
            continue
        name, text = match.groups()
        try:
            values[name] = text if name == "checksum" else float(text)
        except ValueError:
            continue
    return values


def same_checksum(runs: list[Run]) -> None:
    """The result must not depend on how cores moved (or a benchmark compares two programs): what
    these programs reduce are integers, maxima, or sums in a fixed order."""
    sums = {run.values.get("checksum") for run in runs}
    if len(sums) != 1 or None in sums:
        raise BenchError(f"checksums differ: {sums}")


def median_ratio(turns, over: int, under: int, key: str = "seconds") -> float:
    """Median over the turns of variant `over` divided by variant `under`."""
    return statistics.median(t[over].values[key] / t[under].values[key] for t in turns)


def nine_tenths(times: list[float]) -> float:
    """Nine of ten are no longer."""
    return sorted(times)[len(times) * 9 // 10]


def quickest(turns, count: int) -> int:
    """Which of the first `count` variants of a turn has the least median of the commands' times."""
    return min(range(count), key=lambda i: statistics.median(t[i].wall_s for t in turns))


def median_wall_ratio(turns, over: int, under: int) -> float:
    """As median_ratio, of the times of the commands."""
    return statistics.median(t[over].wall_s / t[under].wall_s for t in turns)


def median_value(turns, index: int, key: str = "seconds") -> float:
    return statistics.median(t[index].values[key] for t in turns)


def revision() -> str:
    """The revision that is checked out; with a + if tracked files are changed."""
    def said(*words: str) -> str:
        try:
            return subprocess.run(["git", "-C", str(TOP), *words], check=False,
                                  capture_output=True, text=True).stdout.strip()
        except OSError:
            return ""  # no git

    changed = said("status", "--porcelain", "--untracked-files=no")
    return said("rev-parse", "--short", "HEAD") + ("+" if changed else "")


REVISION = revision()  # when the run begins: what is checked out may be another one when it ends


def machine() -> dict:
    """What a reader needs to know about the machine of the numbers."""
    model = platform.processor()
    try:
        text = Path("/proc/cpuinfo").read_text()
        model = re.search(r"model name\s*:\s*(.*)", text).group(1)
    except (OSError, AttributeError):
        pass
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "revision": REVISION,
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "load_average": round(os.getloadavg()[0], 2),
        "mpi_binds_ranks": mpi_binds_ranks(),
    }


def mpi_binds_ranks() -> bool | None:
    """Whether mpiexec pins ranks by default (MPICH does not); a pinned rank is another stock."""
    code = "import os; print(f'[{len(os.sched_getaffinity(0))}]')"  # lines may come as one
    try:
        done = subprocess.run([MPIEXEC, "-n", "2", sys.executable, "-c", code], check=False,
                              capture_output=True, text=True, timeout=30, env=clean_environment({}))
    except (OSError, subprocess.TimeoutExpired):
        return None
    counts = re.findall(r"\[(\d+)\]", done.stdout)
    return any(int(c) != len(os.sched_getaffinity(0)) for c in counts) if counts else None


def write_record(name: str, figures: list[Figure], context: Context) -> Path:
    """The figures and the machine become the benchmark's line in bench/results.jsonl.  These and
    every run become BUILD/bench/results/NAME.json, whose path is returned."""
    record = {
        "benchmark": name,
        "machine": machine(),
        "figures": [{**asdict(f), "reached": f.reached} for f in figures],
    }
    keep_line(RESULTS, record)
    runs = [{"variant": r.variant, "wall_s": round(r.wall_s, 4), "cpu_s": round(r.cpu_s, 4),
             **r.values} for r in context.runs]
    path = context.build / "bench" / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**record, "runs": runs}, indent=1) + "\n")
    return path


RESULTS = TOP / "bench" / "results.jsonl"


def records_of(path: Path) -> dict[str, dict]:
    """Records by benchmark; none if there is no file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {record["benchmark"]: record for record in map(json.loads, lines)}


def keep_line(path: Path, record: dict) -> None:
    """Keeps one line for each benchmark, in the order of their names."""
    records = records_of(path)
    records[record["benchmark"]] = record
    path.write_text("".join(json.dumps(records[name]) + "\n" for name in sorted(records)))
