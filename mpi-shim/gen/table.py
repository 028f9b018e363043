# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""prototypes.txt as Python sees it: a list of Function."""

import re
import sys

TYPES = {
    "in": "const void *",
    "out": "void *",
    "int": "int ",
    "ints": "const int *",
    "count": "int ",
    "counts": "const int *",
    "displs": "const int *",
    "unit": "int ",
    "mcount": "MPI_Count ",
    "count*": "int *",
    "aint": "MPI_Aint ",
    "aints": "const MPI_Aint *",
    "offset": "MPI_Offset ",
    "type": "MPI_Datatype ",
    "types": "const MPI_Datatype *",
    "comm": "MPI_Comm ",
    "op": "MPI_Op ",
    "op*": "MPI_Op *",
    "info": "MPI_Info ",
    "infos": "const MPI_Info *",
    "info*": "MPI_Info *",
    "group": "MPI_Group ",
    "errh": "MPI_Errhandler ",
    "sess": "MPI_Session ",
    "win": "MPI_Win ",
    "file": "MPI_File ",
    "req": "MPI_Request ",
    "int*": "int *",
    "comm*": "MPI_Comm *",
    "group*": "MPI_Group *",
    "errh*": "MPI_Errhandler *",
    "sess*": "MPI_Session *",
    "win*": "MPI_Win *",
    "file*": "MPI_File *",
    "req*": "MPI_Request *",
    "reqs": "MPI_Request *",
    "creqs": "const MPI_Request *",
    "stat*": "MPI_Status *",
    "stats": "MPI_Status *",
    "msg*": "MPI_Message *",
    "text": "const char *",
    "char*": "char *",
    "strings": "char **",
    "argv": "char ***",
    "word": "uintptr_t ",
}
# In a function whose name ends in _c.
LARGE = {
    **TYPES,
    "count": "MPI_Count ",
    "count*": "MPI_Count *",
    "counts": "const MPI_Count *",
    "displs": "const MPI_Aint *",
    "unit": "MPI_Aint ",
}
KINDS = (
    "use hand wait poll tell send recv mrecv sendrecv push post init sync coll icoll cinit "
    "arrive garrive create warrive farrive wake rpost fpost drop pass list"
).split()


class Function:
    """One line of the table, or one of the two that a line with "+" stands for."""

    def __init__(self, kind, name, args, optional, large=False):
        self.kind, self.name, self.args, self.optional = kind, name, args, optional
        self.large = "_c" if large else ""

    def params(self):
        types = LARGE if self.large else TYPES
        return ", ".join(types[t] + n for t, n in self.args) or "void"

    def values(self):
        return ", ".join(n for _, n in self.args)

    def arg(self, *names):
        """The first of these names that is an argument, or None."""
        return next((n for n in names if n in (a for _, a in self.args)), None)

    def direct(self):
        return f"shim_pmpi.{self.name}({self.values()})"


def arguments(kind, name, text, functions):
    """The arguments of the line, or of the blocking collective of which it is another form."""
    if kind == "icoll" and not text:
        return [*functions[name[1:].capitalize()].args, ("req*", "request")]
    if kind == "cinit":
        base = functions[name.removesuffix("_init")]
        return [*base.args, ("info", "info"), ("req*", "request")]
    if kind == "pass":
        return [("word", f"w{i}") for i in range(int(text))]
    return [tuple(a.split()) for a in (text or "").split(",") if a.strip()]


def parse(text):
    functions = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"(\w+)\s+(\w+)([?+]*)(?::\s*(.*))?", line)
        if not match or match[1] not in KINDS:
            sys.exit(f"prototypes.txt:{number}: not understood: {line}")
        kind, name, marks, rest = match.groups()
        args = arguments(kind, name, rest, functions)
        for arg in args:
            if len(arg) != 2 or arg[0] not in TYPES:
                sys.exit(f"prototypes.txt:{number}: unknown argument: {' '.join(arg)}")
        functions[name] = Function(kind, name, args, "?" in marks)
        if "+" in marks:
            functions[name + "_c"] = Function(kind, name + "_c", args, True, large=True)
    return list(functions.values())


# What doc/man/mpi-shim.7 says of the kinds, in this order.
WAYS = (
    ("Waits of one rank for another, and collectives", "send recv mrecv sendrecv wait sync coll"),
    ("Collectives without a non-blocking form; the ranks come together first",
     "arrive garrive create warrive farrive"),
    ("Tests; a streak of failed ones is a wait", "poll"),
    ("One-sided synchronisation that waits for the target to make progress: it is woken", "wake"),
    ("Not waits; they wake a rank that waits for them",
     "push post init cinit icoll rpost fpost tell"),
    ("Passed through: they may block, and what they call inside is not managed", "pass"),
    ("Passed through: they may block", "list"),
)


def manual(functions):
    """The section of doc/man/mpi-shim.7 that says what is intercepted, and how.  A function whose
    large-count form is treated in the same way is listed once."""
    lines = ['.\\" begin table', ".SS What is intercepted",
             "Names stand for those that end in _c as well, where there are any.", ".PD 0"]
    for way, kinds in WAYS:
        names = [f.name for f in functions if f.kind in kinds.split() and not f.large]
        lines += [".TP", f".I {way}:", ", ".join(sorted(names)) + "."]
    return "\n".join([*lines, ".PD", '.\\" end table']) + "\n"
