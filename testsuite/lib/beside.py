# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of tests that run beside the other tests, for tests marked `beside`."""

import contextlib
import os
import signal
import subprocess
import threading
from concurrent.futures import Future

import pytest

from lib import alongside
from lib.alongside import ALONGSIDE
from lib.building.build import BUILD
from lib.time_limit import time_limit


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
