/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * objects.c - what the loaded ELF objects are linked with (objects.h), read from their dynamic
 * sections.
 */
#define _GNU_SOURCE
#include "objects.h"
#include <string.h>

const char *gomp_object_name (const struct dl_phdr_info *info)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    return slash ? slash + 1 : info->dlpi_name;
}

const ElfW(Phdr) *gomp_object_segment (const struct dl_phdr_info *info, ElfW(Word) type)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == type && info->dlpi_phdr[i].p_memsz > 0)
            return &info->dlpi_phdr[i];
    return NULL;
}

bool gomp_object_needs (const struct dl_phdr_info *info, const char *beginning)
{
    const ElfW(Phdr) *dynamic = gomp_object_segment(info, PT_DYNAMIC);
    if (!dynamic)
        return false;
    const ElfW(Dyn) *first = (const ElfW(Dyn) *)(info->dlpi_addr + dynamic->p_vaddr), *d;
    const char *strings = NULL;
    for (d = first; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB) /* an address already, or an offset, as the loader likes */
            strings = (const char *)(d->d_un.d_ptr >= info->dlpi_addr
                                         ? d->d_un.d_ptr
                                         : info->dlpi_addr + d->d_un.d_ptr);
    for (d = first; strings && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED &&
            strncmp(strings + d->d_un.d_val, beginning, strlen(beginning)) == 0)
            return true;
    return false;
}

static int needs_libgomp (struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    *(bool *)found = gomp_object_needs(info, "libgomp.so.1");
    return *(bool *)found;
}

bool gomp_program_needs_libgomp (void)
{
    bool found = false;
    dl_iterate_phdr(needs_libgomp, &found);
    return found;
}

static int is_other_copy (struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    *(bool *)found = strncmp(gomp_object_name(info), "libgomp-", 8) == 0;
    return *(bool *)found;
}

/* Libraries of which it is known, by the beginnings of their files' names. */
static int spins (struct dl_phdr_info *info, size_t size, void *found)
{
    static const char *const beginnings[] = {"libopenblas", "libblis"};
    (void)size;
    for (unsigned i = 0; i < sizeof beginnings / sizeof beginnings[0] && !*(bool *)found; i++)
        *(bool *)found = strncmp(gomp_object_name(info), beginnings[i], strlen(beginnings[i])) == 0 &&
                         gomp_object_needs(info, "libgomp.so.1");
    return *(bool *)found;
}

bool gomp_spinning_library_loaded (void)
{
    bool found = false;
    dl_iterate_phdr(spins, &found);
    return found;
}

bool gomp_other_copy_loaded (void)
{
    bool found = false;
    dl_iterate_phdr(is_other_copy, &found);
    return found;
}
