/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * image.c - reads ELF files as the dynamic linker would: see image.h.
 *
 * The search for needed objects follows ld.so(8): RPATH, LD_LIBRARY_PATH, RUNPATH, /etc/ld.so.cache,
 * the default directories.  Variants of a library for newer processors (glibc-hwcaps) are passed
 * over: they need what the plain one needs.  Everything read is checked against the size of its
 * file, since nothing is known of these files but that a process will start from one.
 */
#define _GNU_SOURCE
#include "libinvasive/launch/image.h"
#include "libinvasive/launch/preload_list.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPENMP "libgomp.so.1"
#define C_LIBRARY "libc.so.6"
#define CACHE "/etc/ld.so.cache"

enum {
    OBJECTS = 1024,         /* of one process; further ones are not looked at */
    PATHS_BYTES = 1 << 18,  /* of all their paths together */
    SCRIPTS = 4,            /* interpreters that are scripts themselves, as Linux has it */
    SCRIPT_LINE_BYTES = 256,
    VERSIONS = 256,         /* of one library that one object needs */
};

struct object {
    const unsigned char *base; /* the mapped file */
    size_t size;
    dev_t device;
    ino_t inode;
    const ElfW(Phdr) *segments;
    unsigned nsegments;
    const ElfW(Dyn) *dynamic; /* NULL: none */
    size_t ndynamic;
    const char *strings; /* of the dynamic section; the last byte is 0 */
    size_t string_bytes;
    const char *name, *path; /* as it was asked for, "" the program; where it is */
    const char *origin;      /* the path whose directory is $ORIGIN; NULL: not asked for yet */
    const struct object *loader; /* the object that needs it; NULL the program */
};

/* The versions that an object needs of one library. */
struct needs {
    unsigned count;
    uint16_t index[VERSIONS];
    const char *name[VERSIONS];
};

/* In memory of its own, so that no allocator and little of the caller's stack is used.  What each
 * inspection writes comes first: a page of it costs a fault. */
struct walk {
    unsigned count;
    size_t path_bytes;
    struct object openmp, cache; /* our libgomp.so.1; the file CACHE.  base NULL: not there */
    const char *library_path, *preload;
    const char *interpreter; /* the program's dynamic linker */
    struct needs needs;      /* of the object that is looked at */
    struct object objects[OBJECTS];
    char path[PATH_MAX]; /* where an object is looked for */
    char paths[PATHS_BYTES];
};

/* --- one file */

static const void *bytes_at(const struct object *o, uint64_t offset, uint64_t bytes,
                            size_t alignment)
{
    return offset <= o->size && bytes <= o->size - offset && offset % alignment == 0
               ? o->base + offset
               : NULL;
}
/* A pointer to `count` objects of this type in the mapped file; NULL: the file is too short. */
#define AT(o, offset, type, count)                                                                 \
    ((const type *)bytes_at(o, offset, (uint64_t)(count) * sizeof(type), _Alignof(type)))

static bool map_file(struct object *o, const char *path)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    void *base = MAP_FAILED;
    if (!fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_size > 0)
        base = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (base == MAP_FAILED)
        return false;
    *o = (struct object){.base = base,
                         .size = (size_t)s.st_size,
                         .device = s.st_dev,
                         .inode = s.st_ino,
                         .name = "",
                         .path = path};
    return true;
}

static void unmap_file(struct object *o)
{
    if (o->base)
        munmap((void *)(uintptr_t)o->base, o->size);
    o->base = NULL;
}

static bool is_elf(const struct object *o)
{
    return o->size >= EI_NIDENT && !memcmp(o->base, ELFMAG, SELFMAG);
}

/* Has the object the word size, byte order and processor of this code? */
static bool is_native(const struct object *o)
{
    extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
    const ElfW(Ehdr) *header = AT(o, 0, ElfW(Ehdr), 1);
    return header && header->e_ident[EI_CLASS] == __ehdr_start.e_ident[EI_CLASS] &&
           header->e_ident[EI_DATA] == __ehdr_start.e_ident[EI_DATA] &&
           header->e_machine == __ehdr_start.e_machine;
}

