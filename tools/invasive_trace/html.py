# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTML file with everything in it: the picture, what each process did with its cores, and where
it waited.  It needs no network and no other file."""

from __future__ import annotations

import html

from . import check, picture, places, series
from . import format as fmt

HOT = 30  # call sites

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline';
      script-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
body {{ font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }}
svg {{ width: 100%; height: auto; }}
table {{ border-collapse: collapse; margin: 0.5em 0 1.5em; }}
th, td {{ padding: 0.2em 0.8em; text-align: right; border-bottom: 1px solid #ddd; }}
th {{ cursor: pointer; border-bottom: 2px solid #888; }}
td.text, th.text {{ text-align: left; }}
.bar {{ background: linear-gradient(to right, #8cb8e8 var(--part), transparent var(--part)); }}
.bad {{ color: #a00; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{summary}</p>
{findings}
{sections}
<script>
"use strict";
/* a click on a column's head sorts by it */
let rows = 0;
for (const table of document.querySelectorAll("table")) {{
    const body = table.tBodies[0];
    rows += body.rows.length;
    table.tHead.rows[0].querySelectorAll("th").forEach((head, column) => {{
        let up = false;
        head.addEventListener("click", () => {{
            const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
            const sorted = [...body.rows].sort((a, b) => {{
                const x = value(a), y = value(b), n = Number(x) - Number(y);
                return Number.isNaN(n) ? x.localeCompare(y) : n;
            }});
            up = !up;
            body.append(...(up ? sorted : sorted.reverse()));
        }});
    }});
}}
document.documentElement.dataset.ready = rows;
</script>
</body>
</html>
"""


def cell(value, text: str | None = None, part: float | None = None) -> str:
    """A number and its text; part: the length of the bar behind it."""
    if isinstance(value, str):
        return f'<td class="text">{html.escape(value)}</td>'
    bar = ""
    if part is not None:
        bar = f' class="bar" style="--part:{100 * min(max(part, 0), 1):.1f}%"'
    return f'<td{bar} data-value="{value}">{text if text is not None else value}</td>'


