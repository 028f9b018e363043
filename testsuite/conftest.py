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

With --alongside, as ./run-tests has it, a second pytest runs some files beside both
(lib/alongside.py).
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import resource
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from lib import alongside
from lib.alongside import ALONGSIDE
from lib.building.build import TOP

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
sys.path.insert(0, str(TOP / "bench"))
import module_folders  # noqa: E402

module_folders.add()  # modules that are tested

# Modules of lib/ that have fixtures or hooks.
pytest_plugins = [f"lib.{name}" for name in (
    "beside", "building.build", "building.models", "building.runtime_parts", "building.sanitized",
    "building.simulations", "job_programs", "manager.blocked", "manager.hosts", "manager.lending",
    "manager.notifications", "manager.rmd", "manager.service", "mpi", "omp_programs",
    "standard_mpi", "time_limit", "trace_tool")]

# What these test is the same whichever library a program has: with the second one for --full.
ONE_LIBRARY = {"test_invade_compare.py", "test_invade_report.py", "test_invade_teams.py",
               "test_fortran.py", "test_tasks.py",
               "test_a_host_without_us_makes_all_ranks_unmanaged"}
MACHINE = pytest.StashKey()  # of a test that this machine cannot run


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
    # A program that fails leaves no file in the source tree.  gdb 13 does fail (lib/processes.py),
    # and raises its limit to the hard one then.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
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


@pytest.fixture(scope="session")
def stock_env() -> dict:
    """The environment without anything that steers an OpenMP runtime, an MPI or us."""
    steering = ("OMP_", "GOMP_", "INVASIVE", "LD_PRELOAD", "MPIR_CVAR_", "OMPI_MCA_", "PRTE_MCA_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(steering)}
    if os.geteuid() == 0:  # a container, most likely; Open MPI asks twice
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return env


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


