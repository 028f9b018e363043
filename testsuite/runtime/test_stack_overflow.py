# SPDX-License-Identifier: GPL-3.0-or-later
"""A program whose implicit task needs more stack than there is dies as without us, and says why."""

import signal

import pytest

TOLD = "libgomp: stack overflow in implicit task 5 of a parallel region: its stack has 256 kB, " \
       "set OMP_STACKSIZE to more\n"
KILLED = -signal.SIGSEGV


@pytest.fixture
def run(omp_program, run_program, invade):
    def run(how, **environment):
        return run_program([invade, "--", omp_program("stack_overflow"), how],
                           {"OMP_STACKSIZE": "256K", **environment}, check=False)

    return run


def test_an_overflow_ends_the_program_with_a_message(run):
    done = run("recursion")
    assert done.returncode == KILLED and done.stdout == ""
    assert done.stderr.count(TOLD) == 1


@pytest.mark.parametrize("how", ["pointer", "sent"])
def test_another_fault_ends_the_program_without_a_message(run, how):
    done = run(how)
    assert done.returncode == KILLED and "overflow" not in done.stderr


@pytest.mark.parametrize("how", ["handled", "handled-later"])
def test_a_handler_of_the_program_stays(run, how):
    done = run(how)
    assert done.returncode == 42 and "overflow" not in done.stderr


def test_kernel_threads_have_no_message(run):
    done = run("recursion", INVASIVE_CONTEXTS="off")
    assert done.returncode == KILLED and "overflow" not in done.stderr
