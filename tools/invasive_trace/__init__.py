# SPDX-License-Identifier: GPL-3.0-or-later
"""What reads the traces of `invade --trace`: see invade-trace(1).

format.py reads a file, merge.py puts its events in order, check.py finds what cannot be;
series.py turns them into cores over time; picture.py, chrome.py, paraver.py, html.py and dump.py
show them.
"""
