# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that answers each line of its input with a line."""

import subprocess


class Asked:
    """One process of the program, which is asked again and again."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *words):
        """The words of the answer."""
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        return self.process.stdout.readline().split()

    def numbers(self, *words):
        """The answer, which has whole numbers only."""
        return [int(word) for word in self.ask(*words)]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(20) == 0
