#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""pictures.py - pictures of simulations: the adaptive grid over the height of the water.

    pictures.py SERIES.pvd -o wave.gif               a film (or .mp4, with ffmpeg)
    pictures.py SERIES.pvd -o wave.png --frame -1    one frame of it
    pictures.py FRAME.pvtu -o wave.png --colour depth --view map

The relief is seen from the south-west and above, and exaggerated so that waves are seen; --view
map looks straight down.  Like figures 1 and 9 of Schreiber et al.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

DEBIAN = "/usr/bin/python3"
try:
    import matplotlib
    import numpy as np
except ImportError:
    if os.path.realpath(sys.executable) != os.path.realpath(DEBIAN) and os.path.exists(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, *sys.argv])  # they may be Debian's, and this python not
    sys.exit("pictures.py: needs numpy and matplotlib: install package python3-matplotlib")

matplotlib.use("Agg")
from matplotlib import colormaps, colors  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.cm import ScalarMappable  # noqa: E402
from matplotlib.collections import PolyCollection  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from vtu_reader import Frame, ReadError, frames_of, read_frame  # noqa: E402

# Colours that stay apart when shaded, also with most forms of colour blindness (Okabe, Ito).
RANKS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#7f7f7f"]
LAND = np.array(colors.to_rgb("#b9a58a"))
AZIMUTH, ELEVATION = np.radians(28), np.radians(33)
RELIEF = 0.11  # height of the highest wave, in widths of the domain


class Scale:
    """What is the same in all frames of a film: extent, range of heights, colours."""

    def __init__(self, frames, args):
        low, high, speed, depths, ranks = [], [], [0.0], [], [0]
        self.rest = 0.0
        corners = []
        for frame in frames:
            surface = frame.data["surface"]
            wet = surface[np.isfinite(surface)]
            if len(wet):
                self.rest = self.rest if low else usual_height(frame)
                low.append(wet.min())
                high.append(wet.max())
            speed.append(speed_of(frame).max())
            depths += [frame.data["depth"].min(), frame.data["depth"].max()]
            ranks.append(frame.data["rank"].max())
            corners += [frame.points.min(axis=0), frame.points.max(axis=0)]
        self.low, self.high = (min(low), max(high)) if low else (0.0, 1.0)
        self.begin, self.end = np.min(corners, axis=0), np.max(corners, axis=0)
        self.ranks = int(max(ranks)) + 1
        width = max(self.end - self.begin)
        spread = self.high - self.low
        # Rounding is no wave: a lake at rest is flat.
        flat = spread <= 1e-9 * max(1.0, abs(self.low), abs(self.high))
        self.stretch = args.exaggerate or (0.0 if flat else RELIEF * width / spread)
        self.norm = {
            "height": colors.CenteredNorm(self.rest, max(self.high - self.rest,
                                                         self.rest - self.low, 1e-9)),
            "speed": colors.Normalize(0, max(speed) or 1),
            "depth": colors.BoundaryNorm(np.arange(min(depths) - 0.5, max(depths) + 1), 256),
        }
        self.map = {name: colormaps[chosen] for name, chosen in
                    (("height", "RdBu_r"), ("speed", "magma"), ("depth", "viridis"))}


def usual_height(frame: Frame) -> float:
    """The height that half of the water's area is below: where it is at rest, most often."""
    wet = np.isfinite(frame.data["surface"])
    surface, area = frame.data["surface"][wet], 0.5 ** frame.data["depth"][wet].astype(float)
    order = np.argsort(surface)
    below = np.cumsum(area[order])
    return float(surface[order][np.searchsorted(below, below[-1] / 2)])


def speed_of(frame: Frame) -> np.ndarray:
    h, wet = frame.data["h"], np.isfinite(frame.data["surface"])
    speed = np.hypot(frame.data["hu"], frame.data["hv"])
    return np.divide(speed, h, out=np.zeros_like(speed), where=wet)


def cell_colours(frame: Frame, scale: Scale, colour: str) -> np.ndarray:
    data, wet = frame.data, np.isfinite(frame.data["surface"])
    if colour in scale.norm:
        values = {"height": np.where(wet, data["surface"], scale.low), "speed": speed_of(frame),
                  "depth": data["depth"]}[colour]
        base = scale.map[colour](scale.norm[colour](values))[:, :3]
    elif colour == "rank":
        palette = np.array([colors.to_rgb(c) for c in RANKS])
        base = palette[data["rank"] % len(RANKS)]
    else:  # neighbours in the order of the curve get colours that are far from each other
        palette = np.array(colormaps["tab20"].colors)
        base = palette[(data["cluster"] * 7 + data["rank"] * 3) % 20]
    if colour in ("height", "speed"):
        return np.where(wet[:, None], base, LAND)
    return np.where(wet[:, None], base, 0.35 * base + 0.65 * LAND)


