# SPDX-License-Identifier: GPL-3.0-or-later
"""The fork is built from the sources of several GCC releases, and says what has moved in one that
it does not fit.  How it is done: libgomp-invasive/upstream.sh."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.building.build import TOP
from lib.omp_programs import source_of

RULES = TOP / "libgomp-invasive/upstream.sh"
PARTS = ("libgomp", "include", "config", "gcc/BASE-VER", "gcc/DATESTAMP")


def build_command(build, source, builddir, *options):
    return ["sh", TOP / "libgomp-invasive/build.sh", f"--source={source}",
            f"--overlay={TOP / 'libgomp-invasive/overlay'}",
            f"--libinvasive={build / 'lib/invasive'}",
            f"--include={TOP}", f"--builddir={builddir}",
            f"--out={builddir}/lib/invasive/libgomp.so.1", *options]


@pytest.fixture(scope="module")
def release(tmp_path_factory, make_variable):
    """A GCC source tree, or the part that libgomp needs, as in the release."""
    source = make_variable("GCC_SOURCE")
    if not source or source == "no":
        pytest.skip("configured without the source of libgomp")
    tree = tmp_path_factory.mktemp("release")
    if Path(source).is_dir():
        for part in PARTS:
            (tree / part).parent.mkdir(exist_ok=True)
            (shutil.copytree if (Path(source) / part).is_dir() else shutil.copy)(
                Path(source) / part, tree / part)
    else:
        top = copy_name(source)
        subprocess.run(["tar", "xf", source, "-C", tree, "--strip-components=1",
                        f"--exclude={top}/libgomp/testsuite", *(f"{top}/{part}" for part in PARTS)],
                       check=True, timeout=100)
    return tree


def copy_name(archive):
    """The directory that all of an archive is in."""
    with subprocess.Popen(["tar", "tf", archive], stdout=subprocess.PIPE, text=True) as listing:
        first = listing.stdout.readline()
        listing.kill()
    return first.split("/")[0]


def prepare(build, source, where):
    return subprocess.run(build_command(build, source, where, "--prepare"), check=False,
                          timeout=100, capture_output=True, text=True)


def digest(tree):
    """Names, modes and contents of a tree."""
    sums = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        sums.update(f"{path.relative_to(tree)} {path.stat().st_mode}".encode())
        if path.is_file():
            sums.update(path.read_bytes())
    return sums.hexdigest()


def test_source_tree_is_copied_and_may_be_read_only(build, release, tmp_path):
    subprocess.run(["chmod", "-R", "a-w", release], check=True, timeout=60)
    before = digest(release)
    try:
        done = prepare(build, release, tmp_path)
        assert done.returncode == 0, done.stderr
        assert digest(release) == before
    finally:
        subprocess.run(["chmod", "-R", "u+w", release], check=True, timeout=60)
    features = (tmp_path / "src/upstream-features.h").read_text()
    assert re.findall(r"#define UPSTREAM_\w+ [01]$", features, re.MULTILINE)


def test_copy_is_kept_until_the_source_changes(build, release, tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(release, tree)
    where = tmp_path / "build"
    mark = where / "src/libgomp/mark"
    assert prepare(build, tree, where).returncode == 0
    mark.touch()
    assert prepare(build, tree, where).returncode == 0
    assert mark.exists()
    with open(tree / "libgomp/work.c", "a", encoding="utf-8") as file:
        file.write("/* changed */\n")
    assert prepare(build, tree, where).returncode == 0
    assert not mark.exists()
    assert "/* changed */" in (where / "src/libgomp/work.c").read_text()


def demands():
    """The rules of upstream.sh: (function, file, pattern, message) of those that can fail."""
    text = RULES.read_text().split("# --- the rules", 1)[1].replace("\\\n", " ")
    inserted = set()
    words = re.compile(r"'([^']*)'|\"([^\"]*)\"|(\S+)")
    for line in text.splitlines():
        found = ["".join(word) for word in words.findall(line.strip())]
        if not found:
            continue
        kind, *rest = found
        if kind == "expect":
            yield pytest.param(rest[0], rest[1], rest[2], id=f"expect-{rest[2][:40]}")
        elif kind == "edit":
            yield pytest.param(rest[0], rest[1], rest[3], id=f"edit-{rest[3][:40]}")
        elif kind == "insert_member":
            inserted.add(rest[1])
            yield pytest.param(rest[0], f"^struct {rest[1]}$", rest[3], id=f"insert-{rest[1]}")
        elif kind == "add_version" and (family := rest[0].rstrip("0123456789.")) not in inserted:
            inserted.add(family)
            yield pytest.param("libgomp/libgomp.map", rf"^{family}[0-9.]+ \{{", rest[1],
                               id=f"version-{rest[0]}")
        elif kind == "member_feature" and rest[2] not in inserted:  # else that one complains first
            yield pytest.param(rest[1], f"^struct {rest[2]}$", f"{rest[0]} cannot be found out",
                               id=f"member-{rest[0]}")


@pytest.mark.parametrize("name, pattern, message", list(demands()))
def test_release_that_has_moved_something_is_refused_with_its_name(
        build, release, tmp_path, name, pattern, message):
    tree = tmp_path / "tree"
    shutil.copytree(release, tree)
    path = tree / name
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not re.search(pattern, line.rstrip("\n"))]
    assert len(kept) < len(lines), f"{pattern} matches nothing in {name}"
    path.write_text("".join(kept))
    done = prepare(build, tree, tmp_path / "build")
    assert done.returncode == 1
    version = (release / "gcc/BASE-VER").read_text().strip()
    assert f"GCC {version}: {message}" in done.stderr
    assert name in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not (tmp_path / "build/src").exists(), "a copy that is not fit for use was kept"


def test_what_is_no_source_of_gcc_is_refused(build, tmp_path):
    (tmp_path / "empty").mkdir()
    done = prepare(build, tmp_path / "empty", tmp_path / "build")
    assert done.returncode == 1 and "no GCC source tree" in done.stderr
    archive = tmp_path / "other.tar.xz"
    subprocess.run(["tar", "cJf", archive, "-C", TOP, "m4"], check=True, timeout=60)
    done = prepare(build, archive, tmp_path / "build")
    assert done.returncode == 1 and "does not hold libgomp" in done.stderr
    done = prepare(build, tmp_path / "nothing.tar.xz", tmp_path / "build")
    assert done.returncode == 1 and "no such file" in done.stderr


# --- the rules' own language

STRUCTS = """\
struct one
{
  int first;
};

