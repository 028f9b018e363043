# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the source tree, for tests that compile parts of the project themselves."""

import re

from lib.building.house import OWN_FOLDERS, REPLACING

RUNTIME_FOLDERS = (*REPLACING, *OWN_FOLDERS)


def runtime_includes(top):
    """The compiler's options for the headers of the OpenMP runtime."""
    ours = top / "libgomp-invasive"
    return [word for folder in RUNTIME_FOLDERS for word in ("-I", ours / folder)]


def runtime_file(top, name):
    """The file of the OpenMP runtime of that name."""
    found, = (path for folder in RUNTIME_FOLDERS
              if (path := top / "libgomp-invasive" / folder / name).exists())
    return found


# All that the files of the overlay that are compiled here need of libgomp's own header.
LIBGOMP_H = """#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define MEMMODEL_RELAXED __ATOMIC_RELAXED
extern void *gomp_malloc (size_t);
struct gomp_thread { int unused; };
"""


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
