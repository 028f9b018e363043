/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * names.c - the dispatcher shows the names that the MPI library of the process has, and no others.
 *
 * A program may ask, by a weak reference or by dlsym, whether its MPI library has a function.  The
 * dispatcher comes first in the search order and is built with the names of all libraries, so
 * it hides those that no library of the process has.
 *
 * A name is shown or hidden by its entry in the dispatcher's table of symbol versions.  How the
 * dynamic linker of glibc takes a reference that names no version (dl-lookup.c):
 *
 *   entry                     found by relocations   found by dlsym
 *   1, no version             yes                    yes              SHOWN
 *   2, not the default        yes                    no               BOUND
 *   3 or more, not the default   no                  no               HIDDEN
 *
 * SHOWN is for libraries that the process has from its start.  BOUND is for those that are loaded
 * later, most often privately: objects that are linked with such a library must find the entries,
 * and dlsym elsewhere must find the same as without the shim.
 *
 * When:
 * - At start, in the resolver of an indirect function, that is, while the dynamic linker relocates
 *   the dispatcher.  The executable comes after that, but the libraries came before: references of
 *   these to names that are hidden now are redirected (mend_object).
 * - Later, when an object is loaded.  Each object asks for __gmon_start__ (crti.o of glibc), which no
 *   library has.  The dispatcher has it as an indirect function whose address is NULL, as
 *   it is without the shim.  The dynamic linker relocates a library before what is linked with it.
 *
 * At start nothing else runs yet: no function is called here that the program, which is not relocated,
 * may have in place of the C library's, as programs with sanitizers have dl_iterate_phdr and strcmp.
 */
#define _GNU_SOURCE
#include "mpi-shim/dispatch/entry.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* OF_MPI: as the file has them (dispatcher.map); found by relocations and by dlsym. */
enum { SHOWN = 1, OF_MPI = 2, BOUND = 0x8002, HIDDEN = 0x8003, VERSION = 0x7fff };

/* An object that is loaded, as its dynamic section describes it. */
struct object {
    uintptr_t base;
    const ElfW(Sym) *symbols;
    const char *strings;
    const ElfW(Half) *versions;
    const uint32_t *gnu_hash, *hash;
};

static struct {
    /* The dispatcher.  Written by find_ours at start, in the only thread that there is then. */
    struct object ours;
    /* The last object of the dynamic linker's list when it was scanned last, and its section.
     * Written by scan_objects, which runs in one thread at a time: at start, or under the dynamic
     * linker's lock. */
    struct {
        const struct link_map *map;
        const ElfW(Dyn) *section;
    } seen;
} objects;

/* At start these are called before the dispatcher's procedure linkage table has its addresses. */
extern __typeof(syscall) syscall __attribute__((noplt));
extern __typeof(sysconf) sysconf __attribute__((noplt));
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* --- reading objects */

/* The value of a tag; 0: the object has none. */
static uintptr_t value_of(const struct link_map *map, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag)
            return d->d_un.d_val;
    return 0;
}

/* The dynamic linker has added the base already, but to the kernel's own object. */
static const void *address_in(const struct link_map *map, uintptr_t value)
{
    return (const void *)(value && value < map->l_addr ? map->l_addr + value : value);
}

static bool read_object(struct object *o, const struct link_map *map)
{
    *o = (struct object){.base = map->l_addr};
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        const void *address = address_in(map, d->d_un.d_ptr);
        switch (d->d_tag) {
        case DT_SYMTAB: o->symbols = address; break;
        case DT_STRTAB: o->strings = address; break;
        case DT_VERSYM: o->versions = address; break;
        case DT_GNU_HASH: o->gnu_hash = address; break;
        case DT_HASH: o->hash = address; break;
        }
    }
    return o->symbols && o->strings && (o->gnu_hash || o->hash);
}

