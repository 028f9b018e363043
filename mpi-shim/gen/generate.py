#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Generate the shim's wrappers from prototypes.txt, at build time.

    generate.py prototypes.txt OUTDIR

writes six files:
    shim-numbers.h   a number for every function that has an entry
    shim-entries.c   the dispatcher's entries: MPI_* and PMPI_* stubs that jump to where
                     shim_entry[] points.  They pass machine words, so they suit any MPI
    shim-fortran.c   the dispatcher's entries of Fortran functions, which only note the caller
    shim-pmpi.h      the table of PMPI functions, and the prototypes of all wrappers
    shim-wrappers.c  the wrappers of every kind that is not written by hand, and the guards
                     of all: a guard calls its wrapper, or from inside another the function
    counted.h        for tests/: counts which functions a program calls
"""

import sys
from pathlib import Path

import wrappers as bodies
from table import parse

# What wrappers and guards use.
INCLUDED = """arrival/arrival arrival/board arrival/opened_group calls/arguments calls/calls
calls/errhandler calls/fast_path calls/onesided calls/reduce measure/site_stats wait/check
wait/watch""".split()

NEVER_WAIT = "push post init cinit icoll rpost fpost tell drop pass".split()


def header(functions):
    wrapped = [f for f in functions if f.kind not in ("use", "pass")]
    yield "#ifndef SHIM_PMPI_H\n#define SHIM_PMPI_H\n"
    yield '#include "mpi-shim/dispatch/library.h"\n\n#include <stdint.h>\n'
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
    """The dispatcher's entries.  One that leads nowhere yet looks the function up, slowly.  The
    tables hold no addresses, since each process would relocate these, also one without MPI."""
    entered = [f for f in functions if f.kind != "use"]
    yield '#include "mpi-shim/dispatch/entry.h"\n'
    yield '#define EXPORT __attribute__((visibility("default")))'
    yield "#define FIRST __attribute__((noinline, cold))\n"
    yield "const char shim_names[SHIM_CALLS][SHIM_NAME_BYTES] = {"
    yield from (f'    "PMPI_{f.name}",' for f in entered)
    yield "};\n"
    for f in entered:
        words = [f"w{i}" for i in range(len(f.args))]
        params = ", ".join(f"uintptr_t {w}" for w in words) or "void"
        types = ", ".join(["uintptr_t"] * len(words)) or "void"
        for level in ("MPI", "PMPI"):
            where = f"SHIM_{level}, SHIM_CALL_{f.name}"
            yield f"static int FIRST first_{level}_{f.name}({params})\n{{"
            yield f"    int (*call)({types}) =\n        shim_resolve({where},"
            yield "                     __builtin_return_address(0));"
            yield f"    return call({', '.join(words)});\n}}\n"
            yield f"EXPORT int {level}_{f.name}({params});"
            yield f"EXPORT int {level}_{f.name}({params})\n{{"
            yield f"    int (*call)({types}) = shim_target({where});"
            yield "    if (__builtin_expect(!call, 0))"
            yield f"        return first_{level}_{f.name}({', '.join(words)});"
            yield f"    return call({', '.join(words)});\n}}\n"
    yield "void *_Atomic shim_entry[SHIM_LEVELS][SHIM_CALLS];"


# What an entry of a Fortran function does: notes its return address in shim_caller and jumps to
# where shim_fortran_entry[number] points, or to shim_fortran_first_NUMBER if that is 0, by
# registers that hold no value between a call and a function's first instruction.  ldar: partner is
# the release store in shim_resolve_fortran.
FORTRAN_ENTRY = {
    "__x86_64__": ("mov (%rsp), %rax", "mov shim_caller@gottpoff(%rip), %r11",
                   "mov %rax, %fs:(%r11)",
                   "mov shim_fortran_entry + 8 * \\\\number(%rip), %r11", "test %r11, %r11",
                   "jz shim_fortran_first_\\\\number", "jmp *%r11"),
    "__aarch64__": ("adrp x16, :gottprel:shim_caller", "ldr x16, [x16, :gottprel_lo12:shim_caller]",
                    "mrs x17, tpidr_el0", "str x30, [x17, x16]",
                    "adrp x16, shim_fortran_entry + 8 * \\\\number",
                    "add x16, x16, :lo12:shim_fortran_entry + 8 * \\\\number",
                    "ldar x16, [x16]", "cbz x16, shim_fortran_first_\\\\number", "br x16"),
}
# Where an entry leads at first: code that looks the function up (fortran.c), by its number.
FORTRAN_FIRST = {
    "__x86_64__": ("mov $\\\\number, %eax", "jmp shim_fortran_first"),
    "__aarch64__": ("mov w17, \\\\number", "b shim_fortran_first"),
}


def fortran(functions):
    """Suffixes: mpif.h and use mpi; use mpi_f08; use mpi_f08 with MPICH, for any type."""
    names = [f"mpi_{f.name.lower()}_{suffix}" for f in functions if f.kind != "use"
             for suffix in ("", "f08_", "f08ts_")]
    yield '#include "mpi-shim/dispatch/entry.h"\n\n#ifdef SHIM_FORTRAN'
    yield "const char shim_fortran_names[][SHIM_NAME_BYTES] = {"
    yield from (f'    "{name}",' for name in names)
    yield "};\n"
    for i, processor in enumerate(FORTRAN_ENTRY):
        yield f"#{'el' if i else ''}if defined({processor})"
        yield '#define MACRO ".macro shim_fortran name, number\\n" \\'
        for line in (".globl \\\\name", ".type \\\\name, %function", "\\\\name:",
                     *FORTRAN_ENTRY[processor], ".size \\\\name, . - \\\\name",
                     "shim_fortran_first_\\\\number:", *FORTRAN_FIRST[processor], ".endm"):
            yield f'        "{line}\\n" \\'
        yield '        ".text\\n"'
    yield "#endif\n__asm__(MACRO"
    yield from (f'        "shim_fortran {name}, {i}\\n"' for i, name in enumerate(names))
    yield '        ".purgem shim_fortran\\n");\n'
    yield f"void *_Atomic shim_fortran_entry[{len(names)}];\n#endif"


# Functions that end a handle of which the shim has a record, and the argument with that handle.
ENDS_HANDLE = {"Comm_free": "comm", "Comm_disconnect": "comm", "Win_free": "win",
               "File_close": "file"}

# Functions that only change what later waits have to know: their wrappers are called from anywhere.
NOTED_ANYWHERE = {"Comm_set_errhandler", "Errhandler_set"}


def fast_path(f, condition, begin, ring):
    """The fast path of the guard (mpi-shim/calls/fast_path.h)."""
    yield "    struct shim_comm *c = shim_thread.comm;"
    yield "    struct shim_site *site = shim_site(SHIM_SITE);"
    yield f"    if (!(shim_fast_path(comm) && {condition} &&"
    yield "          shim_workload_noted(site, SHIM_SITE)))"
    yield f"        return slow_{f.name}({f.values()});"
    yield f"    {begin}"
    yield f"    int result = {f.direct()};"
    yield f"    {ring}"
    yield "    shim_watch_over();"


def slow_path(f):
    """The wrapper, in a guard that has entered it."""
    function = f"shim_pmpi.{f.name}" if f.kind == "pass" else f"shim_{f.name}"
    if f.kind not in NEVER_WAIT:
        yield f"    shim_called(SHIM_CALL_{f.name}, SHIM_SITE);"
    yield f"    int result = {function}({f.values()});"


def guard(f):
    """A guard calls the function itself from inside a wrapper, and for kind pass.  But a callback
    may free handles of the program: attributes own communicators, in mpi4py and PETSc."""
    if f.name in NOTED_ANYWHERE:
        yield f"static int guard_{f.name}({f.params()})\n{{"
        yield f"    return shim_{f.name}({f.values()});\n}}\n"
        return
    leave = "    SHIM_LEAVE();\n    return result;\n}\n"
    fast = getattr(bodies, f"fast_path_{f.kind}", None)
    if fast:
        yield f"static __attribute__((noinline)) int slow_{f.name}({f.params()})\n{{"
        yield from slow_path(f)
        yield leave
    yield f"static int guard_{f.name}({f.params()})\n{{"
    forget = ENDS_HANDLE.get(f.name)
    yield "    if (SHIM_INSIDE()) {"
    if forget:
        yield f"        shim_forget_{forget}({forget});"
    yield f"        return {f.direct()};\n    }}"
    yield "    SHIM_ENTER();"
    yield from fast_path(f, *fast(f)) if fast else slow_path(f)
    yield leave


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


def wrappers(functions):
    yield from (f'#include "mpi-shim/{header}.h"' for header in INCLUDED)
    yield ""
    yield "/* Into its guard, which would push the arguments again. */"
    yield "#define INLINED inline __attribute__((always_inline))\n"
    yield "struct shim_pmpi shim_pmpi;\n"
    for f in functions:
        # The case that the library does not call the shim while it polls, in a function of its own,
        # so that the wrapper saves no registers for it.
        polled = getattr(bodies, f"polled_{f.kind}", None)
        if polled:
            yield "static __attribute__((noinline)) int"
            yield f"polled_{f.name}(struct shim_comm *c, {f.params()})\n{{"
            yield from polled(f)
            yield "}\n"
        body = getattr(bodies, f"wrapper_{f.kind}", None)
        if body:
            yield f"INLINED int shim_{f.name}({f.params()})\n{{"
            yield from body(f)
            yield "}\n"
    for f in functions:
        if f.kind != "use":
            yield from guard(f)
    yield from tables(functions)


def counting(functions):
    """Every call of a function of the table also counts itself."""
    yield "#ifndef COUNTED_H\n#define COUNTED_H\n"
    yield "static const char *const counted_names[] = {"
    for f in functions:
        yield f'    "{f.name}",'
    yield "};"
    yield "enum { COUNTED = sizeof counted_names / sizeof *counted_names };"
    yield "static unsigned counted[COUNTED];\n"
    for number, f in enumerate(functions):  # mpi.h may have a macro in place of what is gone
        yield f"#ifndef MPI_{f.name}"
        yield f"#define MPI_{f.name}(...) (counted[{number}]++, MPI_{f.name}(__VA_ARGS__))\n#endif"
    yield "\n#endif"


def main(table, outdir):
    functions = parse(Path(table).read_text(encoding="utf-8"))
    countable = [f for f in functions if f.kind != "use"]
    functions = [f for f in functions if f.kind != "list"]
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
        ("counted.h", counting(countable)),
    ):
        (out / name).write_text(spdx + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: generate.py prototypes.txt OUTDIR")
    main(*sys.argv[1:])
