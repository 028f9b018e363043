/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * trace_file.h - the file that `invade --trace` leaves: a head, then chunks, in the byte order of
 * the machine.  invasive-trace(5) documents them.  rmd (trace_writer.c) writes them, except the
 * last chunk, which tools/invade/invade_trace.c writes; tools/invasive_trace/format.py reads them.
 */
#ifndef INV_TRACE_FILE_H
#define INV_TRACE_FILE_H

#include "libinvasive/table/table.h"

#define INV_TRACE_MAGIC "invtrace"
enum { INV_TRACE_VERSION = 1, INV_TRACE_ORDER = 0x01020304 };

struct inv_trace_file {
    char magic[8];
    uint32_t order, version;
    uint64_t monotonic_ns, realtime_ns; /* the same instant */
};

enum inv_trace_chunk_type {
    INV_CHUNK_TABLE = 1,   /* a: cores, b: 1 emulated + 2 anonymous; inv_trace_first for each
                              core */
    INV_CHUNK_EVENTS = 2,  /* a: ring; its lost events so far, then struct inv_trace_event */
    INV_CHUNK_PROCESS = 3, /* a: slot, b: pid, time: it joined; struct inv_trace_process */
    INV_CHUNK_GONE = 4,    /* a: slot, b: pid; a word: 1 the process runs on unmanaged */
    INV_CHUNK_SITES = 5,   /* a: slot, b: pid; struct inv_trace_site for each site */
    INV_CHUNK_LAST = 6,    /* a: cores; the word of each core */
    INV_CHUNK_END = 7,     /* number of events, number of lost events */
    INV_CHUNK_REPORT = 8,  /* after END, by `invade`: JSON of invade(1), without call sites */
};
enum { INV_TRACE_REPORT_MOST = 1 << 26 };

struct inv_trace_chunk {
    uint32_t type, bytes; /* of what follows this head */
    uint64_t time_ns;     /* CLOCK_MONOTONIC; events are older, by less than 2^47 */
    uint32_t a, b;
};

struct inv_trace_first {
    int32_t os_cpu;
    uint32_t unused;
    uint64_t word;
};

struct inv_trace_process {
    int32_t rank, size;
    char program[INV_NAME_BYTES];
};

struct inv_trace_site {
    uint32_t number, unused;
    uint64_t offset;
    char function[INV_FUNCTION_BYTES], symbol[INV_SYMBOL_BYTES], module[INV_MODULE_BYTES];
};

#endif
