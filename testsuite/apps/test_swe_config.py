# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of apps/swe: what is wrong is told with file, line, key, value and what is right;
what is right is written down so that it can be read again."""

import re
import subprocess

import pytest

from lib.building.build import TOP
from lib.waiting import PATIENCE_S

SCENARIOS = TOP / "apps/swe/scenarios"
LAKE = 'name = "lake"\n'
TSUNAMI = 'name = "tsunami"\n'


@pytest.fixture
def program(swe_program):
    return swe_program("tests/config_check")


def reader(program, directory):
    """read(TEXT, WORDS...) - exit code, standard output, and errors with the file's name as F"""

    def go(text, *words):
        path = directory / "f.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = subprocess.run([program, path, *words], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        return done.returncode, done.stdout, done.stderr.replace(str(path), "F")

    return go


@pytest.fixture
def read(program, tmp_path):
    return reader(program, tmp_path)


def refused(read, text, *words):
    code, out, errors = read(text, *words)
    assert code == 1 and out == "", (code, out, errors)
    return errors.splitlines()


@pytest.mark.parametrize("text, error", [
    ("", 'F: name: missing; must be one of "dam_break", "lake"'),
    ('name = "lak"', 'F:1: name = "lak": must be one of "dam_break", "lake", "thacker"'),
    (LAKE + "[grid]\nmax_dept = 3",
     "F:3: grid.max_dept: no such key; did you mean grid.max_depth?"),
    (LAKE + "[gird]\nmax_depth = 3", "F:2: gird: no such key; did you mean [grid]?"),
    (LAKE + "max_depth = 3", "F:2: max_depth: no such key; did you mean grid.max_depth?"),
    (LAKE + "gird = 3", "F:2: gird: no such key; --help-config lists all"),
    (LAKE + "[foo]\nx = 3", "F:2: foo: no such key; --help-config lists all"),
    (LAKE + "[grid]\nfoo = 3", "F:3: grid.foo: no such key; --help-config lists all"),
    (LAKE + "[run]\nparts = 4", "F:3: run.parts = 4: must be a list of integers from 1 to 16777"),
    (LAKE + "[run]\nparts = [4, 0]",
     "F:3: run.parts = an array: must be a list of integers from 1 to 16777216 (of how many parts"),
    (LAKE + "[run]\nparts = [3, 1.0]", "F:3: run.parts = an array: must be a list of integers"),
    (LAKE + "frobnication = 3", "F:2: frobnication: no such key; --help-config lists all"),
    (LAKE + "[grid]\nmax_depth = 48",
     "F:3: grid.max_depth = 48: must be an integer from 0 to 47 (bisections at most)"),
    (LAKE + "[grid]\nmax_depth = 12.0",
     "F:3: grid.max_depth = 12.0: must be an integer from 0 to 47"),
    (LAKE + "[grid]\nmax_depth = '12'",
     'F:3: grid.max_depth = "12": must be an integer from 0 to 47'),
    (LAKE + "[grid]\nshore = 1", "F:3: grid.shore = 1: must be true or false"),
    (LAKE + "[solver]\ncfl = nan", "F:3: solver.cfl = nan: must be a number from 0.001 to 0.5"),
    (LAKE + "[solver]\ndry_tolerance = 0",
     "F:3: solver.dry_tolerance = 0: must be a number from 1e-12 to 1 (less water is none, m)"),
    (LAKE + "[solver]\norder = 2", "F:3: solver.order = 2: must be an integer from 0 to 1"),
    (LAKE + '[solver]\nflux = "Rusanov"',
     'F:3: solver.flux = "Rusanov": must be one of "rusanov", "augmented"'),
    (LAKE + "[scenario]\nseed = -1",
     "F:3: scenario.seed = -1: must be an integer from 0 to 4294967"),
    (LAKE + "[scenario]\ndepth = [1]", "F:3: scenario.depth = an array: must be a number from 0"),
    (LAKE + "domain = 3", "F:2: domain = 3: must be a table, [domain]"),
    (LAKE + '[output]\ndirectory = "a\\u0007b"',
     'F:3: output.directory = "a?b": must be a string'),
    (LAKE + "[grid\n", "F:2: not TOML: "),
    (LAKE + "[= 3\n", "F:2: not TOML: "),
    (LAKE + "\n\nx = \n", "F:4: not TOML: "),
    (LAKE + "name = 'lake'\n", "F:2: not TOML: "),
    (LAKE + ("a." * 100) + "b = 1\n", "F:2: more than 64 dots in a line"),
    (b'name = "lake"\nx = "\xff"\n', "F:2: not TOML: "),
    # pytest puts names of tests into the environment, where a text has 128 KiB at most
    pytest.param("#" * 300000, "F: longer than 262144 bytes", id="long"),
])
def test_an_error_names_line_key_and_range(read, text, error):
    errors = refused(read, text)
    assert errors[0].startswith(error), errors
    assert len(errors) == 1


