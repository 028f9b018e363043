/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* preload_list.c - see preload_list.h. */
#include "libinvasive/launch/preload_list.h"

#include <string.h>

static bool is_named(const char *text, size_t length, const char *name, bool prefix)
{
    size_t bytes = strlen(name);
    return (prefix ? length >= bytes : length == bytes) && !strncmp(text, name, bytes);
}

bool inv_preload_next(const char **rest, struct inv_preload_entry *entry)
{
    bool after_ours = entry->ours;
    if (!*rest)
        return false;
    entry->text = *rest + strspn(*rest, " :");
    entry->length = strcspn(entry->text, " :");
    *rest = entry->text + entry->length;
    size_t name = entry->length;
    while (name > 0 && entry->text[name - 1] != '/')
        name--;
    const char *base = entry->text + name;
    entry->openmp = after_ours && is_named(base, entry->length - name, "libgomp.so.1", false);
    entry->ours = entry->openmp || is_named(base, entry->length - name, "libinvasive", true);
    return entry->length > 0;
}
