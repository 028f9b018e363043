# SPDX-License-Identifier: GPL-3.0-or-later
"""apps/euler: does it converge as its order says, is nothing lost, and is the result the same
however it is computed?"""

import array
import base64
import math
import re
import struct
import subprocess
import zlib

import pytest

from lib.building.build import BUILD
from lib.simulation import simulator

pytestmark = pytest.mark.usefixtures("what_mpi_leaves_when_it_is_killed_goes")
VARIANTS = ("none", "subgrids", "skeleton-first", "arithmetic-aware")
PROGRAMS = ("element", "mesh")
# A grid that changes in many steps, with three levels, cut and joined.
CHANGING = ["pulse", "solver.order=2", "time.end=0.07", "grid.max_level=4"]
CHANGING_3D = ["pulse", "domain.dimensions=3", "solver.order=2", "grid.min_level=1",
               "grid.max_level=2", "grid.wander=0.03", "time.steps=12", "time.end=1",
               "domain.border=periodic", "scenario.velocity=0.5"]


def uniform(level):
    return [f"grid.min_level={level}", f"grid.max_level={level}"]


@pytest.fixture(scope="module")
def program(build):
    path = build / "apps/euler/euler"
    if not path.exists():
        pytest.skip(f"{path} is not built here")
    return path


@pytest.fixture
def euler(program, top, run_program):
    """euler(SCENARIO, KEY=VALUE...) - the result; as of lib/simulation.py"""
    return simulator(run_program, program, top / "apps/euler/scenarios")


# --- the scheme

def promises():
    """Each with its program; one that says so where a program is missing."""
    cases = []
    for name in PROGRAMS:
        path, listed = BUILD / "apps/euler/tests" / name, ["all"]
        if path.exists():
            listed = subprocess.run([path, "--list"], stdout=subprocess.PIPE, text=True,
                                    check=True, timeout=60).stdout.split()
        cases += [pytest.param(path, promise, id=f"{name}-{promise}") for promise in listed]
    return cases