static const ElfW(Phdr) *segment(const struct object *o, unsigned type)
{
    for (unsigned i = 0; i < o->nsegments; i++)
        if (o->segments[i].p_type == type)
            return &o->segments[i];
    return NULL;
}

/* What the loaded object has at this address. */
static const void *at_address(const struct object *o, uint64_t address, uint64_t bytes,
                              size_t alignment)
{
    for (unsigned i = 0; i < o->nsegments; i++) {
        const ElfW(Phdr) *s = &o->segments[i];
        if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz)
            return bytes_at(o, s->p_offset + (address - s->p_vaddr), bytes, alignment);
    }
    return NULL;
}
#define AT_ADDRESS(o, address, type, count)                                                        \
    ((const type *)at_address(o, address, (uint64_t)(count) * sizeof(type), _Alignof(type)))

/* The value of a tag of the dynamic section; 0: it has none. */
static uint64_t tagged(const struct object *o, int64_t tag)
{
    for (size_t i = 0; i < o->ndynamic; i++)
        if (o->dynamic[i].d_tag == tag)
            return o->dynamic[i].d_un.d_val;
    return 0;
}

static const char *string_at(const struct object *o, uint64_t offset)
{
    return offset < o->string_bytes ? o->strings + offset : "";
}

/* The string that a tag names; NULL: it has none. */
static const char *tagged_string(const struct object *o, int64_t tag)
{
    for (size_t i = 0; i < o->ndynamic; i++)
        if (o->dynamic[i].d_tag == tag)
            return string_at(o, o->dynamic[i].d_un.d_val);
    return NULL;
}

/* Finds the tables of a native ELF file that has been mapped.  False: it is none. */
static bool read_header(struct object *o)
{
    const ElfW(Ehdr) *header = AT(o, 0, ElfW(Ehdr), 1);
    if (!is_elf(o) || !is_native(o) || !header || header->e_phentsize != sizeof *o->segments)
        return false;
    o->segments = AT(o, header->e_phoff, ElfW(Phdr), header->e_phnum);
    o->nsegments = o->segments ? header->e_phnum : 0;
    const ElfW(Phdr) *dynamic = segment(o, PT_DYNAMIC);
    o->ndynamic = dynamic ? dynamic->p_filesz / sizeof *o->dynamic : 0;
    o->dynamic = dynamic ? AT(o, dynamic->p_offset, ElfW(Dyn), o->ndynamic) : NULL;
    if (!o->dynamic)
        o->ndynamic = 0;
    for (size_t i = 0; i < o->ndynamic; i++)
        if (o->dynamic[i].d_tag == DT_NULL)
            o->ndynamic = i;
    uint64_t bytes = tagged(o, DT_STRSZ);
    const char *strings = bytes ? AT_ADDRESS(o, tagged(o, DT_STRTAB), char, bytes) : NULL;
    if (strings && !strings[bytes - 1]) {
        o->strings = strings;
        o->string_bytes = bytes;
    }
    return true;
}

/* --- versions: what an object needs of a library, and whether the library has it */

/* The name of the version that the library defines with this index; any index: the first one of
 * this name.  NULL: none. */
static const char *defined_version(const struct object *library, unsigned index, const char *name)
{
    uint64_t address = tagged(library, DT_VERDEF), left = tagged(library, DT_VERDEFNUM);
    for (; left > 0; left--) {
        const ElfW(Verdef) *v = AT_ADDRESS(library, address, ElfW(Verdef), 1);
        const ElfW(Verdaux) *a =
            v ? AT_ADDRESS(library, address + v->vd_aux, ElfW(Verdaux), 1) : NULL;
        if (!a)
            return NULL;
        const char *defined = string_at(library, a->vda_name);
        if (name ? !strcmp(name, defined) : v->vd_ndx == index)
            return defined;
        address += v->vd_next;
        if (!v->vd_next)
            return NULL;
    }
    return NULL;
}

