# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that cannot have our libraries run as they do stock, and one line says so: those that
need a newer libgomp.so.1, and those of another dynamic linker or of none."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time

import pytest

from lib.building.small_programs import Programs
from lib.processes import children

# A stand-in for the libgomp of a newer compiler, and what is linked with it.
NEWER_C = """
int omp_in_explicit_task_of_tomorrow(void) { return 0; }
int omp_get_wtick_of_tomorrow(void) { return 7; }
int omp_get_max_threads(void) { return 2; }
"""
NEWER_MAP = """
OMP_1.0 { global: omp_get_max_threads; omp_get_wtick_of_tomorrow; local: *; };
OMP_9.9 { global: omp_in_explicit_task_of_tomorrow; } OMP_1.0;
"""
MAIN_C = """
#include <stdio.h>
#include <unistd.h>
int NEEDS(void);
int main(int argc, char **argv)
{
    fprintf(stdout, "newer %d\\n", NEEDS());
    fflush(stdout);
    if (argc > 1)
        execvp(argv[1], argv + 1);
    return 0;
}
"""
OMP_C = """
#include <omp.h>
#include <stdio.h>
int main(void)
{
    int n = 0;
#pragma omp parallel reduction(+ : n)
    n++;
    printf("omp %d\\n", n);
    return 0;
}
"""
WHERE = 'echo "${LD_PRELOAD-none} ${INVASIVE_STOCK-none}"'


@pytest.fixture(scope="module")
def programs(tmp_path_factory, make_variable):
    """newer needs a version that our libgomp.so.1 has not, symbol a symbol of one that it has,
    indirect is linked with a library that needs it; omp is an ordinary OpenMP program."""
    p = Programs(tmp_path_factory.mktemp("programs"), (make_variable("CC") or "cc").split())
    library = p.make("libgomp.so.1", NEWER_C, "-shared", "-fPIC", "-Wl,-soname,libgomp.so.1",
                     f"-Wl,--version-script={p.write('map', NEWER_MAP)}")
    here = f"-Wl,-rpath,{p.directory}"
    p.newer = p.make("newer", MAIN_C, "-DNEEDS=omp_in_explicit_task_of_tomorrow", library, here)
    p.symbol = p.make("symbol", MAIN_C, "-DNEEDS=omp_get_wtick_of_tomorrow", library, here)
    middle = p.make("libmiddle.so", "int omp_in_explicit_task_of_tomorrow(void);"
                    "int middle(void) { return omp_in_explicit_task_of_tomorrow(); }",
                    "-shared", "-fPIC", "-Wl,-soname,libmiddle.so", library, here)
    p.indirect = p.make("indirect", MAIN_C, "-DNEEDS=middle", middle, "-Wl,-rpath,$ORIGIN")
    p.searched = p.make("searched", MAIN_C, "-DNEEDS=middle", middle,
                        f"-Wl,-rpath-link,{p.directory}")
    p.omp = p.make("omp", OMP_C, "-fopenmp")
    return p


def has_one_line(done, *words):
    assert done.stderr.count("\n") == 1 and done.stderr.startswith(("invade: ", "invasive: "))
    assert all(str(word) in done.stderr for word in words), done.stderr


HOW = {
    "itself": [],
    "shell": ["sh", "-c", '"$@"; exit $?', "sh"],
    "env": ["env", "A=1"],
    "python": [sys.executable, "-c",
               "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"],
    "spawn": [sys.executable, "-c", "import os, sys; sys.exit(os.waitstatus_to_exitcode("
              "os.waitpid(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)[1]))"],
    "nested": ["sh", "-c", 'exec "$INVADE" "$@"', "sh"],
}


@pytest.mark.parametrize("how", HOW)
def test_a_program_that_needs_a_newer_openmp_runs_stock_and_says_why(run_program, invade, programs,
                                                                     how):
    done = run_program([invade, *HOW[how], programs.newer], env={"INVADE": str(invade)})
    assert done.stdout == "newer 0\n"
    has_one_line(done, programs.newer, "OMP_9.9", "--with-gcc-source")


