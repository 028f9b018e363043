# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of tests that a second pytest runs beside the first, which reports on them at the end as on
its own: tests that compute, and ask nothing of the cores or the time of others.

The second one writes each report as a line of JSON, which the first one reads.  It starts with the
first one, and runs beside the commands that run beside the tests (conftest.py), too.
"""

import json
import os
import signal
import sys
import time

import pytest

FILES = ["test_checksum.py", "test_bench_invasive.py", "test_bench_programs.py",
         "test_libgomp_versions.py", "test_thread_addresses.py", "test_placement.py",
         "test_policies.py", "test_policy.py", "test_rmctl_simulate.py", "test_abi.py",
         "test_calls.py", "test_every_function.py", "test_fortran.py", "test_names.py",
         "test_nodes.py", "test_pmpi.py", "test_sessions.py", "test_suites.py",
         "test_windows.py", "test_swe.py", "test_swe_bathymetry.py", "test_swe_config.py",
         "test_swe_output.py", "test_swe_studies.py", "test_swe_units.py", "test_trace_numbers.py",
         "test_auto_loops.py", "test_dependences.py", "test_region_history.py"]
NAME = "alongside"  # of the command
LOOK_S = 0.2


def is_ours(item):
    return item.path.name in FILES


def command(config, items, where):
    """The command line of the second pytest, for the chosen tests in the files above."""
    option = config.option
    words = [sys.executable, "-m", "pytest", f"--alongside-reports={where}",
             f"--basetemp={where.parent / '2'}", f"--rootdir={config.rootpath}",
             "-p", "no:cacheprovider", f"--tb={option.tbstyle}", *["-v"] * option.verbose]
    if option.showlocals:
        words.append("--showlocals")
    if config.getoption("--full"):
        words.append("--full")
    return words + [f"{item.path}::{item.nodeid.split('::', 1)[1]}"
                    for item in items if is_ours(item)]


class Recorder:
    """The plugin of the second pytest: writes the reports."""

    def __init__(self, config, path):
        self.config = config
        self.first = os.getppid()
        self.file = open(path, "w", encoding="utf-8")

    def pytest_runtest_setup(self):
        if os.getppid() != self.first:
            pytest.exit("the first pytest is gone")

    def pytest_runtest_logreport(self, report):
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.file.write(json.dumps(data) + "\n")
        self.file.flush()

    def pytest_unconfigure(self):
        self.file.close()


class Replay:
    """The plugin of the first pytest.  `result`: exit code and output of the second one."""

    def __init__(self, config, path, result):
        self.config, self.path, self.result = config, path, result
        self.offset = 0
        self.reports = {}
        self.failed = self.told = False

    def read(self):
        if not self.path.exists():
            return
        with self.path.open(encoding="utf-8") as file:
            file.seek(self.offset)
            for line in iter(file.readline, ""):
                if not line.endswith("\n"):
                    break
                self.offset += len(line.encode())
                report = self.config.hook.pytest_report_from_serializable(
                    config=self.config, data=json.loads(line))
                if isinstance(report.longrepr, list):  # a skip's, which JSON has no tuples for
                    report.longrepr = tuple(report.longrepr)
                self.failed = self.failed or report.failed
                self.reports.setdefault(report.nodeid, []).append(report)

    def of(self, item):
        """All reports on a test, as soon as they are complete."""
        while True:
            over = self.result.done()
            self.read()
            found = self.reports.get(item.nodeid, [])
            if found and found[-1].when == "teardown":
                return found
            if over:
                when = "teardown" if found and found[-1].when == "call" else "call"
                return [*found, self.failure(item, when)]
            time.sleep(LOOK_S)

    def end(self):
        """The exit code of the second pytest, and the end of its output."""
        try:
            return self.result.result()
        except Exception as error:  # it was not started, or could not be ended
            return "none", str(error)

    def failure(self, item, when):
        code, out = self.end()
        text = f"the second pytest has ended with {code} before"
        if not self.told:
            text += f":\n{out[-2000:]}"
        self.told = True
        return pytest.TestReport(nodeid=item.nodeid, location=item.location, keywords={},
                                 outcome="failed", when=when, longrepr=text)

    def last(self, item):
        """The second pytest must also end as it should, once all reports are there."""
        code = self.end()[0]
        return [] if self.told or code == int(self.failed) else [self.failure(item, "teardown")]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if not is_ours(item):
            return None
        signal.alarm(0)  # the second one keeps the time
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.of(item) + ([] if nextitem else self.last(item)):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


ALONGSIDE = pytest.StashKey()  # are there tests for a second pytest?
