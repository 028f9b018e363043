#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A radial dam break by apps/swe and by an independent solver: pyclaw's classic wave propagation
with Roe's Riemann solver on a Cartesian grid (Clawpack, doi:10.7717/peerj-cs.68).

    pip install clawpack matplotlib   # in a virtual environment
    apps/swe/studies/compare_clawpack.py --swe BUILD/apps/swe/swe --picture FILE.png

Prints a table of differences from pyclaw's finest run: of the radial profile of the water's height
at the end, and of two tide gauges over time.  doc/swe-comparison.md has the figures.  Not a
test: it needs the package, and minutes."""

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import vtu_reader  # noqa: E402

SIDE, RADIUS, INSIDE, OUTSIDE, GRAVITY, END = 1000.0, 150.0, 10.0, 2.0, 9.81, 20.0
GAUGES = {"near": (500.0, 620.0), "far": (640.0, 640.0)}  # 120 m and 198 m from the centre
FRAMES = 80
BINS = np.linspace(0, 450, 46)
SCENARIO = f"""name = "dam_break"
domain = {{ square = {SIDE} }}
grid = {{ min_depth = 8, refine = 0.02, coarsen = 0.005, every = 2 }}
time = {{ end = {END} }}
scenario = {{ depth = {OUTSIDE}, inside = {INSIDE - OUTSIDE}, radius = {RADIUS / SIDE} }}
gauges = [{", ".join(f'{{ name = "{n}", x = {x}, y = {y} }}' for n, (x, y) in GAUGES.items())}]
"""


def profile(x, y, h, area):
    """Mean height in rings around the centre."""
    ring = np.digitize(np.hypot(x - SIDE / 2, y - SIDE / 2), BINS) - 1
    inside = ring < len(BINS) - 1
    sums = [np.bincount(ring[inside], w[inside], len(BINS) - 1) for w in (h * area, area)]
    with np.errstate(invalid="ignore"):
        return sums[0] / sums[1]


def quarters(corners):
    """The four triangles in each of these, [n, 3, 2]."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
    return np.concatenate([np.stack(t, axis=1) for t in
                           ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])


def by_pyclaw(cells, order):
    """Profile, gauges at FRAMES + 1 times, number of cells."""
    from clawpack import pyclaw, riemann

    solver = pyclaw.ClawSolver2D(riemann.shallow_roe_with_efix_2D)
    solver.order = order
    solver.limiters = pyclaw.limiters.tvd.MC
    for name in ("lower", "upper"):
        setattr(solver, f"bc_{name}", [pyclaw.BC.wall] * 2)
    domain = pyclaw.Domain([0, 0], [SIDE, SIDE], [cells, cells])
    state = pyclaw.State(domain, 3)
    state.problem_data["grav"] = GRAVITY
    x, y = state.grid.p_centers
    state.q[:] = 0
    state.q[0] = np.where(np.hypot(x - SIDE / 2, y - SIDE / 2) < RADIUS, INSIDE, OUTSIDE)
    control = pyclaw.Controller()
    control.solution, control.solver = pyclaw.Solution(state, domain), solver
    control.tfinal, control.num_output_times = END, FRAMES
    control.keep_copy, control.output_format, control.verbosity = True, None, 0
    control.run()
    series = {}
    for name, (gx, gy) in GAUGES.items():
        at = int(gx / SIDE * cells), int(gy / SIDE * cells)
        series[name] = np.array([frame.state.q[0][at] for frame in control.frames])
    h = control.frames[-1].state.q[0]
    fine = (np.arange(4 * cells) + 0.5) * SIDE / (4 * cells)  # rings are thinner than cells
    x, y = np.meshgrid(fine, fine, indexing="ij")
    all_h = np.repeat(np.repeat(h, 4, axis=0), 4, axis=1)
    return profile(x.ravel(), y.ravel(), all_h.ravel(), np.ones(x.size)), series, h.size


