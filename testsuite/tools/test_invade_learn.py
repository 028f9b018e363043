# SPDX-License-Identifier: GPL-3.0-or-later
"""invade --learn: the teams that are tried, the one that is used from then on, and the file that
remembers it."""

import json
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.building.small_programs import compile_text
from lib.waiting import PATIENCE_S

pytestmark = pytest.mark.timeout(60)

# Sleeps long with every team but that of argv[1] threads, and prints the size of its team.
PROGRAM = r"""
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = 0, threads = omp_get_max_threads();
    const char *code = getenv("TEST_CODE"), *number = getenv("TEST_SIGNAL");
    usleep(argc > 1 && threads == atoi(argv[1]) ? 20000 : 400000);
#pragma omp parallel reduction(+ : n)
    n++;
    printf("%d\n", n);
    fflush(stdout);
    if (number)
        raise(atoi(number));
    return code ? atoi(code) : n != threads;
}
"""
CORES = "--emulate-cores=4"  # the default team has 4 threads; 2 and 1 are tried


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_text(tmp_path_factory.mktemp("learn") / "sleeper", PROGRAM, "-O1", "-fopenmp")


@pytest.fixture
def program(compiled, tmp_path):
    """A copy of the program for each test."""
    return shutil.copy(compiled, tmp_path / "sleeper")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "learnt.json"


@pytest.fixture
def learn(run_program, invade, file):
    """learn(COMMAND..., option=None, cores=CORES, code=0): the messages of invade --learn"""

    def run(*command, option=None, cores=CORES, code=0, **more):
        done = run_program([invade, option or f"--learn={file}", cores, *command], check=False,
                           timeout=PATIENCE_S, **more)
        assert done.returncode == code, done.stderr
        return done

    return run


def commands(file):
    return json.loads(file.read_text())["commands"]


def seconds(entry):
    return {team["threads"]: team["seconds"] for team in entry["teams"]}


@pytest.fixture
def known(learn, program, file):
    """known({THREADS: SECONDS}, COMMAND...): as if the command, `program 4` by default, had taken
    so long; the content of the file"""

    def make(times, *command):
        learn(*(command or (program, 4)))
        root = json.loads(file.read_text())
        root["commands"][-1]["teams"] = [{"threads": threads, "seconds": list(some)}
                                         for threads, some in times.items()]
        file.write_text(json.dumps(root, indent=1))
        return file.read_bytes()

    return make


TWO_IS_FASTEST = {0: [1.0, 1.0], 2: [0.5, 0.5], 1: [2.0, 2.0]}
FOUR_IS_FASTEST = {0: [1.0, 1.0], 2: [1.5, 1.5], 1: [2.0, 2.0]}


# --- which team a run has

def test_each_team_is_tried_twice_and_the_fastest_is_used_then(learn, program, file):
    runs = [learn(program, 2) for _ in range(8)]
    assert [int(run.stdout) for run in runs] == [4, 2, 1, 4, 2, 1, 2, 2]
    assert [run.stderr for run in runs[:6]] == [
        "", "invade: --learn: a trial with 2 threads\n", "invade: --learn: a trial with 1 thread\n",
    ] * 2
    for run in runs[6:]:
        assert run.stderr.startswith("invade: --learn: 2 threads, which took 0.")
    entry, = commands(file)
    assert {threads: len(some) for threads, some in seconds(entry).items()} == {0: 2, 2: 4, 1: 2}


def test_the_default_team_is_kept_where_it_is_the_fastest(learn, program):
    runs = [learn(program, 4) for _ in range(7)]
    assert [int(run.stdout) for run in runs] == [4, 2, 1, 4, 2, 1, 4]
    assert runs[-1].stderr == "invade: --learn: the default team, which was the fastest\n"


