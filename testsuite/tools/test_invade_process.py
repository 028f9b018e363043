# SPDX-License-Identifier: GPL-3.0-or-later
"""A command under invade behaves as without it: output, exit code, signals, descriptors, and
nothing is left behind.  No OpenMP, no MPI in here: what those do is tested elsewhere."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from lib.building.small_programs import compile_text
from lib.machine import NO_SET_UID, SET_UID_PLACE
from lib.processes import alive, children, state_of
from lib.terminal import begin_on_terminal, on_terminal, read_until
from lib.waiting import PATIENCE_S, comes_true

pytestmark = pytest.mark.sanitize


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """compiled(NAME, SOURCE, FLAGS...) - the path of a small C program."""
    folder = tmp_path_factory.mktemp("programs")

    def compile_it(name, source, *flags):
        program = folder / name
        if not program.exists():
            compile_text(program, source, *flags)
        return program

    return compile_it


def result(done):
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def same(run_program, invade):
    """same(COMMAND...) - asserts that stock and managed runs look the same; returns the latter."""

    def compare(*command, **more):
        stock = run_program(command, check=False, **more)
        managed = run_program([invade, "--", *command], check=False, **more)
        assert result(managed) == result(stock)
        return managed

    return compare


def sockets_of(launcher):
    """Abstract sockets of the private rmd of this launcher."""
    name = f"@invasive-{os.getuid()}-{launcher}-"
    return [line for line in Path("/proc/net/unix").read_text().splitlines() if name in line]


@contextlib.contextmanager
def running(invade, *command, **more):
    """invade in a session of its own; at the end all processes of the session are killed."""
    process = subprocess.Popen([invade, "--", *command], stdout=subprocess.PIPE, text=True,
                               start_new_session=True, **more)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        process.stdout.close()


# --- programs of all kinds

@pytest.mark.smoke
@pytest.mark.parametrize("code", [0, 1, 3, 125, 126, 127, 128, 255])
def test_exit_code_is_the_commands(same, code):
    assert same("sh", "-c", f"echo out; echo err >&2; exit {code}").returncode == code


@pytest.mark.parametrize("number", ["TERM", "KILL", "SEGV", "ABRT", "INT", "USR1", "PIPE"])
def test_ends_by_the_signal_that_ended_the_command(same, number):
    assert same("sh", "-c", f"kill -{number} $$").returncode == -getattr(signal, f"SIG{number}")


@pytest.mark.smoke
def test_what_cannot_be_run_is_told_as_a_shell_does(run_program, invade, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program\n")
    for command, code in ((tmp_path / "nothing", 127), ("no-such-command-in-path", 127),
                          (plain, 126), (tmp_path, 126)):
        done = run_program([invade, command], check=False)
        assert done.returncode == code
        assert done.stdout == "" and done.stderr.startswith(f"invade: {command}: ")


def test_a_statically_linked_program_behaves_as_without_us(run_program, invade, compiled,
                                                          make_variable):
    """Except for one message about it; a sanitized invade preloads nothing."""
    program = compiled("static", '#include <stdio.h>\nint main(void){puts("static");return 7;}',
                       "-static")
    done = run_program([invade, program], check=False)
    assert result(done)[:2] == (7, "static\n")
    if make_variable("SANITIZER_CFLAGS"):
        assert done.stderr == ""
    else:
        assert done.stderr.count("\n") == 1 and done.stderr.startswith(f"invade: {program} ")


@pytest.mark.parametrize("head", ["#!/bin/sh\n", ""])
def test_a_script_behaves_as_without_us(run_program, invade, tmp_path, head):
    script = tmp_path / "script"
    script.write_text(head + 'echo "$0" "$@"; exit 5\n')
    script.chmod(0o755)
    done = run_program([invade, script, "a b", "--report", "-v"], check=False)
    assert result(done) == (5, f"{script} a b --report -v\n", "")


FORKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int sum = 0, status;
    for (int i = 1; i <= 3; i++)
        if (fork() == 0) {
            char text[] = {'e', 'x', 'i', 't', ' ', '0' + i, 0};
            execl("/bin/sh", "sh", "-c", text, (char *)0);
            _exit(99);
        }
    while (wait(&status) > 0)
        sum += WEXITSTATUS(status);
    printf("sum %d\n", sum);
    fflush(stdout);
    execl("/bin/echo", "echo", "replaced", (char *)0);
    return 1;
}
"""


def test_a_program_that_forks_and_execs_behaves_as_without_us(same, compiled):
    assert same(compiled("forks", FORKS)).stdout == "sum 6\nreplaced\n"