def test_a_program_on_the_path_and_the_interpreter_of_a_script_are_looked_at(run_program, invade,
                                                                            programs):
    path = f"{programs.directory}:{os.environ['PATH']}"
    done = run_program([invade, "newer"], env={"PATH": path})
    assert done.stdout == "newer 0\n"
    has_one_line(done, programs.newer)
    script = programs.write("script", f"#!{programs.newer} echo\n")
    script.chmod(0o755)
    for command in ([script], ["sh", "-c", str(script)]):
        done = run_program([invade, *command])
        assert done.stdout == f"newer 0\n{script}\n"
        has_one_line(done, programs.newer)


def test_valgrind_says_no_more_than_without_us(run_program, invade, programs):
    """Its tools are static programs; the preloaded libraries are in the program that they run."""
    command = ["valgrind", "-q", "--error-exitcode=9", "/bin/true"]
    stock = run_program(command, timeout=60)
    assert run_program([invade, *command], timeout=60).stderr == stock.stderr


def test_a_symbol_that_our_openmp_has_not_is_as_good_as_a_version(run_program, invade, programs):
    done = run_program([invade, programs.symbol])
    assert done.stdout == "newer 7\n"
    has_one_line(done, programs.symbol, "omp_get_wtick_of_tomorrow@OMP_1.0")


def test_a_library_that_needs_a_newer_openmp_is_found_where_the_loader_finds_it(run_program, invade,
                                                                               programs):
    middle = programs.directory / "libmiddle.so"
    done = run_program([invade, programs.indirect])
    assert done.stdout == "newer 0\n"
    has_one_line(done, middle, programs.indirect)
    where = {"LD_LIBRARY_PATH": f"/nowhere:{programs.directory}"}
    done = run_program([invade, "sh", "-c", str(programs.searched)], env=where)
    assert done.stdout == "newer 0\n"
    has_one_line(done, middle, programs.searched)
    done = run_program([invade, "echo", "theirs"], env={"LD_PRELOAD": str(middle)})
    assert done.stdout == "theirs\n"
    has_one_line(done, middle)


def test_what_a_stock_program_starts_is_managed(run_program, invade, programs, build):
    done = run_program([invade, programs.newer, "sh", "-c", WHERE])
    everywhere = run_program([invade, "sh", "-c", WHERE]).stdout
    assert done.stdout == f"newer 0\n{everywhere}" and "libgomp.so.1" in everywhere
    theirs = str(build / "lib/libinvasive.so.0")  # any library will do
    env = {"LD_PRELOAD": theirs, "LD_LIBRARY_PATH": "/nowhere"}
    done = run_program([invade, programs.newer, programs.newer, "sh", "-c", WHERE], env=env)
    preload, stock = done.stdout.splitlines()[-1].split()
    assert (preload.split(":")[-1], stock) == (theirs, "none")
    has_one_line(done)


def test_the_others_of_a_job_stay_managed(run_program, invade, programs, tmp_path):
    report = tmp_path / "report.json"
    script = "; ".join(str(p) for p in (programs.omp, programs.newer, programs.omp, programs.newer,
                                        programs.symbol))
    done = run_program([invade, f"--report={report}", "sh", "-c", script])
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "omp", "newer", "omp", "newer", "newer"]
    lines = done.stderr.splitlines()  # one for each program
    assert len(lines) == 2 and str(programs.newer) in lines[0] and str(programs.symbol) in lines[1]
    jobs = json.loads(report.read_text())["jobs"]
    assert [job["program"] for job in jobs] == ["omp", "omp"]


@pytest.mark.parametrize("ranks", ["alike", "mixed"])
def test_ranks_that_need_a_newer_openmp_do_not_keep_their_job_from_running(
        run_program, invade, programs, mpi, ranks):
    """Such ranks run unmanaged, and so does an MPI job that has one."""
    source = """
#include <mpi.h>
#include <stdio.h>
#ifdef NEEDS
int NEEDS(void);
#else
static int NEEDS(void) { return 0; }
#endif
int main(int argc, char **argv)
{
    int sum = 0, one = 1 + 0 * NEEDS();
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    printf("sum %d\\n", sum);
    return 0;
}
"""
    library = programs.directory / "libgomp.so.1"
    newer = programs.make(f"newer-{mpi.name}", source, "-DNEEDS=omp_in_explicit_task_of_tomorrow",
                          library, f"-Wl,-rpath,{programs.directory}", *mpi.flags[0], *mpi.flags[1])
    plain = programs.make(f"plain-{mpi.name}", source, *mpi.flags[0], *mpi.flags[1])
    more = [":", *mpi.run(1, plain)[1:]] if ranks == "mixed" else []
    done = run_program([invade, *mpi.run(3 - bool(more), newer), *more])
    assert done.stdout == "sum 3\n" * 3
    assert done.stderr.count("libgomp.so.1") == 1 and str(newer) in done.stderr


