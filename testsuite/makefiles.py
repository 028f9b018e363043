# SPDX-License-Identifier: GPL-3.0-or-later
"""What the makefiles say, for tests that compile parts of the project themselves."""

import re


def sources(top, variable):
    """The C files of a variable of libinvasive/Makefile.inc, of which others may be a part."""
    text = (top / "libinvasive/Makefile.inc").read_text().replace("\\\n", " ")
    words = re.search(rf"^{variable} = (.*)$", text, re.MULTILINE).group(1).split()
    found = []
    for word in words:
        if word.startswith("$("):
            found += sources(top, word[2:-1])
        elif word.endswith(".c"):
            found.append(top / word)
    return found
