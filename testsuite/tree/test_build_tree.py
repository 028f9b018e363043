# SPDX-License-Identifier: GPL-3.0-or-later
"""What the build promises to builders, installers and packagers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lib.building import house
from lib.building.sources import RUNTIME_FOLDERS, runtime_file


def needed(path):
    out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return {
        "soname": re.findall(r"\(SONAME\).*\[(.*)\]", out),
        "needed": re.findall(r"\(NEEDED\).*\[(.*)\]", out),
        "runpath": re.findall(r"\(RUNPATH\).*\[(.*)\]", out),
    }


PRELOADS = ["libgomp.so.1", "libinvasive-mpi.so", "libinvasive-process.so"]


@pytest.mark.smoke
def test_build_tree_is_staged_as_the_launcher_expects_it(build):
    for name in ("invade", "bin/invade", "bin/rmd", "bin/rmctl", "lib/libinvasive.so.0",
                 *(f"lib/invasive/{name}" for name in PRELOADS)):
        assert (build / name).is_file(), name


@pytest.mark.smoke
def test_programs_are_binaries_that_need_nothing_of_the_build_tree(build):
    for name in ("invade", "rmd", "rmctl"):
        path = build / "bin" / name
        assert path.read_bytes()[:4] == b"\x7fELF"
        assert not any("invasive" in library for library in needed(path)["needed"])


@pytest.mark.smoke
def test_library_has_its_soname(build):
    assert needed(build / "lib/libinvasive.so.0")["soname"] == ["libinvasive.so.0"]


@pytest.mark.smoke
@pytest.mark.parametrize("name", PRELOADS[:2])
def test_preloads_find_libinvasive_beside_themselves(build, name):
    facts = needed(build / "lib/invasive" / name)
    assert facts["soname"] == [name]
    assert "libinvasive-process.so" in facts["needed"]
    assert facts["runpath"] == ["$ORIGIN"]


@pytest.mark.smoke
def test_shim_is_not_linked_to_an_mpi(build):
    """It works with the MPI that the program brings."""
    libraries = needed(build / "lib/invasive/libinvasive-mpi.so")["needed"]
    assert not [library for library in libraries if re.match(r"lib(mpi|mpich|open-)", library)]


@pytest.mark.smoke
@pytest.mark.timeout(300)
def test_installed_tree_works_and_uninstall_leaves_nothing(build, tmp_path, run_program):
    """make install DESTDIR=..., a program under the installed launcher, make uninstall."""
    env = {"MAKEFLAGS": "", "MAKELEVEL": ""}
    run_program(["make", "-C", build, "install", f"DESTDIR={tmp_path}"], env, timeout=250)
    launcher = next(tmp_path.rglob("bin/invade"))
    for name in ("lib/libinvasive.so.0", "lib/libinvasive.so", "include/invasive.h",
                 *(f"lib/invasive/{name}" for name in PRELOADS)):
        assert (launcher.parent.parent / name).is_file(), name
    done = run_program([launcher, "--", build / "apps/regions/regions", "--batch-ms=1"],
                       {"OMP_NUM_THREADS": "4"})
    assert "regions: 4 threads" in done.stdout
    run_program(["make", "-C", build, "uninstall", f"DESTDIR={tmp_path}"], env, timeout=100)
    assert not [path for path in tmp_path.rglob("*") if not path.is_dir()]


@pytest.mark.timeout(300)
def test_a_prefix_that_is_given_to_make_install_is_that_of_all_files(build, tmp_path, run_program,
                                                                     make_variable):
    """Units too: a user that installs into the home directory may have no rights elsewhere."""
    if "$(prefix)" not in make_variable("systemdsystemunitdir"):
        pytest.skip("configured with --with-systemdsystemunitdir")
    env = {"MAKEFLAGS": "", "MAKELEVEL": ""}
    run_program(["make", "-C", build, "install", f"DESTDIR={tmp_path}", "prefix=/an/other"], env,
                timeout=250)
    files = {path.relative_to(tmp_path / "an/other") for path in tmp_path.rglob("*")
             if not path.is_dir()}  # or ValueError: it is not below
    assert {Path("bin/invade"), Path("lib/systemd/system/rmd.service"),
            Path("lib/sysusers.d/invasive.conf")} <= files


def test_header_compiles_alone_in_c_and_cxx(top, tmp_path):
    for compiler, suffix in (("gcc", "c"), ("g++", "cc")):
        source = tmp_path / f"alone.{suffix}"
        source.write_text("#include <invasive.h>\nint main(void) { return inv_version() == 0; }\n")
        subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                        f"-I{top / 'include'}", source], check=True, timeout=60)


def configure(top, where, *options, path=None):
    env = dict(os.environ)
    if path:
        env["PATH"] = path
    return subprocess.run([top / "configure", *options], check=False, cwd=where, env=env,
                          capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("option, complaint", [
    ("--with-gcc-source=/nonexistent.tar.xz", "/nonexistent.tar.xz: no such file"),
    ("--with-mpi=lam", "mpich, openmpi, both or no"),
])
def test_configure_refuses_options_that_cannot_work(top, tmp_path, option, complaint):
    done = configure(top, tmp_path, option)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_configure_names_the_package_of_a_missing_thing(top, tmp_path):
    """A PATH with everything but MPICH's compiler wrapper."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for directory in ("/usr/bin", "/bin"):
        for name in os.listdir(directory):
            if not name.startswith("mpi") and not (tools / name).exists():
                (tools / name).symlink_to(os.path.join(directory, name))
    done = configure(top, tmp_path, path=str(tools))
    assert done.returncode != 0
    assert "libmpich-dev" in done.stderr


