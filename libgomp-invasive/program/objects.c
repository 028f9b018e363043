/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * objects.c - what the loaded ELF objects are linked with (objects.h), read from their dynamic
 * sections.
 */
#define _GNU_SOURCE
#include "objects.h"
#include "busy_wait.h"
#include <string.h>

enum { SEARCHED_BYTES = 8 << 20 };

const char *gomp_object_name (const struct dl_phdr_info *info)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    return slash ? slash + 1 : info->dlpi_name;
}

bool gomp_object_begins_with (const struct dl_phdr_info *info, const char *const *beginnings)
{
    const char *name = gomp_object_name(info);
    for (; *beginnings; beginnings++)
        if (strncmp(name, *beginnings, strlen(*beginnings)) == 0)
            return true;
    return false;
}

const ElfW(Phdr) *gomp_object_segment (const struct dl_phdr_info *info, ElfW(Word) type)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == type && info->dlpi_phdr[i].p_memsz > 0)
            return &info->dlpi_phdr[i];
    return NULL;
}

/* The address in an entry of the dynamic section.  Some dynamic linkers leave the offset in the
 * object there, others replace it by the address. */
static const void *address_of (const struct dl_phdr_info *info, const ElfW(Dyn) *d)
{
    uintptr_t p = d->d_un.d_ptr >= info->dlpi_addr ? d->d_un.d_ptr : info->dlpi_addr + d->d_un.d_ptr;
    const void *address;
    memcpy(&address, &p, sizeof address);
    return address;
}

/* The entry of the dynamic section with that tag, or NULL. */
static const ElfW(Dyn) *dynamic_entry (const struct dl_phdr_info *info, ElfW(Sxword) tag)
{
    const ElfW(Phdr) *dynamic = gomp_object_segment(info, PT_DYNAMIC);
    const ElfW(Dyn) *d = dynamic ? (const ElfW(Dyn) *)(info->dlpi_addr + dynamic->p_vaddr) : NULL;
    while (d && d->d_tag != DT_NULL && d->d_tag != tag)
        d++;
    return d && d->d_tag == tag ? d : NULL;
}

bool gomp_object_needs (const struct dl_phdr_info *info, const char *beginning)
{
    const ElfW(Dyn) *strings = dynamic_entry(info, DT_STRTAB), *d = dynamic_entry(info, DT_NEEDED);
    for (; strings && d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED &&
            strncmp((const char *)address_of(info, strings) + d->d_un.d_val, beginning,
                    strlen(beginning)) == 0)
            return true;
    return false;
}