STRANGE = {
    "static": (["-static"], "statically"),
    "static-pie": (["-static-pie"], "statically"),
    "musl": ([], "ld-musl"),
    "musl-static": (["-static"], "statically"),
    "bits": (["-m32", "-nostdlib", "-static", "-fno-pic", "-no-pie"], "32 bits"),
}
HELLO_C = '#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n'
BARE_C = "void _start(void) { for (;;) __asm__(\"int $0x80\" : : \"a\"(1), \"b\"(3)); }\n"


@pytest.mark.parametrize("how", ["itself", "shell", "mpiexec"])
@pytest.mark.parametrize("kind", STRANGE)
def test_programs_that_cannot_have_our_libraries_run_stock_and_it_is_said_once(
        run_program, invade, programs, make_variable, kind, how):
    flags, word = STRANGE[kind]
    compiler = ["musl-gcc"] if kind.startswith("musl") else None
    if compiler and not shutil.which("musl-gcc"):
        pytest.skip("needs package musl-tools")
    bare = kind == "bits"
    if bare and platform.machine() != "x86_64":
        pytest.skip("32 bits are x86's here")
    program = programs.make(kind, BARE_C if bare else HELLO_C, *flags, compiler=compiler)
    try:
        stock = run_program([program], check=False)
    except OSError:
        stock = None  # of a kernel that runs no such programs: what is said counts
    wrapped = {"itself": [program], "shell": ["sh", "-c", f"{program}; {program}; exec {program}"],
               "mpiexec": [make_variable("MPIEXEC") or "mpiexec", "-n", 3, program]}[how]
    done = run_program([invade, *wrapped], check=False)
    ours = [line for line in done.stderr.splitlines() if line.startswith(("invade:", "invasive:"))]
    assert "ld.so" not in done.stderr and len(ours) == 1 + (stock is None and how == "itself")
    assert str(program) in ours[0] and word in ours[0]
    if stock and how != "mpiexec":
        assert done.returncode == stock.returncode == 3
        assert done.stdout == stock.stdout * (3 if how == "shell" else 1)


def test_a_program_that_a_symbolic_link_names_has_its_origin_where_it_is(run_program, invade,
                                                                         programs):
    """As the dynamic linker resolves it; a script finds its interpreter so, fexecve its program."""
    links = programs.directory / "links"
    links.mkdir()
    link = links / "indirect"
    link.symlink_to(programs.indirect)
    middle = programs.directory / "libmiddle.so"
    fexecve = ("import os, sys; fd = os.open(sys.argv[1], os.O_RDONLY); "
               "os.execve(fd, sys.argv[1:], os.environ)")
    for command in ([link], ["sh", "-c", str(link)], [sys.executable, "-c", fexecve, link]):
        done = run_program([invade, *command])
        assert done.stdout == "newer 0\n"
        has_one_line(done, middle, "OMP_9.9")


def test_a_dynamic_linker_elsewhere_is_ours_if_its_c_library_is_new_enough(run_program, invade,
                                                                          programs):
    """As on Nix and Guix; the message has the whole of a long name."""
    own = os.path.realpath(next(path for path in ("/lib64/ld-linux-x86-64.so.2",
                                                  "/lib/ld-linux-aarch64.so.1")
                                if os.path.exists(path)))
    name = os.path.basename(own)
    directory = programs.directory / ("long" * 38)
    directory.mkdir()
    linker = directory / name
    shutil.copy(own, linker)
    flags = f"-Wl,--dynamic-linker={linker}"
    good = programs.make("elsewhere", OMP_C, "-fopenmp", flags)
    done = run_program([invade, "--report", good])
    assert done.stdout.startswith("omp ") and "elsewhere" in done.stderr
    assert "unmanaged" not in done.stderr
    old = directory / "old"
    old.mkdir()
    older = Programs(old, programs.compiler)
    older.make("libc.so.6", "int nothing;", "-shared", "-fPIC", "-nostdlib",
               "-Wl,-soname,libc.so.6",
               f"-Wl,--version-script={older.write('map', 'GLIBC_2.2.5 { local: *; };')}")
    poor = older.make("poor", HELLO_C, flags, f"-Wl,-rpath,{old}")
    done = run_program([invade, poor], check=False)
    assert "is older" in done.stderr and str(old / "libc.so.6") in done.stderr
    strange = directory / "ld-strange.so.1"
    shutil.copy(own, strange)
    foreign = programs.make("strange", HELLO_C, f"-Wl,--dynamic-linker={strange}")
    done = run_program([invade, foreign], check=False)
    assert done.stdout == "hello\n"
    has_one_line(done, strange)


