/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * newer.c - the public functions that libgomp.so.1 has since GCC 13, for builds from releases
 * before that.
 *
 * A running program may load a library of a newer compiler by dlopen, such as a Python extension.
 * The dynamic linker does so only if the loaded libgomp.so.1 has all versions that the library
 * needs.  So this one has those of GCC 13, whatever release it is built from (upstream.sh,
 * add_version).  From GCC 13 on, upstream's target.c and fortran.c define what is defined here.
 * omp_in_explicit_task is in task.c, GOMP_taskwait_depend_nowait in taskdeps.c, for all releases.
 *
 * What they do: OpenMP 5.1, section 3.8, and 5.2, section 18.5.2.  The only device is the host:
 * build.sh configures libgomp without plugins for others.
 */
#include "upstream.h"
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if !UPSTREAM_HAS_IN_EXPLICIT_TASK
ialias_redirect (omp_in_explicit_task)

extern int32_t omp_in_explicit_task_ (void);
int32_t omp_in_explicit_task_ (void)
{
    return omp_in_explicit_task();
}
#endif

#if !UPSTREAM_HAS_TARGET_MEMCPY_ASYNC
extern void *omp_get_mapped_ptr (const void *ptr, int device_num);
extern int omp_target_is_accessible (const void *ptr, size_t size, int device_num);
extern int omp_target_memcpy_async (void *dst, const void *src, size_t length, size_t dst_offset,
                                    size_t src_offset, int dst_device_num, int src_device_num,
                                    int depobj_count, omp_depend_t *depobj_list);
extern int omp_target_memcpy_rect_async (void *dst, const void *src, size_t element_size,
                                         int num_dims, const size_t *volume,
                                         const size_t *dst_offsets, const size_t *src_offsets,
                                         const size_t *dst_dimensions, const size_t *src_dimensions,
                                         int dst_device_num, int src_device_num, int depobj_count,
                                         omp_depend_t *depobj_list);

ialias_redirect (GOMP_task)

/* omp_initial_device of omp.h, since GCC 13 */
enum { INITIAL_DEVICE = -1 };

/* A copy that a task is to make. */
struct copy {
    void *dst;
    const void *src;
    size_t length;
};

enum { VOLUME, DST_OFFSETS, SRC_OFFSETS, DST_DIMENSIONS, SRC_DIMENSIONS, LISTS };

/* The same of a part of an array. */
struct rect {
    void *dst;
    const void *src;
    size_t element_size;
    int num_dims;
    size_t list[]; /* LISTS lists, of num_dims numbers each */
};

static bool is_host (int device_num)
{
    return device_num == INITIAL_DEVICE || device_num == gomp_get_num_devices();
}

void *omp_get_mapped_ptr (const void *ptr, int device_num)
{
    return is_host(device_num) ? (void *)ptr : NULL;
}

/* The size is not looked at: as in GCC 13, all addresses of the host count as accessible there. */
int omp_target_is_accessible (const void *ptr, size_t size, int device_num)
{
    (void)ptr;
    (void)size;
    return is_host(device_num);
}

/* Makes a task that is a child of the current one and depends on the objects.  Its arguments are
 * copied.  Memory of the array of dependences is from the heap: a program may have any number. */
static void make_task (void (*fn) (void *), void *data, size_t bytes, int depobj_count,
                       omp_depend_t *depobj_list)
{
    enum { HEAD = 5 }; /* words before the addresses of objects: see taskdeps.c */
    size_t count = depobj_count > 0 ? (size_t)depobj_count : 0;
    void **depend = count ? gomp_malloc_cleared((HEAD + count) * sizeof *depend) : NULL;
    if (depend)
        depend[1] = (void *)(uintptr_t)count;
    for (size_t i = 0; i < count; i++)
        depend[HEAD + i] = &depobj_list[i];
    GOMP_task(fn, data, NULL, (long)bytes, (long)_Alignof(max_align_t), true,
              depend ? GOMP_TASK_FLAG_DEPEND : 0, depend, 0, NULL);
    free(depend);
}

static void copy (void *data)
{
    const struct copy *c = data;
    memcpy(c->dst, c->src, c->length);
}

int omp_target_memcpy_async (void *dst, const void *src, size_t length, size_t dst_offset,
                             size_t src_offset, int dst_device_num, int src_device_num,
                             int depobj_count, omp_depend_t *depobj_list)
{
    if (!is_host(dst_device_num) || !is_host(src_device_num))
        return EINVAL;
    struct copy c = {(char *)dst + dst_offset, (const char *)src + src_offset, length};
    make_task(copy, &c, sizeof c, depobj_count, depobj_list);
    return 0;
}

static void copy_rect (void *data)
{
    const struct rect *r = data;
    const size_t *list[LISTS];
    int host = gomp_get_num_devices();
    for (size_t i = 0; i < LISTS; i++)
        list[i] = r->list + i * (size_t)r->num_dims;
    if (omp_target_memcpy_rect(r->dst, r->src, r->element_size, r->num_dims, list[VOLUME],
                               list[DST_OFFSETS], list[SRC_OFFSETS], list[DST_DIMENSIONS],
                               list[SRC_DIMENSIONS], host, host))
        gomp_fatal("omp_target_memcpy_rect_async: the array is larger than memory can be");
}

/* Both addresses NULL: returns how many dimensions an array may have. */
int omp_target_memcpy_rect_async (void *dst, const void *src, size_t element_size, int num_dims,
                                  const size_t *volume, const size_t *dst_offsets,
                                  const size_t *src_offsets, const size_t *dst_dimensions,
                                  const size_t *src_dimensions, int dst_device_num,
                                  int src_device_num, int depobj_count, omp_depend_t *depobj_list)
{
    const size_t *const list[LISTS] = {volume, dst_offsets, src_offsets, dst_dimensions,
                                       src_dimensions};
    if (!dst && !src)
        return INT_MAX;
    if (element_size < 1 || num_dims < 1 || !is_host(dst_device_num) || !is_host(src_device_num))
        return EINVAL;
    size_t list_bytes = (size_t)num_dims * sizeof *volume;
    size_t bytes = sizeof(struct rect) + LISTS * list_bytes;
    struct rect *r = gomp_malloc(bytes);
    *r = (struct rect){dst, src, element_size, num_dims};
    for (size_t i = 0; i < LISTS; i++)
        memcpy(r->list + i * (size_t)num_dims, list[i], list_bytes);
    make_task(copy_rect, r, bytes, depobj_count, depobj_list);
    free(r);
    return 0;
}
#endif