@pytest.mark.parametrize("times, threads", [
    ({0: [1.0, 1.0], 2: [0.98, 0.98], 1: [2.0, 2.0]}, 4),  # as fast, but for 3 %
    ({0: [1.0, 1.0], 2: [0.96, 0.96], 1: [2.0, 2.0]}, 2),
    ({0: [1.0, 1.0], 2: [0.9, 0.9], 1: [0.8, 0.8]}, 1),
    ({0: [9.0, 1.0, 9.0], 2: [0.9, 9.0, 9.0], 1: [2.0, 2.0]}, 2),  # by the shortest
    ({0: [1.0, 1.0], 2: ["0.1", 2.0], 1: [-1, 2.0]}, 4),  # what is no time
    ({0: [2.0, 1.0], 2: [1.2, 2.2], 1: [5.0, 5.0]}, 4),
    ({0: [1.0, 1.0], 2: [0.1, 0.1], 1: [2.0]}, 1)])  # which has still to be tried
def test_the_team_is_chosen_by_what_is_in_the_file(learn, known, program, times, threads):
    known(times)
    assert int(learn(program, 4).stdout) == threads


def test_more_runs_than_one_with_a_team_come_from_the_one_with_fewest(learn, known, program):
    known({0: [1.0, 1.0], 2: [1.0], 1: []})
    assert [int(learn(program, 4).stdout) for _ in range(3)] == [1, 2, 1]


def test_five_times_of_a_team_are_kept(learn, known, program, file):
    known({0: [1.0] * 5, 2: [0.51, 0.52, 0.53, 0.54, 0.55], 1: [2.0] * 5})
    assert int(learn(program, 4).stdout) == 2
    entry, = commands(file)
    times = seconds(entry)
    assert times[0] == [1.0] * 5 and times[1] == [2.0] * 5
    assert times[2][:4] == [0.52, 0.53, 0.54, 0.55] and len(times[2]) == 5
    assert 0.4 <= times[2][4] < PATIENCE_S


def test_the_size_of_teams_can_be_written_into_the_file(learn, known, program):
    known({0: [1.0, 1.0], 3: [0.5, 0.5]})
    assert int(learn(program, 4).stdout) == 3


def test_ranks_try_their_share_of_the_cores_and_twice_that(learn, mpiexec, build, file):
    words = [mpiexec, *(["--oversubscribe"] if "openmpi" in mpiexec else []), "-n", "2"]
    arguments = ["--loads=1:1", "--work-ms=1", "--iterations=2"]
    learn(*words, build / "apps/imbalance/imbalance", *arguments)
    entry, = commands(file)
    assert (entry["before"], entry["program"], entry["arguments"]) == (
        words, "imbalance", arguments)
    assert (entry["cores"], entry["processes"]) == (4, 2) and entry["team"] > 4
    assert list(seconds(entry)) == [0, 2, 4]


# --- what the same command is

def test_other_arguments_use_what_is_known_and_write_nothing(learn, known, program, file):
    content = known(TWO_IS_FASTEST)
    done = learn(program, 2, "more")
    assert int(done.stdout) == 2 and file.read_bytes() == content
    assert done.stderr == ("invade: --learn: 2 threads, which took 0.50 of the default team's "
                           "time, with other arguments\n")
    content = known(FOUR_IS_FASTEST)
    assert int(learn(program, 2, "more").stdout) == 4 and file.read_bytes() == content


def test_other_arguments_are_learnt_while_nothing_is_known(learn, known, program, file):
    known({0: [1.0, 1.0], 2: [0.5], 1: []})
    assert int(learn(program, 4, "more").stdout) == 4
    assert [entry["arguments"] for entry in commands(file)] == [["4"], ["4", "more"]]


def test_a_program_of_other_contents_is_learnt_anew(learn, known, program, file):
    known(TWO_IS_FASTEST)
    with open(program, "ab") as binary:
        binary.write(b"other contents")
    assert int(learn(program, 4).stdout) == 4
    old, new = commands(file)
    assert old["hash"] != new["hash"] and len(seconds(new)[0]) == 1