static unsigned version_index(const struct object *o, uint64_t symbol)
{
    uint64_t address = tagged(o, DT_VERSYM) + symbol * sizeof(ElfW(Versym));
    const ElfW(Versym) *index = AT_ADDRESS(o, address, ElfW(Versym), 1);
    return index ? *index & 0x7fffu : 0; /* the other bit: hidden */
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

struct gnu_table {
    uint32_t nbuckets, first, nfilters, shift; /* first: the first symbol that is in it */
};

static const ElfW(Sym) *symbol_at(const struct object *o, uint64_t index)
{
    return AT_ADDRESS(o, tagged(o, DT_SYMTAB) + index * sizeof(ElfW(Sym)), ElfW(Sym), 1);
}

/* Does the library define this symbol in this version?  True if that cannot be found out. */
static bool defines_symbol(const struct object *library, const char *name, const char *version)
{
    uint64_t address = tagged(library, DT_GNU_HASH);
    const struct gnu_table *table = AT_ADDRESS(library, address, struct gnu_table, 1);
    if (!table || !table->nbuckets)
        return true;
    uint64_t buckets = address + sizeof *table + table->nfilters * sizeof(ElfW(Addr));
    uint64_t chains = buckets + table->nbuckets * sizeof(uint32_t);
    uint32_t hash = gnu_hash(name);
    const uint32_t *bucket =
        AT_ADDRESS(library, buckets + hash % table->nbuckets * sizeof *bucket, uint32_t, 1);
    if (!bucket || *bucket < table->first)
        return !bucket;
    for (uint64_t i = *bucket;; i++) {
        const uint32_t *link =
            AT_ADDRESS(library, chains + (i - table->first) * sizeof *link, uint32_t, 1);
        const ElfW(Sym) *symbol = link ? symbol_at(library, i) : NULL;
        if (!symbol)
            return true;
        if ((*link | 1) == (hash | 1) && !strcmp(name, string_at(library, symbol->st_name))) {
            const char *of = defined_version(library, version_index(library, i), NULL);
            if (of && !strcmp(of, version))
                return true;
        }
        if (*link & 1)
            return false;
    }
}

static void add_needs(struct needs *needs, const struct object *o, uint64_t address, unsigned left)
{
    for (; left > 0 && needs->count < VERSIONS; left--) {
        const ElfW(Vernaux) *a = AT_ADDRESS(o, address, ElfW(Vernaux), 1);
        if (!a)
            return;
        if (!(a->vna_flags & VER_FLG_WEAK)) {
            needs->index[needs->count] = a->vna_other;
            needs->name[needs->count++] = string_at(o, a->vna_name);
        }
        if (!a->vna_next)
            return;
        address += a->vna_next;
    }
}

static void find_needs(struct needs *needs, const struct object *o, const char *soname)
{
    uint64_t address = tagged(o, DT_VERNEED), left = tagged(o, DT_VERNEEDNUM);
    needs->count = 0;
    for (; left > 0; left--) {
        const ElfW(Verneed) *v = AT_ADDRESS(o, address, ElfW(Verneed), 1);
        if (!v)
            return;
        if (!strcmp(string_at(o, v->vn_file), soname))
            add_needs(needs, o, address + v->vn_aux, v->vn_cnt);
        if (!v->vn_next)
            return;
        address += v->vn_next;
    }
}

static bool say_need(char *need, const char *symbol, const char *version)
{
    snprintf(need, INV_IMAGE_NEED_BYTES, "%s%s%s", symbol, *symbol ? "@" : "", version);
    return true;
}

static bool lacks_version(const struct object *library, const struct needs *needs, char *need)
{
    for (unsigned i = 0; i < needs->count; i++)
        if (!defined_version(library, 0, needs->name[i]))
            return say_need(need, "", needs->name[i]);
    return false;
}

/* Symbols that are not defined come before those in the hash table. */
static uint64_t undefined_symbols(const struct object *o)
{
    uint64_t gnu = tagged(o, DT_GNU_HASH), sysv = tagged(o, DT_HASH);
    const struct gnu_table *table = gnu ? AT_ADDRESS(o, gnu, struct gnu_table, 1) : NULL;
    const uint32_t *counts = sysv ? AT_ADDRESS(o, sysv, uint32_t, 2) : NULL; /* buckets, symbols */
    return table ? table->first : counts ? counts[1] : 0;
}

static bool lacks_symbol(const struct object *library, const struct object *o,
                         const struct needs *needs, char *need)
{
    uint64_t count = needs->count ? undefined_symbols(o) : 0;
    for (uint64_t i = 1; i < count; i++) {
        const ElfW(Sym) *symbol = symbol_at(o, i);
        if (!symbol)
            return false;
        if (symbol->st_shndx != SHN_UNDEF || symbol->st_info >> 4 != STB_GLOBAL)
            continue;
        unsigned index = version_index(o, i);
        for (unsigned n = 0; n < needs->count; n++)
            if (needs->index[n] == index &&
                !defines_symbol(library, string_at(o, symbol->st_name), needs->name[n]))
                return say_need(need, string_at(o, symbol->st_name), needs->name[n]);
    }
    return false;
}

/* --- the objects of the process */

static const char *keep_path(struct walk *w, const char *path, size_t length)
{
    if (length >= PATHS_BYTES - w->path_bytes)
        return NULL;
    char *kept = memcpy(w->paths + w->path_bytes, path, length);
    kept[length] = '\0';
    w->path_bytes += length + 1;
    return kept;
}

/* Adds a mapped file to the process's objects, if it is a native ELF file, else unmaps it. */
static bool add_object(struct walk *w, struct object *o, const char *name,
                       const struct object *loader)
{
    const char *kept = read_header(o) ? keep_path(w, o->path, strlen(o->path)) : NULL;
    if (!kept) {
        unmap_file(o);
        return false;
    }
    o->path = kept;
    o->origin = loader ? kept : NULL;
    o->name = name;
    o->loader = loader;
    w->objects[w->count++] = *o;
    return true;
}

/* Adds the file at `path`, unless it is there already.  False: it cannot be loaded. */
static bool load_object(struct walk *w, const char *path, const char *name,
                        const struct object *loader)
{
    struct object o;
    if (w->count == OBJECTS || !map_file(&o, path))
        return false;
    bool known = false;
    for (unsigned i = 0; i < w->count; i++)
        known = known || (w->objects[i].device == o.device && w->objects[i].inode == o.inode);
    if (!known)
        return add_object(w, &o, name, loader);
    unmap_file(&o);
    return true;
}

/* The dynamic linker takes the program's $ORIGIN from /proc/self/exe, in which all symbolic links
 * are resolved, and that of a library from the path where it was found.  Overwrites w->path. */
static const char *find_origin(struct walk *w)
{
    struct object *program = &w->objects[0];
    char link[32];
    int fd = program->origin ? -1 : open(program->path, O_PATH | O_CLOEXEC);
    if (fd >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, w->path, sizeof w->path);
        close(fd);
        program->origin = n > 0 && w->path[0] == '/' ? keep_path(w, w->path, (size_t)n) : NULL;
    }
    if (!program->origin)
        program->origin = program->path;
    return program->origin;
}