@pytest.mark.machine(os.getuid() == 0, "only root can make another user's setuid program")
@pytest.mark.machine(SET_UID_PLACE is not None, NO_SET_UID)
def test_a_setuid_program_behaves_as_without_us(same, compiled):
    made = compiled("euid", "#include <stdio.h>\n#include <unistd.h>\n"
                    'int main(void){printf("%d %d\\n",(int)getuid(),(int)geteuid());}')
    with tempfile.TemporaryDirectory(prefix="invasive-test-", dir=SET_UID_PLACE) as place:
        program = Path(place) / "setuid"
        shutil.copy(made, program)
        os.chown(program, 65534, 65534)
        program.chmod(0o755 | stat.S_ISUID)
        assert same(program).stdout == "0 65534\n"


LOOK = r"""
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
int main(void)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, "Sig", 3) && !strstr(line, "SigQ") && !strstr(line, "SigPnd"))
            fputs(line, stdout);
    fclose(f);
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; (e = readdir(d));)
        printf("fd %s\n", e->d_name);
    printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
}
"""


def test_descriptors_and_signal_settings_are_the_callers(same, compiled):
    def unusual():
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGALRM])

    reader, writer = os.pipe()
    try:
        same(compiled("look", LOOK), preexec_fn=unusual, pass_fds=(reader, writer))
    finally:
        os.close(reader)
        os.close(writer)


def test_the_affinity_mask_is_the_callers(same):
    cpu = min(os.sched_getaffinity(0))
    same("sh", "-c", "grep Cpus_allowed_list /proc/self/status",
         preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))


@pytest.mark.smoke
def test_streams_are_untouched(invade, stock_env):
    data = bytes(range(256)) * 4096
    done = subprocess.run([invade, "--", "cat"], input=data, capture_output=True, env=stock_env,
                          timeout=PATIENCE_S, check=True)
    assert done.stdout == data and done.stderr == b""


def test_a_reader_sees_the_end_when_the_command_closes_its_output(invade, stock_env):
    with running(invade, "sh", "-c", "echo last; exec >&- 2>&-; sleep 60", env=stock_env) as p:
        assert p.stdout.readline() == "last\n"
        # invade itself has the pipe as any parent has; rmd must not have it
        rmd = children(p.pid, "rmd")
        links = [os.readlink(f"/proc/{c}/fd/{n}") for c in rmd for n in (0, 1)]
        assert links == ["/dev/null"] * 2


# --- signals

