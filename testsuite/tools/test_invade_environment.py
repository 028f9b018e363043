# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment that invade sets for the command, and the effects of its options on it."""

import os
import shutil

import pytest

from lib.building.small_programs import SHARED, compile_text

MANAGED = "echo ${INVASIVE_SOCKET-none} ${INVASIVE_CORES-none} ${LD_PRELOAD-none}"


@pytest.mark.parametrize("how", ["option", "variable"])
def test_invasive_off_runs_the_program_stock(run_program, invade, how):
    command = [invade, *(["--off"] if how == "option" else []), "sh", "-c", MANAGED]
    env = {"INVASIVE": "off"} if how == "variable" else {}
    assert run_program(command, env=env).stdout == "none none none\n"


def test_a_value_of_invasive_that_means_nothing_is_told_once(run_program, invade):
    done = run_program([invade, "sh", "-c", MANAGED], env={"INVASIVE": "of"})
    assert done.stdout.startswith("@invasive-")
    assert done.stderr.startswith("invade: INVASIVE=of ") and done.stderr.count("\n") == 1
    assert run_program([invade, "true"], env={"INVASIVE": ""}).stderr == ""


def test_the_users_preload_stays_behind_ours(run_program, invade, build, tmp_path):
    theirs = str(compile_text(tmp_path / "theirs.so", "int their_variable;", *SHARED))
    words = run_program([invade, "sh", "-c", MANAGED], env={"LD_PRELOAD": theirs}).stdout.split()
    assert words[0].startswith("@invasive-") and int(words[1]) == len(os.sched_getaffinity(0))
    libraries = words[2].split(":")
    assert libraries[0] == str((build / "lib/invasive/libinvasive-process.so").resolve())
    assert libraries[-1] == theirs


def test_a_nested_invade_joins_the_outer_one(run_program, invade):
    script = f"{MANAGED}; exec {invade} sh -c '{MANAGED}'"
    outer, inner = run_program([invade, "sh", "-c", script]).stdout.splitlines()
    assert outer == inner != "none none none"


def test_cores_and_emulated_cores_make_the_domain(run_program, invade):
    cpu = min(os.sched_getaffinity(0))
    look = MANAGED.replace("SOCKET", "NOTHING") + "; grep Cpus_allowed_list /proc/self/status"
    one = run_program([invade, f"--cores={cpu}", "sh", "-c", look]).stdout.split()
    assert one[1] == "1" and one[-1] == str(cpu)
    many = run_program([invade, "--emulate-cores=48", "sh", "-c", MANAGED]).stdout.split()
    assert many[1] == "48"


@pytest.mark.parametrize("how, cores", [("each", 0), ("core", 0), ("first", 1)])
def test_hardware_threads_are_used_as_the_user_says(run_program, invade, how, cores):
    """On a machine, by hwloc's description, of one physical core with very many threads."""
    look = MANAGED.replace("SOCKET", "NOTHING") + "; echo ${INVASIVE_LAUNCH}"
    managed, launch = run_program(
        [invade, f"--smt={how}", "sh", "-c", look],
        env={"HWLOC_SYNTHETIC": "core:1 pu:1024"}).stdout.splitlines()
    assert int(managed.split()[1]) == (cores or len(os.sched_getaffinity(0)))
    assert f"/--smt/{how}" in launch  # for the rmd of another node
    assert run_program([invade, "--smt=no", "true"], check=False).returncode != 0


def test_a_report_goes_where_it_is_told_and_never_to_stdout(run_program, invade, tmp_path):
    report = tmp_path / "report"
    done = run_program([invade, f"--report={report}", "echo", "out"])
    assert (done.stdout, done.stderr) == ("out\n", "") and report.read_text().startswith("invade: ")
    done = run_program([invade, "--report", "echo", "out"])
    assert done.stdout == "out\n" and done.stderr == report.read_text()


def test_without_the_libraries_the_command_runs_unmanaged(run_program, build, tmp_path):
    alone = tmp_path / "invade"
    shutil.copy(build / "bin" / "invade", alone)
    done = run_program([alone, "--", "sh", "-c", "echo ${LD_PRELOAD-none}; exit 3"], check=False)
    if "cannot find" not in done.stderr:
        return  # those of an installed copy
    assert (done.returncode, done.stdout) == (3, "none\n")
    assert "libinvasive-process.so" in done.stderr and str(tmp_path) in done.stderr
    assert done.stderr.count("\n") == 1
