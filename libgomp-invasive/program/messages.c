/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * messages.c - see messages.h.
 */
#include "libgomp.h"
#include "messages.h"
#include "use.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What was printed while the library was loaded.  Written by the thread that loads it, but for
 * `stream`. */
static struct {
    /* The one thread that exchanges it for NULL writes the text out (acq_rel; partner: the same
     * exchange in another thread). */
    FILE *_Atomic stream;
    char *text;
    size_t bytes;
    unsigned long size; /* the default team size that the text shows */
} held;

/* Writes the text out.  It may show a default team size (OMP_DISPLAY_ENV) which the first use has
 * replaced: then the new one is shown. */
static void write_held (void)
{
    char line[64];
    unsigned long size = gomp_global_icv.nthreads_var;
    snprintf(line, sizeof line, "OMP_NUM_THREADS = '%lu'", held.size);
    const char *at = size == held.size ? NULL : strstr(held.text, line);
    if (at)
        fprintf(stderr, "%.*sOMP_NUM_THREADS = '%lu'%s", (int)(at - held.text), held.text, size,
                at + strlen(line));
    else
        fwrite(held.text, 1, held.bytes, stderr);
}

void gomp_messages_end (bool show)
{
    FILE *stream = atomic_exchange(&held.stream, NULL);
    if (!stream || fclose(stream) != 0)
        return;
    if (show)
        write_held();
    free(held.text);
}

void gomp_messages_release (void)
{
    gomp_messages_end(true);
}

FILE *gomp_messages (void)
{
    if (!gomp_use_loading()) {
        gomp_messages_end(true);
        return stderr;
    }
    FILE *stream = atomic_load(&held.stream);
    if (!stream) {
        stream = open_memstream(&held.text, &held.bytes);
        atomic_store(&held.stream, stream);
    }
    return stream ? stream : stderr;
}

void gomp_messages_loaded (void)
{
    held.size = gomp_global_icv.nthreads_var;
}