static bool same_text(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

struct name {
    const char *text;
    uint32_t gnu_hash, hash;
};

/* The two hash functions of the ELF specification and of GNU. */
static struct name name_of(const char *text)
{
    struct name name = {.text = text, .gnu_hash = 5381};
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        name.gnu_hash = 33 * name.gnu_hash + *c;
        name.hash = (name.hash << 4) + *c;
        name.hash = (name.hash ^ (name.hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    return name;
}

static bool is_defined(const struct object *o, uint32_t symbol, const char *text)
{
    const ElfW(Sym) *s = &o->symbols[symbol];
    return s->st_shndx != SHN_UNDEF && s->st_value && same_text(o->strings + s->st_name, text);
}

/* GNU's table: a Bloom filter; buckets, each the first symbol of a chain; their hashes, whose lowest
 * bit is set in the last one of a chain. */
struct gnu_table {
    const ElfW(Addr) *filter;
    const uint32_t *buckets, *hashes;
    uint32_t nbuckets, first, filter_mask, shift;
};

static struct gnu_table read_gnu_table(const uint32_t *at)
{
    struct gnu_table t = {.nbuckets = at[0], .first = at[1], .filter_mask = at[2] - 1,
                          .shift = at[3], .filter = (const void *)(at + 4)};
    t.buckets = (const void *)(t.filter + at[2]);
    t.hashes = t.buckets + t.nbuckets;
    return t;
}

static uint32_t find_gnu_symbol(const struct object *o, const struct name *name)
{
    enum { BITS = 8 * sizeof(ElfW(Addr)) };
    struct gnu_table t = read_gnu_table(o->gnu_hash);
    ElfW(Addr) word = t.filter[name->gnu_hash / BITS & t.filter_mask];
    if (!(word >> name->gnu_hash % BITS & word >> (name->gnu_hash >> t.shift) % BITS & 1))
        return 0;
    uint32_t symbol = t.buckets[name->gnu_hash % t.nbuckets];
    for (; symbol >= t.first; symbol++) {
        uint32_t hash = t.hashes[symbol - t.first];
        if ((hash | 1) == (name->gnu_hash | 1) && is_defined(o, symbol, name->text))
            return symbol;
        if (hash & 1)
            break;
    }
    return 0;
}

/* The symbol of that name which the object defines; 0: none. */
static uint32_t find_symbol(const struct object *o, const struct name *name)
{
    if (o->gnu_hash)
        return find_gnu_symbol(o, name);
    const uint32_t *buckets = o->hash + 2, *chain = buckets + o->hash[0];
    uint32_t symbol = o->hash[0] ? buckets[name->hash % o->hash[0]] : 0;
    while (symbol && !is_defined(o, symbol, name->text))
        symbol = chain[symbol];
    return symbol;
}

/* --- showing names */

static bool protect_pages(uintptr_t from, uintptr_t to, int how)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    from &= ~(page - 1);
    to = (to + page - 1) & ~(page - 1);
    return syscall(SYS_mprotect, from, to - from, how) == 0;
}

/* relaxed: threads that look names up meanwhile find either; partner: the dynamic linker */
static void set_state(uint32_t symbol, unsigned state)
{
    __atomic_store_n((ElfW(Half) *)&objects.ours.versions[symbol], (ElfW(Half))state,
                     __ATOMIC_RELAXED);
}

static uint32_t last_symbol(void)
{
    struct gnu_table t = read_gnu_table(objects.ours.gnu_hash);
    uint32_t last = 0;
    for (uint32_t i = t.nbuckets; i > 0 && !last; i--) /* symbols are sorted by bucket */
        last = t.buckets[i - 1];
    while (!(t.hashes[last - t.first] & 1))
        last++;
    return last;
}

struct scan {
    bool first;    /* at start */
    bool writable; /* the table of versions is */
    uint32_t end;  /* behind the dispatcher's last symbol */
};

/* The table of versions; its page is written to in few processes, so not before. */
static bool open_table(struct scan *scan)
{
    uintptr_t from = (uintptr_t)objects.ours.versions;
    if (scan->writable)
        return true;
    scan->end = last_symbol() + 1;
    scan->writable = protect_pages(from, from + scan->end * sizeof *objects.ours.versions,
                                   PROT_READ | PROT_WRITE);
    return scan->writable;
}

static void close_table(const struct scan *scan)
{
    uintptr_t from = (uintptr_t)objects.ours.versions;
    if (scan->writable)
        protect_pages(from, from + scan->end * sizeof *objects.ours.versions, PROT_READ);
}

enum { PROVIDED = 5 };

/* Does the object define one of these functions? */
static bool is_provider(const struct object *o, const struct name names[PROVIDED])
{
    for (int i = 0; i < PROVIDED; i++)
        if (find_symbol(o, &names[i]))
            return true;
    return false;
}

/* A reference to a symbol with a version does not find one that is BOUND. */
static bool has_version(const struct object *o, uint32_t symbol)
{
    return o->versions && (o->versions[symbol] & VERSION) > SHOWN;
}

static void show_names_of(const struct object *o, struct scan *scan)
{
    if (!open_table(scan))
        return;
    for (uint32_t i = read_gnu_table(objects.ours.gnu_hash).first; i < scan->end; i++) {
        if (objects.ours.versions[i] != HIDDEN)
            continue;
        struct name name = name_of(objects.ours.strings + objects.ours.symbols[i].st_name);
        uint32_t symbol = find_symbol(o, &name);
        if (symbol)
            set_state(i, scan->first || has_version(o, symbol) ? SHOWN : BOUND);
    }
}

/* The first object of the list that has not been scanned: new objects are at its end.  If the last
 * scanned one has been unloaded, all are scanned again. */
static const struct link_map *first_unseen(void)
{
    for (const struct link_map *map = _r_debug.r_map; map && objects.seen.map; map = map->l_next)
        if (map == objects.seen.map && map->l_ld == objects.seen.section)
            return map->l_next;
    return _r_debug.r_map;
}

static void scan_objects(struct scan *scan)
{
    /* Functions of MPI, and the one by which MPICH polls. */
    const struct name provided[PROVIDED] = {name_of("PMPI_Init"), name_of("MPI_Init"),
                                            name_of("mpi_init_"), name_of("mpi_init_f08_"),
                                            name_of("ucp_worker_progress")};
    for (const struct link_map *map = first_unseen(); map; map = map->l_next) {
        struct object o;
        if (map->l_addr != objects.ours.base && read_object(&o, map) && is_provider(&o, provided))
            show_names_of(&o, scan);
        objects.seen.map = map;
        objects.seen.section = map->l_ld;
    }
}

/* --- at start */

#if defined(__x86_64__)
#define IS_ADDRESS(type) \
    ((type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_ADDRESS(type) \
    ((type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_ABS64)
#else
#define IS_ADDRESS(type) ((void)(type), 0)
#endif

/* The next definition after the dispatcher's; 0: none.  At start the list is in search order. */
static uintptr_t next_definition(const struct name *name)
{
    bool after_us = false;
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
        struct object o;
        uint32_t symbol = after_us && read_object(&o, map) ? find_symbol(&o, name) : 0;
        if (symbol && ELF64_ST_TYPE(o.symbols[symbol].st_info) != STT_GNU_IFUNC)
            return o.base + o.symbols[symbol].st_value;
        after_us = after_us || map->l_addr == objects.ours.base;
    }
    return 0;
}

/* Redirects a reference to a name of the dispatcher that is hidden now to the next definition, or
 * to NULL.  A reference that is not weak and has no other definition stays: the entry tells the
 * user what is missing.  The reference's page, which may have been made read-only, stays
 * writable. */
static void mend_reference(const struct object *o, const ElfW(Rela) *r)
{
    const ElfW(Sym) *symbol = &o->symbols[ELF64_R_SYM(r->r_info)];
    struct name name = name_of(o->strings + symbol->st_name);
    uint32_t mine = find_symbol(&objects.ours, &name);
    if (!mine || objects.ours.versions[mine] != HIDDEN)
        return;
    uintptr_t *place = (uintptr_t *)(o->base + r->r_offset), next = next_definition(&name);
    if ((next || ELF64_ST_BIND(symbol->st_info) == STB_WEAK) &&
        protect_pages((uintptr_t)place, (uintptr_t)(place + 1), PROT_READ | PROT_WRITE))
        *place = next;
}

static void mend_references(const struct object *o, const ElfW(Rela) *r, size_t bytes)
{
    for (const ElfW(Rela) *end = r + bytes / sizeof *r; r && r < end; r++) {
        if (!IS_ADDRESS(ELF64_R_TYPE(r->r_info)))
            continue;
        uintptr_t value = *(const uintptr_t *)(o->base + r->r_offset);
        if (value >= objects.ours.base && value < (uintptr_t)_end)
            mend_reference(o, r);
    }
}

/* An object that may have been relocated before anything was hidden. */
static void mend_object(const struct link_map *map)
{
    struct object o;
    if (map->l_addr == objects.ours.base || !read_object(&o, map))
        return;
    /* The first DT_RELACOUNT ones refer to the object itself. */
    size_t relative = value_of(map, DT_RELACOUNT) * sizeof(ElfW(Rela));
    size_t all = value_of(map, DT_RELASZ);
    const char *rela = address_in(map, value_of(map, DT_RELA));
    if (rela && relative < all)
        mend_references(&o, (const void *)(rela + relative), all - relative);
    if (value_of(map, DT_PLTREL) == DT_RELA)
        mend_references(&o, address_in(map, value_of(map, DT_JMPREL)),
                        value_of(map, DT_PLTRELSZ));
}

static bool find_ours(void)
{
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
        if (map->l_addr == (uintptr_t)__ehdr_start)
            return read_object(&objects.ours, map) && objects.ours.gnu_hash &&
                   objects.ours.versions;
    return false;
}

static void do_nothing(void)
{
}

/* The resolver of `started`. */
static void (*scan_at_start(void))(void)
{
    struct scan scan = {.first = true};
    struct name loaded = name_of("__gmon_start__");
    if (!find_ours() || !open_table(&scan))
        return do_nothing;
    ElfW(Half) *state = (ElfW(Half) *)objects.ours.versions; /* read by this thread only, yet */
    for (uint32_t i = read_gnu_table(objects.ours.gnu_hash).first; i < scan.end; i++)
        state[i] = state[i] == OF_MPI ? HIDDEN : state[i];
    scan_objects(&scan);
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
        mend_object(map);
    /* From now on objects that are relocated are scanned by scan_at_load. */
    set_state(find_symbol(&objects.ours, &loaded), BOUND);
    close_table(&scan);
    return do_nothing;
}

static void started(void) __attribute__((ifunc("scan_at_start")));
/* A reference by which the dynamic linker calls that resolver. */
static void (*const volatile at_start)(void) __attribute__((used)) = started;

/* --- when an object is loaded */

/* The resolver of __gmon_start__. */
static void (*scan_at_load(void))(void)
{
    struct scan scan = {.first = false};
    scan_objects(&scan);
    close_table(&scan);
    return NULL;
}

__attribute__((visibility("default"), ifunc("scan_at_load"))) void shim_object_loaded(void);
__asm__(".symver shim_object_loaded, __gmon_start__@INVASIVE_HIDDEN");