def test_the_same_program_in_another_folder_is_the_same(learn, known, program, file, tmp_path):
    known(TWO_IS_FASTEST)
    (tmp_path / "folder").mkdir()
    shutil.move(program, tmp_path / "folder/sleeper")
    for how in ({"cwd": tmp_path / "folder"}, {"env": {"PATH": f"/bin:{tmp_path}/folder"}}):
        word = "./sleeper" if "cwd" in how else "sleeper"
        assert int(learn(word, 4, **how).stdout) == 2
    assert len(commands(file)) == 1


def test_other_words_before_the_program_are_another_command(learn, known, program, file):
    known(TWO_IS_FASTEST)
    assert int(learn("env", "A=1", program, 4).stdout) == 4
    assert [entry["before"] for entry in commands(file)] == [[], ["env", "A=1"]]
    known(TWO_IS_FASTEST, "env", "A=1", program, 4)
    assert int(learn("env", "A=1", program, 4).stdout) == 2


def test_another_number_of_cores_is_another_command(learn, known, program, file):
    known(TWO_IS_FASTEST)
    assert int(learn(program, 8, cores="--emulate-cores=8").stdout) == 8
    assert [entry["cores"] for entry in commands(file)] == [4, 8]


# --- runs that count for nothing

@pytest.mark.parametrize("how, code", [
    ({"TEST_CODE": "3"}, 3), ({"TEST_SIGNAL": str(int(signal.SIGKILL))}, -signal.SIGKILL),
    ({"TEST_SIGNAL": str(int(signal.SIGTERM))}, -signal.SIGTERM)])
def test_a_run_that_fails_counts_for_nothing(learn, known, program, file, how, code):
    learn(program, 4, env=how, code=code)
    assert not file.exists()
    for times, threads in ((TWO_IS_FASTEST, 2), ({0: [1.0], 2: [], 1: []}, 2)):
        content = known(times)
        assert int(learn(program, 4, env=how, code=code).stdout) == threads
        assert file.read_bytes() == content


def test_omp_num_threads_is_the_users(learn, known, program, file):
    content = known(TWO_IS_FASTEST)
    done = learn(program, 4, env={"OMP_NUM_THREADS": "3"})
    assert int(done.stdout) == 3 and file.read_bytes() == content
    assert "OMP_NUM_THREADS gives teams their size: unset it" in done.stderr


def test_a_size_from_outside_is_the_users(learn, program, file):
    said = learn(program, 4, env={"INVASIVE_THREADS": "2"})
    assert said.stdout == "2\n" and "INVASIVE_THREADS" in said.stderr
    assert not file.exists()


def test_a_size_that_the_program_does_not_follow_is_not_tried_again(learn, program, file):
    learn(program, 4)
    command = ["env", "OMP_NUM_THREADS=3", program, 4]
    said = [learn(*command).stderr for _ in range(4)]
    assert said[0] == said[3] == ""
    assert all("the program has teams of its own size" in text for text in said[1:3])


def test_a_command_without_openmp_is_not_remembered(learn, known, file):
    assert learn("true").stderr == "" and not file.exists()
    content = known(TWO_IS_FASTEST)
    learn("true")
    learn("sh", "-c", "exit 4", code=4)
    assert file.read_bytes() == content


def test_a_rank_of_a_job_does_not_choose(run_program, invade, mpiexec, program, file):
    done = run_program([mpiexec, "-n", "1", invade, f"--learn={file}", CORES, program, "4"],
                       timeout=PATIENCE_S)
    assert "write invade --learn mpiexec" in done.stderr + done.stdout
    assert not file.exists()


# --- the file

@pytest.mark.parametrize("content, told", [
    ('{\n "invade_learn": 1,\n "commands": [,\n', ", line 3: "),
    ("no JSON\n", ", line 1: "),
    ('{"invade_learn": 1, "commands": []} more\n', ", line 1: "),
    ('{"name": "of another program"}\n', " is no file of invade --learn"),
    ('{"invade_learn": 1}\n', " is no file of invade --learn"),
    ('{"invade_learn": 2, "commands": []}\n', " is no file of invade --learn"),
    ("[1, 2]\n", " is no file of invade --learn")])