COUNTS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile sig_atomic_t count;
static void got(int number) { (void)number; count++; }
int main(int argc, char **argv)
{
    signal(argc > 1 ? atoi(argv[1]) : SIGINT, got);
    puts("ready");
    fflush(stdout);
    while (!count)
        usleep(10000); /* not pause: the signal may come just before */
    if (argc > 2) {
        puts("caught");
        fflush(stdout);
        getchar();
    }
    for (int i = 0; i < 10; i++) /* a second one would come soon */
        usleep(50000);
    return 40 + count;
}
"""


@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1", "USR2", "INT", "QUIT", "ALRM"])
def test_a_signal_to_invade_reaches_the_command_once(invade, compiled, stock_env, name):
    number = getattr(signal, f"SIG{name}")
    with running(invade, compiled("counts", COUNTS), str(int(number)), env=stock_env) as p:
        assert p.stdout.readline() == "ready\n"
        p.send_signal(number)
        assert p.wait(PATIENCE_S) == 41


def test_ctrl_c_reaches_the_command_once_and_rmd_not_at_all(invade, compiled, stock_env):
    command = [compiled("counts", COUNTS), str(int(signal.SIGINT)), "stays"]
    with on_terminal(invade, stock_env, *command) as (p, master):
        read_until(master, b"ready")
        rmd, = children(p.pid, "rmd")
        assert os.getsid(rmd) == rmd
        os.write(master, b"\x03")
        read_until(master, b"caught")
        time.sleep(0.2)
        assert alive(rmd)
        os.write(master, b"\n")
        assert p.wait(PATIENCE_S) == 41


def test_ctrl_c_ends_command_and_invade(invade, stock_env):
    with on_terminal(invade, stock_env, "sh", "-c", "echo ready; exec sleep 60") as (p, master):
        read_until(master, b"ready")
        rmd_and_command = children(p.pid)
        os.write(master, b"\x03")
        assert p.wait(PATIENCE_S) == -signal.SIGINT
        assert not [pid for pid in rmd_and_command if alive(pid)]


def test_a_job_stops_and_goes_on(invade, stock_env):
    script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    with on_terminal(invade, stock_env, "bash", "-c", script) as (p, master):
        read_until(master, b"ready")
        bash = children(p.pid, "bash")
        # A shell has its jobs in groups of their own, where Ctrl-Z works; here the group is
        # orphaned, so the kernel drops the terminal's SIGTSTP.  SIGSTOP is what remains.
        os.killpg(p.pid, signal.SIGSTOP)
        comes_true(lambda: state_of(p.pid) == "T" and state_of(bash[0]) == "T", "all stop")
        os.killpg(p.pid, signal.SIGCONT)
        p.terminate()
        assert p.wait(PATIENCE_S) == 9


def test_ctrl_z_stops_command_and_invade_under_a_shell(invade, stock_env, tmp_path):
    shell, master = begin_on_terminal({**stock_env, "PS1": "$ "}, "bash", "--norc", "--noediting",
                                      "-i")
    try:
        read_until(master, b"$ ")
        os.write(master, f"cd {tmp_path}; {invade} -- sh -c 'echo rea''dy; "
                 "until [ -e go ]; do sleep 0.1; done; exit 6'\n".encode())
        read_until(master, b"\nready")
        os.write(master, b"\x1a")
        read_until(master, b"Stopped")
        (tmp_path / "go").touch()
        os.write(master, b"fg; echo code''=$?\n")
        read_until(master, b"\ncode=6")
        os.write(master, b"exit\n")
        shell.wait(PATIENCE_S)
    finally:
        shell.kill()
        shell.wait(PATIENCE_S)
        os.close(master)


# --- nothing is left

def test_nothing_is_left_when_invade_is_killed(invade, stock_env):
    with running(invade, "sh", "-c", "echo ready; exec sleep 60", env=stock_env) as p:
        assert p.stdout.readline() == "ready\n"
        started = children(p.pid)
        assert started
        p.kill()
        p.wait(PATIENCE_S)
        comes_true(lambda: not any(alive(c) for c in started), "rmd and the command are gone")
        assert sockets_of(p.pid) == []


@pytest.mark.smoke
def test_nothing_is_left_after_the_end(invade, stock_env):
    with running(invade, "sh", "-c", "echo $PPID", env=stock_env) as p:
        launcher = int(p.stdout.readline())
        assert p.wait(PATIENCE_S) == 0
        assert launcher == p.pid
        assert sockets_of(p.pid) == [] and children(p.pid) == []


def test_the_command_goes_on_when_rmd_is_killed(invade, stock_env):
    with running(invade, "sh", "-c", "echo ready; read x; exit 4", stdin=subprocess.PIPE,
                 env=stock_env) as p:
        assert p.stdout.readline() == "ready\n"
        for child in children(p.pid, "rmd"):
            os.kill(child, signal.SIGKILL)
        p.stdin.close()
        assert p.wait(PATIENCE_S) == 4


# --- without what is needed

def test_without_rmd_the_command_runs_unmanaged(run_program, invade):
    for env in ({"INVASIVE_RMD": "/nonexistent/rmd"}, {"INVASIVE_RMD": "/bin/false"}):
        done = run_program([invade, "--", "sh", "-c", "echo ${INVASIVE_SOCKET-none}; exit 3"],
                           check=False, env=env)
        assert (done.returncode, done.stdout) == (3, "none\n")
        assert done.stderr.startswith("invade: cannot ") and done.stderr.count("\n") == 1


def test_with_a_socket_that_is_not_answered_the_command_runs_unmanaged(run_program, invade):
    done = run_program([invade, "--socket=@invasive-nobody", "--", "sh", "-c", "exit 3"],
                       check=False)
    assert done.returncode == 3 and done.stderr.count("\n") == 1


# --- options

@pytest.mark.parametrize("options", [["--cores=x"], ["--cores=1-"], ["--cores=1023"],
                                     ["--emulate-cores=0"], ["--policy=mine"], ["--threads=two"],
                                     ["--team=large"],
                                     ["--report=/nonexistent/file"], ["--nonsense"]])
def test_a_wrong_option_is_refused_before_the_command_runs(run_program, invade, options):
    done = run_program([invade, *options, "--", "echo", "ran"], check=False)
    assert done.returncode == 125 and done.stdout == "" and done.stderr.startswith(
        ("invade: ", f"{invade}: "))


def test_cpus_that_are_not_there_are_named(run_program, invade):
    cpus = os.sched_getaffinity(0)
    first, last = min(cpus), max(cpus)
    command = [invade, f"--cores={first},{last + 1}-1023", "--", "echo", "ran"]
    done = run_program(command, check=False)
    assert done.returncode == 125 and done.stdout == "" and done.stderr.count("\n") == 1
    assert f": CPUs {last + 1}-1023 are not there, or not ours to use: " in done.stderr
    rank = run_program(command, env={"SLURM_STEP_ID": "1", "SLURM_JOB_ID": "1"})
    assert rank.stdout == "ran\n"


@pytest.mark.parametrize("option", ["--threads", "--emulate-cores", "--reclaim-bound"])
def test_a_wrong_number_is_told_with_its_option(run_program, invade, option):
    done = run_program([invade, f"{option}=0", "true"], check=False)
    assert done.returncode == 125 and done.stderr.startswith(f"invade: {option}: '0' is not a ")
