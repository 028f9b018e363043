# SPDX-License-Identifier: GPL-3.0-or-later
"""mpi4py_cases.py TEST TO ARGUMENT... - mpi4py's runtests.py in its directory TEST; how each case
ends is a line in file TO/RANK as soon as it is known, whatever happens to the process then:
its name, passed, skipped or failed, and seconds of wall clock and processor time.

What the ranks of a job write to one stderr is mixed up, and a job that is ended says nothing."""

import sys
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
test, to = sys.argv[1:3]
sys.path.insert(0, test)
import runtests  # noqa: E402


class Result(unittest.TextTestResult):
    began = time.monotonic(), time.process_time()  # what a whole class ends with has no start

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic(), time.process_time()

    def note(self, case, end):
        from mpi4py import MPI  # not before runtests has chosen the thread level

        wall, cpu = (now - then for now, then in
                     zip((time.monotonic(), time.process_time()), self.began))
        with (Path(to) / str(MPI.COMM_WORLD.rank)).open("a") as log:
            print(case.id(), end, f"{wall:.6f} {cpu:.6f}", file=log)

    def addSuccess(self, test):
        self.note(test, "passed")
        super().addSuccess(test)

    def addSkip(self, test, reason):
        self.note(test, "skipped")
        super().addSkip(test, reason)

    def addFailure(self, test, err):
        self.note(test, "failed")
        super().addFailure(test, err)

    def addError(self, test, err):
        self.note(test, "failed")
        super().addError(test, err)


unittest.TextTestRunner.resultclass = Result
sys.exit(runtests.main(sys.argv[3:]))