def table(heads: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return "<p>None.</p>"
    kinds = ['class="text"' if 'class="text"' in c else "" for c in rows[0]]
    head = "".join(f"<th {k}>{h}</th>" for h, k in zip(heads, kinds))
    body = "\n".join("<tr>" + "".join(row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def seconds_of(value: float) -> str:
    return cell(value, f"{value:.3f}")


def percent(value: float) -> str:
    return cell(value, f"{100 * value:.1f}")


def seconds(ns: float, part: float | None = None) -> str:
    return cell(ns, f"{ns / 1e9:.3f}", part)


def share(value: float) -> str:
    return cell(value, f"{100 * value:.1f} %", value)


# Of each process, by its name in the report as text and as JSON: seconds, fractions, counts.
REPORTED = (("useful s", seconds_of, "useful_seconds"),
            ("waiting s", seconds_of, "waiting_seconds"),
            ("eff %", percent, "metrics", "parallel_efficiency"),
            ("load %", percent, "metrics", "load_balance"),
            ("comm %", percent, "metrics", "communication_efficiency"),
            ("used c*s", seconds_of, "useful_core_seconds"),
            ("lent c*s", seconds_of, "lent_core_seconds"),
            ("borrow c*s", seconds_of, "borrowed_core_seconds"), ("lends", cell, "lends"),
            ("borrows", cell, "borrows"), ("reclaims", cell, "reclaims"))
# Where there is no report, and what only the trace knows.
UNREPORTED = ("lent c*s", "borrow c*s")
TRACED = ("held c*s", "owned c*s", "waits", "waited s")


def process_table(view: series.View) -> str:
    reported = {(p.get("pid"), p.get("program")): p for job in view.jobs
                for p in fmt.parts_of(job, "processes")}
    heads = ["process", "program", "pid", "time s",
             *([head for head, *_ in REPORTED] if reported else UNREPORTED), *TRACED]
    return table(heads, [process_row(view, story, reported) for story in view.stories])


def process_row(view: series.View, story: series.Story, reported: dict) -> list[str]:
    start, end = story.lifetime(view.table)
    life = max(end - start, 1)
    row = [cell(story.process.name), cell(story.process.program), cell(story.process.pid),
           seconds(life)]
    told = reported.get((story.process.pid, story.process.program))
    if told:
        row += [show(fmt.number_in(told, *path)) for _, show, *path in REPORTED]
    elif reported:
        row += [cell("")] * len(REPORTED)
    else:
        row += [seconds(story.lent_used_ns), seconds(story.borrowed_ns)]
    return row + [seconds(story.computed_ns), seconds(story.owned.total_ns),
                  cell(len(story.waits)), seconds(story.waited_ns, story.waited_ns / life)]


def wait_rows(view: series.View) -> list[list[str]]:
    hot: dict[tuple, list[int]] = {}
    names = places.names_of([site for story in view.stories
                             for site in story.process.sites.values()])

    def site_name(site: fmt.Site | None) -> tuple[str, str]:
        if not site:
            return "?", "(not recorded)"
        return f"MPI_{site.function}", names[site.module, site.offset]

    for story in view.stories:
        for wait in story.waits:
            site = story.process.sites.get(wait.site)
            place = (story.process.program, *site_name(site), story.process.name)
            hot.setdefault(place, []).append(wait.end - wait.start)
    found = sorted(hot.items(), key=lambda item: -sum(item[1]))[:HOT]
    most = sum(found[0][1]) if found else 1
    return [[cell(function), cell(place), cell(rank), cell(len(times)),
             seconds(sum(times), sum(times) / max(most, 1)),
             cell(sum(times) / len(times), f"{sum(times) / len(times) / 1000:.0f}"),
             cell(max(times), f"{max(times) / 1000:.0f}")]
            for (_, function, place, rank), times in found]


METRICS = (("parallel efficiency", "parallel_efficiency"), ("= load balance", "load_balance"),
           ("x communication efficiency", "communication_efficiency"),
           ("balance of the work", "work_balance"),
           ("perfect balance would gain", "perfect_balance_gain"))


def efficiencies(view: series.View) -> str:
    """The metrics of invade(1) of each job, as the report has them."""
    text = ""
    for job in view.jobs:
        rows = [[cell(name), share(fmt.number_in(job, "metrics", key))] for name, key in METRICS]
        name = f" of {html.escape(str(job.get('program'))[:80])}" if len(view.jobs) > 1 else ""
        text += f"<h3>Efficiency{name}</h3>\n" + table(["", "share"], rows)
    return text


def cores(view: series.View) -> str:
    """The table of the cores, over the time in which there were processes."""
    all_ns = view.table.ncores * max(view.end_ns - view.start_ns, 1)
    held = sum(story.computed_ns for story in view.stories)
    borrowed = sum(story.borrowed_ns for story in view.stories)
    rows = [[cell("core time held"), share(held / all_ns)],
            [cell("core time without a holder"), share(max(1 - held / all_ns, 0))]]
    if not view.table.anonymous:
        rows += [[cell("of what was held, borrowed"), share(borrowed / max(held, 1))],
                 [cell("changes of a core's holder"), cell(view.takings)],
                 [cell("changes of a core's owner"), cell(view.owner_changes)]]
    return "<h3>Cores</h3>\n" + table(["", "part"], rows)


def svg_of(view: series.View) -> str:
    text = picture.render(view, "svg").decode()
    return text[text.index("<svg"):]


def section(view: series.View) -> str:
    hot = ["waits in", "called from", "process", "times", "total (s)", "mean (us)", "longest (us)"]
    return (f"<h2>{html.escape(picture.title_of(view))}</h2>\n{svg_of(view)}\n"
            + efficiencies(view) + cores(view) + "<h3>Processes</h3>\n" + process_table(view)
            + "<h3>Hot waits</h3>\n"
            + "<p>Waits of 10 microseconds and more, by the place that called MPI.</p>\n"
            + table(hot, wait_rows(view)))


def page(trace: fmt.Trace, name: str) -> str:
    views = series.views_of(trace)
    findings, lines = check.check(trace)
    marks = "".join(f'<p class="bad">{html.escape(f)}</p>\n' for f in findings[:10])
    return PAGE.format(title=html.escape(f"Trace {name}"), summary=html.escape("; ".join(lines)),
                       findings=marks, sections="\n".join(section(view) for view in views))
