/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fuzz.h - what the fuzzers of bench/run fuzz have in common.  Each is a function that libFuzzer
 * calls with arbitrary bytes, again and again in one process, built with AddressSanitizer and
 * UndefinedBehaviorSanitizer: these, and abort(), are how a broken promise shows.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Descriptors that close() leaves open (quick.c); 0 is none. */
enum { FUZZ_KEEPS = 8 };
extern int fuzz_keeps[FUZZ_KEEPS];

/* Take `bytes` from the input's front; zeros when there are no more. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

static inline void fuzz_take(struct fuzz_input *in, void *to, size_t bytes)
{
    size_t n = bytes < in->left ? bytes : in->left;
    __builtin_memset(to, 0, bytes);
    if (n)
        __builtin_memcpy(to, in->at, n);
    in->at += n;
    in->left -= n;
}

static inline uint32_t fuzz_number(struct fuzz_input *in, unsigned bytes)
{
    uint32_t number = 0;
    fuzz_take(in, &number, bytes);
    return number;
}

#endif