# The licences themselves, and files in whose form there is no place for a line about it.
SILENT = re.compile(r"COPYING(\.RUNTIME)?|bench/results\.jsonl|doc/([^/]+/)*[^/]+\.png"
                    r"|bench/fuzz/corpus/[^/]+/[^/]+")


def test_every_tracked_file_says_its_licence_on_the_first_lines(top):
    """What is loaded into programs of others has the exception, all else has not."""
    files = house.tracked(top)
    if files is None:
        pytest.skip("not a git checkout (package git)")
    loaded = ("libinvasive/", "libgomp-invasive/", "mpi-shim/", "include/")
    wrong = []
    for name in map(str, files):
        path = top / name
        if SILENT.fullmatch(name):
            continue
        head = "\n".join(path.read_text(errors="replace").splitlines()[:3])
        licence = "GPL-3.0-or-later"
        exempt = name.startswith(loaded) and path.suffix in (".c", ".h")
        line = re.search(r"SPDX-License-Identifier: (.*?)\s*(\*/|-->)?$", head, re.M)
        if not line or not line.group(1).startswith(licence):
            wrong.append(f"{name}: no licence")
        elif not name.startswith((*loaded, "doc/examples/")) and "exception" in line.group(1):
            wrong.append(f"{name}: exception in what is not loaded into programs")
        elif exempt and not line.group(1).endswith("WITH GCC-exception-3.1") \
                and "/test" not in name:
            wrong.append(f"{name}: no exception in what is loaded into programs")
    assert not wrong


@pytest.mark.parametrize("words", [("--no-install", "extra"), ("--no-install", ""), ("extra",)])
def test_quickstart_refuses_what_it_does_not_know(top, tmp_path, words):
    done = subprocess.run([top / "quickstart", *words], capture_output=True, text=True, timeout=20,
                          check=False, env={**os.environ, "INVASIVE_BUILD": str(tmp_path)})
    assert done.returncode == 2 and done.stderr.startswith("quickstart: ") and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("letter", [" ", "\t", "#", "'", "\\", "$", ":", "%"])
@pytest.mark.parametrize("script", ["quickstart", "run-tests"])
def test_a_path_that_make_cannot_take_is_refused_at_once(top, tmp_path, script, letter):
    build = tmp_path / f"a{letter}b"
    done = subprocess.run([top / script], capture_output=True, text=True, timeout=20, check=False,
                          env={**os.environ, "INVASIVE_BUILD": str(build)})
    assert done.returncode == 2 and done.stderr.startswith(f"'{build}' has a blank or one of ")
    assert list(tmp_path.iterdir()) == [] and done.stdout == ""