def by_swe(program, words):
    with tempfile.TemporaryDirectory() as place:
        scenario = Path(place, "dam.toml")
        scenario.write_text(SCENARIO)
        subprocess.run([program, "--quiet", scenario, *words, f"output.directory={place}",
                        f"output.vtu_every={END}"], check=True, stdout=subprocess.DEVNULL)
        frame = vtu_reader.read_frame(vtu_reader.frames_of(Path(place, "dam_break.pvd"))[-1])
        series = {}
        for name in GAUGES:
            with open(f"{place}/gauge-{name}.csv") as file:
                rows = [(float(r["time"]), float(r["h"])) for r in csv.DictReader(file)]
            times, heights = np.array(rows).T
            series[name] = np.interp(np.linspace(0, END, FRAMES + 1), times, heights)
    corners, h = quarters(frame.points[frame.triangles]), np.tile(frame.data["h"], 4)
    corners, h = quarters(corners), np.tile(h, 4)
    x, y = corners.mean(axis=1).T
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2
    return profile(x, y, h, area), series, len(frame.triangles)


def differences(result, reference):
    """Means of the absolute difference in m: over the disc of the profile, and over time."""
    middles = (BINS[1:] + BINS[:-1]) / 2
    known = np.isfinite(result[0]) & np.isfinite(reference[0])
    off = np.abs(result[0] - reference[0])[known]
    return [np.average(off, weights=middles[known])] + [
        np.mean(np.abs(result[1][name] - reference[1][name])) for name in GAUGES]


def draw(file, curves):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    middles, times = (BINS[1:] + BINS[:-1]) / 2, np.linspace(0, END, FRAMES + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, (heights, series, _), style in curves:
        left.plot(middles, heights, style, lw=1, label=name)
        right.plot(times, series["far"], style, lw=1)
    left.set(xlabel="distance from the centre, m", ylabel="height of the water, m",
             title=f"after {END:.0f} s")
    right.set(xlabel="time, s", title="gauge 198 m from the centre")
    left.legend(fontsize=7)
    figure.savefig(file, dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--swe", required=True, help="the program")
    parser.add_argument("--picture", help="PNG file to write")
    parser.add_argument("--finest", type=int, default=800, help="pyclaw's cells across [800]")
    arguments = parser.parse_args()
    reference = by_pyclaw(arguments.finest, 2)
    results = [(f"pyclaw, order {o}, {n} x {n}", by_pyclaw(n, o))
               for n, o in ((100, 1), (200, 1), (400, 1), (100, 2), (200, 2), (400, 2))]
    higher = ["solver.order=1"]
    for name, words, depths in (("order 0, Rusanov", [], (10, 12, 14, 16)),
                                ("order 0, augmented", ["solver.flux=augmented"], (10, 12, 14, 16)),
                                ("order 1, Rusanov", higher, (10, 12, 14)),
                                ("order 1, augmented", [*higher, "solver.flux=augmented"],
                                 (10, 12, 14))):
        results += [(f"swe, {name}, depth {d}",
                     by_swe(arguments.swe, [*words, f"grid.max_depth={d}"])) for d in depths]
    print("| run | cells at the end | profile, m | gauge near, m | gauge far, m |")
    print("|---|---|---|---|---|")
    for name, result in results:
        print(f"| {name} | {result[2]} | "
              + " | ".join(f"{d:.4f}" for d in differences(result, reference)) + " |")
    if arguments.picture:
        named = dict(results)
        draw(arguments.picture, [(f"pyclaw, order 2, {arguments.finest} x {arguments.finest}",
                                  reference, "k-")] + [
            (name, named[name], style) for name, style in (
                ("swe, order 0, Rusanov, depth 14", "C0:"),
                ("swe, order 0, augmented, depth 14", "C1--"),
                ("swe, order 1, Rusanov, depth 14", "C2-."))])


if __name__ == "__main__":
    main()
