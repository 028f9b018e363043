# SPDX-License-Identifier: GPL-3.0-or-later
"""rmctl simulate: what must hold of every schedule of every workload, and what can be
calculated."""

import json
import random
import re
import subprocess

import pytest

FREE = ["--move-cost-us=0", "--lend-cost-us=0", "--decision-us=0"]
HEADER = "time,process,job,work,scalability,repeat,min,max"
CLOSE = 1 + 1e-9


def simulate(build, *options, text=None, check=True):
    """The completed process."""
    return subprocess.run([build / "bin" / "rmctl", "simulate", *options], input=text, text=True,
                          capture_output=True, timeout=100, check=check)


def results(build, *options, text=None, series=None):
    """JSON; with the series of each schedule, if a path for them is given."""
    more = [f"--series={series}"] if series else []
    more += ["--workload=-"] if text else []
    answer = json.loads(simulate(build, "--json", *more, *options, text=text).stdout)
    answer["by_name"] = {s["name"]: s for s in answer["schedules"]}
    return answer


def lines(*rows):
    return "\n".join([HEADER, *rows]) + "\n"


def random_workload(r, ncores):
    """Jobs of all kinds: with and without graphs, ranges, late pieces, ranks with fewer pieces."""
    rows, process = [], 0
    for job in range(r.randint(1, 5)):
        start = r.choice([0, r.random()])
        for _ in range(r.randint(1, 6)):
            most = r.choice([0, 0, r.randint(1, ncores)])
            least = r.choice([0, 0, 1]) if most else 0
            for _ in range(r.randint(1, 5)):
                most_speed = ncores * r.random() + 1
                graph = r.choice(["", f"1:1 {ncores + 1}:{most_speed:.4f}", "1:1 2:1.5"])
                time = r.choice([start, start, start + r.random()])
                rows.append(f"{time:.6f},p{process},j{job},{r.choice([0, 1, 5]) * r.random():.6f},"
                            f"{graph},{r.randint(1, 4)},{least},{most}")
            process += 1
    return lines(*rows)


@pytest.mark.sanitize
@pytest.mark.parametrize("seed", range(12))
def test_no_schedule_beats_the_bound_or_uses_more_cores_than_there_are(build, tmp_path, seed):
    r = random.Random(seed)
    ncores = r.choice([1, 2, 3, 7, 16, 40])
    workload = random_workload(r, ncores)
    options = r.choice([[], FREE, ["--announce=ahead"], ["--announce=ahead", *FREE]])
    series = tmp_path / "series"
    got = results(build, f"--machine={ncores}", *options, text=workload, series=series)
    drawn = json.loads(series.read_text())
    for s, picture in zip(got["schedules"], drawn["schedules"]):
        what = f"{s['name']}, {ncores} cores {options}\n{workload}"
        assert s["seconds"] * CLOSE >= got["bound"]["seconds"], what
        assert all(end * CLOSE + 1e-12 >= least for end, least in
                   zip(s["job_end_s"], got["bound"]["job_end_s"])), what
        assert s["busy_core_seconds"] <= s["seconds"] * ncores * CLOSE + 1e-9, what
        # a core does at most a second of work in a second
        assert (got["workload"]["core_seconds"]
                <= s["busy_core_seconds"] * CLOSE + 1e-9), what
        columns = [sum(column) for column in zip(*picture["cores"])]
        assert max(columns) <= ncores * (1 + 1e-5), what
        assert (sum(columns) * picture["bin_s"]
                == pytest.approx(s["busy_core_seconds"], rel=1e-3, abs=1e-6)), what


@pytest.mark.sanitize
def test_static_sequence_and_bound_are_what_can_be_calculated(build):
    work = [[3, 1, 2, 6], [2, 8, 1, 1]]  # by round and rank, one job; a second one comes at 1 s
    rows = [f"0,p{rank},a,{w[rank]},,1,0,0" for w in work for rank in range(4)]
    rows += [f"1,q{rank},b,{4 + rank},1:1 2:1.5 4:2 5:2,2,0,0" for rank in range(4)]
    got = results(build, "--machine=16", text=lines(*rows))
    # 8 processes on 16 cores: two each; S(2) = 1.5
    static = {"a": 6 / 2 + 8 / 2, "b": 1 + 2 * 7 / 1.5}
    assert got["by_name"]["static"]["job_end_s"] == pytest.approx(list(static.values()))
    assert got["by_name"]["static"]["seconds"] == pytest.approx(max(static.values()))
    # job a with four cores each, then job b: S(4) = 2
    after = 6 / 4 + 8 / 4
    assert got["by_name"]["sequence"]["job_end_s"] == pytest.approx([after, after + 2 * 7 / 2])
    # alone: a as if cores were divisible, b no faster than its graph
    assert got["bound"]["job_end_s"] == pytest.approx([12 / 16 + 12 / 16, 1 + 2 * 7 / 2])
    assert got["bound"]["seconds"] == pytest.approx(8)
    assert got["workload"]["core_seconds"] == pytest.approx(24 + 2 * 22)


