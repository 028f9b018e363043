# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenMP runtime is preloaded into every process of a command.  Before a process uses OpenMP it
is bound to nothing and nothing is printed, whatever OMP_* variables say; a program that is linked
with libgomp sees what it sees without us.
"""

import os
import re
import subprocess
import sys

import pytest

BINDING = [{"OMP_PROC_BIND": "true"}, {"OMP_PROC_BIND": "close", "OMP_PLACES": "threads"},
           {"OMP_PLACES": "cores"}, {"GOMP_CPU_AFFINITY": "{first}"}]
TALKING = [{"OMP_DISPLAY_ENV": "true"}, {"OMP_DISPLAY_ENV": "verbose"}, {"OMP_DISPLAY_ENV": "?"},
           {"OMP_NUM_THREADS": "none"}, {"OMP_SCHEDULE": "?"}, {"OMP_STACKSIZE": "1"},
           {"INVASIVE_TEAM": "?"}, {"INVASIVE_BIND": "?"}]
SHOWN = "OPENMP DISPLAY ENVIRONMENT BEGIN"
PLACED = re.compile("cpus ([0-9]+), place 0 of")  # of two CPUs, if a place is a core with SMT
CPUS = "grep Cpus_allowed_list /proc/self/status"


def with_first_cpu(variables):
    return {name: text.format(first=min(os.sched_getaffinity(0)))
            for name, text in variables.items()}


def names(variables):
    return "-".join(f"{name}={text}" for name, text in variables.items())


@pytest.mark.parametrize("variables", BINDING, ids=names)
def test_nothing_is_bound_before_a_process_uses_openmp(run_program, invade, variables):
    variables = with_first_cpu(variables)
    script = f"{CPUS}; sh -c '{CPUS}'; {CPUS}"
    stock = run_program(["sh", "-c", script])
    managed = run_program([invade, "sh", "-c", script], env=variables)
    assert managed.stdout == stock.stdout and managed.stderr == ""


@pytest.mark.parametrize("variables", TALKING, ids=names)
def test_nothing_is_printed_before_a_process_uses_openmp(run_program, invade, variables):
    done = run_program([invade, "sh", "-c", "true; /bin/true; sh -c 'echo out'"], env=variables)
    assert (done.stdout, done.stderr) == ("out\n", "")


@pytest.mark.parametrize("shown", [None, "false", "true"])
def test_nothing_is_said_of_a_missing_manager_before_a_process_uses_openmp(
        run_program, omp_program, invade, short_path, shown):
    """The library asks for the resource manager when it is needed, not in every process."""
    script = f"export INVASIVE_SOCKET={short_path}/none; /bin/true; sh -c true; echo out; {{}}"
    env = {"OMP_DISPLAY_ENV": shown} if shown else {}
    quiet = run_program([invade, "sh", "-c", script.format("true")], env=env)
    assert (quiet.stdout, quiet.stderr) == ("out\n", "")
    program = omp_program("places_before_use")
    done = run_program([invade, "sh", "-c", script.format(program)], env=env)
    said, _, rest = done.stderr.partition("\n")
    assert said.startswith("invasive: cannot reach rmd") and "invasive:" not in rest
    assert rest.count(SHOWN) == (shown == "true") and (shown == "true" or not rest)


@pytest.mark.parametrize("variables", [{"OMP_DISPLAY_ENV": "true"}, {"OMP_SCHEDULE": "?"}],
                         ids=names)
def test_a_linked_program_is_told_once_what_it_is_told_without_us(
        run_program, invade, omp_program, variables):
    script = f"/bin/true; {omp_program('places_before_use')}; /bin/true"
    stock = run_program(["sh", "-c", script], env=variables)
    managed = run_program([invade, "sh", "-c", script], env=variables)
    number = re.compile("OMP_NUM_THREADS = '[0-9]*'")
    assert number.sub("", managed.stderr) == number.sub("", stock.stderr) != ""


def test_the_team_size_that_is_shown_is_the_default(run_program, invade, omp_program):
    """For a program that is linked with libgomp, and for one that loads it later."""
    env = {"OMP_DISPLAY_ENV": "true"}
    size = r"OMP_NUM_THREADS = '([0-9]+)'"
    linked = run_program([invade, omp_program("places_before_use")], env=env)
    late = run_program([invade, sys.executable, "-c",
                        "import ctypes; print(ctypes.CDLL(None).omp_get_max_threads())"], env=env)
    assert re.findall(size, linked.stderr) == re.findall(size, late.stderr) == [late.stdout.strip()]


def test_a_library_that_is_loaded_later_is_a_use(run_program, invade, omp_program):
    """A plugin prints when its first region begins, once, and before what the plugin prints."""
    plugin = omp_program("plugin", "-shared", "-fPIC")
    script = ("import ctypes, os; plugin = ctypes.CDLL({!r}); os.write(2, b'loaded\\n');"
              "print(plugin.plugin_sum(3)); os.write(2, b'done\\n'); plugin.plugin_sum(2)")
    done = run_program([invade, sys.executable, "-c", script.format(str(plugin))],
                       env={"OMP_DISPLAY_ENV": "true", "OMP_PROC_BIND": "true"})
    assert done.stdout == "18\n" and done.stderr.count(SHOWN) == 1
    before, after = done.stderr.split("loaded\n")
    assert SHOWN not in before and SHOWN in after.split("done\n")[0]


@pytest.mark.parametrize("variables", BINDING, ids=names)
def test_unmanaged_a_linked_program_is_bound_as_without_us(
        run_program, build, omp_program, variables):
    program, variables = omp_program("places_before_use"), with_first_cpu(variables)
    library = build / "lib/invasive"
    ours = {"LD_LIBRARY_PATH": f"{library}:{library.parent}"}
    stock = run_program([program], env=variables)
    assert run_program([program], env={**variables, **ours}).stdout == stock.stdout
    assert PLACED.match(stock.stdout)


@pytest.mark.parametrize("variables", BINDING, ids=names)
def test_managed_a_linked_program_has_its_places_and_all_cpus(
        run_program, invade, omp_program, variables):
    """Cores are given out by the resource manager; the initial thread stays free until then."""
    program, variables = omp_program("places_before_use"), with_first_cpu(variables)
    stock = run_program([program], env=variables).stdout
    cpus = len(os.sched_getaffinity(0))
    managed = run_program([invade, program], env=variables)
    assert PLACED.match(stock)
    assert managed.stdout == re.sub("^cpus [0-9]+,", f"cpus {cpus},", stock)
    assert managed.stderr == ""


def test_a_query_of_places_is_a_use(run_program, invade):
    """Of a process that is not linked with libgomp, by a function that starts no region."""
    script = ("import ctypes; own = ctypes.CDLL(None);"
              "print(own.omp_get_num_places() > 0, own.omp_get_place_num())")
    done = run_program([invade, sys.executable, "-c", script], env={"OMP_PROC_BIND": "true"})
    assert (done.stdout, done.stderr) == ("True 0\n", "")


def test_what_a_bundled_copy_of_libgomp_has_said_is_not_said_again(
        run_program, invade, omp_program, make_variable, tmp_path):
    """Packages of Python bring such copies: initialised when loaded; their functions are ours."""
    (tmp_path / "copy.c").write_text(
        '#include <unistd.h>\n__attribute__((constructor)) static void start(void)\n'
        '{ if (write(2, "copy\\n", 5) < 0) _exit(9); }\n')
    copy = tmp_path / "libgomp-0123abcd.so.1.0.0"
    subprocess.run([*(make_variable("CC") or "cc").split(), "-shared", "-fPIC", "-o", copy,
                    tmp_path / "copy.c"], check=True, timeout=60)
    script = f"import ctypes; ctypes.CDLL('{copy}');" \
             f"print(ctypes.CDLL('{omp_program('plugin', '-shared', '-fPIC')}').plugin_sum(3))"
    done = run_program([invade, sys.executable, "-c", script], env={"OMP_DISPLAY_ENV": "true"})
    assert (done.stdout, done.stderr) == ("18\n", "copy\n")