/* DIRECTORY/NAME in w->path, with $ORIGIN at the front replaced.  False: too long, or another
 * $WORD. */
static bool join_path(struct walk *w, const char *directory, size_t length, const char *name,
                      const struct object *owner)
{
    static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
    char *path = w->path;
    int n = 0;
    for (int i = 0; i < 2; i++) {
        size_t bytes = strlen(origins[i]);
        if (length >= bytes && !strncmp(directory, origins[i], bytes)) {
            const char *origin = !owner ? "" : owner->loader ? owner->origin : find_origin(w);
            const char *slash = strrchr(origin, '/');
            n = slash ? snprintf(path, PATH_MAX, "%.*s", (int)(slash - origin), origin)
                      : snprintf(path, PATH_MAX, ".");
            directory += bytes;
            length -= bytes;
            break;
        }
    }
    if (n < 0 || n >= PATH_MAX || memchr(directory, '$', length))
        return false;
    int more = snprintf(path + n, (size_t)(PATH_MAX - n), "%.*s%s%s", (int)length, directory,
                        n + (int)length > 0 ? "/" : "", name);
    return more > 0 && more < PATH_MAX - n;
}

static bool search_list(struct walk *w, const char *list, const char *name,
                        const struct object *owner, const struct object *loader)
{
    while (list && *list) {
        size_t length = strcspn(list, ":;");
        if (join_path(w, list, length, name, owner) && load_object(w, w->path, name, loader))
            return true;
        list += length + (list[length] != '\0');
    }
    return false;
}

