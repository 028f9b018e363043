# SPDX-License-Identifier: GPL-3.0-or-later
"""A row for each core, the colour is the process that holds it, white is a core that no process
holds.  Several traces are drawn above each other, on one axis of time."""

from __future__ import annotations

from . import format as fmt
from . import series
from .picture import colors, encode, pyplot

MOST_CORES = 128
NS_PER_MS = 1e6


def draw(axes, view: series.View, title: str) -> None:
    ncores = view.table.ncores
    for story, color in zip(view.stories, colors(len(view.stories))):
        held = story.held
        for core in range(ncores):
            mine = held.core == core
            spans = zip((held.start[mine] - view.start_ns) / NS_PER_MS,
                        (held.end[mine] - held.start[mine]) / NS_PER_MS)
            axes.broken_barh(list(spans), (core - 0.4, 0.8), facecolor=color, linewidth=0)
        axes.bar(0, 0, color=color, label=story.process.name)  # for the legend only
    axes.set_ylim(ncores - 0.5, -0.5)
    axes.set_yticks(range(ncores) if ncores <= 16 else range(0, ncores, (ncores + 15) // 16))
    axes.set_ylabel("core")
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)


def render(views: list[series.View], titles: list[str], kind: str) -> bytes:
    """As png or svg; the first view is on top.  TraceError where cores are tokens, or too many."""
    for view, title in zip(views, titles):
        if view.table.anonymous:
            raise fmt.TraceError(f"{title}: with more processes than cores these have no rows")
        if view.table.ncores > MOST_CORES:
            raise fmt.TraceError(f"{title}: {view.table.ncores} cores are too many for rows "
                                 f"(at most {MOST_CORES}): leave --rows away")
    heights = [0.8 + 0.25 * view.table.ncores for view in views]
    figure, axes = pyplot.subplots(len(views), 1, figsize=(10, sum(heights) + 0.6), sharex=True,
                                   squeeze=False, height_ratios=heights, layout="constrained")
    for axis, view, title in zip(axes[:, 0], views, titles):
        draw(axis, view, title)
    axes[-1, 0].set_xlim(0, max(1e3 * view.seconds for view in views))
    axes[-1, 0].set_xlabel("time (ms)")
    if max(len(view.stories) for view in views) <= 12:
        axes[0, 0].legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return encode(figure, kind)