@pytest.mark.sanitize
def test_one_process_gets_all_cores_with_every_schedule(build):
    got = results(build, "--machine=6", *FREE, text=lines("0.5,p,j,12,1:1 3:3 6:4,5,0,0"))
    for s in got["schedules"]:
        assert s["seconds"] == pytest.approx(0.5 + 5 * 12 / 4), s["name"]
        assert s["moves"] == s["reclaims"] == 0


@pytest.mark.sanitize
def test_lending_gives_processes_that_compute_the_cores_of_those_that_wait(build):
    # 1:9 on 2 x 4 cores, where lending costs nothing: the slow rank has all eight after 1/4 s
    got = results(build, "--machine=8", *FREE, "--schedules=static,lending",
                  text=lines("0,p,j,1,,1,0,0", "0,q,j,9,,1,0,0"))
    assert got["by_name"]["static"]["seconds"] == pytest.approx(9 / 4)
    assert got["by_name"]["lending"]["seconds"] == pytest.approx(1 / 4 + (9 - 1) / 8)
    assert got["by_name"]["lending"]["lends"] == 4


@pytest.mark.sanitize
def test_policy_moves_what_persistently_fewer_cores_are_enough_for(build):
    # 1:3 on eight cores: 2 and 6 are right, and nothing waits then
    got = results(build, "--machine=package:1 l3:2 core:4", "--schedules=lending,workload",
                  text=lines("0,p,j,1,,100,0,0", "0,q,j,3,,100,0,0"))
    lending, workload = got["by_name"]["lending"], got["by_name"]["workload"]
    assert workload["moves"] == 2
    assert workload["lends"] < lending["lends"] / 5
    assert workload["seconds"] == pytest.approx(100 * 4 / 8, rel=0.02)


@pytest.mark.sanitize
def test_more_processes_than_cores_all_come_to_their_end(build):
    rows = [f"0,p{k},j{k % 3},1,,3,0,0" for k in range(20)]
    got = results(build, "--machine=2", *FREE, text=lines(*rows))
    for s in got["schedules"]:
        assert 30 <= s["seconds"] * CLOSE and s["seconds"] < 60, s["name"]


@pytest.mark.sanitize
@pytest.mark.parametrize("kind", ["constant", "changing", "study", "bursty", "crowd"])
def test_generated_workloads_are_the_seed_s_and_the_same_from_a_file(build, tmp_path, kind):
    file = tmp_path / "workload.csv"
    options = ["--machine=package:2 numa:2 core:8", "--json", "--schedules=static,jobs"]
    size = f"{kind},pieces=10,processes=12"
    one = simulate(build, *options, f"--generate={size},seed=7", f"--write={file}").stdout
    again = simulate(build, *options, f"--generate={size},seed=7").stdout
    other = simulate(build, *options, f"--generate={size},seed=8").stdout
    read = simulate(build, *options, f"--workload={file}").stdout
    assert one == again == read
    assert one != other


def test_one_core_process_and_job_are_said_as_one(build):
    for several, told in ((1, "1 core (1), 1 process in 1 job, "),
                          (2, "2 cores (2), 2 processes in 2 jobs, ")):
        text = simulate(build, f"--machine={several}", "--schedules=static",
                        f"--generate=constant,pieces=2,ranks=1,processes={several}").stdout
        assert text.startswith(told)


