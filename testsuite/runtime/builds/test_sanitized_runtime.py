# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenMP runtime as a whole under ThreadSanitizer, with upstream's files and libinvasive, in
managed programs.  The stress programs check each structure alone; this checks that the runtime
keeps to what they are built for."""

import subprocess

import pytest

from lib.building.sanitized import CC
from lib.omp_programs import source_of, tags

pytestmark = pytest.mark.full

# Not here: what meets races of upstream's own (nest locks, the lists of work shares, doacross,
# whose fences the sanitizer does not know), and what counts threads or their stacks.
PROGRAMS = ("barriers barriers_in_regions busy_neighbours few_regions many_regions nested "
            "regions_from_threads runtimes spin_between_tasks static_reduction task_batches "
            "task_chain task_constructs task_priorities tasks thread_data").split()


def compile_sanitized(top, tmp_path, name):
    subprocess.run([*CC.split(), "-O1", "-g", "-fopenmp", source_of(name), "-lm",
                    "-o", tmp_path / name], check=True, timeout=100)
    return tmp_path / name


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_thread_reads_what_another_is_writing(top, tmp_path, sanitized, run_program, name):
    program = compile_sanitized(top, tmp_path, name)
    # without randomized addresses: some kernels place mappings where ThreadSanitizer has its own
    environment = dict(text.split("=", 1) for text in tags(source_of(name)).get("env", []))
    result = run_program(["setarch", "-R", sanitized / "bin/invade", "--threads=8", "--", program],
                         timeout=300, env=environment)
    assert "ThreadSanitizer" not in result.stdout + result.stderr


@pytest.mark.parametrize("case", "dynamic static guided runtime task meet".split())
def test_turns_of_ordered_loops_need_no_more_than_their_atomics(top, tmp_path, sanitized,
                                                                run_program, case):
    """ordered.c's ring, in which a chunk's turn is passed on without a lock."""
    (tmp_path / "upstream").write_text("race:work.c\n")  # the lists of work shares
    program = compile_sanitized(top, tmp_path, "ordered_turns")
    result = run_program(["setarch", "-R", sanitized / "bin/invade", "--threads=8", "--", program,
                          case], timeout=300,
                         env={"TSAN_OPTIONS": f"suppressions={tmp_path / 'upstream'}"})
    assert "ThreadSanitizer" not in result.stdout + result.stderr


def test_the_sanitizer_finds_a_race(tmp_path, sanitized, run_program):
    (tmp_path / "race.c").write_text("""int x;
        int main (void) {
        for (int round = 0; round < 20; round++)
        #pragma omp parallel
            for (int i = 0; i < 1000000; i++) x++;
        }""")
    subprocess.run([*CC.split(), "-O0", "-fopenmp", tmp_path / "race.c", "-o", tmp_path / "race"],
                   check=True, timeout=100)
    result = run_program(["setarch", "-R", sanitized / "bin/invade", "--threads=8", "--",
                          tmp_path / "race"], check=False)
    assert "ThreadSanitizer: data race" in result.stderr