static bool is_one_of (const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* An object's symbols, and its hash table of those that it defines: `buckets` of them, in each one the symbols' hashes in
 * sequence, of which the last one is odd. */
struct symbols {
    const ElfW(Sym) *symbol;
    const char *text;
    uint32_t nbuckets, first_defined;
    const uint32_t *buckets, *hashes;
};

static bool read_symbols (const struct dl_phdr_info *info, struct symbols *s)
{
    enum { BUCKETS, FIRST_DEFINED, FILTER_WORDS, HEAD = 4 };
    const ElfW(Dyn) *strings = dynamic_entry(info, DT_STRTAB), *hash = dynamic_entry(info, DT_GNU_HASH),
                    *table = dynamic_entry(info, DT_SYMTAB);
    if (!strings || !hash || !table)
        return false;
    const uint32_t *head = address_of(info, hash);
    s->symbol = address_of(info, table);
    s->text = address_of(info, strings);
    s->nbuckets = head[BUCKETS];
    s->first_defined = head[FIRST_DEFINED];
    s->buckets = head + HEAD + head[FILTER_WORDS] * (sizeof(ElfW(Addr)) / sizeof *head);
    s->hashes = s->buckets + s->nbuckets;
    return true;
}

/* Symbols of other objects come before those that the object's hash table knows.  Where it knows none, as in
 * programs at fixed addresses, all are of other objects: linkers put the text of their names behind them. */
static size_t count_used (const struct symbols *s)
{
    for (uint32_t i = 0; i < s->nbuckets; i++)
        if (s->buckets[i] != 0)
            return s->first_defined;
    const char *first = (const char *)s->symbol;
    return s->text > first ? (size_t)(s->text - first) / sizeof *s->symbol : 0;
}

bool gomp_object_uses (const struct dl_phdr_info *info, const char *const *names)
{
    struct symbols s;
    size_t count = read_symbols(info, &s) ? count_used(&s) : 0;
    for (size_t i = 1; i < count; i++)
        if (s.symbol[i].st_shndx == SHN_UNDEF && is_one_of(s.text + s.symbol[i].st_name, names))
            return true;
    return false;
}

bool gomp_object_defines (const struct dl_phdr_info *info, const char *name)
{
    struct symbols s;
    uint32_t wanted = 5381;
    for (const char *c = name; *c; c++)
        wanted = wanted * 33 + (unsigned char)*c;
    uint32_t i = read_symbols(info, &s) && s.nbuckets > 0 ? s.buckets[wanted % s.nbuckets] : 0;
    if (i == 0 || i < s.first_defined)
        return false; /* an empty bucket */
    for (;; i++) {
        uint32_t its = s.hashes[i - s.first_defined];
        if ((its | 1) == (wanted | 1) && strcmp(s.text + s.symbol[i].st_name, name) == 0)
            return true;
        if (its & 1)
            return false;
    }
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

/* Is the object a library that is known to busy-wait, by the beginning of its file's name? */
static bool is_known_to_wait (const struct dl_phdr_info *info)
{
    static const char *const beginnings[] = {"libopenblas", "libblis", NULL};
    return gomp_object_begins_with(info, beginnings);
}

struct search {
    bool found;
    size_t bytes; /* of code that may still be searched */
};

static bool has_waiting_code (const struct dl_phdr_info *info, struct search *search)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & (PF_X | PF_R)) != (PF_X | PF_R))
            continue;
        size_t bytes = segment->p_filesz < search->bytes ? segment->p_filesz : search->bytes;
        search->bytes -= bytes;
        if (gomp_code_busy_waits((const unsigned char *)(info->dlpi_addr + segment->p_vaddr), bytes))
            return true;
    }
    return false;
}

static int busy_waits (struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;
    (void)size;
    search->found = gomp_object_needs(info, "libgomp") &&
                    (is_known_to_wait(info) || has_waiting_code(info, search));
    return search->found;
}

bool gomp_program_busy_waits (void)
{
    struct search search = {.bytes = SEARCHED_BYTES};
    dl_iterate_phdr(busy_waits, &search);
    return search.found;
}

struct place {
    uintptr_t at;
    /* What bounds_near finds: */
    uintptr_t from, to; /* code near `at` that can be read; to is 0 if there is none */
    bool known;         /* the object is known to busy-wait, */
    bool yields;        /* and calls sched_yield meanwhile */
};

/* Is the place in this object?  Returns 1 if so, which ends the search. */
static int bounds_near (struct dl_phdr_info *info, size_t size, void *arg)
{
    enum { NEAR_BYTES = 16384 };
    static const char *const yield[] = {"sched_yield", NULL};
    struct place *place = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_filesz;
        if (segment->p_type != PT_LOAD || place->at < begin || place->at >= end)
            continue;
        place->known = is_known_to_wait(info);
        place->yields = place->known && gomp_object_uses(info, yield);
        if (segment->p_flags & PF_R) {
            place->from = place->at - begin > NEAR_BYTES ? place->at - NEAR_BYTES : begin;
            place->to = end - place->at > NEAR_BYTES ? place->at + NEAR_BYTES : end;
        }
        return 1;
    }
    return 0;
}

/* The code is read when the dynamic linker's lock is free again.  Else a fork by another thread
 * meanwhile would leave the lock taken in the child. */
enum gomp_loops gomp_loops_near (void (*fn) (void *))
{
    struct place place = {.at = (uintptr_t)fn};
    dl_iterate_phdr(bounds_near, &place);
    if (place.yields)
        return GOMP_YIELDING_LOOPS;
    bool found = place.known ||
        (place.to > 0 && gomp_code_busy_waits((const unsigned char *)place.from, place.to - place.from));
    return found ? GOMP_LOOPS : GOMP_NO_LOOPS;
}

bool gomp_other_copy_loaded (void)
{
    bool found = false;
    dl_iterate_phdr(is_other_copy, &found);
    return found;
}
