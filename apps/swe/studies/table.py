# SPDX-License-Identifier: GPL-3.0-or-later
"""What a study leaves: a table on the terminal, the same as CSV, and pictures."""

from __future__ import annotations

import csv
from pathlib import Path


def show(title: str, columns: list[str], rows: list[list], notes: list[str],
         file: Path | None = None, more: list[dict[str, float]] | None = None) -> None:
    """Numbers with three digits; the CSV has all of them, no notes, and `more`: columns of each
    row."""
    texts = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    widths = [max(len(line[i]) for line in [columns, *texts]) for i in range(len(columns))]
    print(f"\n{title}")
    for line in [columns, *texts]:
        print("  " + "  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())
    for note in notes:
        print(f"  {note}")
    if file:
        with file.open("w", newline="") as out:
            more = more or [{} for _ in rows]
            csv.writer(out, lineterminator="\n").writerows(
                [[*columns, *more[0]], *([*row, *of.values()] for row, of in zip(rows, more))])
        print(f"  {file}", flush=True)


def pyplot():
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "swe", "figure.constrained_layout.use": True})
    from matplotlib import pyplot as plt
    return plt


def save(figure, file: Path) -> None:
    figure.savefig(file, dpi=120)
    print(f"  {file}", flush=True)