@pytest.mark.parametrize("text, error", [
    (LAKE + "[grid]\nmin_depth = 15",
     "F:3: grid.min_depth = 15: must be at most grid.max_depth, 14"),
    (LAKE + "[grid]\nmin_depth = 30\nmax_depth = 30",
     "F:3: grid.min_depth = 30: makes 4294967296 cells at least of 4 quarters of base squares; "
     "at most 2147483647"),
    (LAKE + "[grid]\nmin_depth = 10\n[domain]\nnx = 1024\nny = 1024",
     "F:3: grid.min_depth = 10: makes 4294967296 cells at least of 4194304 quarters of base "),
    (LAKE + "[grid]\nmin_depth = 8\n[domain]\nnx = 1024\nny = 1024\n[run]\ncut = 4",
     "F:8: run.cut = 4: makes 67108864 parts of 4194304 quarters of base squares; at most 1677"),
    (LAKE + "[run]\ncut = 1\nparts = [4, 3]",
     "F:4: run.parts = [4, 3]: are 7 parts; there are 8, 4 quarters of base squares times "
     "2^run.cut, 1"),
    (LAKE + "[grid]\nrefine = 0.001",
     "F: grid.coarsen = 0.005 (the default): must be at most grid.refine, 0.001"),
    (LAKE + "[grid]\nsplit = 100\njoin = 51",
     "F:4: grid.join = 51: must be at most half of grid.split, 100"),
    (LAKE + "[solver]\norder = 1\nstepping = 'euler'",
     'F:4: solver.stepping = "euler": solver.order = 1 is unstable with it, at any cfl: set '),
    (LAKE + "[output]\nvtu_every = 1", "F:3: output.vtu_every = 1: needs output.directory"),
    (LAKE + "[run]\nblocking = true", "F:3: run.blocking = true: needs run.announce"),
    ('name = "thacker"\n[scenario]\namplitude = 1',
     'F:3: scenario.amplitude = 1: must be less than 1 for "thacker"'),
    (LAKE + "[scenario]\ndepth = 0", 'F:3: scenario.depth = 0: must be more than 0 for "lake"'),
    ('name = "dam_break"\n[scenario]\ndepth = 0\ninside = 0',
     "F:4: scenario.inside = 0: no water: depth and inside are 0"),
    (TSUNAMI + "[domain]\nsquare = 2e7",
     "F:3: domain.square = 2e+07: a domain of 20000 km by 20000 km is too large"),
])
def test_keys_that_contradict_each_other_are_refused(read, text, error):
    assert refused(read, text)[0].startswith(error)


@pytest.mark.parametrize("letters", [1, 150])
def test_files_must_be_there_and_be_for_the_scenario(program, tmp_path, letters):
    directory = tmp_path / ("d" * letters)
    directory.mkdir()
    read = reader(program, directory)
    text = TSUNAMI + '[scenario]\nfaults = "a.faults"\n'

    def check_told(why):
        error, = refused(read, text)
        assert error == f'F:3: scenario.faults = "{directory}/a.faults": {why}'

    check_told("no such file")
    (directory / "a.faults").mkdir()
    check_told("not a file")
    (directory / "a.faults").rmdir()
    (directory / "a.faults").write_text("#")
    code, out, _ = read(text)
    assert code == 0 and f'faults = "{directory}/a.faults"' in out
    errors = refused(read, text, "name=lake")
    assert errors[0].endswith('only for the scenario "tsunami", and this is "lake"')


def test_files_of_what_is_written_down_are_found_from_elsewhere(program, tmp_path):
    """The text may be put into another directory, and be read from another one."""
    (tmp_path / "my").mkdir()
    (tmp_path / "my/a.faults").write_text("#")
    (tmp_path / "my/f.toml").write_text(TSUNAMI + '[scenario]\nfaults = "a.faults"\n')

    def check(file, directory):
        done = subprocess.run([program, file], capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False, cwd=tmp_path / directory)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for file, directory in (("my/f.toml", "."), ("f.toml", "my"), ("../my/f.toml", "my")):
        written = check(file, directory)
        assert f'faults = "{tmp_path}/my/a.faults"' in written
        assert 'bathymetry = ""' in written
        (tmp_path / "my/all.toml").write_text(written)
        assert check("my/all.toml", ".") == check("all.toml", "my") == written


