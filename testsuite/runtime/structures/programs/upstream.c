/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * upstream.c - what parts of the OpenMP runtime need of upstream's libgomp, for programs that are
 * linked with such a part alone.
 */
#include "libgomp.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#undef gomp_current
__thread struct gomp_thread *gomp_current;
__thread struct gomp_thread gomp_tls_data;

static void *checked (void *memory)
{
    if (!memory)
        gomp_fatal("out of memory");
    return memory;
}

void *gomp_malloc (size_t size)
{
    return checked(malloc(size));
}

void *gomp_malloc_cleared (size_t size)
{
    return checked(calloc(1, size));
}

void *gomp_aligned_alloc (size_t alignment, size_t size)
{
    return checked(aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
}

void gomp_fatal (const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    abort();
}
