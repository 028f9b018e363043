# SPDX-License-Identifier: GPL-3.0-or-later
"""Bathymetry of apps/swe on its way from a file into a simulation, and whether damaged files do any
harm."""

import csv
import shutil

import pytest


@pytest.mark.timeout(300)
@pytest.mark.parametrize("words, count", [([], 2000), (["netcdf4"], 300)],
                         ids=["classic", "netcdf4"])
def test_damaged_files_do_no_harm(swe_program, run_program, tmp_path, words, count):
    """Since some files are still valid, the damaged ones come near to valid ones."""
    done = run_program([swe_program("tests/netcdf_fuzz"), count, 1, *words], cwd=tmp_path,
                       timeout=280)
    good, of = done.stdout.split(" good of ")
    assert count / 20 < int(good) < int(of) == count


def gauge(directory, name):
    """Height of the surface and when, at its highest."""
    with (directory / f"gauge-{name}.csv").open() as file:
        return max((float(row["eta"]), float(row["time"])) for row in csv.DictReader(file))


def test_a_file_of_the_basin_gives_the_basins_waves(swe_program, mpiexec, run_program, top,
                                                    tmp_path):
    """The README's way: a file written by make_bathymetry in GEBCO's format, read by two ranks."""
    for name in ("tsunami.toml", "tohoku-like.faults"):
        shutil.copy(top / "apps/swe/scenarios" / name, tmp_path)
    scenario, file = tmp_path / "tsunami.toml", tmp_path / "gebco.nc"
    done = run_program([swe_program("make_bathymetry"), scenario, file, 240])
    assert "277 x 219 points" in done.stdout
    more = ["--oversubscribe", "--bind-to", "none"] if "openmpi" in mpiexec else []
    swe = [mpiexec, *more, "-n", 2, swe_program("swe"), "-q", scenario, "grid.max_depth=11",
           "time.end=1200"]
    env = {"OMP_NUM_THREADS": "1"}
    run_program([*swe, f"output.directory={tmp_path / 'made-up'}"], env)
    run_program([*swe, f"output.directory={tmp_path / 'read'}", f"scenario.bathymetry={file}"], env)
    for name, least in (("shelf", 1), ("slope", 1), ("trench", 10), ("ocean", 0.01)):
        expected, came = gauge(tmp_path / "made-up", name)
        assert expected > least
        assert gauge(tmp_path / "read", name) == (pytest.approx(expected, rel=0.02),
                                                  pytest.approx(came, rel=0.02))


@pytest.mark.parametrize("words, complaint", [
    ([], "usage"), (["tsunami.toml"], "usage"), (["{}/tsunami.toml", "f.nc", "0"], "SECONDS"),
    (["/nowhere/tsunami.toml", "f.nc"], "/nowhere/tsunami.toml"),
    (["{}/tsunami.toml", "/nowhere/f.nc", "3600"], "/nowhere/f.nc")])
def test_make_bathymetry_says_what_is_wrong(swe_program, run_program, top, tmp_path, words,
                                            complaint):
    words = [word.format(top / "apps/swe/scenarios") for word in words]
    done = run_program([swe_program("make_bathymetry"), *words], check=False, cwd=tmp_path)
    assert done.returncode != 0 and complaint in done.stderr
    assert list(tmp_path.iterdir()) == []