@pytest.mark.parametrize("gauge, error", [
    ('name = "a"\nx = 1', "F:2: gauges: each must have a name, and x and y or lon and lat"),
    ('x = 1\ny = 1', "F:2: gauges: each must have a name, and x and y or lon and lat"),
    ('name = "a"\nx = 1\ny = 1\nlon = 3', "F:2: gauges: each must have a name, and x and y or lon"),
    ('name = "../a"\nx = 1\ny = 1',
     'F:3: gauges.name = "../a": must be a string of up to 64 letters'),
    ('name = "a"\nx = 1\ny = 1\nz = 1',
     "F:6: gauges.z: no such key; there are name, x, y, lon, lat"),
    ('name = "a"\nx = "1"\ny = 1', 'F:4: gauges.x = "1": must be a number in [0, 1000), which '
                                   'the domain has'),
    ('name = "a"\nx = 1\ny = nan\n[domain]\ny0 = -5',
     "F:5: gauges.y = nan: must be a number in [-5, 995), which the domain has"),
    ('name = "a"\nx = 1\ny = nan\n[domain]\ny0 = "a"', "F:5: gauges.y = nan: must be a number"),
    ('name = "a"\nx = 1000\ny = 1',
     "F:2: gauge a: x = 1000, y = 1 is not in the domain, [0, 1000) x [0, 1000)"),
    ('name = "a"\nlon = 1\nlat = 1', 'F:2: gauges: lon and lat are for the scenario "tsunami"'),
    ('name = "a"\nx = 1\ny = 1\n[[gauges]]\nname = "a"\nx = 2\ny = 2',
     "F:6: gauge a: the name is taken, at F:2"),
])
def test_gauges_are_checked(read, gauge, error):
    assert refused(read, LAKE + "[[gauges]]\n" + gauge)[0].startswith(error)


@pytest.mark.parametrize("latitude, says", [(80, "to 91.5"), (-80, "-91.5")])
def test_a_map_does_not_reach_beyond_a_pole(read, latitude, says):
    error, = refused(read, TSUNAMI + "domain = { square = 512e3, ny = 5 }\n"
                     f"scenario = {{ lat0 = {latitude} }}\n")
    assert error.startswith(f"F:3: scenario.lat0 = {latitude}: the domain would be from ")
    assert says in error


@pytest.mark.parametrize("key, file, by", [
    ("bathymetry", "tsunami.nc", "output.raster_every=1"),
    ("bathymetry", "tsunami-maxima.nc", "output.maxima_every=1"),
    ("faults", "tsunami.pvd", "output.vtu_every=1"), ("faults", "gauge-a.csv", ""),
    ("faults", "a.0", "run.record={}/a"), ("faults", "link", "run.record={}/a")])
def test_an_output_does_not_take_the_place_of_an_input(read, tmp_path, key, file, by):
    """An output that is not written is no danger."""
    (tmp_path / "link").symlink_to("a.12")
    (tmp_path / "a.12").write_text("a")
    (tmp_path / file).write_text("a")
    text = (TSUNAMI + f'[scenario]\n{key} = "{file}"\n'
            '[[gauges]]\nname = "a"\nx = 0\ny = 0\n')
    directory = f"output.directory={tmp_path}"
    errors = refused(read, text, directory, *([by.format(tmp_path)] if by else []))
    what = "run.record" if "record" in by else "output.directory"
    assert len(errors) == 1 and errors[0].startswith(f'F:3: scenario.{key} = "')
    assert errors[0].endswith(f": {what} would have a file of the same name")
    if by:
        assert read(text, directory)[0] == 0
        assert read(text, directory, f"run.record={tmp_path}/b")[0] == 0


