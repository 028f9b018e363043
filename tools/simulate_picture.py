#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws cores over time, stacked, a panel for each schedule, as in the figures 8 and 10 of
Schreiber et al.

    simulate_picture.py FILE.{png,svg,pdf} <SERIES     (rmctl simulate --series=SERIES)
"""

import json
import os
import sys

DEBIAN = "/usr/bin/python3"


def import_pyplot():
    try:
        import matplotlib
    except ImportError:
        if os.path.realpath(sys.executable) != os.path.realpath(DEBIAN) and os.path.exists(DEBIAN):
            os.execv(DEBIAN, [DEBIAN, *sys.argv])  # matplotlib may be Debian's, and this one not
        sys.exit("rmctl simulate: --picture needs matplotlib: install package python3-matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "rmctl"  # the same picture for the same series
    matplotlib.rcParams["text.parse_math"] = False  # a $ in a job's name is one
    from matplotlib import pyplot
    return pyplot


def draw_panel(axes, schedule, bands, ncores, seconds, colours):
    times = [schedule["bin_s"] * k for k in range(len(schedule["cores"][0]))]
    axes.stackplot(times, *schedule["cores"], colors=colours, labels=bands, step="post",
                   linewidth=0)
    axes.set_xlim(0, seconds)
    axes.set_ylim(0, ncores)
    axes.set_ylabel("cores")
    axes.set_title(f"{schedule['name']}: {schedule['seconds']:.4g} s", fontsize=9, loc="left")
    axes.axvline(schedule["seconds"], color="black", linewidth=0.8)


def draw(pyplot, series, path):
    schedules, bands = series["schedules"], series["bands"]
    colours = [pyplot.get_cmap("tab20")(k % 20) for k in range(len(bands))]
    seconds = max([series["bound_s"], *(s["seconds"] for s in schedules)]) or 1
    figure, panels = pyplot.subplots(len(schedules), sharex=True, squeeze=False,
                                     figsize=(10, max(4, 1 + 1.5 * len(schedules))))
    for axes, schedule in zip(panels[:, 0], schedules):
        draw_panel(axes, schedule, bands, series["cores"], seconds, colours)
        axes.axvline(series["bound_s"], color="black", linestyle=":", linewidth=0.8)
    panels[-1, 0].set_xlabel("seconds (dotted: the clairvoyant bound)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", fontsize=7)
    figure.tight_layout(rect=(0, 0, 0.86, 1))
    figure.savefig(path, dpi=120, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: simulate_picture.py FILE <SERIES")
    pyplot = import_pyplot()  # first: it may start again, with all of the input to come
    try:
        draw(pyplot, json.load(sys.stdin), sys.argv[1])
    except OSError as error:
        sys.exit(f"rmctl simulate: cannot write {sys.argv[1]}: {error.strerror}")
    except ValueError as error:
        sys.exit(f"rmctl simulate: {sys.argv[1]}: {error}")


main()
