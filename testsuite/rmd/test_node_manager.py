# SPDX-License-Identifier: GPL-3.0-or-later
"""The resource manager that the first process of a launch starts on a further node.  There is one
for all processes; it is not a child of the launch, and inherits nothing from its starter.  Here
this machine is the further node, since the launch says that its home is another one."""

import itertools
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from lib.building.small_programs import compile_text
from lib.processes import opened
from lib.waiting import until

pytestmark = pytest.mark.timeout(60)
counter = itertools.count()
NO_CHILD = """
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile sig_atomic_t signals;
static void note(int number) { signals += number == SIGCHLD; }
int main(void)
{
    char byte;
    signal(SIGCHLD, note);
    if (read(0, &byte, 1) != 1)
        return 2;
    #pragma omp parallel num_threads(2)
    usleep(1000);
    printf("%d signals, %s\\n", (int)signals,
           waitpid(-1, 0, WNOHANG | __WALL) < 0 && errno == ECHILD ? "no child" : "a child");
}
"""

# Uses OpenMP, so that it looks for a manager, and becomes the command.
ASKS = """
#include <omp.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    return argc < 2 || omp_get_max_threads() < 1 || execvp(argv[1], argv + 1);
}
"""

# The plugin's constructor waits for a thread that makes the process's first use of OpenMP.
LOADS = """
#include <dlfcn.h>
int main(int argc, char **argv) { return argc < 2 || !dlopen(argv[1], RTLD_NOW); }
"""
PLUGIN = """
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static void *use(void *size) { *(int *)size = omp_get_max_threads(); return NULL; }
__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    struct timespec end;
    static int size;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    if (pthread_create(&thread, NULL, use, &size) || pthread_timedjoin_np(thread, NULL, &end))
        _exit(3);
    printf("%d\\n", size);
}
"""


