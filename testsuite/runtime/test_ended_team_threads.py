# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread of a team that ends inside a region (pthread_exit, pthread_cancel) leaves its program
undefined, as without us, but not the programs of others: no core stays held."""

import json
import os
import signal

import pytest

CORES, LIMIT_S = 4, 4
MESSAGE = "\nlibgomp: a thread has ended inside a parallel region, by pthread_exit or " \
          "pthread_cancel\n"
CONTEXTS, KERNEL_THREADS = {}, {"INVASIVE_CONTEXTS": "off"}

HAS_CONTEXTS = os.uname().machine in ("x86_64", "aarch64")

# $1 rmctl, $2 the program, $3 how its thread ends, $4 "after": the second process starts when the
# first one has ended.  Writes what the first says, its exit code, and what rmctl says of the cores.
SCRIPT = f"""
timeout -s KILL {LIMIT_S} "$2" "$3" & first=$!
if [ "$4" = after ]; then wait $first; code=$?; else sleep 1; fi
"$2" compute >&2 & second=$!
for i in $(seq 500); do
    said=$("$1" status --json)
    case $said in *'"held_cores":{CORES},'*) break;; esac
    sleep 0.02
done
[ "$4" = after ] || {{ wait $first; code=$?; }}
kill -KILL $second
echo $code
echo "$said"
"""


@pytest.mark.parametrize("when", ["after", "beside"])
@pytest.mark.parametrize("how", ["exit", "cancel"])
@pytest.mark.parametrize("environment", [CONTEXTS, KERNEL_THREADS],
                         ids=["contexts", "kernel-threads"])
def test_all_cores_are_for_other_processes(build, invade, omp_program, run_program, environment,
                                           how, when):
    """Also beside the process, whose other threads wait for ever, as with stock, if they are kernel
    threads: then its time limit has ended it."""
    words = [build / "bin/rmctl", omp_program("team_thread_ends"), how, when]
    done = run_program([invade, f"--emulate-cores={CORES}", "--", "sh", "-c", SCRIPT, "sh", *words],
                       environment, check=False)
    says, code, status = done.stdout.splitlines()
    assert says == "ends"
    (domain,) = json.loads(status)["domains"]
    assert domain["processes"][-1]["held_cores"] == CORES
    if when == "after":
        assert len(domain["processes"]) == 1
    if HAS_CONTEXTS and environment is CONTEXTS:
        assert int(code) == 1 and MESSAGE in done.stderr
    else:
        assert int(code) == 128 + signal.SIGKILL and MESSAGE not in done.stderr


@pytest.mark.skipif(not HAS_CONTEXTS, reason="no contexts on this processor")
@pytest.mark.parametrize("condition, which", [("unmanaged", []), ("managed", []),
                                              ("one-core", ["initial"])])
@pytest.mark.parametrize("how", ["exit", "cancel"])
def test_the_program_ends_with_a_message_where_implicit_tasks_are_contexts(
        in_condition, omp_program, run_program, how, condition, which):
    words, environment, _ = in_condition(condition)
    command = [*words, omp_program("team_thread_ends"), how, *which]
    done = run_program(command, environment, check=False)
    assert (done.returncode, done.stdout) == (1, "ends\n") and MESSAGE in done.stderr
