# SPDX-License-Identifier: GPL-3.0-or-later
"""Arbitrary bytes for everything that reads bytes of others, by libFuzzer.

rmd.conf, requests on rmd's socket (rmctl's commands among them), a core table that processes have
written into, rings of trace events likewise, what a former rmd has left, messages between rmd and
its descriptor holder, reports of processes (what rmd takes from other nodes, what `invade
--report` prints), requests for metrics over HTTP, machines and workloads of `rmctl simulate`,
what rmctl is told by an rmd, and files of /proc and /sys.  The programs are bench/fuzz/NAME.c, with
AddressSanitizer and UndefinedBehaviorSanitizer; inputs begin with the small corpus beside them.
--turns 5, the default, is ten million inputs each: two million a turn.  Comparisons are not traced,
which doubles the rate; tables are smaller (INV_SMALL: fewer cores, slots, call sites and events),
and quick.c answers for the kernel what rmd asks about processes, which triples it.
Trace files are for a program in Python, and so is what makes them up: fuzz_trace_file.py.

The inputs are run in pieces, --jobs of them side by side.  What each piece has found is kept in
BUILD/bench-openmp/fuzz/, so that --resume goes on where a run was stopped, as long as the program
that is fuzzed is the same to the byte; --resume --turns 0 says how far it is.

Coverage is what libFuzzer counts: edges of all code that is linked, of which the parser is a part;
of the reader of trace files, lines.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import TOP, BenchError, Context, Figure

INPUTS_A_TURN = 2_000_000
PIECE = 250_000  # inputs of one process: what is lost when all is stopped
PIECE_TIMEOUT_S = 7200  # it may be stopped meanwhile, and need not be in a hurry
INTERRUPTED = "libFuzzer: run interrupted"
CLANG = "clang-14"
FLAGS = ("-std=gnu17 -O2 -g1 -DINV_SMALL -DINV_ASSERTIONS -fno-omit-frame-pointer "
         "-fno-sanitize-recover=all -fno-sanitize-coverage=trace-cmp -pthread").split()
# Sources that nothing here needs, or that are part of a target.
ELSEWHERE = {"answer", "bell", "connections", "fd_holder", "idle_cpu", "procstat", "rmctl",
             "rmctl_complete", "rmctl_simulate", "rmctl_top", "rmd", "service"}
MANAGER = ("rmd", "tools/rmctl", "client")  # folders
LIBRARY = [  # what the fuzzers may be linked with: nearly all of rmd, and
    *sorted(p for folder in MANAGER for p in (TOP / folder).rglob("*.c")
            if p.stem not in ELSEWHERE and p.parent.name != "simulate"),
    *(TOP / "libinvasive" / f"{name}.c"
      for name in ("base/cpulist base/slice base/steady table/core table/scalability table/socket "
                   "table/speeds table/table table/topology table/trace").split()),
    *(TOP / "tools/invade" / f"invade_{name}.c" for name in "controls model regions text".split()),
]
LENGTH = {"config": 512, "socket": 1024, "table": 512, "trace": 512, "state": 512,  # of inputs
          "remote_report": 8192, "http": 512, "simulate": 1024, "fd_holder": 512, "reply": 2048,
          "machine": 512}
TRACE_FILE = "trace-file"
WRAPPED = "syscall close epoll_ctl fallocate getpid getppid".split()  # by quick.c
LINK = {"reply": ["-ljansson", *(f"-Wl,--wrap={f}"  # by reply.c
                                 for f in "inv_socket_connect recv recvmsg sendmsg".split())]}
INCLUDE = [f"-I{TOP / d}" for d in (".", "include", "tools/invade", "bench/fuzz")]


def run_tool(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except FileNotFoundError as error:
        raise BenchError(f"no {command[0]}: packages clang-14, libclang-rt-14-dev, libhwloc-dev "
                         "and binutils") from error
    if done.returncode:
        raise BenchError(f"{shlex.join(command)}: {done.stderr[-2000:]}")
    return done.stdout


@functools.cache
def hwloc(what: str) -> list[str]:
    return shlex.split(run_tool(["pkg-config", what, "hwloc"]))


def compiled(source: Path, work: Path, newest: float, kind: str = "fuzzer-no-link") -> Path:
    """The object of one source, made again when any source is newer."""
    target = work / f"{source.parent.name}_{source.stem}.o"
    if not target.exists() or target.stat().st_mtime < newest:
        run_tool([CLANG, *FLAGS, f"-fsanitize={kind},address,undefined", *INCLUDE,
                  *hwloc("--cflags"), "-c",
                  str(source), "-o", str(target)])
    return target


def programs(names: list[str], work: Path) -> dict[str, Path]:
    work.mkdir(parents=True, exist_ok=True)
    directories = ("bench/fuzz", "libinvasive", "tools", *MANAGER)
    newest = max(f.stat().st_mtime for d in directories for f in (TOP / d).rglob("*.[ch]"))
    mains = [TOP / "bench" / "fuzz" / f"{name}.c" for name in ["quick", *names]]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        objects = list(pool.map(lambda s: str(compiled(s, work, newest)), [*LIBRARY, *mains]))
    archive = work / "fuzzed.a"
    archive.unlink(missing_ok=True)
    run_tool(["ar", "rcs", str(archive), *objects[:len(LIBRARY)]])
    quick, *mains = objects[len(LIBRARY):]
    found = {}
    for name, main in zip(names, mains):
        found[name] = work / f"fuzz_{name}"
        run_tool([CLANG, *FLAGS, "-fsanitize=fuzzer,address,undefined", main, quick, str(archive),
                  *hwloc("--libs"), "-lm", *(f"-Wl,--wrap={f}" for f in WRAPPED),
                  *LINK.get(name, []), "-o", str(found[name])])
    return found


def search(name: str, program: Path, inputs: int, seed: int, corpus: Path,
           timeout_s: float) -> dict[str, float]:
    """Tries so many inputs; those that reach new code are kept in `corpus`."""
    command = [str(program), f"-runs={inputs}", f"-seed={seed}", f"-max_len={LENGTH[name]}",
               "-entropic=0", "-print_final_stats=1", "-rss_limit_mb=4096", "-timeout=900",
               "-reload=0",  # what others find is the next piece's; each look takes a moment
               f"-artifact_prefix={program.parent}/", str(corpus),
               str(TOP / "bench" / "fuzz" / "corpus" / name)]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("INVASIVE", "LD_PRELOAD"))}
    env["ASAN_OPTIONS"] = "malloc_context_size=1:quarantine_size_mb=4"  # twice as fast
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env,
                              stdin=subprocess.DEVNULL, timeout=timeout_s, errors="replace")
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"fuzz {name}: no end after {timeout_s:g} s") from error
    said = done.stderr
    if done.returncode == -signal.SIGKILL or INTERRUPTED in said:  # of others, not a finding
        raise BenchError(f"fuzz {name}: stopped from outside; --resume goes on")
    edges = re.search(r"Loaded \d+ modules\s+\((\d+) inline", said)
    covered = re.findall(r"cov: (\d+)", said)
    executed = re.search(r"stat::number_of_executed_units: (\d+)", said)
    bad = done.returncode != 0
    if bad:
        log = program.parent / f"failed-{name}-{seed}.log"
        log.write_text(said)
        print(f"    {name}: {said[-3000:]}\n    the whole of it: {log}", flush=True)
    return {"inputs": float(executed.group(1)) if executed else 0.0, "failed": float(bad),
            "edges": float(edges.group(1)) if edges else 0.0,
            "covered": float(covered[-1]) if covered else 0.0,
            "seconds": time.monotonic() - start}


def search_trace_files(build: Path, inputs: int, seed: int,
                       timeout_s: float) -> dict[str, float]:
    """fuzz_trace_file.py in invade-trace's own interpreter, which has numpy."""
    interpreter = (build / "bin" / "invade-trace").read_text().splitlines()[0].lstrip("#! ")
    try:
        done = subprocess.run([interpreter, "-B", TOP / "bench" / "fuzz_trace_file.py",
                               str(inputs), str(seed)], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"fuzz {TRACE_FILE}: no end after {timeout_s:g} s") from error
    if done.returncode or done.stderr:
        print(f"    {TRACE_FILE}: {done.stderr[-6000:]}", flush=True)
    if done.returncode:
        raise BenchError(f"fuzz {TRACE_FILE}: exit code {done.returncode}")
    return json.loads(done.stdout)


