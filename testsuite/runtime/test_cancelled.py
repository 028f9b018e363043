# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread is cancelled, or a signal handler leaves or ends the program, while the thread joins: it
finishes first what it has begun."""

import contextlib
import os
import socket
import subprocess

import pytest

from lib.waiting import PATIENCE_S


@pytest.fixture
def manager():
    """(its name, wait): wait() returns the first connection that sends a request."""
    name = f"invasive-test-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        listener.bind(f"\0{name}")
        listener.listen(16)
        listener.settimeout(PATIENCE_S)

        def wait():
            while True:
                connection = stack.enter_context(listener.accept()[0])
                connection.settimeout(PATIENCE_S)
                if connection.recv(4096):
                    return connection

        yield f"@{name}", wait


@pytest.mark.parametrize("kind", ["deferred", "asynchronous", "longjmp", "exit"])
def test_a_thread_interrupted_while_it_joins_leaves_no_lock_behind(omp_program, build,
                                                                   stock_env, manager, kind):
    name, wait = manager
    library = build / "lib/invasive"
    env = {**stock_env, "LD_LIBRARY_PATH": f"{library}:{library.parent}",
           "INVASIVE_SOCKET": name, "INVASIVE_CORES": "2"}
    with subprocess.Popen([omp_program("cancelled_joiner"), kind], env=env, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        try:
            connection = wait()
            process.stdin.write("cancel\n")
            process.stdin.flush()
            assert process.stdout.readline() == "cancelled\n"
            connection.close()
            out, err = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert (process.returncode, out) == ((3, "") if kind == "exit" else (0, "OK\n"))
    assert err.count("\n") == 1 and "Running unmanaged" in err