/* The format of glibc 2.2 and later: this, count entries, and their strings. */
struct cache_header {
    char magic[20];
    uint32_t count, string_bytes, unused[5];
};
struct cache_entry {
    int32_t flags;
    uint32_t key, value, version; /* offsets from the header */
    uint64_t hwcap;
};

static bool search_cache(struct walk *w, const char *name, const struct object *loader)
{
    static const char magic[] = "glibc-ld.so.cache1.1";
    if (!w->cache.base && !map_file(&w->cache, CACHE))
        return false;
    const struct cache_header *header = AT(&w->cache, 0, struct cache_header, 1);
    if (!header || memcmp(header->magic, magic, sizeof header->magic) ||
        w->cache.base[w->cache.size - 1])
        return false;
    const struct cache_entry *entry =
        AT(&w->cache, sizeof *header, struct cache_entry, header->count);
    for (uint32_t i = 0; entry && i < header->count; i++)
        if (entry[i].key < w->cache.size && entry[i].value < w->cache.size &&
            !strcmp((const char *)w->cache.base + entry[i].key, name) &&
            load_object(w, (const char *)w->cache.base + entry[i].value, name, loader))
            return true;
    return false;
}

static bool search_rpaths(struct walk *w, const char *name, const struct object *loader)
{
    if (tagged_string(loader, DT_RUNPATH))
        return false;
    for (const struct object *o = loader; o; o = o->loader)
        if (!tagged_string(o, DT_RUNPATH) &&
            search_list(w, tagged_string(o, DT_RPATH), name, o, loader))
            return true;
    return false;
}

/* Searches the directories that a user or the program names. */
static bool search_named(struct walk *w, const char *name, const struct object *loader)
{
    return search_rpaths(w, name, loader) ||
           search_list(w, w->library_path, name, &w->objects[0], loader) ||
           search_list(w, tagged_string(loader, DT_RUNPATH), name, loader, loader);
}

static bool is_loaded(const struct walk *w, const char *name)
{
    for (unsigned i = 0; i < w->count; i++) {
        const char *soname = tagged_string(&w->objects[i], DT_SONAME);
        if (!strcmp(w->objects[i].name, name) || (soname && !strcmp(soname, name)))
            return true;
    }
    return false;
}

/* Nothing of the C library or the compiler's support library needs OpenMP. */
static bool is_plain(const char *name)
{
    static const char *const plain[] = {C_LIBRARY,   "libm.so.6",      "libpthread.so.0",
                                        "libdl.so.2", "librt.so.1",    "libgcc_s.so.1",
                                        "libresolv.so.2", "libutil.so.1", OPENMP};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(name, plain[i]))
            return true;
    return !strncmp(name, "ld-linux", 8);
}

static void load_needed(struct walk *w, const char *name, const struct object *loader)
{
    static const char defaults[] = "/lib64:/usr/lib64:/lib:/usr/lib";
    if (is_plain(name) || is_loaded(w, name))
        return;
    if (strchr(name, '/'))
        load_object(w, name, name, loader);
    else if (!search_named(w, name, loader) && !search_cache(w, name, loader))
        search_list(w, defaults, name, NULL, loader);
}

