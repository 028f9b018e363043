#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""chart.py [OUT.png]: the figures of `bench/run never-slower --json` as bars, for the README."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
from common import RESULTS, TOP, records_of

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

BENCHMARK = "never-slower"


def ratios() -> dict[str, float]:
    """The ratios of each program and number of ranks."""
    record = records_of(RESULTS).get(BENCHMARK)
    if not record:
        sys.exit(f"chart.py: no line of {BENCHMARK} in {RESULTS}: "
                 f"bench/run {BENCHMARK} --json writes one")
    return {figure["name"][len(BENCHMARK) + 1:]: figure["value"] for figure in record["figures"]
            if figure["name"] not in (BENCHMARK, f"{BENCHMARK}-mean", f"{BENCHMARK}-alike",
                                      f"{BENCHMARK}-failed")}


def color(ratio: float) -> str:
    ratio = round(ratio, 3)  # as Figure.reached
    return "tab:green" if ratio < 0.97 else "tab:gray" if ratio <= 1.03 else "tab:orange"


def main() -> None:
    rows = sorted(ratios().items(), key=lambda item: item[1], reverse=True)
    names, values = zip(*rows)
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.2 * len(rows)), layout="constrained")
    axes.barh(range(len(rows)), [value - 1 for value in values], left=1, height=0.75,
              color=[color(value) for value in values])
    for y, value in enumerate(values):
        axes.text(value, y, f" {value:.2f} ", va="center", ha="left" if value >= 1 else "right",
                  fontsize=7)
    axes.set_yticks(range(len(rows)), names, fontsize=7)
    axes.set_xscale("log", base=2)
    axes.set_xticks([0.5, 0.7, 1, 1.4, 2], ["0.5", "0.7", "1", "1.4", "2"])
    axes.set_xlim(min(values) / 1.15, max(values) * 1.15)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time with invade, over the best without in any number of ranks and threads")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.01)
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else TOP / "doc/never-slower.png"
    figure.savefig(out, dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