def test_a_file_that_is_not_understood_is_named_and_left(learn, program, file, content, told):
    file.write_text(content)
    done = learn(program, 4)
    assert int(done.stdout) == 4 and file.read_text() == content
    line, = done.stderr.splitlines()
    assert line.startswith("invade: --learn: ") and f"{file}{told}" in line
    assert learn(program, 4, env={"TEST_CODE": "3"}, code=3).stdout == done.stdout


def test_entries_that_are_not_understood_stay(learn, program, file):
    strange = [5, None, {}, {"cores": 4}, {"program": "sleeper", "cores": 4, "teams": 3},
               {"program": 7, "before": "x", "cores": [], "teams": [3]}]
    file.write_text(json.dumps({"invade_learn": 1, "commands": strange, "note": "mine"}))
    assert int(learn(program, 4).stdout) == 4
    assert json.loads(file.read_text())["note"] == "mine"
    assert commands(file)[:-1] == strange and commands(file)[-1]["program"] == "sleeper"


def test_an_empty_file_is_filled(learn, program, file):
    file.touch()
    learn(program, 4)
    assert len(commands(file)) == 1


def test_folders_of_the_file_are_made(learn, program, tmp_path):
    learn(program, 4, option=f"--learn={tmp_path}/one/two/file")
    assert len(commands(tmp_path / "one/two/file")) == 1
    assert [path.name for path in (tmp_path / "one/two").iterdir()] == ["file"]


def test_a_file_that_cannot_be_written_is_said(learn, program, tmp_path):
    (tmp_path / "regular").touch()
    for file in (tmp_path / "regular/file", tmp_path / "regular/folder/file"):
        done = learn(program, 4, option=f"--learn={file}")
        assert int(done.stdout) == 4
        assert done.stderr == f"invade: --learn: cannot write {file}: Not a directory\n"
        learn(program, 4, option=f"--learn={file}", env={"TEST_CODE": "3"}, code=3)


def test_the_file_is_the_users_own_by_default(learn, program, tmp_path):
    home = {"HOME": str(tmp_path / "home"), "XDG_STATE_HOME": ""}
    state = {**home, "XDG_STATE_HOME": str(tmp_path / "state")}
    for env, where in ((state, "state"), (home, "home/.local/state")):
        assert learn(program, 4, option="--learn", env=env).stderr == ""
        assert len(commands(tmp_path / where / "invasive/learnt.json")) == 1
        (tmp_path / where / "invasive/learnt.json").unlink()
    done = learn(program, 4, option="--learn", env={"HOME": "", "XDG_STATE_HOME": ""})
    assert int(done.stdout) == 4 and "use --learn=FILE" in done.stderr


def test_commands_at_the_same_time_are_all_remembered(learn, program, file, tmp_path):
    other = shutil.copy(program, tmp_path / "other")
    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(learn, which, 4, f"{i}") for which in (program, other)
                for i in range(4)]
    for run in runs:
        run.result()
    assert {(entry["program"], *entry["arguments"]) for entry in commands(file)} == {
        (name, "4", f"{i}") for name in ("sleeper", "other") for i in range(4)}


def test_runs_of_a_command_at_the_same_time_are_all_counted(learn, program, file):
    with ThreadPoolExecutor(5) as pool:
        for run in [pool.submit(learn, program, 4) for _ in range(5)]:
            run.result()
    entry, = commands(file)
    assert sum(len(some) for some in seconds(entry).values()) == 5


