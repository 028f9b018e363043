# SPDX-License-Identifier: GPL-3.0-or-later
"""Contexts go on on other kernel threads: the machine code of the OpenMP runtime must not keep
addresses of a thread's variables across a switch.  test_aarch64.py asks the same of that
processor's code."""

import subprocess

import pytest

from lib.building.thread_addresses import audit

# A library with the places that the audit has to tell apart.  Its functions are named for what
# they do with the address.
PROGRAM = """
__thread int mine;
extern void *gomp_context_swap(void **, void *, void *);
__asm__(".globl gomp_context_swap\\n.type gomp_context_swap, %function\\n"
        "gomp_context_swap:\\nret\\n.size gomp_context_swap, .-gomp_context_swap\\n");
void harmless(void) { __asm__ volatile("" ::: "memory"); }
void __attribute__((noinline)) may_switch(void) { gomp_context_swap(0, 0, 0); harmless(); }
static int *__attribute__((noinline)) copy(int *address)
{
    __asm__("" : "+r"(address));
    return address;
}
int keeps_it(void)
{
    int *address = &mine;
    __asm__("" : "+r"(address));
    may_switch();
    return *address;
}
int keeps_it_on_the_stack(void)
{
    int *volatile address = &mine;
    may_switch();
    return *address;
}
int keeps_it_across_an_unknown_call(void (*call)(void))
{
    int *address = &mine;
    __asm__("" : "+r"(address));
    call();
    return *address;
}
int asks_again_and_is_given_what_was_kept(void)
{
    int *address = &mine;
    __asm__("" : "+r"(address));
    int before = *address;
    may_switch();
    address = &mine;
    __asm__("" : "+r"(address));
    return before + *address;
}
int calls_what_does_not_switch(void)
{
    int *address = copy(&mine);
    harmless();
    return *address + mine;
}
"""


def test_no_address_of_a_thread_s_variable_is_kept_across_a_switch_of_contexts(build):
    assert audit(build / "lib/invasive/libgomp.so.1") == []


@pytest.mark.parametrize("optimized", ["-O1", "-O2", "-Os"])
def test_an_address_that_is_kept_is_found(optimized, tmp_path):
    (tmp_path / "kept.c").write_text(PROGRAM)
    subprocess.run(["gcc", optimized, "-fPIC", "-shared", "-ftls-model=initial-exec", "kept.c",
                    "-o", "kept.so"], check=True, cwd=tmp_path, timeout=60)
    found = {line.split(",")[0] for line in audit(tmp_path / "kept.so")}
    assert found == {"keeps_it", "keeps_it_on_the_stack", "keeps_it_across_an_unknown_call",
                     "asks_again_and_is_given_what_was_kept"}