struct two { int a; };
"""


@pytest.fixture
def rule(tmp_path):
    """rule(SHELL) -> (exit status, stderr, the file) of a rule applied to STRUCTS as s.h"""
    path = tmp_path / "s.h"

    def apply(text):
        path.write_text(STRUCTS)
        script = f"""set -eu
            die() {{ echo "$*" >&2; exit 1; }}
            tree={tmp_path} release=99.1 features={tmp_path}/features.h
            . {RULES}
            {text}"""
        done = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True,
                              timeout=30)
        return done.returncode, done.stderr, path.read_text()

    return apply


def test_edit_changes_the_one_line_that_matches(rule):
    status, _, text = rule("edit s.h 'int first;' 's/first/second/' 'one has no first'")
    assert status == 0 and text == STRUCTS.replace("first", "second")


@pytest.mark.parametrize("pattern, count", [("int nowhere;", 0), ("^struct", 2)])
def test_edit_that_does_not_match_once_is_refused(rule, pattern, count):
    status, errors, text = rule(f"edit s.h '{pattern}' 's/int/long/' 'ints moved'")
    assert status == 1 and text == STRUCTS
    assert errors.startswith("GCC 99.1: ints moved") and f"s.h: {count} lines match" in errors


def test_member_is_inserted_first(rule):
    status, _, text = rule("insert_member s.h one 'EXTRA' 'one moved'")
    assert status == 0 and text == STRUCTS.replace("{\n", "{\n  EXTRA\n", 1)


@pytest.mark.parametrize("struct", ["three", "two"])
def test_member_for_a_struct_that_is_not_there_or_written_otherwise_is_refused(rule, struct):
    status, errors, text = rule(f"insert_member s.h {struct} EXTRA '{struct} moved'")
    assert status == 1 and text == STRUCTS and f"GCC 99.1: {struct} moved" in errors


MAP = "OMP_1.0 {\n  global:\n\tomp_one;\n};\n\nOMP_1.2 {\n\tomp_two;\n} OMP_1.0;\nGOMP_7.0 {\n};\n"


@pytest.fixture
def linker_map(tmp_path):
    path = tmp_path / "libgomp/libgomp.map"
    path.parent.mkdir()
    path.write_text(MAP)
    return path


def test_version_is_added_as_the_newest_of_its_family(rule, linker_map):
    status, errors, _ = rule("add_version OMP_1.3 'no place' omp_a omp_b")
    assert status == 0, errors
    assert linker_map.read_text().startswith(MAP)
    assert linker_map.read_text()[len(MAP):].split() == [
        "OMP_1.3", "{", "global:", "omp_a;", "omp_b;", "}", "OMP_1.2;"]


def test_version_that_the_release_has_is_left_alone(rule, linker_map):
    status, errors, _ = rule("add_version OMP_1.2 'no place' omp_two")
    assert status == 0, errors
    assert linker_map.read_text() == MAP


@pytest.mark.parametrize("version, symbols", [("OMP_1.2", "omp_three"), ("OMP_1.3", "omp_two"),
                                              ("OMP_1.2", "omp_two omp_three"), ("ACC_1.0", "acc")])
def test_version_that_the_release_has_otherwise_is_refused(rule, linker_map, version, symbols):
    status, errors, _ = rule(f"add_version {version} 'no place' {symbols}")
    assert status == 1 and linker_map.read_text() == MAP
    assert errors.startswith("GCC 99.1: no place") and errors.count("\n") == 1


def test_features_are_one_or_zero(rule, tmp_path):
    status, errors, _ = rule("feature HAS_FIRST s.h 'int first;'\nfeature HAS_NONE s.h 'none'\n"
                             "member_feature ONE_HAS_A s.h one 'int a;'")
    assert status == 0, errors
    assert (tmp_path / "features.h").read_text().splitlines() == [
        "#define HAS_FIRST 1", "#define HAS_NONE 0", "#define ONE_HAS_A 0"]


def test_rule_for_a_file_that_is_gone_is_refused(rule):
    status, errors, _ = rule("expect gone.h 'x' 'x moved'")
    assert status == 1 and errors.count("\n") == 1 and "gone.h: no such file" in errors


# --- what is built


def map_symbols(path):
    """{symbol@VERSION} that a linker map names, wildcards left out."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    symbols = set()
    for version, body in re.findall(r"([A-Z_0-9.]+)\s*\{(.*?)\}", text, re.DOTALL):
        for name in re.findall(r"(\w+);", body.split("local:")[0].replace("global:", "")):
            symbols.add(f"{name}@{version}")
    return symbols


