# SPDX-License-Identifier: GPL-3.0-or-later
"""A program with more rights than the user that runs it takes nothing from the environment: it
runs unmanaged.  A process that is two users at once trusts the socket of neither."""

import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from lib.building.small_programs import SHARED, compile_text
from lib.machine import NO_SET_UID, SET_UID_PLACE
from lib.manager.users import ALICE, BOB

ROOT = os.getuid() == 0
needs_root = pytest.mark.machine(ROOT, "only root can be several users")
needs_set_uid = pytest.mark.machine(SET_UID_PLACE is not None, NO_SET_UID)

# Joins by an OpenMP region, or by a call of the interface; first it may become two users.
PROGRAM = r"""
#define _GNU_SOURCE
#include <invasive.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = 0;
    if (argc > 1 && seteuid((uid_t)atoi(argv[1])))
        return 2;
#pragma omp parallel num_threads(2) reduction(+ : n)
    n++;
    inv_announce_workload(1);
    return printf("%d %d\n", n, inv_claim_now().managed) < 0;
}
"""


@pytest.fixture
def public():
    """A directory that every user can reach, and write to, and where set-uid programs work, if the
    machine has such a place."""
    path = Path(tempfile.mkdtemp(prefix="invasive-test-", dir=SET_UID_PLACE))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def program(build, top, public, make_variable):
    """The program, with libraries that every user can read beside it."""
    for name in ("libinvasive-process.so", "libgomp.so.1"):
        shutil.copy(build / "lib/invasive" / name, public)
    (public / "program.c").write_text(PROGRAM)
    for name, flags in (("program", ["-fopenmp"]), ("plain", [])):
        subprocess.run([*(make_variable("CC") or "cc").split(), *flags, f"-I{top}/include",
                        public / "program.c", "-o", public / name, f"-L{public}",
                        "-l:libinvasive-process.so", f"-Wl,-rpath,{public}"],
                       check=True, timeout=60)
    return public / "program"


@pytest.fixture
def run(public, program, stock_env):
    """run(UID, WORD...) -> (what the program said, what was started for it)"""

    def run_as(uid, *words, command=program):
        script, told = public / "manager", public / "told"
        script.write_text(f"#!/bin/sh\nid -u >>{told}\n")
        script.chmod(0o755)
        tool = public / "tool.so"
        if not tool.exists():
            compile_text(tool, '#include <stdlib.h>\nint inv_tool_start(void)\n'
                         f'{{ return system("echo tool >>{told}"); }}\n', *SHARED)
        env = {**stock_env, "INVASIVE_SOCKET": "@invasive-nobody-listens", "INVASIVE_CORES": "2",
               "INVASIVE_LAUNCH": f"invasive-test-{os.getpid()}/1", "INVASIVE_RMD": str(script),
               "INVASIVE_TOOL": str(tool), "INVASIVE_REPORT": "1"}
        done = subprocess.run([command, *words], env=env, user=uid, group=uid, extra_groups=(),
                              cwd="/", capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout, told.read_text() if told.exists() else ""

    return run_as


@needs_root
def test_a_program_without_more_rights_starts_the_manager_that_it_is_told(run):
    assert run(ALICE) == ("2 0\n", f"tool\n{ALICE}\n")


@needs_root
@needs_set_uid
@pytest.mark.parametrize("rights", ["set-uid root", "set-uid", "set-gid", "capabilities"])
def test_a_program_with_more_rights_than_its_user_takes_nothing_from_the_environment(program, run,
                                                                                     rights):
    if rights == "capabilities":  # VFS_CAP_REVISION_2, effective: CAP_NET_RAW
        value = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)
        os.setxattr(program, "security.capability", value)
    elif rights == "set-gid":
        os.chown(program, 0, BOB)
        program.chmod(0o2755)
    else:
        os.chown(program, BOB if rights == "set-uid" else 0, 0)
        program.chmod(0o4755)
    assert run(ALICE) == ("2 0\n", "")


@needs_root
def test_a_program_that_has_become_two_users_takes_nothing_from_the_environment(program, run):
    plain = program.with_name("plain")  # which has not looked for a manager when it was loaded
    assert run(0, command=plain) == ("1 0\n", "tool\n0\n")
    (plain.parent / "told").unlink()
    assert run(0, str(ALICE), command=plain) == ("1 0\n", "tool\n")


@needs_root
@needs_set_uid
def test_a_process_that_is_two_users_trusts_the_socket_of_neither(build, public):
    shutil.copy(build / "bin" / "rmctl", public)
    os.chown(public / "rmctl", BOB, 0)
    (public / "rmctl").chmod(0o4755)
    for other in (ALICE, BOB):
        name = f"@invasive-test-{os.getpid()}-{other}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("\0" + name[1:])
            os.seteuid(other)
            try:
                listener.listen()  # whose credentials the other side is shown
            finally:
                os.seteuid(0)
            done = subprocess.run([public / "rmctl", f"--socket={name}"], user=ALICE, cwd="/",
                                  capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode != 0 and "serves another user" in done.stderr


def test_what_is_loaded_into_programs_reads_the_environment_in_one_place_only(top):
    """environment.h, which asks first.  A list of variables is read where it is given to a program
    that is started."""
    starts_programs = {"libinvasive/launch/launch.c", "libinvasive/launch/preload.c",
                       "libinvasive/launch/preload.h", "libinvasive/member/spawn.c"}
    sources = [path for folder in ("libinvasive", "libgomp-invasive", "mpi-shim", "include")
               for path in sorted((top / folder).rglob("*.[ch]"))
               if "/tests/" not in str(path) and not path.name.startswith("test_")]
    assert len(sources) > 100
    found = set()
    for path in sources:
        name = str(path.relative_to(top))
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
        if re.search(r"\b(secure_|__secure_)?getenv\b", code) and path.name != "environment.h":
            found.add(name)
        if re.search(r"\b(__environ|environ|_environ|envp)\b|/proc/self/environ", code):
            found.add(name)
    assert found == starts_programs


def test_libraries_of_ours_import_no_getenv_but_that_one(build):
    """Also by what is generated, or comes from a library of ours that is linked in."""
    imports = {}
    for path in sorted([build / "lib/libinvasive.so.0", *(build / "lib/invasive").glob("*.so")]):
        listed = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True,
                                text=True, check=True, timeout=60).stdout
        imports[path.name] = set(re.findall(r"\b(\w*getenv|getauxval)\b", listed))
    for name, symbols in imports.items():
        assert "getenv" not in symbols or "getauxval" in symbols, name
