# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of tests that a second pytest runs beside the first, which reports on them at the end as on
its own: tests that compute, or that need no more of the machine than a core.

The second one writes each report as a line of JSON, which the first one reads.  It is one of the
commands that run beside the tests (conftest.py), the last of them.
"""

import json
import signal
import sys
import time

import pytest

FILES = ["test_rmd_placement.py", "test_rmd_policies.py", "test_rmd_policy.py",
         "test_rmd_simulate.py", "test_swe.py", "test_swe_bathymetry.py", "test_swe_config.py",
         "test_swe_output.py", "test_swe_units.py"]
NAME = "alongside"  # of the command
SECONDS = 3600
LOOK_S = 0.2


def is_ours(item):
    return item.path.name in FILES


def command(config, items, where):
    """The second pytest's words, for those of the chosen tests that are ours."""
    files = sorted({item.path for item in items if is_ours(item)})
    options = [f"--alongside-reports={where}", f"--basetemp={where.parent / '2'}",
               f"--rootdir={config.rootpath}", "-p", "no:cacheprovider",
               "-k", config.option.keyword, "-m", config.option.markexpr]
    if config.getoption("--full"):
        options.append("--full")
    return [sys.executable, "-m", "pytest", "-q", *options, *files]


class Recorder:
    """In the second pytest."""

    def __init__(self, config, path):
        self.config = config
        self.file = open(path, "w", encoding="utf-8")

    def pytest_runtest_logreport(self, report):
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.file.write(json.dumps(data) + "\n")
        self.file.flush()

    def pytest_unconfigure(self):
        self.file.close()


class Replay:
    """In the first one: `result` is that of the command, exit code and what it said."""

    def __init__(self, config, path, result):
        self.config, self.path, self.result = config, path, result
        self.offset = 0
        self.reports = {}

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
                self.reports.setdefault(report.nodeid, []).append(report)

    def of(self, item):
        """All reports on a test, as soon as there are."""
        while True:
            over = self.result.done()
            self.read()
            found = self.reports.get(item.nodeid, [])
            if found and found[-1].when == "teardown":
                return found
            if over:
                return [*found, self.missing(item)]
            time.sleep(LOOK_S)

    def missing(self, item):
        code, out = self.result.result()
        return pytest.TestReport(
            nodeid=item.nodeid, location=item.location, keywords={}, outcome="failed", when="call",
            longrepr=f"the second pytest has ended with {code} before:\n{out[-2000:]}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        if not is_ours(item):
            return None
        signal.alarm(0)  # the second one keeps the time
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.of(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
