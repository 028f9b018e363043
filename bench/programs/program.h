/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * program.h - what the C and C++ programs beside it share: numbers from the command line, and a
 * hash for checksums that do not depend on the order of the data.
 */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Argument number `index`, from 1 to 1,000,000; `otherwise` when there are fewer arguments. */
static inline int number_argument(int argc, char **argv, int index, int otherwise)
{
    if (index >= argc)
        return otherwise;
    char *end;
    long value = strtol(argv[index], &end, 10);
    if (end == argv[index] || *end || value < 1 || value > 1000000) {
        fprintf(stderr, "%s: '%s' is not a number from 1 to 1000000\n", argv[0], argv[index]);
        exit(2);
    }
    return (int)value;
}

static inline uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The hash of a value and its place.  The sum of the hashes of all data is their checksum. */
static inline uint64_t hash_value(double value, uint64_t place)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return mix_bits(bits + mix_bits(place));
}

#endif