class Found:
    """What has been found in a parser, in a file that the next run goes on with."""

    def __init__(self, work: Path, name: str, program: str, resume: bool):
        """Drops counts and corpus of another version of the program."""
        self.path, self.corpus = work / f"found-{name}.json", work / f"corpus-{name}"
        self.lock = threading.Lock()
        self.total = json.loads(self.path.read_text()) if resume and self.path.exists() else {}
        if self.total.get("program") != program:
            self.total = {"program": program, "inputs": 0.0, "seconds": 0.0, "failed": 0.0,
                          "covered": 0.0, "edges": 0.0}
            shutil.rmtree(self.corpus, ignore_errors=True)
        self.corpus.mkdir(exist_ok=True)

    def add(self, piece: dict[str, float]) -> None:
        with self.lock:
            for key in ("inputs", "seconds", "failed"):
                self.total[key] += piece[key]
            for key in ("covered", "edges"):
                self.total[key] = max(self.total[key], piece[key])
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.total, indent=1) + "\n")
            new.replace(self.path)


def digest(name: str, built: dict[str, Path]) -> str:
    """The digest of the fuzzed program; for the reader of trace files, of its sources."""
    files = [built[name]] if name in built else \
        sorted([*(TOP / "tools" / "invasive_trace").glob("*.py"), TOP / "bench/fuzz_trace_file.py"])
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def pieces_of(ctx: Context, found: dict[str, Found]) -> list[tuple[str, int]]:
    """(parser, inputs) of each piece that is left."""
    left = {n: ctx.pairs * INPUTS_A_TURN - int(f.total["inputs"]) for n, f in found.items()}
    return [(n, min(PIECE, left[n] - at)) for n in found for at in range(0, left[n], PIECE)]