SMALL_C = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static long pages(void)
{
    long n = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%ld", &n) != 1)
        return -1;
    fclose(f);
    return n;
}
static int run(char **argv, int how)
{
    int status = 1;
    pid_t pid = -1;
    if (how == 0)
        return posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) ||
               waitpid(pid, &status, 0) != pid || status;
    if (how == 1)
        return execvp("no-such-program", argv) != -1;
    pid = vfork();
    if (pid == 0) {
        execv(argv[0], argv);
        _exit(9);
    }
    return waitpid(pid, &status, 0) != pid || status;
}
static void *start(void *argument)
{
    char **argv = argument;
    for (int how = 0; how < 3; how++)
        if (run(argv, how))
            return argv;
    return NULL;
}
static void *repeat(void *argument)
{
    for (int i = 0; i < 3; i++)
        if (start(argument))
            return argument;
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *failed = argv;
    long bytes = sysconf(_SC_THREAD_STACK_MIN), before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, bytes > 16384 ? (size_t)bytes : 16384);
    (void)argc;
    if (!pthread_create(&thread, &attributes, start, argv + 1))
        pthread_join(thread, &failed);
    if (failed || start(argv + 1))
        return 1;
    before = pages();
    if (repeat(argv + 1))
        return 2;
    printf("more %ld\n", pages() - before);
    return 0;
}
"""


@pytest.mark.parametrize("variables", [10, 4000])
@pytest.mark.parametrize("program", ["newer", "omp"])
def test_a_thread_with_a_small_stack_starts_programs_and_no_memory_stays_mapped(
        run_program, invade, programs, program, variables):
    small = programs.make("small", SMALL_C, "-pthread", "-Wno-deprecated-declarations")
    env = {f"VARIABLE_{i}": str(i) for i in range(variables)}
    done = run_program([invade, small, getattr(programs, program)], env=env)
    assert done.stdout.splitlines()[-1] == "more 0"


def test_an_rmd_that_is_stopped_holds_up_no_program_that_runs_stock(invade, programs, stock_env):
    """Each program asks rmd whether the message has been printed, and soon stops waiting."""
    script = 'echo begun; read go; for i in 1 2 3 4 5; do "$1"; done; echo over; read end'
    with subprocess.Popen([invade, "sh", "-c", script, "sh", programs.newer], env=stock_env,
                          text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "begun\n"
        (rmd,) = children(process.pid, "rmd")
        os.kill(rmd, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            process.stdin.write("go\n")
            process.stdin.flush()
            said = [process.stdout.readline() for _ in range(6)]
            seconds = time.monotonic() - begin
        finally:
            os.kill(rmd, signal.SIGCONT)
        process.communicate(timeout=60)
    assert said == ["newer 0\n"] * 5 + ["over\n"]
    assert seconds < 8


def test_damaged_programs_are_looked_at_without_harm(build, programs, run_program, top):
    """Some bytes of each are changed, or it is cut; launch/test_image.c with sanitizers."""
    ours = ":".join(str(build / "lib/invasive" / name) for name in ("libinvasive-process.so",
                                                                    "libgomp.so.1"))
    program = programs.directory / "test_image"
    sources = [top / "libinvasive" / name
               for name in ("launch/test_image.c", "launch/image.c", "launch/preload.c",
                            "launch/preload_list.c", "table/socket.c")]
    subprocess.run([*programs.compiler, "-std=gnu17", "-O1", "-g", "-Wall", "-Wextra",
                    "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
                    f"-I{top}", f"-I{top / 'include'}", *sources, "-o", program],
                   check=True, timeout=120)
    done = run_program([program, ours, programs.directory / "damaged", 400, programs.newer,
                        programs.symbol, programs.omp])
    assert done.stdout.splitlines() == ["3 OMP_9.9", "3 omp_get_wtick_of_tomorrow@OMP_1.0", "0 "]