class Launch:
    """A launch with another home node, and its processes and sockets on this node."""

    def __init__(self, build):
        self.name = f"invasive-{os.getuid()}-node-test{os.getpid()}-{next(counter)}"
        self.env = {
            "INVASIVE_SOCKET": "@invasive-test-nobody-listens", "INVASIVE_CORES": "7",
            "INVASIVE_LAUNCH": f"{self.name}/1/--policy/equal/--emulate-cores/3",
            "LD_PRELOAD": ":".join(str(build / "lib/invasive" / name) for name in (
                "libinvasive-process.so", "libgomp.so.1"))}

    def managers(self):
        """pids of resource managers of this launch."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except (OSError, ValueError):
                continue
            if words[0] == b"rmd" and f"--socket=@{self.name}".encode() in words:
                found.append(int(entry.name))
        return found


@pytest.fixture
def launch(build):
    one = Launch(build)
    yield one
    left = not until(lambda: not one.managers())
    for pid in one.managers():
        os.kill(pid, signal.SIGKILL)
    assert not left, "a resource manager outlived its processes"


@pytest.fixture
def start(launch, stock_env):
    """start(COMMAND..., MORE=...) - a process of the launch"""
    started = []

    def go(*command, **more):
        started.append(subprocess.Popen([str(c) for c in command], env={**stock_env, **launch.env},
                                        **{"stdin": subprocess.DEVNULL, **more}))
        return started[-1]

    yield go
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def compiled(tmp_path):
    """compiled(TEXT) - the program of this C text with OpenMP, or with other OPTIONS"""

    def go(text, name="t", options=("-fopenmp",)):
        return compile_text(tmp_path / name, text, *options)

    return go


@pytest.fixture
def asks(compiled):
    """A program that looks for a manager, as OpenMP programs do at their start, and calls exec."""
    return compiled(ASKS, "asks")


def test_many_processes_start_one_manager(asks, launch, start):
    processes = [start(asks, "sh", "-c", "echo; read end", stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE)
                 for _ in range(30)]
    seen = set()
    for process in processes:
        process.stdout.readline()  # it has looked for a manager
        seen.update(launch.managers())
    for process in processes:
        process.communicate(b"\n")
        seen.update(launch.managers())
    assert all(p.returncode == 0 for p in processes)
    assert len(seen) == 1


def test_the_manager_has_nothing_of_its_starter(asks, launch, start, tmp_path):
    def set_up():  # of what it ignores nothing is seen: rmd itself ignores most signals
        os.chdir(tmp_path)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    with open(tmp_path / "file", "w", encoding="ascii") as file:
        starter = start(asks, "sleep", "5", pass_fds=(file.fileno(),), preexec_fn=set_up,
                        stdout=file, stderr=file)
        assert until(launch.managers)
        assert until(lambda: all((Path("/proc") / str(p) / "fd/5").exists()
                                 for p in launch.managers()))
        process = Path("/proc") / str(launch.managers()[0])
        files = opened(process.name).values()
        assert not [name for name in files if name.startswith(str(tmp_path))], files
        assert os.readlink(process / "cwd") == "/"
        lines = (process / "status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines)
        assert int(status["PPid"]) not in (starter.pid, os.getpid())
        assert not int(status["SigBlk"], 16) & 1 << (signal.SIGUSR2 - 1)
        pid = int(process.name)
        assert os.getsid(pid) == os.getpgid(pid) == pid
        assert b"LD_PRELOAD" not in (process / "environ").read_bytes()


def test_the_starter_has_no_child_and_gets_no_signal(compiled, launch, start):
    """The starter starts a manager when it is loaded, and another one at its first region."""
    process = start(compiled(NO_CHILD), stdout=subprocess.PIPE, text=True, stdin=subprocess.PIPE)
    assert until(launch.managers)
    assert until(lambda: not launch.managers())
    process.stdin.write("x")
    process.stdin.flush()
    assert until(launch.managers)
    assert process.communicate(timeout=30)[0] == "0 signals, no child\n"


def test_a_name_that_is_bound_but_not_listened_on_yet_is_waited_for(asks, launch, start):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind("\0" + launch.name)
        process = start(asks, "echo", "fine", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        text=True)
        time.sleep(0.2)
    assert process.communicate(timeout=30) == ("fine\n", "")
    assert launch.managers()


@pytest.mark.parametrize("inside, of_ranks", [
    ("", "18\n"),  # the first multiple of three from 16 on
    ('_Pragma("omp barrier") omp_get_thread_num();', "3\n"),
    ('_Pragma("omp for") for (int i = 0; i < 9; i++) n++; n--;', "3\n"),
    ('_Pragma("omp for schedule(dynamic)") for (int i = 0; i < 9; i++) n++; n--;', "3\n"),
    ('_Pragma("omp for schedule(dynamic) nowait") for (int i = 0; i < 9; i++) n++; n--;', "18\n")])
@pytest.mark.parametrize("place", ["-pie", "-no-pie"])
def test_the_default_team_fits_this_node(compiled, launch, run_program, inside, of_ranks, place):
    """Three cores here, whatever the home node has.  Two ranks a core are enough without teams."""
    program = compiled("int omp_get_max_threads(void), omp_get_thread_num(void), printf();\n"
                       'int main(void)\n{\n    int n = omp_get_max_threads();\n'
                       '    printf("%d\\n", n);\n'
                       '    _Pragma("omp parallel firstprivate(n)")\n'
                       f"    {{ {inside} }}\n}}\n", options=("-fopenmp", place))
    assert run_program([program], env=launch.env).stdout == "3\n"
    ranks = {"MPI_LOCALNRANKS": "2"}
    assert run_program([program], env={**launch.env, **ranks}).stdout == of_ranks
    for ranks, threads in (({"MPI_LOCALNRANKS": "5"}, "3\n"),
                           ({"MPI_LOCALNRANKS": "6"}, "1\n"),
                           ({"OMPI_COMM_WORLD_LOCAL_SIZE": "6"}, "1\n"),
                           ({"MPI_LOCALNRANKS": "6", "INVASIVE_MPI_TASKS": "1"}, "3\n"),
                           ({"MPI_LOCALNRANKS": "6", "INVASIVE_MPI_TASKS": "0"}, "1\n"),
                           ({"PMI_SIZE": "64"}, "3\n"),  # on all nodes
                           ({"SLURM_PROCID": "0", "SLURM_NTASKS": "64"}, "3\n")):
        assert run_program([program], env={**launch.env, **ranks}).stdout == threads


def test_the_manager_is_found_while_another_thread_loads_a_library(compiled, launch, run_program):
    """The loader's lock is held while constructors run, which may wait for the first use."""
    plugin = compiled(PLUGIN, "plugin.so", ("-fopenmp", "-shared", "-fPIC"))
    host = compiled(LOADS, "host", ())
    assert run_program([host, plugin], env=launch.env).stdout == "3\n"


def test_a_process_after_the_managers_end_starts_another(asks, launch, start):
    first = start(asks, "cat", stdin=subprocess.PIPE)
    before = until(launch.managers)
    first.communicate()
    assert until(lambda: not launch.managers())
    second = start(asks, "cat", stdin=subprocess.PIPE)
    assert before
    assert until(launch.managers) not in ([], before)
    second.communicate()


@pytest.mark.parametrize("text", ["", "/", "name", "name/", "/1", "name/zz", "n" * 5000 + "/1",
                                  "n" * 200 + "/1", "name/1" + "/x" * 100])
def test_nonsense_for_a_launch_is_no_launch(asks, launch, run_program, text):
    done = run_program([asks, "true"], env={**launch.env, "INVASIVE_LAUNCH": text})
    assert done.stdout == ""
    assert done.stderr.count("Running unmanaged.") == 1


def test_that_a_manager_cannot_start_is_said_and_the_program_runs(asks, launch, run_program,
                                                                  tmp_path):
    cannot = tmp_path / "rmd"
    cannot.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    cannot.chmod(0o755)
    done = run_program([asks, "echo", "fine"], env={**launch.env, "INVASIVE_RMD": str(cannot)})
    assert done.stdout == "fine\n"
    assert done.stderr == (f"invasive: cannot start {cannot} on this node (no such luck). "
                           "Running unmanaged.\n")