def test_a_build_is_told_before_it_begins(top, tmp_path):
    configure, build = tmp_path / "configure", tmp_path / "build"
    (tmp_path / "configure.ac").touch()
    (tmp_path / "packages.txt").touch()
    os.utime(tmp_path / "configure.ac", (0, 0))
    configure.write_text("#!/bin/sh\ncat told; exit 1\n")
    configure.chmod(0o755)
    script = f"top={tmp_path} build={build}; . {top}/.ci/steps.sh; configure_and_build {build} all"
    told = tmp_path / "build" / "told"
    build.mkdir()
    with told.open("w") as out:
        done = subprocess.run(["sh", "-c", script], stdout=out, stderr=subprocess.PIPE, text=True,
                              timeout=20, check=False)
    line = f"building in {build}: some minutes the first time; log: {build}/build.log\n"
    assert done.returncode == 1 and told.read_text() == line
    assert done.stderr.startswith(line)  # configure has read it


def packages(top, function, *sections):
    """What a function of .ci/steps.sh says of these sections of packages.txt."""
    return subprocess.run(
        ["sh", "-ec", f'top=$1 build=; . "$top/.ci/steps.sh"; shift; {function} "$@"', "sh", top,
         *sections], capture_output=True, text=True, check=True, timeout=60).stdout.split()


def test_quickstart_installs_nothing_that_only_tests_need(top):
    quick = packages(top, "packages", "run", "build")
    assert {"mpich", "gcc-12-source", "make"} <= set(quick)
    assert not {"chromium", "python3-pytest", "libopenmpi-dev"} & set(quick)
    assert set(packages(top, "packages", "test")).isdisjoint(quick)
    assert "install_packages run build\n" in (top / "quickstart").read_text()
    assert "install_packages run build test " in (top / "run-tests").read_text()


def test_quickstart_builds_what_is_installed_and_what_it_runs(build):
    made = subprocess.run(
        ["make", "-s", "-C", build, "--no-print-directory", "--eval=say: ; @echo $(QUICK_TARGETS)",
         "say"], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "MAKEFLAGS": ""}).stdout.split()
    assert {"bin/invade", "bin/rmd", "apps/artificial/artificial"} <= set(made)
    assert not [name for name in made if name.startswith(
        ("apps/swe/", "apps/euler/", "bench/", "testsuite/"))]


def test_list_of_packages_names_each_once(top):
    lines = (top / "packages.txt").read_text().splitlines()
    names = [line.split("#")[0].strip() for line in lines if not line.startswith("[")]
    names = [name for name in names if name]
    assert sorted(names) == sorted(packages(top, "packages", "run", "build", "test", "full"))
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name) for name in names)


def test_each_benchmark_has_a_row_in_the_table_of_measurements(top):
    listed = subprocess.run([sys.executable, top / "bench/run", "--list"], capture_output=True,
                            text=True, check=True, timeout=60).stdout.split()
    rows = {}
    for line in (top / "doc/measurements.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 8:  # with what is before the first and after the last
            rows.setdefault(cells[1], []).append(cells)
    for name in listed:
        here = rows[f"`{name}`"]
        assert any(measured and re.search(r"\d", goal) for *_, measured, goal, _, _ in here), name
        for *_, goal, limit, _ in here:
            assert "**" not in goal + limit, f"{name}: what is measured is where the goal belongs"


def test_objects_of_the_overlay_are_built_again_when_a_header_changes(
        build, top, run_program, make_variable):
    if make_variable("GCC_SOURCE") in ("", "no"):
        pytest.skip("configured without the source of libgomp")
    work = build / "libgomp-invasive/libgomp-build"
    folders = " ".join(str(top / "libgomp-invasive" / folder) for folder in RUNTIME_FOLDERS)
    make = ["make", "-C", work, "-f", "Makefile", "-f", "ours.mk", "-n", "-o", "config.h",
            "--no-print-directory", f"search_path={folders}"]
    for name in ("taskrun", "region"):
        assert f"{name}.c" not in run_program([*make, f"{name}.lo"]).stdout
        changed = run_program([*make, "-W", runtime_file(top, "region.h"), f"{name}.lo"])
        assert f"{name}.c" in changed.stdout