/* Loads what the user preloads after our libraries, then all needed objects, breadth first. */
static void load_all(struct walk *w)
{
    struct inv_preload_entry entry = {0};
    const char *rest = w->preload;
    while (inv_preload_next(&rest, &entry)) {
        const char *name = entry.ours ? NULL : keep_path(w, entry.text, entry.length);
        if (name)
            load_needed(w, name, &w->objects[0]);
    }
    for (unsigned i = 0; i < w->count; i++)
        for (size_t d = 0; d < w->objects[i].ndynamic; d++)
            if (w->objects[i].dynamic[d].d_tag == DT_NEEDED)
                load_needed(w, string_at(&w->objects[i], w->objects[i].dynamic[d].d_un.d_val),
                            &w->objects[i]);
}

/* Maps one of our libraries by its entry in LD_PRELOAD. */
static bool map_entry(struct walk *w, struct object *o, const struct inv_preload_entry *entry)
{
    const char *path = keep_path(w, entry->text, entry->length);
    if (!path || !map_file(o, path))
        return false;
    if (read_header(o))
        return true;
    unmap_file(o);
    return false;
}

static bool find_openmp(struct walk *w)
{
    struct inv_preload_entry entry = {0};
    const char *rest = w->preload;
    while (inv_preload_next(&rest, &entry))
        if (entry.openmp)
            return map_entry(w, &w->openmp, &entry);
    return false;
}

/* Does an object need something that our OpenMP runtime lacks?  Fills *image then. */
static bool needs_newer_openmp(struct walk *w, struct inv_image *image)
{
    load_all(w);
    for (unsigned i = 0; i < w->count; i++) {
        find_needs(&w->needs, &w->objects[i], OPENMP);
        if (!w->needs.count)
            continue;
        if (!w->openmp.base && !find_openmp(w))
            return false;
        if (!lacks_version(&w->openmp, &w->needs, image->need) &&
            !lacks_symbol(&w->openmp, &w->objects[i], &w->needs, image->need))
            continue;
        snprintf(image->object, sizeof image->object, "%s", w->objects[i].path);
        return true;
    }
    return false;
}

/* --- the dynamic linker */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The path of this process's dynamic linker; NULL: not known. */
static const char *own_interpreter(void)
{
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)getauxval(AT_PHDR), *found = NULL;
    unsigned long count = segments ? getauxval(AT_PHNUM) : 0;
    uintptr_t bias = 0;
    for (unsigned long i = 0; i < count; i++) {
        if (segments[i].p_type == PT_PHDR)
            bias = (uintptr_t)segments - segments[i].p_vaddr;
        if (segments[i].p_type == PT_INTERP)
            found = &segments[i];
    }
    return found ? (const char *)(bias + found->p_vaddr) : NULL;
}

/* The path of the program's dynamic linker, or NULL. */
static const char *interpreter_of(const struct object *program)
{
    const ElfW(Phdr) *s = segment(program, PT_INTERP);
    if (!s || !s->p_filesz || s->p_offset > program->size ||
        s->p_filesz > program->size - s->p_offset)
        return NULL;
    const char *text = (const char *)program->base + s->p_offset;
    return text[s->p_filesz - 1] ? NULL : text;
}

bool inv_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return !strcmp(a, b) || (!stat(a, &of_a) && !stat(b, &of_b) && of_a.st_dev == of_b.st_dev &&
                             of_a.st_ino == of_b.st_ino);
}

/* The C library of the program, which has a dynamic linker of its own; NULL: not found. */
static const struct object *find_c_library(struct walk *w)
{
    const struct object *program = &w->objects[0];
    const char *slash = strrchr(w->interpreter, '/');
    bool found = search_named(w, C_LIBRARY, program);
    if (!found && slash &&
        join_path(w, w->interpreter, (size_t)(slash - w->interpreter), C_LIBRARY, NULL))
        found = load_object(w, w->path, C_LIBRARY, program);
    return found && w->count == 2 ? &w->objects[1] : NULL;
}

