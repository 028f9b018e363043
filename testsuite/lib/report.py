# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of invade: what is true of all of them."""

import json
import re

EFFICIENCIES = {"parallel_efficiency": float, "load_balance": float,
                "communication_efficiency": float}
JOB_METRICS = {**EFFICIENCIES, "work_balance": float, "perfect_balance_gain": float}


SITE = {"function": str, "symbol": (str, None), "source": (str, None), "module": (str, None),
        "offset": (str, None), "processes": int, "calls": int, "sleeps": int,
        "waited_seconds": float, "longest_wait_seconds": float}


REGIONS = {"symbol": (str, None), "source": (str, None), "module": (str, None),
           "offset": (str, None), "processes": int, "regions": int, "threads": int,
           "barriers": int, "context_switches": int, "sleeps": int, "elapsed_seconds": float,
           "outside_core_seconds": (float, None), "team_cost_seconds": float}


CLASS = {"id": (str, None), "count": int, "elapsed_seconds": float, "useful_seconds": float,
         "waiting_seconds": float, "useful_core_seconds": float, "metrics": EFFICIENCIES}


SIGNED = "a whole number"  # others are not negative


CONTROL = {"name": str, "low": SIGNED, "high": SIGNED, "first_value": SIGNED, "value": SIGNED,
           "settled": bool, "searches": int, "iterations": int,
           "tried": [{"value": SIGNED, "iterations": int, "median_seconds": (float, None)}]}


PROCESS = {"rank": (int, None), "node": str, "pid": int, "program": (str, None), "end": str,
           "start_seconds": float, "elapsed_seconds": float, "useful_seconds": float,
           "waiting_seconds": float, "useful_core_seconds": float, "cpu_seconds": (float, None),
           "owned_core_seconds": float, "energy_joules": (float, None),
           "borrowed_core_seconds": float,
           "lent_core_seconds": float, "lends": int, "borrows": int, "reclaims": int,
           "evictions": int, "reclaim_wait_seconds": float, "reclaim_wait_longest_seconds": float,
           "sleeping_waits": int, "metrics": EFFICIENCIES, "iteration_classes": [CLASS],
           "team_threads": (int, None), "context_switch_seconds": (float, None),
           "team_cost_seconds": float, "kernel_threads_by": (str, None),
           "control_points": [CONTROL],
           "call_sites": [SITE],
           "parallel_regions": [REGIONS]}


JOB = {"program": (str, None), "mpi": bool, "ranks": (int, None), "missing_ranks": int,
       "launched_ranks": (int, None), "without_moving_seconds": (float, None),
       "without_moving_is_bound": (bool, None),
       "start_seconds": float, "elapsed_seconds": float, "cores": float,
       "useful_core_seconds": float, "energy_joules": (float, None), "metrics": JOB_METRICS,
       "iteration_classes": [{**CLASS, "metrics": JOB_METRICS}], "call_sites": [SITE],
       "team_cost_seconds": float, "small_teams_seconds": (float, None),
       "parallel_regions": [REGIONS], "processes": [PROCESS]}


UNMANAGED = {"invade_report": int, "invade_version": str, "command": [str], "managed": bool,
             "jobs": [JOB]}


REPORT_SCHEMA = {**UNMANAGED, "exit_code": (int, None), "signal": (int, None), "cores": int,
          "nodes": [{"name": str, "cores": int}], "cores_shared": bool, "emulated": bool,
          "elapsed_seconds": (float, None), "parallel_efficiency": (float, None),
          "other_programs_core_seconds": (float, None), "energy_counters": str,
          "energy_joules": (float, None)}


def check_schema(value, schema, where="report"):
    """The value has exactly these members, of these types."""
    if isinstance(schema, dict):
        assert isinstance(value, dict) and set(value) == set(schema), f"{where}: {value}"
        for name, kind in schema.items():
            check_schema(value[name], kind, f"{where}.{name}")
    elif isinstance(schema, list):
        assert isinstance(value, list), where
        for number, item in enumerate(value):
            check_schema(item, schema[0], f"{where}[{number}]")
    elif isinstance(schema, tuple):
        assert value is None or type(value) is schema[0], f"{where}: {value!r}"
    elif schema is SIGNED:
        assert type(value) is int, f"{where}: {value!r}"
    else:
        assert type(value) is schema, f"{where}: {value!r}"
        assert schema is bool or schema is str or value >= 0, f"{where}: {value!r}"


def close(a, b, absolute=1e-6):
    return abs(a - b) <= absolute + 1e-6 * abs(b)


def check_regions(job):
    """Checks that hold for the parallel regions of all reports."""
    for thing in (job, *job["processes"]):
        assert thing["team_cost_seconds"] <= job["elapsed_seconds"] + 1e-6
        times = [f["elapsed_seconds"] for f in thing["parallel_regions"]]
        assert times == sorted(times, reverse=True)
        assert all(f["regions"] for f in thing["parallel_regions"])
    assert (job["small_teams_seconds"] or 0) <= job["elapsed_seconds"] + 1e-6
    assert close(job["team_cost_seconds"], sum(p["team_cost_seconds"] for p in job["processes"])
                 / len(job["processes"]))


def parsed(path):
    """The report in this file, with everything checked that is true of all reports."""
    report = json.loads(path.read_text())
    check_schema(report, REPORT_SCHEMA)
    assert report["invade_report"] == 1 and report["managed"]
    for job in report["jobs"]:
        without = job["without_moving_seconds"]
        assert without is None or without >= job["elapsed_seconds"]
        assert (without is None) == (job["without_moving_is_bound"] is None)
        for m in (c["metrics"] for c in job["iteration_classes"]):
            assert close(m["parallel_efficiency"],
                         m["load_balance"] * m["communication_efficiency"])
        m, capacity = job["metrics"], job["cores"] * job["elapsed_seconds"]
        assert close(m["parallel_efficiency"], m["load_balance"] * m["communication_efficiency"])
        assert close(m["perfect_balance_gain"], 1 - m["parallel_efficiency"])
        if capacity:
            assert close(m["parallel_efficiency"], min(1, job["useful_core_seconds"] / capacity))
        assert all(value <= 1 for value in m.values())
        assert close(job["useful_core_seconds"],
                     sum(p["useful_core_seconds"] for p in job["processes"]))
        for p in job["processes"]:
            assert close(p["useful_seconds"] + p["waiting_seconds"], p["elapsed_seconds"], 0.05)
        waits = [site["waited_seconds"] for site in job["call_sites"]]
        assert waits == sorted(waits, reverse=True)
        check_regions(job)
    return report


def rows(report):
    """The lines of a report on a process each, as words."""
    return [line.split() for line in report.splitlines() if re.match(r" +(\d+|-) +\d+ ", line)]
