# SPDX-License-Identifier: GPL-3.0-or-later
"""The search for loops in which a thread waits until another one writes to memory, in what
compilers make of such loops and of others.  Compiled here, without libgomp, so that it needs no
build."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from lib.building.sources import runtime_includes

# Says whether the code on standard input has such a loop.
SEARCH = """/* in memory of its size, so that a sanitizer sees what is read behind it */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef FOR_AARCH64
#undef __x86_64__
#define __aarch64__ 1
#endif
#include "busy_wait.c"
int main(void)
{
    static unsigned char code[8 << 20];
    size_t bytes = fread(code, 1, sizeof code, stdin);
    if (bytes == sizeof code)
        return 1;
    unsigned char *exact = malloc(bytes + !bytes);
    memcpy(exact, code, bytes);
    puts(gomp_code_busy_waits(exact, bytes) ? "waits" : "no");
    free(exact);
    return 0;
}
"""

WAITS = {
    "volatile": "volatile int flag; void f(void) { while (!flag) ; }",
    "element": "void f(int *flags, int me, int k)"
               "{ while (__atomic_load_n(&flags[me - 1], __ATOMIC_ACQUIRE) < k) ; }",
    "pause": "void f(_Bool *b) { while (!__atomic_load_n(b, __ATOMIC_ACQUIRE)) PAUSE; }",
    "flush": """int flag; void f(void) { int v; do {
_Pragma("omp flush")
_Pragma("omp atomic read")
v = flag; } while (v == 0); }""",
    "leave": """int flag; void f(void) { for (;;) { int v;
_Pragma("omp atomic read")
v = flag; if (v == 1) break; } }""",
    "two": "void f(volatile long *a, volatile long *b) { while (*a != *b) ; }",
    "both": "void f(volatile short *a, volatile unsigned char *b) { while (*a == 3 && *b) ; }",
    "bit": "void f(volatile unsigned *a, int n) { while (!(*a & 1u << n)) ; }",
    "barrier": "void f(volatile int *sense, int mine) { while (*sense != mine) ; }",
}

OTHERS = {
    "search": "int f(const char *s) { int n = 0; while (s[n] != 'x') n++; return n; }",
    "list": "struct l { struct l *next; int v; };"
            "struct l *f(struct l *p, int v) { while (p && p->v != v) p = p->next; return p; }",
    "exchange": "void f(int *x, int v) { int o = __atomic_load_n(x, __ATOMIC_RELAXED);"
                "while (o < v && !__atomic_compare_exchange_n(x, &o, v, 0, 5, 5)) ; }",
    "call": "int g(void); void f(volatile int *a) { while (*a) g(); }",
    "at most": "void f(volatile int *a) { for (int n = 0; n < 1000 && *a; n++) ; }",
    "sum": "double f(const double *a, int n) { double s = 0;"
           "for (int i = 0; i < n; i++) s += a[i]; return s; }",
    "store": "void f(volatile int *a, volatile int *b) { while (*a) *b = 1; }",
    "for ever": "void f(int *a) { *a = 1; for (;;) ; }",
    "memory at an end": "int f(const int *a, int n) { int s = 0;"
                        "for (int i = 0; i < n; i++) if (a[i] > s) s = a[i]; return s; }",
}

# Words of code for aarch64.
ARM_WAITS = {
    "element": "51000421 8b21c800 88dffc01 6b02003f 54ffffcb d65f03c0",
    "pause": "91040000 14000002 d503203f 08dffc01 72001c3f 54ffffa0 d65f03c0",
    "flush": "d5033bbf b8607841 34ffffc1 a8c17bfd d65f03c0",
}
ARM_OTHERS = {
    "exchange": "88dffc13 2a1303e0 aa1503e2 2a1403e1 6b13029f 540000ad 94000000 6b13001f 2a0003f3"
                " 54ffff01",
    "count": "b9400001 11000442 6b02003f 54ffffa1 d65f03c0",
    "store": "b9400001 b9000002 35ffffc1 d65f03c0",
    "for ever": "b9400001 14000000",
}


def text_of(program, to):
    """The code of an object file or program"""
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", program, to], check=True, timeout=60)
    return to.read_bytes()


@pytest.fixture(scope="module")
def search(top, tmp_path_factory):
    """search(CODE, processor="") - "waits" or "no" """
    directory = tmp_path_factory.mktemp("search")
    compiler = os.environ.get("CC", "gcc").split()
    (directory / "search.c").write_text(SEARCH)
    programs = {}
    for name, options in {"": [], "aarch64": ["-DFOR_AARCH64"]}.items():
        programs[name] = directory / f"search{name}"
        subprocess.run(
            [*compiler, *options, "-std=gnu17", "-O1", "-g", "-Wall", "-Wextra", "-Wshadow",
             "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
             *runtime_includes(top), directory / "search.c", "-o", programs[name]],
            check=True, timeout=60)

    def run(code, processor=""):
        done = subprocess.run(["setarch", "-R", programs[processor]], input=code, check=True,
                              capture_output=True, timeout=60)
        assert done.stderr == b""
        return done.stdout.decode().strip()

    return run


@pytest.fixture(scope="module")
def code_of(tmp_path_factory):
    """code_of(SOURCE, COMPILER...) - the code that the compiler makes of it"""
    directory = tmp_path_factory.mktemp("code")

    def run(source, *compiler):
        source_file, made = directory / "f.c", directory / "f.o"
        source_file.write_text("#define PAUSE __builtin_ia32_pause()\n" + source)
        subprocess.run([*compiler, "-fopenmp", "-fPIC", "-c", source_file, "-o", made],
                       check=True, timeout=60)
        return text_of(made, directory / "f.bin")

    return run


@pytest.mark.parametrize("compiler", ["gcc -O0", "gcc -O1", "gcc -O2", "gcc -O3", "gcc -Os",
                                      "clang-14 -O2"])
def test_loops_that_wait_are_told_from_others(search, code_of, compiler):
    if os.uname().machine != "x86_64":
        pytest.skip("for x86-64")
    if not shutil.which(compiler.split()[0]):
        pytest.skip(f"no {compiler.split()[0]}")
    for expected, sources in (("waits", WAITS), ("no", OTHERS)):
        for name, source in sources.items():
            if compiler.startswith("clang") and name == "flush":
                continue  # a call of its own runtime
            assert search(code_of(source, *compiler.split())) == expected, name


def test_loops_that_wait_are_told_from_others_on_aarch64(search):
    for expected, programs in (("waits", ARM_WAITS), ("no", ARM_OTHERS)):
        for name, words in programs.items():
            code = b"".join(int(word, 16).to_bytes(4, "little") for word in words.split())
            assert search(code, "aarch64") == expected, name


def test_a_distance_is_not_taken_for_a_jump(search):
    """cmpw $0xbbef,(%rbx); jne far back: from the second byte on it looks like cmpl and a short
    jbe."""
    assert search(bytes.fromhex("66813befbb0f8576f8ffff807b02bf")) == "no"
    assert search(bytes.fromhex("66813befbb0f8576f8")) == "waits"  # bytes that look so to their end


@pytest.mark.parametrize("processor", ["", "aarch64"])
def test_code_that_ends_anywhere_and_data_are_read_to_the_end_only(search, processor):
    """The sanitizers report reads behind the end."""
    loop = bytes.fromhex("8b0785c0740af390ebf6" if not processor else "010040b9e1ffff35")
    assert search(b"", processor) == "no"
    for end in range(len(loop)):
        search(loop[:end], processor)
    data = bytes((n * n * 167 + n * 13 + n // 256 * 7) % 256 for n in range(100_000))
    search(data, processor)


def test_ordinary_programs_have_no_loop_that_waits(search, tmp_path):
    """Programs with hundreds of kilobytes of code."""
    for program in ("as", "ld.bfd", "make"):
        path = shutil.which(program)
        if path:
            code = text_of(os.path.realpath(path), tmp_path / "text")
            assert search(code) == "no", program