@pytest.mark.sanitize
def test_each_decision_is_printed(build):
    options = ["--generate=changing,pieces=40", "--machine=16", "--schedules=makespan"]
    text = simulate(build, "--decisions", *options).stdout
    counted = results(build, *options)["by_name"]["makespan"]["decisions"]
    decisions = [line for line in text.splitlines() if " processes  gain " in line]
    assert len(decisions) == counted > 2
    assert "makespan" in text.splitlines()[-3]
    document = json.loads(simulate(build, "--decisions", "--json", *options).stdout)
    for line, d in zip(decisions, document["schedules"][0]["decision"], strict=True):
        assert line == (f"{d['time']:12.6f} makespan     {d['processes']:6} processes  "
                        f"gain {100 * d['gain']:6.2f} %  {d['outcome']}, {d['moved']} moved")


@pytest.mark.sanitize
def test_numbers_of_json_have_no_digits_that_are_none(build):
    text = simulate(build, "--generate=changing,pieces=40", "--machine=16", "--json").stdout
    assert not [n for n in re.findall(r"[0-9.]+", text) if len(n.replace(".", "").strip("0")) > 15]


@pytest.mark.sanitize
@pytest.mark.parametrize("rows, where", [
    ("", "standard input:0: there is no piece of work"),
    ("time,process,job,work\n", "standard input:1: column scalability is missing"),
    ("time,time,process,job,work,scalability\n", "standard input:1: column time is there twice"),
    ("time,process,job,work,scalability,colour\n", "standard input:1: 'colour' is no column"),
    (lines("0,p,j,1,,1,0,0", "0,p,j,1,,1,0"), "standard input:3: 7 fields instead of 8"),
    (lines("-1,p,j,1,,1,0,0"), "standard input:2: time: -1 is not between 0 and"),
    (lines("0,,j,1,,1,0,0"), "standard input:2: process: a name has"),
    (lines("0,p,j\x01,1,,1,0,0"), "standard input:2: job: a name has printable"),
    (lines("0,p,j,nan,,1,0,0"), "standard input:2: work: 'nan' is not a number"),
    (lines("0,p,j,1e3x,,1,0,0"), "standard input:2: work: '1e3x' is not a number"),
    (lines("0,p,j,1,1-1,1,0,0"), "standard input:2: scalability: '1-1' does not begin"),
    (lines("0,p,j,1,2:1 1:1,1,0,0"), "standard input:2: scalability: 1 cores do not come after 2"),
    (lines("0,p,j,1,,0,0,0"), "standard input:2: repeat: 0 is not between 1"),
    (lines("0,p,j,1,,1,3,2"), "standard input:2: max: 2 is less than min, 3"),
    (lines("0,p,j,1,,1,0,0", "0,p,k,1,,1,0,0"), "standard input:3: job: process p was of job j"),
    (lines("# a comment", "", "0,p,j,1,,1,0,0", "0,p,j,1,,99999999,0,0"),
     "standard input:5: repeat: 99999999 is not between"),
])
def test_a_wrong_file_is_told_with_line_and_column(build, rows, where):
    got = simulate(build, "--workload=-", text=rows, check=False)
    assert got.returncode == 1 and got.stdout == ""
    assert got.stderr.startswith(f"rmctl simulate: {where}"), got.stderr


@pytest.mark.sanitize
def test_wrong_options_are_told(build, tmp_path):
    for options, why in [(["-g", "study", "-m", "0"], "not a number of cores"),
                         (["-g", "study", "-m", "core:2 pu"], "'pu' is not KIND:COUNT"),
                         (["-g", "study", "-m", "package:2"], "the last level must be core or pu"),
                         (["-g", "studies"], "'studies' is not constant"),
                         (["-g", "study,seed=x"], "seed is a whole number"),
                         (["-g", "study", "-s", "static,best"], "'best' is no schedule"),
                         (["-w", str(tmp_path / "none")], "No such file")]:
        got = simulate(build, *options, check=False)
        assert got.returncode == 1 and why in got.stderr, (options, got.stderr)
    for options in ([], ["-g", "study", "-w", "x"], ["-g", "study", "--announce=never"]):
        assert simulate(build, *options, check=False).returncode == 64


@pytest.mark.sanitize
@pytest.mark.parametrize("machine", ["5", "core:4 pu:2", "pu:8", "package:2 core:4 pu:1",
                                     "numa:4 core:3 pu:1", "package:2 numa:2 l3:2 core:4 pu:2",
                                     "package:2 l2:2 core:2 pu:1", "l3:3 pu:2",
                                     "package:1 l3:2 l2:2 core:2 pu:1"])