def test_an_output_does_not_take_the_place_of_the_scenario(program, tmp_path):
    (tmp_path / "lake.nc").write_text(LAKE)
    done = subprocess.run([program, tmp_path / "lake.nc", f"output.directory={tmp_path}",
                           "output.raster_every=1"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert "would take the place of this one, " in done.stderr


def test_gauges_of_a_map_are_in_degrees(read):
    gauge = '[[gauges]]\nname = "buoy"\nlon = 143.0\nlat = 39\n'
    code, out, errors = read(TSUNAMI + gauge, "domain.square=400e3")
    assert code == 0, errors
    written = out.split("[[gauges]]")[1]
    x, y = (float(re.search(rf"^{key} = (.*)$", written, re.M)[1]) for key in "xy")
    assert abs(x - 200e3) < 1e-3 and abs(y - 200e3 - 111195) < 1


def test_a_gauge_off_the_map_is_told_in_degrees(read):
    gauge = '[[gauges]]\nname = "buoy"\nlon = 163.0\nlat = 39\n'
    error, = refused(read, TSUNAMI + gauge, "domain.square=400e3")
    assert error.startswith("F:2: gauge buoy: lon = 163, lat = 39 is not in the domain, [140.7")


def test_many_errors_are_told_at_once_in_the_order_of_lines(read):
    text = LAKE + "[grid]\nmin_depth = -1\nevery = 0\n[domain]\nnx = 0\n"
    errors = refused(read, text, "grid.split=x", "nonsense", "grid.max_depht=3", "grid=3")
    starts = ["F:3: grid.min_depth", "F:4: grid.every", "F:6: domain.nx",
              "command line: grid.split",
              "command line: nonsense: must be KEY=VALUE",
              "command line: grid.max_depht: no such key; did you mean grid.max_depth?",
              "command line: grid=3: must be grid.KEY=VALUE, as grid is a table of keys"]
    assert len(errors) == len(starts)
    for error, start in zip(errors, starts):
        assert error.startswith(start), errors
    errors = refused(read, LAKE, *["nonsense"] * 30)
    assert len(errors) == 11 and errors[10] == "... and 20 more"


def test_the_command_line_counts_more_than_the_file(read):
    code, out, errors = read(LAKE + "[solver]\nflux = 'rusanov'\n", "solver.flux=augmented",
                             "grid.max_depth=16", "name=thacker", "solver.cfl=3e-1",
                             "output.directory=", "output.directory=a b", "run.cut=1",
                             "run.parts=[ 5,3 ]", "run.blocking=true", "run.announce=true")
    assert code == 0, errors
    for line in ('flux = "augmented"', "max_depth = 16", 'name = "thacker"', "cfl = 0.3",
                 'directory = "a b"', "parts = [5, 3]"):
        assert line in out.splitlines()


def test_what_is_written_down_is_read_as_the_same(read):
    text = LAKE + '[domain]\nsquare = 0.1\nx0 = -1e-7\n[output]\ndirectory = \'a"\\\'\n' \
                  '[[gauges]]\nname = "g"\nx = 0.05\ny = 1e-3\n'
    code, once, errors = read(text)
    assert code == 0, errors
    assert read(once) == (0, once, "")


@pytest.mark.parametrize("order, stepping", [(0, "euler"), (1, "ssp_rk2")])
def test_the_stepping_by_default_is_one_that_the_order_is_stable_with(read, order, stepping):
    for text, *words in ([LAKE + f"[solver]\norder = {order}\n"], [LAKE, f"solver.order={order}"]):
        code, out, errors = read(text, *words)
        assert code == 0, errors
        assert f'stepping = "{stepping}"' in out.splitlines()


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.toml")), ids=lambda file: file.stem)
def test_the_scenarios_that_come_along_are_good(program, file):
    done = subprocess.run([program, file], capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(300)
def test_arbitrary_texts_do_no_harm(swe_program, run_program):
    """10,000 configurations and lists of sub-faults; since some are valid, the invalid ones come
    near to it."""
    done = run_program([swe_program("tests/config_fuzz"), 10000, 1], timeout=280)
    counts = re.fullmatch(r"(\d+) configurations and (\d+) lists good of 10000\n", done.stdout)
    assert counts and all(500 < int(many) < 5000 for many in counts.groups())


def test_help_has_every_key_with_range_and_meaning(program, read):
    done = subprocess.run([program, "--help-config"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=True)
    _, described, _ = read(LAKE)
    keys = re.findall(r"^(\w+) = ", described, re.M)
    assert len(keys) > 50
    lines = done.stdout.split("[[gauges]]")[0].splitlines()
    for key in keys:
        at = [i for i, line in enumerate(lines) if line.startswith(f"{key} = ")]
        assert at and all(re.match(r"    .+: .+", lines[i + 1]) for i in at), key


def test_help_says_what_names_of_files_are_relative_to(program):
    done = subprocess.run([program, "--help-config"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=True)
    lines = done.stdout.splitlines()
    for key in ("directory", "record"):
        meaning = lines[lines.index(f'{key} = ""') + 1]
        assert "relative to the working directory" in meaning


def test_what_is_no_file_is_told(program, tmp_path):
    for path, why in ((tmp_path / "none", "No such file or directory"),
                      (tmp_path, "a directory; a TOML file is needed")):
        done = subprocess.run([program, path], capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False)
        assert (done.returncode, done.stderr) == (1, f"{path}: {why}\n")