def heights(frame: Frame, scale: Scale) -> np.ndarray:
    """Of each point: the mean of the cells around it.  Land higher than the waves is cut off a
    little above them, or mountains would hide all."""
    surface, spread = frame.data["surface"], scale.high - scale.low
    top = np.where(np.isfinite(surface), surface,
                   np.clip(frame.data["bed"], scale.low, scale.high + 0.2 * spread))
    around = np.repeat(top, 3)
    corners = frame.triangles.ravel()
    count = np.bincount(corners, minlength=len(frame.points))
    total = np.bincount(corners, around, minlength=len(frame.points))
    return scale.stretch * (total / np.maximum(count, 1) - scale.low)


def shade(corners: np.ndarray) -> np.ndarray:
    """Brightness of triangles [n, 3, 3] in the light of a sun in the north-west."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    sun = np.array([-0.55, 0.35, 0.76])
    return 0.5 + 0.55 * np.clip(normal @ sun / np.linalg.norm(sun), 0, 1)


def project(points: np.ndarray) -> np.ndarray:
    """x to the right, y up, and how far away."""
    x, y, z = np.moveaxis(points, -1, 0)
    away = x * np.sin(AZIMUTH) + y * np.cos(AZIMUTH)
    return np.stack([x * np.cos(AZIMUTH) - y * np.sin(AZIMUTH),
                     away * np.sin(ELEVATION) + z * np.cos(ELEVATION), away], axis=-1)


def placed(frame: Frame, scale: Scale, view: str):
    """Triangles on the paper, the farthest first; their order and their brightness."""
    solid = np.column_stack([frame.points - scale.begin, heights(frame, scale)])[frame.triangles]
    if view == "map":
        return frame.points[frame.triangles], np.arange(len(solid)), 0.6 + 0.45 * shade(solid)
    paper = project(solid)
    order = np.argsort(-paper[:, :, 2].mean(axis=1), kind="stable")
    return paper[order, :, :2], order, shade(solid)[order]


def limits(axes, scale: Scale, view: str):
    """The same for all frames."""
    if view == "map":
        axes.set_xlim(scale.begin[0], scale.end[0])
        axes.set_ylim(scale.begin[1], scale.end[1])
        return
    x, y = scale.end - scale.begin
    z = 1.2 * scale.stretch * (scale.high - scale.low)
    box = project(np.array([[i * x, j * y, k * z] for i in (0, 1) for j in (0, 1) for k in (0, 1)]))
    margin = 0.02 * max(x, y)
    axes.set_xlim(box[:, 0].min() - margin, box[:, 0].max() + margin)
    axes.set_ylim(box[:, 1].min() - margin, box[:, 1].max() + margin)


LABEL = {"height": "height of the surface [m]", "speed": "speed [m/s]",
         "depth": "depth of refinement [bisections]"}


def legend(figure, axes, scale: Scale, colour: str):
    if colour == "rank":
        shown = min(scale.ranks, 16)
        axes.legend(handles=[Patch(color=RANKS[r % len(RANKS)], label=f"rank {r}")
                             for r in range(shown)],
                    loc="upper right", frameon=False, fontsize=9, ncols=1 + (shown > 8))
    elif colour in scale.norm:
        bar = figure.colorbar(ScalarMappable(scale.norm[colour], scale.map[colour]), ax=axes,
                              shrink=0.6, pad=0.02)
        bar.set_label(LABEL[colour], fontsize=9)
        bar.outline.set_linewidth(0.4)
        if colour == "depth":
            edges = scale.norm[colour].boundaries
            bar.set_ticks(np.arange(edges[0] + 0.5, edges[-1]))
            bar.ax.tick_params(which="minor", length=0)


def draw(frame: Frame, scale: Scale, args) -> Figure:
    # Half a pixel more, as matplotlib cuts the product of inches and dpi: 2.01 * 100 is below 201.
    inches = [(size + 0.5) / 100 for size in args.size]
    figure = Figure(figsize=inches, dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    triangles, order, light = placed(frame, scale, args.view)
    faces = np.clip(cell_colours(frame, scale, args.colour)[order] * light[:, None], 0, 1)
    # Thin where there are many, so that small cells are not all line.
    line = float(np.clip(0.9 * (np.prod(args.size) / len(order)) ** 0.5 / 28, 0.08, 0.6))
    edges = faces * 0.55 if args.grid else faces
    axes.add_collection(PolyCollection(triangles, facecolors=faces, edgecolors=edges,
                                       linewidths=line if args.grid else 0.3))
    limits(axes, scale, args.view)
    axes.set_aspect("equal")
    if args.view == "map":
        axes.set_xlabel("x [m]", fontsize=9)
        axes.set_ylabel("y [m]", fontsize=9)
        axes.tick_params(labelsize=8)
    else:
        axes.axis("off")
    note = f"t = {frame.time:.5g} s    {len(order):,} cells".replace(",", "\u2009")
    if args.view == "relief" and scale.stretch:
        note += f"    heights × {scale.stretch:.3g}"
    axes.set_title(note, fontsize=10, loc="left")
    legend(figure, axes, scale, args.colour)
    return figure


def pixels(figure: Figure) -> np.ndarray:
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[:, :, :3]


def save_gif(paths, image_of, args):
    try:
        from PIL import Image
    except ImportError:
        sys.exit("pictures.py: .gif needs Pillow: install package python3-pil")
    # One palette, or colours would flicker.  The last frame has more than the first.
    palette = Image.fromarray(image_of(paths[-1])).quantize(255, dither=Image.Dither.NONE)
    frames = (Image.fromarray(image_of(path)).quantize(palette=palette, dither=Image.Dither.NONE)
              for path in paths)
    next(frames).save(args.output, save_all=True, append_images=frames, loop=0,
                      duration=round(1000 / args.fps))


def save_mp4(paths, image_of, args):
    program = shutil.which("ffmpeg")
    if not program:
        sys.exit("pictures.py: .mp4 needs ffmpeg: install package ffmpeg, or write a .gif")
    images = map(image_of, paths)
    first = next(images)
    height, width = first.shape[:2]
    # -xerror, or a disk that is full at the end would be none.
    command = [program, "-loglevel", "error", "-xerror", "-y",
               "-f", "rawvideo", "-pix_fmt", "rgb24",
               "-s", f"{width}x{height}", "-r", str(args.fps), "-i", "-",
               "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p", str(args.output)]
    encoder = subprocess.Popen(command, stdin=subprocess.PIPE)
    with contextlib.suppress(BrokenPipeError), encoder:  # that has said why, and closing waits
        for image in itertools.chain([first], images):
            encoder.stdin.write(np.ascontiguousarray(image).tobytes())
    if encoder.returncode != 0:
        sys.exit(f"pictures.py: ffmpeg could not write {args.output}")


def size(text: str) -> tuple[int, int]:
    try:
        width, height = (int(part) for part in text.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not WIDTHxHEIGHT") from None
    if not (100 <= width <= 10000 and 100 <= height <= 10000):
        raise argparse.ArgumentTypeError("width and height are from 100 to 10000")
    return width, height


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < 1e12:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number greater than 0")
    return number


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(
        prog="pictures.py", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.split(" - ", 1)[1])
    parser.add_argument("input", type=Path, help=".pvd series, or one frame: .pvtu, .vtu")
    parser.add_argument("-o", "--output", type=Path, required=True, help=".png, .gif or .mp4")
    parser.add_argument("--colour", "--color", default="rank",
                        choices=["rank", "cluster", "depth", "height", "speed"])
    parser.add_argument("--view", default="relief", choices=["relief", "map"])
    parser.add_argument("--frame", type=int, default=-1,
                        help="for .png, of a series: from 0, or from the end: -1 (default)")
    parser.add_argument("--exaggerate", type=positive, metavar="FACTOR",
                        help="of heights (default: waves are a ninth of the domain's width high)")
    parser.add_argument("--no-grid", dest="grid", action="store_false", help="no lines of cells")
    parser.add_argument("--size", type=size, default=(1000, 640), metavar="WxH", help="in pixels")
    parser.add_argument("--fps", type=positive, default=10.0,
                        help="frames a second of a film (10; a .gif has from 0.002 to 50)")
    args = parser.parse_args(words)
    if args.output.suffix not in (".png", ".gif", ".mp4"):
        parser.error(f"{args.output}: not a .png, .gif or .mp4 file")
    # The format counts hundredths of a second, in 16 bits, and no program shows one alone.
    if args.output.suffix == ".gif" and not 0.002 <= args.fps <= 50:
        parser.error(f"--fps {args.fps:g}: a .gif has from 0.002 to 50 frames a second")
    return args


def make(args):
    paths = frames_of(args.input)
    if args.output.suffix == ".png":
        if not -len(paths) <= args.frame < len(paths):
            raise ReadError(f"{args.input}: has no frame {args.frame}, only {len(paths)}")
        frame = read_frame(paths[args.frame])
        draw(frame, Scale([frame], args), args).savefig(args.output, dpi=100)
        return
    # Frames are read again rather than kept, as films may be larger than memory.  (Pillow keeps
    # those of a .gif, a byte a pixel.)
    scale = Scale((read_frame(path) for path in paths), args)
    save = save_gif if args.output.suffix == ".gif" else save_mp4
    save(paths, lambda path: pixels(draw(read_frame(path), scale, args)), args)


def main():
    args = parse_arguments()
    try:
        make(args)
    except ReadError as error:
        sys.exit(f"pictures.py: {error}")
    except OSError as error:
        sys.exit(f"pictures.py: {error.filename or args.output}: {error.strerror or error}")


if __name__ == "__main__":
    main()
