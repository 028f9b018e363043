# SPDX-License-Identifier: GPL-3.0-or-later
"""What apps/swe writes: its promises (apps/swe/tests/output.cc), and that programs of others and
tools/pictures.py read the files."""

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time
import xml.etree.ElementTree as ElementTree
import zlib

import pytest

from lib.processes import with_argument_below

pytestmark = pytest.mark.usefixtures("what_mpi_leaves_when_it_is_killed_goes")
PROMISES = [
    "series_is_cut_where_a_run_restarts",
    "series_of_another_simulation_is_not_gone_on_with",
    "failed_write_names_file_and_reason",
    "full_disk_stops_all_ranks_and_leaves_the_former",
    "checkpoint_comes_back_with_any_number_of_ranks",
    "last_two_checkpoints_are_kept",
    "checkpoint_before_a_damaged_one_is_told",
    "interrupted_checkpoint_is_none",
    "other_configuration_is_told",
    "impossible_trees_are_told",
    "damaged_checkpoint_is_told",
    "attributes_of_earlier_checkpoints_do_no_harm",
    "sealed_nonsense_is_an_error_or_a_grid",
    "pixels_have_one_cell_each",
    "pixels_have_the_cell_of_their_centre",
    "raster_goes_on_after_a_restart",
    "raster_of_another_simulation_is_not_gone_on_with",
    "full_disk_leaves_no_part_of_a_raster",
    "frame_that_was_cut_off_goes_with_a_restart",
    "frame_of_a_raster_that_was_cut_short_goes_with_a_restart",
    "damaged_raster_is_an_error_or_a_raster",
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
def frames(output_program, start_ranks, run_program, tmp_path):
    """A directory with wave.pvd, three frames of three ranks."""
    run_program([*start_ranks(3), output_program, "frames_for_readers", tmp_path])
    return tmp_path


@pytest.fixture
def pictures(build, top, run_program):
    """pictures(WORD, ...) - apps/swe/tools/pictures.py"""
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
def test_each_promise_of_the_output_is_kept(
        output_program, start_ranks, run_program, promise, ranks):
    run_program([*start_ranks(ranks), output_program, promise])


def test_the_list_of_promises_is_that_of_the_program(output_program, run_program):
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


# What others' readers find in files, as JSON.
VTU_READER = """
import json, sys, meshio, numpy
for name in sys.argv[1:]:
    mesh = meshio.read(name)
    (kind, cells), = mesh.cells_dict.items()
    a, b, c = (mesh.points[cells[:, corner]] for corner in range(3))
    area = numpy.cross(b - a, c - a)[:, 2] / 2
    data = {key: values[0] for key, values in mesh.cell_data.items()}
    h, surface, depth = data["h"], data["surface"], data["depth"]
    print(json.dumps({
        "kind": kind, "cells": len(cells), "keys": sorted(data), "area": area.sum(),
        "water": (h * area).sum(), "rank": numpy.unique(data["rank"]).tolist(),
        "areas_of_depths": bool(numpy.allclose(area, 250000 / 2.0 ** depth, rtol=1e-12, atol=0)),
        "dry": int((h <= 1e-6).sum()), "land": int(numpy.isnan(surface).sum()),
        "surfaces": bool(numpy.array_equal(surface[h > 1e-6], (h + data["bed"])[h > 1e-6]))}))
"""
RASTER_READER = """
import json, sys, netCDF4, numpy
before, frames, most = (netCDF4.Dataset(name) for name in sys.argv[1:])
surface = numpy.ma.concatenate([before["surface"][-1:], frames["surface"][:]])
time = numpy.append(before["time"][-1:], frames["time"][:])  # with the end of the run before
surface, time = surface[numpy.argsort(time)], numpy.sort(time)
far = numpy.ma.filled(abs(surface) > 0.1, False)
first = numpy.ma.masked_where(~far.any(axis=0), time[far.argmax(axis=0)])
print(json.dumps({
    "frames": len(frames["time"]), "wet": int(surface.count()), "land": int(surface[-1].mask.sum()),
    "since": most.since, "end": float(time[-1]), "of": "grid.max_depth = 10" in most.configuration,
    "same": [name for name, values in (("max_surface", surface.max(axis=0)), ("arrival", first))
             if numpy.array_equal(most[name][:].filled(-1), values.astype("f4").filled(-1))],
    "lon": frames["lon"][[0, -1]].tolist(), "lat": frames["lat"][[0, -1]].tolist(),
    "mapping": frames[frames["h"].grid_mapping.split(":")[0]].grid_mapping_name,
    "units": [frames[name].units for name in frames["h"].coordinates.split()]}))
"""


@pytest.fixture
def read_by_others(make_variable, run_program):
    """read_by_others(SCRIPT, FILE...) - what Debian's Python and its packages find, a line each"""
    python = make_variable("TRACE_PYTHON")
    if subprocess.run([python, "-c", "import meshio, netCDF4"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs packages python3-meshio and python3-netcdf4")
    return lambda script, *files: [json.loads(line) for line in run_program(
        [python, "-B", "-c", script, *files]).stdout.splitlines()]


def test_meshio_reads_frames_of_all_ranks(swe, top, start_ranks, run_program, read_by_others,
                                          tmp_path):
    """A dam break onto dry ground: the cells are the domain, and hold the water."""
    done = run_program([*start_ranks(3), swe, "-q", *small_dam_break(
        top, tmp_path, "time.end=4", "scenario.depth=0", "scenario.inside=5")],
        {"OMP_NUM_THREADS": "1"})
    said, out = numbers(done.stdout), tmp_path / "out"
    frames = [entry.get("file") for entry in
              ElementTree.parse(out / "dam_break.pvd").getroot().iter("DataSet")]
    pieces = [out / piece.get("Source") for piece in
              ElementTree.parse(out / frames[-1]).getroot().iter("Piece")]
    found = read_by_others(VTU_READER, *pieces)
    assert [one["rank"] for one in found] == [[0], [1], [2]]
    for one in found:
        assert one["kind"] == "triangle" and one["areas_of_depths"] and one["surfaces"]
        assert one["keys"] == sorted("h hu hv bed surface depth cluster rank".split())
        assert one["land"] == one["dry"] > 0
    assert sum(one["cells"] for one in found) == int(said["cells"])
    assert sum(one["area"] for one in found) == pytest.approx(1e6, rel=1e-12)
    assert sum(one["water"] for one in found) == pytest.approx(float(said["water-m3"]), rel=1e-12)


def test_maxima_are_those_of_all_frames_and_on_the_map(swe, top, mpiexec, run_program,
                                                       read_by_others, tmp_path):
    """The last look is at the end.  Also of a run that went on, on other ranks: its file has the
    end of the run before, too."""
    command = [mpiexec, "-n", 2, swe, "-q", top / "apps/swe/scenarios/tsunami.toml",
               f"output.directory={tmp_path}", "grid.max_depth=10", "output.raster_nx=80",
               "output.raster_ny=60", "output.raster_every=50", "output.maxima_every=50",
               "output.checkpoint_every=300"]
    run_program([*command, "time.end=690"], {"OMP_NUM_THREADS": "1"})
    shutil.copy(tmp_path / "tsunami.nc", tmp_path / "before.nc")
    command[2] = 1
    run_program([*command, "time.end=1210", "--restart"], {"OMP_NUM_THREADS": "1"})
    found, = read_by_others(RASTER_READER, tmp_path / "before.nc", tmp_path / "tsunami.nc",
                            tmp_path / "tsunami-maxima.nc")
    assert found["end"] == 1210 and found["since"] == 0 and found["of"]
    assert found["frames"] == 26 and found["wet"] > 0 and found["land"] > 0
    assert found["same"] == ["max_surface", "arrival"]
    assert found["mapping"] == "latitude_longitude"
    assert found["units"] == ["degrees_north", "degrees_east"]
    assert found["lon"] == pytest.approx([133.98, 152.02], abs=0.01)
    assert found["lat"] == pytest.approx([30.925, 45.075], abs=0.01)


GAUGES = """
[[gauges]]
name = "inside"
x = 300
y = 350
[[gauges]]
name = "far"
x = 900
y = 900
"""


def small_dam_break(top, directory, *more):
    """With gauges; the scenario is in the directory, files are in `out` there."""
    scenario = directory / "dam.toml"
    scenario.write_text((top / "apps/swe/scenarios/dam_break.toml").read_text() + GAUGES)
    return [scenario, f"output.directory={directory / 'out'}", "grid.min_depth=4",
            "grid.max_depth=9", "output.vtu_every=2", "output.raster_every=2",
            "output.checkpoint_every=2", *more]


def test_the_end_has_a_frame(swe, top, run_program, tmp_path):
    run_program([swe, "-q", *small_dam_break(top, tmp_path, "time.end=3")])
    entries = ElementTree.parse(tmp_path / "out/dam_break.pvd").getroot().iter("DataSet")
    times = [float(entry.get("timestep")) for entry in entries]
    assert len(times) == 3 and times[0] == 0 and times[-1] == 3


def time_of_frame(out, frame):
    """That is in the files of a frame, which name.pvd has with a time, too."""
    piece = next(ElementTree.parse(out / frame).getroot().iter("Piece")).get("Source")
    field, = ElementTree.parse(out / piece).getroot().iter("FieldData")
    text = field.find("DataArray").text[44:]  # after a header of four numbers
    return struct.unpack("<d", zlib.decompress(base64.b64decode(text)))[0]


@pytest.mark.parametrize("ranks", [1, 2])
def test_each_time_of_a_series_is_that_of_its_file(swe, top, mpiexec, run_program, tmp_path, ranks):
    """Also where the end of the run before has cut a step short, which comes again at another time:
    before the first frame of the run that goes on, and after all."""
    command, out = [mpiexec, "-n", ranks, swe, "-q"], tmp_path / "out"
    words = small_dam_break(top, tmp_path, "output.checkpoint_every=3")

    def check_times(least):
        entries = list(ElementTree.parse(out / "dam_break.pvd").getroot().iter("DataSet"))
        times = [float(entry.get("timestep")) for entry in entries]
        assert times == [time_of_frame(out, entry.get("file")) for entry in entries]
        assert len({entry.get("file") for entry in entries}) == len(times) >= least
        return times

    run_program([*command, *words, "time.end=4"])
    steps = [int(path.name.split("-")[1]) for path in out.glob("checkpoint-*")]
    assert check_times(3)[-1] == 4
    run_program([*command, *words, "--restart", "time.end=8", f"time.steps={max(steps) + 1}"])
    assert 4 not in check_times(2)
    run_program([*command, *words, "--restart", "time.end=8"])
    times = check_times(4)
    assert times == sorted(times) and times[-1] == 8


def test_a_restart_from_a_directory_without_a_name_is_wrong_usage(swe, top, run_program, tmp_path):
    """As from a shell variable that is not set: a run that begins anew would replace files."""
    words = small_dam_break(top, tmp_path, "time.end=3")
    done = run_program([swe, "-q", "--restart=", *words], check=False)
    assert done.returncode == 64  # EX_USAGE
    assert "--restart=: no directory" in done.stderr
    assert not (tmp_path / "out").exists()


def test_gauges_that_go_nowhere_are_told_once(swe, mpiexec, run_program, tmp_path):
    scenario = tmp_path / "lake.toml"
    scenario.write_text('name = "lake"\ngauges = [ { name = "a", x = 1, y = 1 } ]\n')
    command = [mpiexec, "-n", 2, swe, scenario, "grid.max_depth=6", "time.steps=1"]
    assert run_program(command).stderr.count("gauges: not written") == 1
    assert run_program([*command, "--quiet"]).stderr == ""


def numbers(out):
    return dict(line.split() for line in out.splitlines())


def kill_run(words, environment, out, after):
    """Kills a run, ranks and all, so many seconds after its first checkpoint."""
    with subprocess.Popen([str(w) for w in words], env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True) as process:
        begin = time.monotonic()
        while not list(out.glob("checkpoint-*[0-9]/manifest")):  # one that is not .tmp any more
            assert process.poll() is None and time.monotonic() < begin + 90
            time.sleep(0.01)
        time.sleep(after)
        end = time.monotonic() + 60
        while found := with_argument_below(out):
            assert time.monotonic() < end, found
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)  # one that is in the middle of a write ends after it


def test_killed_run_leaves_whole_files_and_goes_on(
        swe, top, mpiexec, run_program, stock_env, tmp_path):
    """Killed at whatever moment: the series names whole frames, and a restart ends the run, to the
    same bits, with all rows of the gauges."""
    command, out, env = [mpiexec, "-n", 2, swe, "-q"], tmp_path / "out", {"OMP_NUM_THREADS": "1"}
    words = small_dam_break(top, tmp_path, "time.end=20")
    whole = numbers(run_program([*command, *words], env).stdout)
    gauges = {file: file.read_bytes() for file in out.glob("gauge-*.csv")}
    assert len(gauges) == 2
    series = out / "dam_break.pvd"
    for after in (0, 0.1):
        shutil.rmtree(out)
        kill_run([*command, *words], {**stock_env, **env}, out, after)
        for entry in ElementTree.parse(series).getroot().iter("DataSet"):
            for piece in ElementTree.parse(out / entry.get("file")).getroot().iter("Piece"):
                ElementTree.parse(out / piece.get("Source"))
        again = numbers(run_program([*command, "--restart", *words], env).stdout)
        assert again["checksum"] == whole["checksum"]
        assert int(again["cell-steps"]) < int(whole["cell-steps"])
        assert all(file.read_bytes() == before for file, before in gauges.items())
        frames_there = ElementTree.parse(series).getroot().iter("DataSet")
        times = [float(e.get("timestep")) for e in frames_there]
        assert times == sorted(set(times)) and times[0] == 0 and times[-1] > 19


@pytest.mark.parametrize("fps, hundredths", [("0.001", None), ("51", None), ("0.002", 50000),
                                             ("50", 2)])
def test_a_gif_has_the_frames_a_second_that_it_can_have(frames, pictures, fps, hundredths):
    gif = frames / "wave.gif"
    done = pictures(frames / "wave.pvd", "-o", gif, "--size", "100x100", "--fps", fps, check=False)
    if hundredths is None:
        assert done.returncode == 2 and not gif.exists()
        assert f"--fps {fps}: a .gif has from 0.002 to 50 frames a second" in done.stderr
    else:
        assert done.returncode == 0
        data = gif.read_bytes()
        at = data.index(b"\x21\xf9\x04") + 4
        assert int.from_bytes(data[at:at + 2], "little") == hundredths


def test_pictures_of_a_frame_and_a_series(frames, pictures):
    """The file has the requested kind and size; a film has all frames."""
    pictures(frames / "wave.pvd", "-o", frames / "wave.gif", "--size", "301x201")
    gif = (frames / "wave.gif").read_bytes()
    assert gif[:6] == b"GIF89a" and gif.count(b"\x21\xf9\x04") == 3
    assert [int.from_bytes(gif[at:at + 2], "little") for at in (6, 8)] == [301, 201]
    sizes = set()
    for colour in ("rank", "cluster", "depth", "height", "speed"):
        for view in ("relief", "map"):
            path = frames / f"{colour}-{view}.png"
            pictures(frames / "wave-00000010.pvtu", "-o", path, "--size", "301x201",
                     "--colour", colour, "--view", view)
            png = path.read_bytes()
            assert png[:8] == b"\x89PNG\r\n\x1a\n"
            assert [int.from_bytes(png[at:at + 4], "big") for at in (16, 20)] == [301, 201]
            sizes.add(len(png))
    assert len(sizes) == 10  # different pictures


FFMPEG = """#!/bin/sh
# Of the size that it is told: how many frames come, and how many bytes too many.
while [ $# -gt 1 ]; do
    [ "$1" = -s ] && size=$2
    shift
done
bytes=$(wc -c)
frame=$((${size%x*} * ${size#*x} * 3))
echo "$size: $((bytes / frame)) frames and $((bytes % frame)) bytes" >"$1"
"""


@pytest.fixture
def ffmpeg(tmp_path, stock_env):
    """ffmpeg(SCRIPT) - a stand-in; returns the environment in which it is found first"""
    directory = tmp_path / "programs"

    def make(script):
        directory.mkdir()
        program = directory / "ffmpeg"
        program.write_text(script)
        program.chmod(0o755)
        return {"PATH": f"{directory}:{stock_env['PATH']}"}

    return make


@pytest.mark.parametrize("size", ["300x200", "301x201", "290x115"])
def test_a_film_has_frames_of_the_size_that_ffmpeg_is_told(frames, pictures, ffmpeg, size):
    film = frames / "wave.mp4"
    pictures(frames / "wave.pvd", "-o", film, "--size", size, env=ffmpeg(FFMPEG))
    assert film.read_text() == f"{size}: 3 frames and 0 bytes\n"


# As ffmpeg does, which says so only when it is asked to.
FULL_DISK = """#!/bin/sh
wc -c >&2
case " $* " in *" -xerror "*) exit 3; esac
"""


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 3\n", FULL_DISK],
                         ids=["at once", "full disk"])
def test_a_film_that_ffmpeg_cannot_write_is_told(frames, pictures, ffmpeg, script):
    film = frames / "wave.mp4"
    done = pictures(frames / "wave.pvd", "-o", film, "--size", "300x200", env=ffmpeg(script),
                    check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(f"pictures.py: ffmpeg could not write {film}\n")


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
    assert done.stderr.startswith("pictures.py: ") and done.stderr.count("\n") == 1
    assert name in done.stderr and reason in done.stderr
