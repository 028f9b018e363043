# SPDX-License-Identifier: GPL-3.0-or-later
"""What the libraries show: programs find the public functions, and no function of the C library is
replaced but by what is preloaded."""

import re
import sys

import pytest

PUBLIC = re.compile(r"^[a-z][\w \*]*\b(inv_\w+)\(", re.M)


@pytest.fixture
def exports(run_program):
    """exports(LIBRARY) - {version: symbols of the library with it}; the version "" is none"""

    def by_version(library):
        found = {}
        for line in run_program(["nm", "-D", "--defined-only", library]).stdout.splitlines():
            kind, name = line.split()[-2:]
            name, _, version = name.partition("@")
            if kind != "A":  # the version itself
                found.setdefault(version.lstrip("@"), set()).add(name)
        return found

    return by_version


@pytest.fixture
def public(top):
    """The functions that the public headers declare; a tool defines inv_tool_start itself."""
    texts = [(top / f"include/{name}.h").read_text() for name in ("invasive", "invasive-tool")]
    return {name for text in texts for name in PUBLIC.findall(text)} - {"inv_tool_start"}


def test_a_program_that_links_libinvasive_finds_the_public_functions_and_nothing_else(
        build, exports, public):
    assert len(public) > 8
    assert exports(build / "lib/libinvasive.so.0") == {"INVASIVE_0": public}


def test_our_own_libraries_find_names_that_begin_as_ours_do(build, exports, public):
    shown = exports(build / "lib/invasive/libinvasive-process.so")
    assert shown.pop("INVASIVE_0") == public
    ours = shown.pop("INVASIVE_PRIVATE")
    assert not shown
    assert all(name.startswith("inv_") for name in ours)


def test_what_is_preloaded_replaces_these_functions_of_the_c_library_and_no_others(build, exports,
                                                                                  run_program):
    libc = re.findall(r"=> (\S*/libc\.so\.6)", run_program(["ldd", "/bin/sh"]).stdout)[0]
    theirs = set().union(*exports(libc).values())
    replaced = {}
    preloaded = (build / "lib/invasive").glob("lib*[!y]")  # but for gdb's commands
    for library in (build / "lib/libinvasive.so.0", *preloaded):
        common = set().union(*exports(library).values()) & theirs
        if common:
            replaced[library.name] = sorted(common)
    shim = (build / "lib/invasive/libinvasive-mpi.so").exists()
    assert replaced == {"libinvasive-mpi.so" if shim else "libinvasive-preload.so": [
        "execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "fexecve", "popen",
        "posix_spawn", "posix_spawnp", "pthread_create", "pthread_getaffinity_np",
        "pthread_setaffinity_np", "sched_getaffinity", "sched_setaffinity", "sched_yield",
        "system"]}


# Names of functions of ours, which are the program's own here.
PROGRAM = """
#include <invasive.h>
#include <stdio.h>
int inv_join(void) { puts("the program's own"); return 0; }
int inv_wide_cpus(void) { puts("the program's own"); return 0; }
int main(void)
{
    printf("%d %d\\n", inv_announce_workload(1.0), inv_claim_now().held_cores > 0);
    return 0;
}
"""


LOADS = """
import ctypes
library = ctypes.CDLL("{library}")
library.inv_version.restype = ctypes.c_char_p
assert library.inv_announce_workload(ctypes.c_double(1)) == 0
print(library.inv_version().decode())
"""


@pytest.mark.parametrize("launcher", [[], ["invade"]])
def test_a_program_that_loads_libinvasive_finds_the_public_functions(build, run_program, launcher):
    words = [build / "bin" / word for word in launcher]
    script = LOADS.format(library=build / "lib/libinvasive.so.0")
    done = run_program([*words, sys.executable, "-c", script])
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("launcher", [[], ["invade"]])
def test_public_functions_do_not_call_functions_of_the_program_that_are_called_as_ours(
        build, top, run_program, make_variable, tmp_path, launcher):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    run_program([*make_variable("CC").split(), f"-I{top}/include", "-o", program, source,
                 f"-L{build}/lib", "-linvasive", f"-Wl,-rpath,{build}/lib"])
    words = [build / "bin" / word for word in launcher]
    assert run_program([*words, program]).stdout == "0 1\n"
    undefined = run_program(["nm", "-D", "--undefined-only", program]).stdout
    assert "inv_announce_workload@INVASIVE_0" in undefined


def test_a_program_that_was_linked_before_there_were_versions_runs(build, top, run_program,
                                                                   make_variable, tmp_path):
    cc = make_variable("CC").split()
    old, program = tmp_path / "libinvasive.so.0", tmp_path / "program"
    (tmp_path / "old.c").write_text("int inv_announce_workload(double w) { return w > 0; }\n")
    (tmp_path / "program.c").write_text(
        "#include <invasive.h>\nint main(void) { return inv_announce_workload(1.0); }\n")
    run_program([*cc, "-shared", "-fPIC", "-Wl,-soname,libinvasive.so.0", "-o", old,
                 tmp_path / "old.c"])
    run_program([*cc, f"-I{top}/include", "-o", program, tmp_path / "program.c", old])
    before = run_program([program], env={"LD_LIBRARY_PATH": str(tmp_path)}, check=False)
    assert before.returncode == 1
    now = run_program([program], env={"LD_LIBRARY_PATH": str(build / "lib")})
    assert now.stderr == ""