def fuzz(ctx: Context) -> list[Figure]:
    names = [name for name in [*LENGTH, TRACE_FILE] if not ctx.only or name in ctx.only]
    if not names:
        raise BenchError(f"--only: parsers are {', '.join([*LENGTH, TRACE_FILE])}")
    work = ctx.work / "fuzz"
    built = programs([name for name in names if name in LENGTH], work)
    found = {name: Found(work, name, digest(name, built), ctx.resume) for name in names}
    first_seed = int(time.time())

    def run(numbered: tuple[int, tuple[str, int]]) -> None:
        seed, (name, inputs) = first_seed + numbered[0], numbered[1]
        if found[name].total["failed"]:
            return
        piece = search(name, built[name], inputs, seed, found[name].corpus, PIECE_TIMEOUT_S) \
            if name in built else search_trace_files(ctx.build, inputs, seed, PIECE_TIMEOUT_S)
        found[name].add(piece)
        if ctx.verbose:
            print(f"    {name}: {piece['inputs']:.0f} inputs in {piece['seconds']:.0f} s, "
                  f"seed {seed}, {found[name].total['inputs']:.0f} in all", flush=True)

    with ThreadPoolExecutor(ctx.jobs) as pool:
        try:
            list(pool.map(run, enumerate(pieces_of(ctx, found))))
        except BenchError:
            pool.shutdown(cancel_futures=True)
            raise
    figures = [Figure(f"fuzz-{name}", f["inputs"] / 1e6, "million inputs", ">=", 10,
                      f"{name}: {f['covered']:.0f} of {f['edges']:.0f} "
                      f"{'edges' if name in built else 'lines'}, {f['seconds']:.0f} s")
               for name, f in ((name, found[name].total) for name in names)]
    failed = sum(f.total["failed"] for f in found.values())
    return [*figures, Figure("fuzz", failed, "crashes and reports", "<=", 0)]
