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

/* Is the library being loaded?  Written by gomp_messages_loaded, in the thread that loads us. */
static bool loading = true;

bool gomp_use_loading (void)
{
    return loading;
}

/* What has been said while the library was loaded.  The stream is taken away by the one thread
 * that writes it out (acq_rel: partner is that exchange in another thread). */
static FILE *_Atomic held;
static char *held_text;
static size_t held_bytes;
/* The default team size that the text shows.  Written by gomp_messages_loaded. */
static unsigned long held_size;

/* Where the program had not asked for a resource manager yet, the default team size is another by now. */
static void write_held (void)
{
    char line[64];
    unsigned long size = gomp_global_icv.nthreads_var;
    snprintf(line, sizeof line, "OMP_NUM_THREADS = '%lu'", held_size);
    const char *at = size == held_size ? NULL : strstr(held_text, line);
    if (at)
        fprintf(stderr, "%.*sOMP_NUM_THREADS = '%lu'%s", (int)(at - held_text), held_text, size,
                at + strlen(line));
    else
        fwrite(held_text, 1, held_bytes, stderr);
}

void gomp_messages_end (bool show)
{
    FILE *stream = atomic_exchange(&held, NULL);
    if (!stream || fclose(stream) != 0)
        return;
    if (show)
        write_held();
    free(held_text);
}

void gomp_messages_release (void)
{
    gomp_messages_end(true);
}

FILE *gomp_messages (void)
{
    if (!loading) {
        gomp_messages_end(true);
        return stderr;
    }
    FILE *stream = atomic_load(&held);
    if (!stream) {
        stream = open_memstream(&held_text, &held_bytes);
        atomic_store(&held, stream);
    }
    return stream ? stream : stderr;
}

void gomp_messages_loaded (void)
{
    loading = false;
    held_size = gomp_global_icv.nthreads_var;
}