def test_of_a_thousand_commands_the_one_used_least_lately_goes(learn, known, program, file):
    known(TWO_IS_FASTEST)
    root = json.loads(file.read_text())
    others = [{"program": f"{i}", "used": f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z"}
              for i in range(1000)]
    root["commands"] = [*others[500:], *others[:500]]
    file.write_text(json.dumps(root))
    learn(program, 4)
    names = [entry["program"] for entry in commands(file)]
    assert len(names) == 1000 and "0" not in names and names[-1] == "sleeper"


# --- options

@pytest.mark.parametrize("options, word", [
    (["--threads=2"], "--threads"),
    (["--compare"], "--compare"),
    (["--trace=t"], "--trace"),
    (["--learn="], "the name of the file is empty")])
def test_options_that_make_no_sense_are_refused(run_program, invade, options, word, tmp_path):
    done = run_program([invade, "--learn=file", *options, "touch", "ran"], check=False,
                       cwd=tmp_path, timeout=PATIENCE_S)
    assert done.returncode == 125 and "--learn" in done.stderr and word in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_file_as_a_word_of_its_own_is_the_command(run_program, invade, tmp_path):
    done = run_program([invade, "--learn", "no-such-file", "true"], check=False,
                       env={"XDG_STATE_HOME": str(tmp_path)}, timeout=PATIENCE_S)
    assert done.returncode == 127 and "Write --learn=no-such-file" in done.stderr


def test_a_report_can_be_had_with_it(learn, program, file, invade, run_program):
    done = run_program([invade, f"--learn={file}", "--report", CORES, program, "4"],
                       timeout=PATIENCE_S)
    assert "sleeper" in done.stderr and len(commands(file)) == 1


def test_invasive_off_learns_nothing(learn, program, file):
    learn("--off", program, 4)
    assert not file.exists()


# --- what is not remembered, or not as it looks

def test_what_an_interpreter_runs_is_told_apart(learn, program, file):
    for _ in range(7):
        learn("sh", "-c", f"{program} 2; :")
    assert learn("sh", "-c", f"{program} 4; :").stderr == ""
    assert [entry["any_arguments"] for entry in commands(file)] == [False, False]


def test_a_program_that_is_no_word_of_the_command_is_told_apart(learn, program, file, tmp_path):
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\n{program} "$@"\n')
    script.chmod(0o755)
    learn(script, 4)
    learn(script, 4)
    entry, = commands(file)
    assert (entry["program"], entry["any_arguments"]) == ("script", False)


def test_a_program_that_cannot_be_found_is_named(learn, program, file, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "sleeper").mkdir()
    for _ in range(2):
        learn("env", "-C", tmp_path, "./sleeper", 4)
    entry, = commands(file)
    assert entry["program"] == "env"


def test_words_that_are_not_utf_8_are_named(learn, program, file):
    assert learn(program, 4, "\udcff").stderr == \
        "invade: --learn: word 3 of the command is not UTF-8. Nothing is learnt.\n"
    assert not file.exists() or not commands(file)


def test_a_run_that_was_told_to_end_counts_for_nothing(stock_env, invade, program, file):
    script = f"trap 'exit 0' TERM; {program} 4; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen([invade, f"--learn={file}", CORES, "sh", "-c", script], env=stock_env,
                          stdout=subprocess.PIPE, text=True) as run:
        try:
            assert [run.stdout.readline() for _ in range(2)] == ["4\n", "ready\n"]
            run.terminate()
            assert run.wait(PATIENCE_S) == 0
        finally:
            run.kill()
    assert not file.exists()


def test_a_link_stays_one_and_a_mode_what_it_was(learn, program, file, tmp_path):
    other = tmp_path / "other.json"
    other.write_text("")
    other.chmod(0o640)
    file.symlink_to(other)
    learn(program, 4)
    assert file.is_symlink() and len(commands(other)) == 1
    assert other.stat().st_mode & 0o777 == 0o640


def test_what_is_no_regular_file_is_left(learn, program, tmp_path):
    said = learn(program, 4, option="--learn=/dev/null").stderr
    assert said == "invade: --learn: cannot read /dev/null: it is not a regular file. " \
                   "Nothing is learnt.\n"
    assert learn(program, 4, option=f"--learn={tmp_path}").stderr.count("not a regular file") == 1


def test_trials_are_smaller_than_the_default(learn, program, file):
    learn(program, 4, env={"OMP_THREAD_LIMIT": "2"})
    entry, = commands(file)
    assert list(seconds(entry)) == [0, 1]
