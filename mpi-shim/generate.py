#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Generate the shim's wrappers from prototypes.txt, at build time.

    generate.py prototypes.txt OUTDIR

writes five files:
    shim-numbers.h   a number for every function that has an entry
    shim-entries.c   the dispatcher's entries: MPI_* and PMPI_* stubs that jump to where
                     shim_entry[] points.  They pass machine words, so they suit any MPI
    shim-fortran.c   the dispatcher's entries of Fortran functions, which only note who calls
    shim-pmpi.h      the table of PMPI functions, and the prototypes of all wrappers
    shim-wrappers.c  the wrappers of every kind that is not written by hand, and the guards
                     of all: a guard calls its wrapper, or from inside another the function
"""

import re
import sys
from pathlib import Path

TYPES = {
    "in": "const void *",
    "out": "void *",
    "int": "int ",
    "ints": "const int *",
    "type": "MPI_Datatype ",
    "types": "const MPI_Datatype *",
    "comm": "MPI_Comm ",
    "op": "MPI_Op ",
    "info": "MPI_Info ",
    "group": "MPI_Group ",
    "int*": "int *",
    "comm*": "MPI_Comm *",
    "group*": "MPI_Group *",
    "req*": "MPI_Request *",
    "reqs": "MPI_Request *",
    "stat*": "MPI_Status *",
    "stats": "MPI_Status *",
    "msg*": "MPI_Message *",
    "char*": "char *",
    "argv": "char ***",
    "word": "uintptr_t ",
}
NEVER_WAIT = "push post init icoll drop pass".split()
KINDS = "use pass hand send push post init sync coll icoll meet drop".split()


class Function:
    """One line of the table."""

    def __init__(self, kind, name, args, optional):
        self.kind, self.name, self.args, self.optional = kind, name, args, optional

    def params(self):
        return ", ".join(TYPES[t] + n for t, n in self.args) or "void"

    def values(self):
        return ", ".join(n for _, n in self.args)

    def arg(self, *names):
        """The first of these names that is an argument, or None."""
        return next((n for n in names if n in (a for _, a in self.args)), None)


def parse(text):
    functions = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"(\w+)\s+(\w+)(\??)(?::\s*(.*))?", line)
        if not match or match[1] not in KINDS:
            sys.exit(f"prototypes.txt:{number}: not understood: {line}")
        kind, name, optional, arguments = match.groups()
        if kind == "icoll":
            args = [*functions[name[1:].capitalize()].args, ("req*", "request")]
        elif kind == "pass" and (arguments or "").isdigit():
            args = [("word", f"w{i}") for i in range(int(arguments))]
        else:
            args = [tuple(a.split()) for a in (arguments or "").split(",") if a.strip()]
        for arg in args:
            if len(arg) != 2 or arg[0] not in TYPES:
                sys.exit(f"prototypes.txt:{number}: unknown argument: {' '.join(arg)}")
        functions[name] = Function(kind, name, args, bool(optional))
    return list(functions.values())


def header(functions):
    wrapped = [f for f in functions if f.kind not in ("use", "pass")]
    yield "#ifndef SHIM_PMPI_H\n#define SHIM_PMPI_H\n#include <mpi.h>\n#include <stdint.h>\n"
    yield "/* The MPI library's own functions; filled by the dispatcher (resolve.c). */"
    yield "struct shim_pmpi {"
    for f in functions:
        yield f"    int (*{f.name})({f.params()});"
    yield "};\nextern struct shim_pmpi shim_pmpi;\n"
    for f in wrapped:
        yield f"int shim_{f.name}({f.params()});"
    yield "\n#endif"


def numbers(functions):
    """What resolve.c needs and may see without mpi.h."""
    wrapped = [f for f in functions if f.kind != "use"]
    yield "#ifndef SHIM_NUMBERS_H\n#define SHIM_NUMBERS_H\n"
    yield "enum shim_call {"
    for f in wrapped:
        yield f"    SHIM_CALL_{f.name},"
    yield "    SHIM_CALLS\n};\n"
    yield "#endif"


def entries(functions):
    """Of an entry and of the function that it points to at first only the latter is slow."""
    entered = [f for f in functions if f.kind != "use"]
    yield '#include "entry.h"\n'
    yield '#define EXPORT __attribute__((visibility("default")))\n'
    yield "const char *const shim_names[SHIM_CALLS] = {"
    yield from (f'    "PMPI_{f.name}",' for f in entered)
    yield "};\n"
    for f in entered:
        words = [f"w{i}" for i in range(len(f.args))]
        params = ", ".join(f"uintptr_t {w}" for w in words) or "void"
        types = ", ".join(["uintptr_t"] * len(words)) or "void"
        for level in ("MPI", "PMPI"):
            where = f"SHIM_{level}, SHIM_CALL_{f.name}"
            yield f"static int first_{level}_{f.name}({params})\n{{"
            yield f"    int (*call)({types}) =\n        shim_resolve({where},"
            yield "                     __builtin_return_address(0));"
            yield f"    return call({', '.join(words)});\n}}\n"
            yield f"EXPORT int {level}_{f.name}({params});"
            yield f"EXPORT int {level}_{f.name}({params})\n{{"
            yield f"    int (*call)({types}) = shim_target({where});"
            yield f"    return call({', '.join(words)});\n}}\n"
    yield "void *_Atomic shim_entry[SHIM_LEVELS][SHIM_CALLS] = {"
    for level in ("MPI", "PMPI"):
        yield "    {"
        yield from (f"        (void *)first_{level}_{f.name}," for f in entered)
        yield "    },"
    yield "};"


def fortran(functions):
    """Suffixes: mpif.h and use mpi; use mpi_f08; use mpi_f08 with MPICH, for any type."""
    names = [f"mpi_{f.name.lower()}_{suffix}" for f in functions if f.kind != "use"
             for suffix in ("", "f08_", "f08ts_")]
    yield '#include "entry.h"\n\n#ifdef SHIM_FORTRAN'
    yield "const char *const shim_fortran_names[] = {"
    yield from (f'    "{name}",' for name in names)
    yield "};\n"
    yield '__asm__(".macro shim_fortran name, number\\n"'
    for line in (".globl \\\\name", ".type \\\\name, @function", "\\\\name:", "mov (%rsp), %rax",
                 "mov shim_caller@gottpoff(%rip), %r11", "mov %rax, %fs:(%r11)",
                 "jmp *shim_fortran_entry + 8 * \\\\number(%rip)", ".size \\\\name, . - \\\\name",
                 "shim_fortran_first_\\\\number:", "mov $\\\\number, %eax",
                 "jmp shim_fortran_first", ".endm", ".text"):
        yield f'        "{line}\\n"'
    yield from (f'        "shim_fortran {name}, {i}\\n"' for i, name in enumerate(names))
    yield '        ".purgem shim_fortran\\n");\n'
    yield from (f"extern char shim_fortran_first_{i}[];" for i in range(len(names)))
    yield "void *_Atomic shim_fortran_entry[] = {"
    yield from (f"    shim_fortran_first_{i}," for i in range(len(names)))
    yield "};\n#endif"


def guard(f):
    """From inside a wrapper, and for kind pass, the function itself."""
    function = f"shim_pmpi.{f.name}" if f.kind == "pass" else f"shim_{f.name}"
    yield f"static int guard_{f.name}({f.params()})\n{{"
    yield f"    if (SHIM_INSIDE())\n        return shim_pmpi.{f.name}({f.values()});"
    yield "    SHIM_ENTER();"
    if f.kind not in NEVER_WAIT:
        yield f"    shim_called(SHIM_CALL_{f.name}, SHIM_SITE);"
    yield f"    int result = {function}({f.values()});"
    yield "    SHIM_LEAVE();"
    yield "    return result;\n}\n"


def tables(functions):
    """The names to look up, where the answers go, and what the entries get."""
    yield "const struct shim_symbol shim_symbols[] = {"
    for f in functions:
        use = f.kind == "use"
        call = "-1" if use else f"SHIM_CALL_{f.name}"
        entry = "NULL" if use else f"(void *)guard_{f.name}"
        yield (
            f'    {{"PMPI_{f.name}", (void **)&shim_pmpi.{f.name}, {entry}, {call}, '
            f"{str(f.optional).lower()}}},"
        )
    yield "    {NULL, NULL, NULL, -1, false}\n};\n"


def request_form(f):
    values = f.values()
    return f"shim_pmpi.I{f.name.lower()}({values}{', ' if values else ''}&request)"


def wrapper_send(f):
    yield "    struct shim_comm *c = shim_comm(comm);"
    yield "    if (!shim_send_valid(c, count, datatype, dest, tag))"
    yield f"        return shim_pmpi.{f.name}({f.values()});"
    yield "    if (shim_hooked)"
    yield "        return SHIM_WATCH(NULL, shim_member(c, dest), SHIM_MEMBER_NONE,"
    yield f"                          shim_pmpi.{f.name}({f.values()}));"
    yield f"    return polled_{f.name}(c, {f.values()});"


def polled_send(f):
    yield "    MPI_Request request;"
    yield f"    int result = {request_form(f)};"
    yield "    if (result != MPI_SUCCESS)\n        return result;"
    yield "    shim_ring_rank(c, dest);"
    yield "    return shim_wait_one(&request, MPI_STATUS_IGNORE, shim_member(c, dest), SHIM_SITE);"


def wrapper_push(f):
    yield f"    int result = shim_pmpi.{f.name}({f.values()});"
    yield "    if (result == MPI_SUCCESS)\n        shim_ring_rank(shim_comm(comm), dest);"
    yield "    return result;"


def wrapper_post(f):
    peer = f.arg("dest", "source")
    yield f"    int result = shim_pmpi.{f.name}({f.values()});"
    yield "    if (result == MPI_SUCCESS) {"
    yield "        struct shim_comm *c = shim_comm(comm);"
    yield f"        shim_request_note(*request, shim_member(c, {peer}));"
    yield f"        shim_ring_rank(c, {peer});\n    }}"
    yield "    return result;"


def wrapper_init(f):
    peer = f.arg("dest", "source")
    yield f"    int result = shim_pmpi.{f.name}({f.values()});"
    yield "    if (result == MPI_SUCCESS)"
    yield f"        shim_request_note(*request, shim_member(shim_comm(comm), {peer}));"
    yield "    return result;"


def wrapper_sync(f):
    yield "    struct shim_meeting m;"
    if f.arg("op"):  # an error of all ranks: left to the blocking function to report
        yield "    if (op == MPI_OP_NULL)"
        yield f"        return shim_pmpi.{f.name}({f.values()});"
    yield "    if (shim_meet(&m, comm, SHIM_SITE)) {"
    yield f"        int direct = shim_pmpi.{f.name}({f.values()});"
    yield "        shim_part(&m);\n        return direct;\n    }"
    yield "    MPI_Request request;"
    yield f"    int result = {request_form(f)};"
    yield "    return result == MPI_SUCCESS ? shim_meet_request(&m, &request) : result;"


def valid_arguments(f):
    """Errors in what every rank must pass: left to the blocking function to report."""
    tests = ["c"]
    if f.name in ("Bcast", "Reduce", "Scan", "Exscan"):
        tests.append("count >= 0 && datatype != MPI_DATATYPE_NULL")
    if f.arg("op"):
        tests.append("op != MPI_OP_NULL")
    if f.arg("root"):
        tests.append("shim_root_valid(c, root)")
    return " && ".join(tests)


def wrapper_coll(f):
    yield "    struct shim_comm *c = shim_comm_board(comm);"
    yield f"    if (!({valid_arguments(f)}) || shim_alone(c))"
    yield f"        return shim_pmpi.{f.name}({f.values()});"
    yield "    if (shim_hooked)"
    yield "        return SHIM_WATCH(c, SHIM_MEMBER_NONE, SHIM_MEMBER_NONE,"
    yield f"                          shim_pmpi.{f.name}({f.values()}));"
    yield f"    return polled_{f.name}(c, {f.values()});"


def polled_coll(f):
    yield "    MPI_Request request;"
    yield f"    int result = {request_form(f)};"
    yield "    return result != MPI_SUCCESS ? result"
    yield "                                 : shim_wait_collective(&request, c, SHIM_SITE);"


def wrapper_icoll(f):
    yield f"    int result = shim_pmpi.{f.name}({f.values()});"
    yield "    if (result == MPI_SUCCESS) {"
    yield "        shim_request_note(*request, SHIM_MEMBER_ALL);"
    yield "        shim_ring_comm(shim_comm(comm));\n    }"
    yield "    return result;"


def wrapper_meet(f):
    yield "    struct shim_meeting m;"
    yield "    bool direct = shim_meet(&m, comm, SHIM_SITE);"
    yield "    if (!direct)\n        shim_meet_arrivals(&m);"
    yield f"    int result = shim_pmpi.{f.name}({f.values()});"
    yield "    shim_part(&m);"
    yield "    return result;"


def wrapper_drop(f):
    yield "    shim_comm_drop(*comm);"
    yield f"    return shim_pmpi.{f.name}({f.values()});"


def wrappers(functions):
    yield '#include "shim.h"\n'
    yield "/* Into its guard, which would push the arguments again. */"
    yield "#define INLINED inline __attribute__((always_inline))\n"
    yield "struct shim_pmpi shim_pmpi;\n"
    for f in functions:
        # What is done where the library does not call us while it waits: out of the way, so
        # that the wrapper saves no registers for it.
        polled = globals().get(f"polled_{f.kind}")
        if polled:
            yield "static __attribute__((noinline)) int"
            yield f"polled_{f.name}(struct shim_comm *c, {f.params()})\n{{"
            yield from polled(f)
            yield "}\n"
        body = globals().get(f"wrapper_{f.kind}")
        if body:
            yield f"INLINED int shim_{f.name}({f.params()})\n{{"
            yield from body(f)
            yield "}\n"
    for f in functions:
        if f.kind != "use":
            yield from guard(f)
    yield from tables(functions)


def main(table, outdir):
    functions = parse(Path(table).read_text(encoding="utf-8"))
    spdx = (
        "/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */\n"
        "/* Generated by generate.py from prototypes.txt. */\n"
    )
    out = Path(outdir)
    out.mkdir(parents=True, exist_ok=True)
    for name, lines in (
        ("shim-pmpi.h", header(functions)),
        ("shim-numbers.h", numbers(functions)),
        ("shim-entries.c", entries(functions)),
        ("shim-fortran.c", fortran(functions)),
        ("shim-wrappers.c", wrappers(functions)),
    ):
        (out / name).write_text(spdx + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: generate.py prototypes.txt OUTDIR")
    main(*sys.argv[1:])
