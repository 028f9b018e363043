/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hash.h - FNV-1a, of 64 bits: makes numbers of names.
 */
#ifndef INV_HASH_H
#define INV_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INV_HASH_BASIS UINT64_C(0xcbf29ce484222325)

/* Adds `count` bytes to a hash and returns it.  Start with INV_HASH_BASIS. */
static inline uint64_t inv_hash(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The same for the bytes of a string, without its NUL. */
static inline uint64_t inv_hash_text(uint64_t hash, const char *text)
{
    return inv_hash(hash, text, strlen(text));
}

#endif
