# SPDX-License-Identifier: GPL-3.0-or-later
"""What all tests share: where the build is, time limits, and what CI asks for beyond a pass.

The build directory is $INVASIVE_BUILD, else ./build/checked.  A test says

    @pytest.mark.full       it takes minutes: runs only with ./run-tests --full
    @pytest.mark.smoke      make distcheck runs it, in a build from the distributed archive
    @pytest.mark.sanitize   it works with a sanitized build too, where the OpenMP runtime and the
                            MPI shim are missing; run-tests runs it in those builds as well
    @pytest.mark.machine(THERE, REASON)
                            it needs what no package brings, of the kernel or the container: without
                            that it is skipped, in CI too
    @pytest.mark.timeout(S) its time limit in seconds, instead of the 120 that every test has
    @pytest.mark.beside(command=F)
                            it is one long command: F(build, PARAMETERS...) gives its words and its
                            environment, or None where it cannot be run.  These commands run one
                            after the other beside all other tests, most of which wait more than
                            they compute, and two at once when these are over; the tests come last,
                            in the same order, and have what came of theirs by the fixture `beside`

With --alongside, as ./run-tests has it, a second pytest runs some files beside both (alongside.py).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import alongside
import pytest
from machine import TWO_CORES, mapped, shared_memory, variable_of

# Tests in the background of a shell ignore SIGINT, and so would every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


class DebianModules:
    """Finds hypothesis among Debian's modules, for a python that is not Debian's.  No other module
    there, as it may not be for this version."""

    where = ["/usr/lib/python3/dist-packages"]
    names = ("hypothesis", "attr", "attrs", "sortedcontainers")

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and name in cls.names:
            return importlib.machinery.PathFinder.find_spec(name, cls.where)
        return None


sys.meta_path.append(DebianModules)

TOP = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("INVASIVE_BUILD") or TOP / "build/checked").resolve()
TIMEOUT_S = 120  # of a machine that is as quick as ours
# Random examples: a fifth with a sanitizer, half without --full.
FEWER = 5 if BUILD.name in ("asan", "tsan") else 1 if os.environ.get("INVASIVE_FULL") else 2
# What these test is the same whichever library a program has: with the second one for --full.
ONE_LIBRARY = {"test_invade_compare.py", "test_invade_report.py", "test_invade_teams.py",
               "test_shim_fortran.py", "test_shim_tasks.py",
               "test_a_host_without_us_makes_all_ranks_unmanaged"}
SLOWER = 2  # it may be; limits end what hangs, and say nothing of speed
ALONGSIDE = pytest.StashKey()  # are there tests for a second pytest?
MACHINE = pytest.StashKey()  # of a test that this machine cannot run
FULL_TIMEOUT_S = 3600


def pytest_configure(config):
    for line in ("full: takes minutes; only with --full", "smoke: part of make distcheck",
                 "sanitize: works with a sanitized build",
                 "timeout(seconds): half of the time limit",
                 "machine(there, reason): needs what no package brings",
                 "beside(command): the command runs beside the other tests"):
        config.addinivalue_line("markers", line)
    config.option.reportchars += "s"  # what is not tested here, and why
    # Programs that tests start inherit what is ignored: by nohup, or in the background of a shell.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    reports = config.getoption("--alongside-reports")
    if reports:
        config.pluginmanager.register(alongside.Recorder(config, reports))


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", default=bool(os.environ.get("INVASIVE_FULL")),
                     help="also the tests that take minutes")
    parser.addoption("--alongside", action="store_true",
                     help="run some files in a second pytest beside the others")
    parser.addoption("--alongside-reports", metavar="FILE",
                     help="be the second pytest, and write reports to this file")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Tests for --full are left out, not skipped: a skip means that something is missing.  Those
    whose command runs beside the others come last, and those of a second pytest after them."""
    for item in items:
        library = item.callspec.params.get("mpi") if hasattr(item, "callspec") else None
        if library == "openmpi" and {item.path.name, item.originalname} & ONE_LIBRARY:
            item.add_marker(pytest.mark.full)
    if not config.getoption("--full"):
        left_out = [item for item in items if item.get_closest_marker("full")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    two = config.getoption("--alongside") and {alongside.is_ours(item) for item in items} == {
        False, True}
    config.stash[ALONGSIDE] = two
    items.sort(key=lambda item: 2 if two and alongside.is_ours(item)
               else item.get_closest_marker("beside") is not None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    for marker in item.iter_markers("machine"):
        there, reason = marker.args
        if not there:
            item.stash[MACHINE] = reason
            pytest.skip(f"this machine: {reason}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI every tool is there, so a test that skips for want of one is a failure.  Not
    so for skips by the mark `machine`."""
    outcome = yield
    report = outcome.get_result()
    if MACHINE in item.stash and report.skipped:
        report.longrepr = (str(item.path), item.location[1] + 1, report.longrepr[2])
        return
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI takes as a failure: {report.longrepr}"


def time_limit(item):
    marker = item.get_closest_marker("timeout")
    if marker:
        return SLOWER * marker.args[0]
    return SLOWER * (FULL_TIMEOUT_S if item.get_closest_marker("full") else TIMEOUT_S)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """The time limit of the whole test, fixtures included."""
    seconds = time_limit(item)

    def expired(signum, frame):
        raise TimeoutError(f"no end after {seconds} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.alarm(int(seconds))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture(scope="session")
def top() -> Path:
    """The source tree."""
    return TOP


@pytest.fixture(scope="session")
def build() -> Path:
    """The build tree."""
    if not (BUILD / "config.status").exists():
        pytest.fail(f"no build in {BUILD}: run ./run-tests, or set INVASIVE_BUILD")
    return BUILD


@pytest.fixture(scope="session")
def swe_program(build):
    """swe_program(NAME): a program of apps/swe, which is built where its libraries are."""

    def find(name: str) -> Path:
        path = build / "apps/swe" / name
        if not path.exists():
            pytest.skip(f"{path} is not built here")
        return path

    return find


@pytest.fixture(scope="session")
def make_variable(build):
    """make_variable(NAME) - what configure found: CC, MPIEXEC, GCC_SOURCE, SANITIZER_CFLAGS, ..."""

    return lambda name: variable_of(build, name)


@pytest.fixture(scope="session")
def stock_env() -> dict:
    """The environment without anything that steers an OpenMP runtime, an MPI or us."""
    steering = ("OMP_", "GOMP_", "INVASIVE", "LD_PRELOAD", "MPIR_CVAR_", "OMPI_MCA_", "PRTE_MCA_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(steering)}
    if os.geteuid() == 0:  # a container, most likely; Open MPI asks twice
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return env


class Beside:
    """Commands that run one after the other beside the tests: (words, environment, seconds)."""

    def __init__(self, commands, env):
        self.env = env
        self.left = list(commands)  # names; under the lock, as what follows
        self.commands = commands
        self.groups = set()  # of which one runs
        self.running = set()
        self.over = False
        self.lock = threading.Lock()
        self.results = {name: Future() for name in commands}
        self.threads = []
        self.run_more()

    def run_more(self):
        """Starts one more thread that runs commands, one after the other."""
        self.threads.append(threading.Thread(target=self.run_those_left, daemon=True))
        self.threads[-1].start()

    @staticmethod
    def group(name):
        """The cases of one test may work in the same directory."""
        return name.split("[")[0]

    def next(self):
        """The name of a command that can run now, or None: the thread that runs its
        group goes on with it."""
        with self.lock:
            name = next((n for n in self.left if self.group(n) not in self.groups), None)
            if name:
                self.left.remove(name)
                self.groups.add(self.group(name))
            return name

    def run_those_left(self):
        while name := self.next():
            try:
                self.results[name].set_result(self.run(*self.commands[name]))
            except Exception as error:
                self.results[name].set_exception(error)
            with self.lock:
                self.groups.discard(self.group(name))

    def run(self, words, env, seconds):
        with self.lock:
            if self.over:
                raise RuntimeError("the tests are over")
            process = subprocess.Popen(
                ["nice", "-n", "5", *(str(word) for word in words)], env={**self.env, **env},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", start_new_session=True)
            self.running.add(process)
        try:
            out, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.end(process)
            out, _ = process.communicate(timeout=20)
            return "none", f"{out}\nno end after {seconds:.0f} s"
        finally:
            with self.lock:
                self.running.discard(process)
        return process.returncode, out

    @staticmethod
    def end(process):
        """Ends what runs: pytest and make clear up when they are interrupted."""
        for number in (signal.SIGINT, signal.SIGKILL):
            if process.poll() is not None:
                return
            os.killpg(process.pid, number)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                continue

    def close(self):
        with self.lock:
            self.over = True
            self.left.clear()
            running = list(self.running)
        for process in running:
            self.end(process)
        for thread in self.threads:
            thread.join()


@pytest.fixture(scope="session", autouse=True)
def commands_beside(request, stock_env, tmp_path_factory):
    """Starts the commands of the chosen tests that are marked `beside`, and the second pytest."""
    commands = {}
    config, items = request.config, request.session.items
    for item in items:
        marker = item.get_closest_marker("beside")
        if marker:
            parameters = getattr(item, "callspec", None)
            command = marker.kwargs["command"](BUILD, **(parameters.params if parameters else {}))
            if command:
                commands[item.nodeid] = (*command, 0.9 * time_limit(item))  # the test can say so
    with contextlib.ExitStack() as stack:
        if config.stash[ALONGSIDE]:
            reports = tmp_path_factory.getbasetemp() / alongside.NAME
            seconds = sum(time_limit(item) for item in items if alongside.is_ours(item))
            second = Beside({alongside.NAME: (alongside.command(config, items, reports),
                                              {"INVASIVE_BUILD": str(BUILD)}, seconds)}, stock_env)
            stack.callback(second.close)
            config.pluginmanager.register(
                alongside.Replay(config, reports, second.results[alongside.NAME]))
        beside = Beside(commands, stock_env)
        stack.callback(beside.close)
        yield beside


@pytest.fixture
def beside(request, commands_beside):
    """beside() waits for the test's command, which must succeed, and returns what it said."""

    def wait():
        if len(commands_beside.threads) == 1:  # the other tests are over
            commands_beside.run_more()
        code, out = commands_beside.results[request.node.nodeid].result()
        if code != 0:
            pytest.fail(f"exit code {code}\n{out}")
        return out

    return wait


@pytest.fixture
def run_program(stock_env):
    """run_program(COMMAND, env={}, timeout=60, check=True): runs it in its own session, so that
    nothing of it is left when twice the time is over, and returns the completed process (text)."""

    def run(command, env=None, timeout=60, check=True, **more):
        with subprocess.Popen([str(word) for word in command], env={**stock_env, **(env or {})},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, start_new_session=True,
                              **more) as process:
            try:
                out, err = process.communicate(timeout=SLOWER * timeout)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if check and process.returncode != 0:
            pytest.fail(f"{command}: exit code {process.returncode}\n{out}\n{err}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    return run


@pytest.fixture(scope="session")
def mpiexec(make_variable) -> str:
    """mpiexec of the MPI that the applications are built with."""
    program = make_variable("MPIEXEC")
    if not program:
        pytest.skip("configured without MPI")
    return program


@pytest.fixture
def start_ranks(mpiexec, invade):
    """start_ranks(N) - the words that start N ranks of a program that is tested, not of its MPI.
    More than two of them run under invade, on two cores: without it ranks of MPICH that wait keep
    the others off the cores, and the same takes up to twenty times as long."""

    def words(n, managed=None):
        more = ["--oversubscribe", "--bind-to", "none"] if "openmpi" in mpiexec else []
        managed = n > 2 if managed is None else managed
        return [*([invade, TWO_CORES, "--"] if managed else []), mpiexec, *more, "-n", n]

    return words


class Mpi:
    """One of the MPIs that configure found."""

    def __init__(self, name, value, build):
        prefix = name.upper()
        self.name = name
        self.mpiexec, self.mpicc = value(f"{prefix}_MPIEXEC"), value(f"{prefix}_MPICC")
        self.flags = value(f"{prefix}_CPPFLAGS").split(), value(f"{prefix}_LIBS").split()
        self._build = build
        self._suffix = ".openmpi" if name == "openmpi" and value("MPICH_MPICC") else ""

    def program(self, path) -> Path:
        """A program of the build tree, such as apps/allreduce/allreduce, compiled for this MPI."""
        return self._build / f"{path}{self._suffix}"

    def run(self, ranks, *command) -> list:
        """The command line; more ranks than cores, and no binding, with either MPI."""
        more = ["--oversubscribe", "--bind-to", "none"] if self.name == "openmpi" else []
        return [self.mpiexec, *more, "-n", ranks, *command]


@pytest.fixture(scope="session", params=["mpich", "openmpi"])
def mpi(request, make_variable, build) -> Mpi:
    """Each MPI that there is: the test is run with one after the other."""
    name = request.param
    if not make_variable(f"{name.upper()}_MPIEXEC"):
        pytest.skip(f"configured without {name}")
    return Mpi(name, make_variable, build)


@pytest.fixture
def what_mpi_leaves_when_it_is_killed_goes():
    """The MPI libraries' own segments stay when a rank is killed, with us or not.  A process maps
    a segment a moment after it has made it: a new segment of another job is no leftover."""
    before = shared_memory()
    yield
    left = [name for name in shared_memory() - before
            if name.startswith(("mpich_", "ucx_", "vader_", "osc_")) and not mapped(name)]
    if left:
        time.sleep(1)
    for name in left:
        if not mapped(name):
            with contextlib.suppress(PermissionError):  # of another user's job
                Path("/dev/shm", name).unlink(missing_ok=True)


@pytest.fixture
def checked(beside):
    """checked() - the lines of the check.sh of models that runs beside the tests (models.py), all
    of which must pass"""

    def lines():
        if shutil.which("spin") is None:
            pytest.skip("needs package spin")
        said = [line for line in beside().splitlines() if line.startswith(("PASS", "FAIL"))]
        assert said and all(line.startswith("PASS") for line in said)
        return said

    return lines


@pytest.fixture
def short_path():
    """A directory for sockets, whose names have at most 107 bytes: tmp_path may be longer.  Every
    user can reach it."""
    path = Path(tempfile.mkdtemp(prefix="invasive-test-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)  # a daemon may still be taking its socket away


@pytest.fixture
def several_users(request):
    """For fixtures whose tests have processes of several users.  Any user can run a test without
    such fixtures."""
    if os.getuid() != 0:
        request.node.stash[MACHINE] = "only root can be several users"
        pytest.skip(f"this machine: {request.node.stash[MACHINE]}")


@pytest.fixture
def table_module(top, monkeypatch):
    """The module mpi-shim/gen/table.py."""
    monkeypatch.syspath_prepend(str(top / "mpi-shim/gen"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return importlib.import_module("table")


@pytest.fixture
def table(top, table_module):
    """The functions of mpi-shim/gen/prototypes.txt, as the generator reads them."""
    return table_module.parse((top / "mpi-shim/gen/prototypes.txt").read_text())


@pytest.fixture
def invade(build) -> Path:
    return build / "bin" / "invade"


@pytest.fixture
def managed(invade, mpi, run_program):
    """managed(RANKS, COMMAND...): an MPI job under invade with two cores; the completed process."""

    def run(ranks, *command, cores=TWO_CORES, **more):
        return run_program([invade, cores, "--report", "--", mpi.mpiexec, "-n", ranks, *command],
                           **more)

    return run