@pytest.mark.parametrize("path, promise", promises())
def test_the_parts_keep_their_promises(run_program, path, promise):
    if not path.exists():
        pytest.skip(f"{path} is not built here")
    done = run_program([path, promise], timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# Between the order of the polynomials and a half and one is expected; a grid of 9 x 9 cells hardly
# resolves the vortex, for which the bounds have a margin.
@pytest.mark.parametrize("order, least", [(1, 1.8), (2, 2.4), (3, 3.8), (4, 4.3), (6, 6.1)])
def test_a_vortex_converges_with_the_order_of_the_scheme(euler, order, least):
    coarse, fine = (euler("vortex", *uniform(level), f"solver.order={order}", "time.end=0.1",
                          "--error")["density-error-l2"] for level in (2, 3))
    assert math.log(coarse / fine, 3) > least


@pytest.mark.parametrize("order, least", [(2, 1.9), (3, 3.8), (4, 3.9)])
def test_a_wave_in_space_converges_with_the_order_of_the_scheme(euler, order, least):
    coarse, fine = (euler("wave", *uniform(level), f"solver.order={order}", "time.end=0.02",
                          "--error")["density-error-l2"] for level in (1, 2))
    assert math.log(coarse / fine, 3) > least


def test_order_nine_is_exact_to_nine_digits_on_81_cells(euler):
    result = euler("vortex", *uniform(2), "solver.order=9", "time.end=0.05", "--error")
    assert result["density-error-l2"] < 2e-8


def test_an_adaptive_grid_has_the_error_of_its_finest_level_with_fewer_cells(euler):
    fine = euler("vortex", *uniform(3), "solver.order=3", "time.end=0.3", "--error")
    adaptive = euler("vortex", "solver.order=3", "time.end=0.3", "--error")
    assert adaptive["cells"] < 0.75 * fine["cells"]
    assert adaptive["density-error-l2"] < 2 * fine["density-error-l2"]


# --- what is conserved

@pytest.mark.parametrize("words", [
    CHANGING, [*CHANGING, "domain.border=periodic", "scenario.velocity=1"], CHANGING_3D,
    ["vortex", "solver.order=3", "time.end=0.3", "grid.wander=0.02", "grid.max_level=4"],
], ids=["walls", "periodic", "space", "vortex"])
def test_mass_and_energy_are_conserved_to_rounding(euler, words):
    result = euler(*words)
    assert result["grid-changes"] > 2
    assert abs(result["mass-change"]) < 1e-14
    assert abs(result["energy-change"]) < 1e-14


# --- the same however it is computed

def different(results):
    return len({(r.checksum, r["cells"], r["steps"], dict.get(r, "mass"), dict.get(r, "energy"))
                for r in results})


@pytest.mark.parametrize("words", [CHANGING, CHANGING_3D], ids=["plane", "space"])
def test_variants_threads_and_ranks_give_the_same_bits(euler, start_ranks, words):
    results = [euler(*words, f"run.variant={variant}", threads=threads,
                     by=start_ranks(ranks) if ranks > 1 else ())
               for variant in VARIANTS for threads, ranks in ((1, 1), (3, 1), (1, 2), (2, 3))]
    assert results[0]["grid-changes"] > 2
    assert different(results) == 1


def test_more_ranks_than_cells_give_the_same_bits(euler, start_ranks):
    words = ["wave", *uniform(1), "domain.dimensions=2", "solver.order=2", "time.end=0.02"]
    assert different([euler(*words), euler(*words, by=start_ranks(11), threads=1)]) == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_managed_run_gives_the_same_bits(build, euler, start_ranks, variant):
    words = [*CHANGING, f"run.variant={variant}", "run.announce=true"]
    invade = [build / "invade", "--"]
    assert different([euler(*words), euler(*words, by=invade, threads=4),
                      euler(*words, by=[*invade, *start_ranks(2)], threads=2)]) == 1


def test_scenario_and_order_change_the_checksum(euler):
    results = [euler("wave", *uniform(1), "domain.dimensions=2", "time.steps=2",
                     f"solver.order={order}", f"scenario.amplitude={amplitude}")
               for order, amplitude in ((2, 0.1), (3, 0.1), (2, 0.2))]
    assert len({r.checksum for r in results}) == 3


# --- emulated machines

def test_emulated_cells_sleep_and_do_the_same_steps(euler, start_ranks):
    words = [*CHANGING_3D, "emulate.predictor_us=30", "emulate.corrector_us=10"]
    computed = euler(*CHANGING_3D)
    results = [euler(*words, *more, by=start_ranks(ranks) if ranks > 1 else (), threads=threads)
               for ranks, threads, more in ((1, 4, []), (2, 2, ["emulate.look_us=50"]))]
    for result in results:
        assert result["cell-steps"] == computed["cell-steps"]
        assert result["predictor-us"] >= 30
    assert different(results) == 1


# --- files

def numbers(xml, name, kind):
    """An array of a piece: a header of 3 + blocks integers, in base64 by itself, and the blocks."""
    text = re.search(rf'Name="{name}"[^>]*>([^<]*)<', xml)[1]
    blocks = struct.unpack("<Q", base64.b64decode(text[:12])[:8])[0]
    length = -(-8 * (3 + blocks) // 3) * 4
    sizes = struct.unpack(f"<{3 + blocks}Q", base64.b64decode(text[:length]))[3:]
    compressed, data = base64.b64decode(text[length:]), b""
    for size in sizes:
        data += zlib.decompress(compressed[:size])
        compressed = compressed[size:]
    return array.array(kind, data)


def test_frames_for_paraview_hold_the_gas(euler, start_ranks, tmp_path):
    """Points of order 1 have equal weights, so the mass is that of the boxes."""
    result = euler("pulse", "solver.order=1", "time.end=0.05", "output.vtu_every=0.02",
                   f"output.directory={tmp_path}/out", by=start_ranks(2))
    series = (tmp_path / "out/pulse.pvd").read_text()
    frames = re.findall(r'timestep="([^"]*)" part="0" file="([^"]*)"', series)
    assert [float(time) for time, _ in frames[:1] + frames[-1:]] == [0, pytest.approx(0.05)]
    assert len(frames) == 4
    pieces = re.findall(r'Source="([^"]*)"', (tmp_path / "out" / frames[-1][1]).read_text())
    assert len(pieces) == 2
    mass = 0
    for piece in pieces:
        xml = (tmp_path / "out" / piece).read_text()
        levels, density = numbers(xml, "level", "B"), numbers(xml, "density", "d")
        assert len(levels) == len(density) == len(numbers(xml, "points", "d")) / 12
        mass += sum(d / (2 * 3**level) ** 2 for d, level in zip(density, levels))
    assert mass == pytest.approx(result["mass"], rel=1e-12)


def test_a_file_that_cannot_be_written_ends_all_ranks(euler, start_ranks, tmp_path):
    (tmp_path / "file").write_text("")
    done = euler("pulse", "solver.order=1", "output.vtu_every=0.02",
                 f"output.directory={tmp_path}/file/out", by=start_ranks(2), check=False)
    assert done.returncode == 1
    assert f"cannot make directory {tmp_path}/file/out: Not a directory" in done.stderr


# --- configurations

@pytest.mark.parametrize("words, complaint", [
    (["grid.max_level=1"], "grid.max_level = 1: must be at least grid.min_level, which is 2"),
    (["grid.coarsen=0.5"], "grid.coarsen = 0.5: must be at most grid.refine, which is 0.02"),
    (["grid.min_level=12", "grid.max_level=12"], "each rank knows all of them"),
    (["solver.order=10"], "must be an integer from 1 to 9"),
    (["run.variant=enclaves"], 'one of "none", "subgrids", "skeleton-first", "arithmetic-aware"'),
    (["emulate.predictor_us=5"], "set grid.wander"),
    (["solver.odrer=3"], 'did you mean solver.order'),
    (["--error"], "the exact solution of this scenario is not known"),
])
def test_what_cannot_be_run_is_refused_with_the_reason(euler, words, complaint):
    done = euler("pulse", *words, check=False)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_all_ranks_end_when_the_gas_is_no_number(euler, start_ranks):
    done = euler("pulse", "solver.order=3", "scenario.amplitude=100", "scenario.radius=0.01",
                 "solver.cfl=1", "time.end=1", by=start_ranks(2), check=False, threads=1)
    assert done.returncode == 1
    assert "the gas is no number any more: lower solver.cfl, now 1" in done.stderr


def test_a_configuration_that_is_written_down_is_the_same_again(euler, program, tmp_path,
                                                                run_program, top):
    scenario = top / "apps/euler/scenarios/pulse.toml"
    first = run_program([program, "--check", scenario, "solver.order=5"]).stdout
    file = tmp_path / "again.toml"
    file.write_text(first)
    assert run_program([program, "--check", file]).stdout == first
