# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of apps/swe or apps/euler, and what it prints."""


class Result(dict):
    """What came out: result["cells"] is a number, result.checksum is text."""

    def __init__(self, out):
        lines = [line.split() for line in out.splitlines()]
        super().__init__((line[0], line[1]) for line in lines if len(line) == 2)
        self.checksum = self.pop("checksum")

    def __getitem__(self, name):
        return float(super().__getitem__(name))


def simulator(run_program, program, scenarios):
    """run(SCENARIO, KEY=VALUE..., threads=2, by=[...]) - the result; a scenario is a name in that
    directory or a file, `by` is what starts the program, `of` another program, `more` are variables
    of the environment"""

    def run(scenario, *words, threads=2, by=(), of=program, check=True, more=None):
        file = scenario if str(scenario).endswith(".toml") else scenarios / f"{scenario}.toml"
        # threads that wait by spinning would keep each other off a busy machine's cores
        env = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive", **(more or {})}
        done = run_program([*by, of, "--quiet", file, *words], env, timeout=100, check=check)
        return Result(done.stdout) if check else done

    return run
