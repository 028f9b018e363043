/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sysfile.c - see sysfile.h. */
#define _GNU_SOURCE
#include "rmd/host/sysfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

struct rmd_sysfile rmd_sysfile(const char *root, const char *format, ...)
{
    struct rmd_sysfile f;
    size_t n = strnlen(root, sizeof f.path / 2);
    memcpy(f.path, root, n);
    va_list args;
    va_start(args, format);
    vsnprintf(f.path + n, sizeof f.path - n, format, args);
    va_end(args);
    return f;
}

bool rmd_sysfile_read(const struct rmd_sysfile *file, uint64_t *value)
{
    FILE *f = fopen(file->path, "re");
    if (!f)
        return false;
    /* what is above would be a number below zero */
    bool good = fscanf(f, "%" SCNu64, value) == 1 && *value <= INT64_MAX;
    fclose(f);
    if (!good)
        errno = EPROTO;
    return good;
}

bool rmd_sysfile_read_line(const struct rmd_sysfile *file, char *line, size_t bytes)
{
    FILE *f = fopen(file->path, "re");
    bool good = f && fgets(line, (int)bytes, f);
    if (f)
        fclose(f);
    if (!good)
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return good;
}

bool rmd_sysfile_write(const struct rmd_sysfile *file, uint64_t value)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRIu64 "\n", value);
    int fd = open(file->path, O_WRONLY | O_CLOEXEC | O_TRUNC);
    if (fd < 0)
        return false;
    bool good = write(fd, text, (size_t)n) == n;
    int saved = errno;
    close(fd);
    errno = saved;
    return good;
}