def test_machines_are_read_as_hwloc_reads_them(build, machine):
    answer = subprocess.run([build / "testsuite/rmd/programs/rmd_placement"], text=True, check=True,
                            input=f"machine each {machine}\nsimulated {machine}\n",
                            capture_output=True, timeout=60).stdout.splitlines()
    assert [int(x) for x in answer[0].split()][1:] == [int(x) for x in answer[1].split()][1:]


@pytest.mark.sanitize
def test_a_thousand_processes_are_simulated_on_ten_thousand_cores(build):
    got = results(build, "--machine=package:79 numa:2 l3:4 core:8 pu:2",
                  "--generate=crowd,pieces=3", "--schedules=static,lending,workload")
    assert got["machine"]["cores"] == 10112 and got["workload"]["processes"] > 1000
    assert got["by_name"]["workload"]["moves"] > 0


@pytest.mark.full
def test_ten_thousand_processes_are_simulated_on_a_hundred_thousand_cores(build):
    got = results(build, "--machine=package:782 numa:2 l3:4 core:8 pu:2", "--generate=crowd",
                  "--schedules=static,sequence,lending,workload")
    assert got["workload"]["processes"] > 10000
    for s in got["schedules"]:
        assert s["seconds"] * CLOSE >= got["bound"]["seconds"]


def test_the_picture_shows_every_schedule(build, tmp_path):
    picture = tmp_path / "study.svg"
    got = simulate(build, "--generate=study,pieces=20", "--machine=8", f"--picture={picture}",
                   "--schedules=static,lending,fair", check=False)
    if "install package python3-matplotlib" in got.stderr:
        pytest.skip("no matplotlib")
    assert got.returncode == 0, got.stderr
    text = picture.read_text()
    assert text.startswith("<?xml") and all(f"<!-- {name}: " in text
                                            for name in ("static", "lending", "fair"))
    bad = simulate(build, "--generate=study,pieces=2", f"--picture={tmp_path}/none/x.png",
                   check=False)
    assert bad.returncode == 1 and "No such file" in bad.stderr


def test_a_dollar_in_a_jobs_name_is_a_dollar_in_the_picture(build, tmp_path):
    picture, names = tmp_path / "jobs.svg", ("run$\\x$", "$y$")
    got = simulate(build, "--workload=-", "--machine=2", "--schedules=static",
                   f"--picture={picture}", check=False,
                   text=lines(*(f"0,p{n},{name},1,,1,," for n, name in enumerate(names))))
    if "install package python3-matplotlib" in got.stderr:
        pytest.skip("no matplotlib")
    assert got.returncode == 0, got.stderr
    assert all(f"<!-- {name} -->" in picture.read_text() for name in names)


# --- cores with speeds

def test_cores_of_half_speed_take_twice_the_time(build):
    text = lines("0,a,a,8,,1,,")
    for machine, seconds in (("4", 2), ("4x0.5", 4), ("2x1.0,2x0.5", 8 / 3), ("2,2x0.5", 8 / 3)):
        found = results(build, f"--machine={machine}", *FREE, text=text)
        assert found["machine"]["cores"] == 4
        assert found["bound"]["seconds"] == pytest.approx(seconds)
        for name in ("static", "sequence", "lending", "workload", "makespan"):
            assert found["by_name"][name]["seconds"] == pytest.approx(seconds), (machine, name)


@pytest.mark.parametrize("policy", ["workload", "makespan", "interference"])
def test_a_process_on_slow_cores_has_more_of_them(build, policy):
    """Two ranks with the same work: equal numbers of cores take 10 / (4 * 0.25) an iteration."""
    text = lines("0,a,j,10,,40,,", "0,b,j,10,,40,,")
    found = results(build, "--machine=4x1.0,4x0.25", "--announce=ahead", *FREE,
                    f"--schedules=static,{policy}", text=text)
    static, ours = (found["by_name"][name]["seconds"] for name in ("static", policy))
    assert static == pytest.approx(40 * 10)
    assert found["bound"]["seconds"] * CLOSE ** -1 <= ours < 0.7 * static


@pytest.mark.parametrize("machine", ["4x", "4x2", "4x0.5,", "4x0"])
def test_speeds_that_are_none_are_refused_with_what_is_allowed(build, machine):
    done = simulate(build, f"--machine={machine}", "--generate=constant", check=False)
    assert done.returncode == 1 and machine in done.stderr and "4x1.0,4x0.6" in done.stderr
