# SPDX-License-Identifier: GPL-3.0-or-later
"""Cores over time, stacked by process, as figures 8 and 10 of Schreiber et al. show them: the
white rest at the top are cores without a holder."""

from __future__ import annotations

import io

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

from . import format as fmt  # noqa: E402
from . import series  # noqa: E402

BINS = 1200
LEGEND_MOST = 24


def colors(count: int) -> list:
    """A colour for each process: distinct ones for few processes, a scale for many."""
    few = pyplot.get_cmap("tab10"), pyplot.get_cmap("tab20")
    if count <= 20:
        return [few[count > 10](i) for i in range(count)]
    scale = pyplot.get_cmap("turbo")
    return [scale(i / (count - 1)) for i in range(count)]


def extent(row: np.ndarray) -> slice:
    """From the bin before the first that is not 0 to the one after the last: what else there is of
    hundreds of programs that follow each other would only make the picture large."""
    there = np.flatnonzero(row)
    return slice(max(there[0] - 1, 0), there[-1] + 2) if len(there) else slice(0, 1)


def draw(axes, view: series.View, what: str, title: str) -> None:
    edges, rows = view.stacked(what, BINS)
    time, tops = (edges[:-1] + edges[1:]) / 2, np.cumsum(rows, axis=0)
    for story, row, top, color in zip(view.stories, rows, tops, colors(len(rows))):
        part = extent(row)
        axes.fill_between(time[part], (top - row)[part], top[part], facecolor=color, linewidth=0,
                          label=story.process.name)
    axes.set_xlim(0, view.seconds)
    axes.set_ylim(0, view.table.ncores)
    axes.set_ylabel(title)
    axes.yaxis.get_major_locator().set_params(integer=True)


def figure_of(view: series.View, title: str):
    panels = [("held", "cores held")]
    if view.table.anonymous:
        panels = [("held", "cores, shared by tokens")]
    else:
        panels.append(("owned", "cores owned"))
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(11, 3.4 * len(panels)), sharex=True,
                                   squeeze=False, layout="constrained")
    for axis, (what, label) in zip(axes[:, 0], panels):
        draw(axis, view, what, label)
    axes[-1, 0].set_xlabel("time (s)")
    if len(view.stories) <= LEGEND_MOST:
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1, 1),
                          frameon=False)
    figure.suptitle(title, fontsize=11)
    return figure


def efficiency_of(view: series.View) -> str:
    """The efficiency of all jobs together; "" if the view lacks a job of the report."""
    report = view.report or {}
    if len(view.jobs) != len(fmt.parts_of(report, "jobs")) or not view.jobs:
        return ""
    return f", parallel efficiency {100 * fmt.number_in(report, 'parallel_efficiency'):.1f} %"


def title_of(view: series.View) -> str:
    programs = sorted({story.process.program for story in view.stories})
    kind = "emulated cores" if view.table.emulated else "cores"
    count = len(view.stories)
    return (f"{', '.join(programs)[:80]}: {count} process{'es' * (count != 1)} on "
            f"{view.table.ncores} {kind}{efficiency_of(view)}")


matplotlib.rcParams.update({
    "svg.hashsalt": "invasive", "svg.fonttype": "none",  # the same bytes for the same trace
    "text.parse_math": False})  # a $ in a program's name is one


def encode(figure, kind: str) -> bytes:
    """The figure as png or svg; closes it."""
    out = io.BytesIO()
    figure.savefig(out, format=kind, dpi=120,
                   metadata={"Date": None} if kind == "svg" else {"Software": None})
    pyplot.close(figure)
    return out.getvalue()


def render(view: series.View, kind: str) -> bytes:
    """The picture as png or svg."""
    return encode(figure_of(view, title_of(view)), kind)
