# SPDX-License-Identifier: GPL-3.0-or-later
"""What apps/swe writes: its promises (apps/swe/tests/output.cc), and that programs of others and
swe-pictures read the files."""

import re
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest

PROMISES = [
    "series_is_cut_where_a_run_restarts",
    "failed_write_names_file_and_reason",
    "full_disk_stops_all_ranks_and_leaves_the_former",
    "checkpoint_comes_back_with_any_number_of_ranks",
    "last_two_checkpoints_are_kept",
    "interrupted_checkpoint_is_none",
    "other_configuration_is_told",
    "impossible_trees_are_told",
    "damaged_checkpoint_is_told",
    "sealed_nonsense_is_an_error_or_a_grid",
    "pixels_have_one_cell_each",
    "pixels_have_the_cell_of_their_centre",
    "raster_goes_on_after_a_restart",
    "cells_that_leave_a_gap_are_told",
    "progress_says_how_long_it_takes",
]


@pytest.fixture
def output_program(swe_program):
    return swe_program("tests/output")


@pytest.fixture
def swe(swe_program):
    return swe_program("swe")


@pytest.fixture
def frames(output_program, mpiexec, run_program, tmp_path):
    """A directory with wave.pvd, three frames of three ranks."""
    run_program([mpiexec, "-n", 3, output_program, "frames_for_readers", tmp_path])
    return tmp_path


@pytest.fixture
def pictures(build, top, run_program):
    """pictures(WORD, ...) - swe-pictures"""
    makefile = (build / "Makefile").read_text()
    python = re.search(r"^TRACE_PYTHON = (.*)$", makefile, re.M).group(1)
    if subprocess.run([python, "-c", "import matplotlib, PIL"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs package python3-matplotlib")

    def run(*words, **more):
        return run_program([python, "-B", top / "apps/swe/tools/pictures.py", *words], **more)

    return run


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("promise", PROMISES)
def test_promise(output_program, mpiexec, run_program, promise, ranks):
    run_program([mpiexec, "-n", ranks, output_program, promise])


def test_list_of_promises_is_the_programs(output_program, run_program):
    listed = run_program([output_program, "--list"]).stdout.split()
    assert listed == ["frames_for_readers", *PROMISES]


def test_frames_are_xml_and_name_files_that_are_there(frames):
    series = ElementTree.parse(frames / "wave.pvd").getroot()
    entries = list(series.iter("DataSet"))
    assert [float(e.get("timestep")) for e in entries] == [10, 25, 40]
    for entry in entries:
        pieces = list(ElementTree.parse(frames / entry.get("file")).getroot().iter("Piece"))
        assert len(pieces) == 3
        for piece in pieces:
            there = ElementTree.parse(frames / piece.get("Source")).getroot().find(".//Piece")
            assert int(there.get("NumberOfCells")) > 0
    assert not list(frames.glob("*.tmp"))


def netcdf_header(path, run_program):
    if not shutil.which("ncdump"):
        pytest.skip("needs package netcdf-bin")
    return run_program(["ncdump", "-h", path]).stdout


def test_ncdump_reads_rasters(output_program, run_program, tmp_path):
    run_program([output_program, "raster_goes_on_after_a_restart", tmp_path])
    header = netcdf_header(tmp_path / "raster.nc", run_program)
    for words in ('Conventions = "CF-1.8"', "time = UNLIMITED ; // (4 currently)", "y = 40 ;",
                  "float surface(time, y, x) ;", "float speed(time, y, x) ;"):
        assert words in header


def test_ncdump_reads_checkpoints(output_program, run_program, tmp_path):
    run_program([output_program, "checkpoint_comes_back_with_any_number_of_ranks", tmp_path])
    header = netcdf_header(tmp_path / "checkpoint-7/checkpoint-0.nc", run_program)
    for words in ("double value(values, cell) ;", "ubyte depth(cell) ;", ":step = 7. ;"):
        assert words in header


def small_dam_break(top, directory, *more):
    return [top / "apps/swe/scenarios/dam_break.toml", f"output.directory={directory}",
            "grid.min_depth=4", "grid.max_depth=9", "output.vtu_every=2",
            "output.raster_every=2", "output.checkpoint_every=2", *more]


@pytest.mark.parametrize("after", [0.0, 0.05, 0.15])
def test_killed_run_leaves_whole_files_and_goes_on(
        swe, top, mpiexec, run_program, stock_env, tmp_path, after):
    """Killed at whatever moment: the series names whole frames, and a restart ends the run."""
    command = [mpiexec, "-n", 2, swe, "-q"]
    words = small_dam_break(top, tmp_path, "time.end=40")
    with subprocess.Popen([str(w) for w in command + words], env={**stock_env,
                          "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True) as process:
        begin = time.monotonic()
        while not list(tmp_path.glob("checkpoint-*/manifest")) and process.poll() is None:
            assert time.monotonic() < begin + 30
            time.sleep(0.01)
        time.sleep(after)
        subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
        process.send_signal(signal.SIGKILL)
    series = tmp_path / "dam_break.pvd"
    for entry in ElementTree.parse(series).getroot().iter("DataSet"):
        for piece in ElementTree.parse(tmp_path / entry.get("file")).getroot().iter("Piece"):
            ElementTree.parse(tmp_path / piece.get("Source"))
    run_program([*command, "--restart", *words], {"OMP_NUM_THREADS": "1"})
    times = [float(e.get("timestep")) for e in ElementTree.parse(series).getroot().iter("DataSet")]
    assert times == sorted(set(times)) and times[0] == 0 and times[-1] > 39


def test_pictures_of_a_frame_and_a_series(frames, pictures):
    """The file is of the kind that was asked for, of that size; a film has all frames."""
    pictures(frames / "wave.pvd", "-o", frames / "wave.gif", "--size", "300x200")
    gif = (frames / "wave.gif").read_bytes()
    assert gif[:6] == b"GIF89a" and gif.count(b"\x21\xf9\x04") == 3
    sizes = set()
    for colour in ("rank", "cluster", "depth", "height", "speed"):
        for view in ("relief", "map"):
            path = frames / f"{colour}-{view}.png"
            pictures(frames / "wave-00000010.pvtu", "-o", path, "--size", "300x200",
                     "--colour", colour, "--view", view)
            png = path.read_bytes()
            assert png[:8] == b"\x89PNG\r\n\x1a\n"
            assert [int.from_bytes(png[at:at + 4], "big") for at in (16, 20)] == [300, 200]
            sizes.add(len(png))
    assert len(sizes) == 10  # different pictures


def cut_off(frames):
    path = frames / "wave-00000010-1.vtu"
    path.write_bytes(path.read_bytes()[:-3000])
    return path.name, "not XML, or cut off"


def without_a_piece(frames):
    (frames / "wave-00000010-2.vtu").unlink()
    return "wave-00000010-2.vtu", "No such file"


def altered(frames):
    path = frames / "wave-00000010-0.vtu"
    text = path.read_text()
    begin = text.index('Name="surface"') + 100
    path.write_text(text[:begin] + "AAAAAAAA" + text[begin + 8:])
    return path.name, "array surface is damaged"


@pytest.mark.parametrize("damage", [cut_off, without_a_piece, altered])
def test_pictures_say_which_file_is_damaged(frames, pictures, damage):
    name, reason = damage(frames)
    done = pictures(frames / "wave.pvd", "-o", frames / "wave.png", "--frame", "1", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("swe-pictures: ") and done.stderr.count("\n") == 1
    assert name in done.stderr and reason in done.stderr