def exported(path):
    """{symbol@VERSION} that a library defines for other objects."""
    text = subprocess.run(["readelf", "-W", "--dyn-syms", path], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    rows = (line.split() for line in text.splitlines())
    # ABS: the names of the versions themselves.
    return {row[7].replace("@@", "@") for row in rows
            if len(row) >= 8 and row[0].rstrip(":").isdigit() and row[6] not in ("UND", "ABS")}


# OpenACC's Fortran names that libgomp.map lists and no file of any release defines.
NEVER_DEFINED = re.compile(r"acc_(copyout|delete)_finalize_async_(32|64|array)_h_@")

# The public functions of GCC 13, which the fork has whatever release it is built from.
OF_13 = {"omp_get_mapped_ptr@OMP_5.1.1", "omp_target_is_accessible@OMP_5.1.1",
         "omp_target_memcpy_async@OMP_5.1.1", "omp_target_memcpy_rect_async@OMP_5.1.1",
         "omp_in_explicit_task@OMP_5.2", "omp_in_explicit_task_@OMP_5.2",
         "GOMP_taskwait_depend_nowait@GOMP_5.1.1"}

RELEASES = ["12", pytest.param("11", marks=pytest.mark.full)]


@pytest.fixture(scope="module")
def library_of(build, tmp_path_factory, make_variable):
    """library_of(MAJOR) -> (the fork built from that release of GCC, the copy of its source)"""
    built = {}

    def library(major):
        if make_variable("GCC_MAJOR") == major and "/usr/src/" in make_variable("GCC_SOURCE"):
            return build / "lib/invasive/libgomp.so.1", build / "libgomp-invasive/src"
        archives = sorted(Path(f"/usr/src/gcc-{major}").glob(f"gcc-{major}.*.tar.xz"))
        if not archives:
            pytest.skip(f"no source of GCC {major} (package gcc-{major}-source)")
        if major not in built:
            where = tmp_path_factory.mktemp(f"gcc-{major}")
            done = subprocess.run(build_command(build, archives[-1], where), check=False,
                                  timeout=500, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            # Staged as the launcher looks for it, beside its own executable.
            (where / "bin").mkdir()
            for name in ("bin/invade", "bin/rmd", "lib/invasive/libinvasive-process.so",
                         "lib/invasive/libinvasive-mpi.so"):
                shutil.copy(build / name, where / name)
            built[major] = where
        where = built[major]
        return where / "lib/invasive/libgomp.so.1", where / "src"

    return library


def test_public_functions_of_13_are_all_that_a_release_gets(build, release, tmp_path):
    done = prepare(build, release, tmp_path)
    assert done.returncode == 0, done.stderr
    before = map_symbols(release / "libgomp/libgomp.map")
    after = map_symbols(tmp_path / "src/libgomp/libgomp.map")
    assert before <= after and after - before == OF_13 - before


@pytest.mark.timeout(600)
@pytest.mark.parametrize("major", RELEASES)
def test_fork_exports_what_the_map_of_its_release_names(library_of, major):
    library, source = library_of(major)
    named = {name for name in map_symbols(source / "libgomp/libgomp.map")
             if not NEVER_DEFINED.match(name)}
    assert len(named) > 400, "libgomp.map was not understood"
    assert exported(library) == named and named >= OF_13
    assert (source / "gcc/BASE-VER").read_text().startswith(f"{major}.")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("major", RELEASES)
@pytest.mark.parametrize("name", ["worksharing", "tasks", "thread_data", "nested",
                                  "newer_functions"])
@pytest.mark.parametrize("managed", [False, True], ids=["unmanaged", "managed"])
def test_programs_run_with_the_fork_of_every_release(
        library_of, make_variable, run_program, tmp_path, major, name, managed):
    library, _ = library_of(major)
    program = tmp_path / name
    subprocess.run([*(make_variable("CC") or "gcc").split(), "-O2", "-fopenmp",
                    source_of(name), "-o", program, "-lpthread", "-ldl"],
                   check=True, timeout=60)
    libraries = library.parent
    command, environment = [program], {"LD_LIBRARY_PATH": f"{libraries}:{libraries.parent}"}
    if managed:
        command, environment = [libraries.parent.parent / "bin/invade", "--", program], {}
    ran = run_program(command, env=environment, timeout=90)
    assert ran.stdout == "OK\n"