/* Another glibc: does it lack a version that our libraries need? */
static bool is_older_glibc(struct walk *w, struct inv_image *image)
{
    struct inv_preload_entry entry = {0};
    const char *rest = w->preload;
    const struct object *library = find_c_library(w);
    while (library && inv_preload_next(&rest, &entry)) {
        struct object ours;
        if (!entry.ours || !map_entry(w, &ours, &entry))
            continue;
        find_needs(&w->needs, &ours, C_LIBRARY);
        bool older = lacks_version(library, &w->needs, image->need);
        unmap_file(&ours);
        if (!older)
            continue;
        snprintf(image->need, sizeof image->need, "its C library, %s, is older than ours",
                 library->path);
        return true;
    }
    return false;
}

static bool is_foreign(struct walk *w, struct inv_image *image)
{
    const char *own = own_interpreter();
    if (!own || inv_same_file(own, w->interpreter))
        return false;
    if (!strcmp(base_name(own), base_name(w->interpreter)))
        return is_older_glibc(w, image);
    snprintf(image->need, sizeof image->need, "its dynamic linker is %s", w->interpreter);
    return true;
}

static enum inv_image_fit judge_program(struct walk *w, struct inv_image *image)
{
    const struct object *program = &w->objects[0];
    w->interpreter = interpreter_of(program);
    if (!w->interpreter) /* the dynamic linker itself, as a command, has a name */
        return tagged_string(program, DT_SONAME) ? INV_IMAGE_FITS : INV_IMAGE_STATIC;
    if (is_foreign(w, image))
        return INV_IMAGE_FOREIGN;
    return needs_newer_openmp(w, image) ? INV_IMAGE_OPENMP : INV_IMAGE_FITS;
}

/* Of the mapped image->file, which is unmapped, or belongs to the process's objects. */
static enum inv_image_fit judge_elf(struct walk *w, struct inv_image *image, struct object *file)
{
    if (!is_native(file)) {
        snprintf(image->need, sizeof image->need,
                 "it is for another kind of processor, or of %d bits",
                 file->base[EI_CLASS] == ELFCLASS32 ? 32 : 64);
        unmap_file(file);
        return INV_IMAGE_FOREIGN;
    }
    return add_object(w, file, "", NULL) ? judge_program(w, image) : INV_IMAGE_FITS;
}

/* Of a mapped script that begins with #!, puts the interpreter into image->file.  False: it is
 * none. */
static bool follow_script(const struct object *file, struct inv_image *image)
{
    char line[SCRIPT_LINE_BYTES];
    size_t n = file->size < sizeof line - 1 ? file->size : sizeof line - 1;
    if (n < 3 || file->base[0] != '#' || file->base[1] != '!')
        return false;
    memcpy(line, file->base, n);
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    const char *start = line + 2 + strspn(line + 2, " \t");
    size_t length = strcspn(start, " \t");
    if (!length)
        return false;
    memcpy(image->file, start, length);
    image->file[length] = '\0';
    return true;
}

static enum inv_image_fit judge_file(struct walk *w, struct inv_image *image)
{
    struct object file;
    for (int scripts = 0; map_file(&file, image->file); scripts++) {
        if (is_elf(&file))
            return judge_elf(w, image, &file);
        bool script = scripts < SCRIPTS && follow_script(&file, image);
        unmap_file(&file);
        if (!script)
            break;
    }
    return INV_IMAGE_FITS;
}

void inv_image_inspect(struct inv_image *image, const char *file, const char *preload,
                       const char *library_path)
{
    int error = errno;
    image->fit = INV_IMAGE_FITS;
    image->object[0] = image->need[0] = '\0';
    int n = snprintf(image->file, sizeof image->file, "%s", file);
    struct walk *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (n < (int)sizeof image->file && w != MAP_FAILED) {
        w->preload = preload;
        w->library_path = library_path;
        image->fit = judge_file(w, image);
        for (unsigned i = 0; i < w->count; i++)
            unmap_file(&w->objects[i]);
        unmap_file(&w->openmp);
        unmap_file(&w->cache);
    }
    if (w != MAP_FAILED)
        munmap(w, sizeof *w);
    errno = error;
}
