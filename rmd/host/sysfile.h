/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sysfile.h - files of /proc and /sys below a root, which is another one than / in tests, and in
 * containers that have the machine's files elsewhere. */
#ifndef RMD_SYSFILE_H
#define RMD_SYSFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct rmd_sysfile {
    char path[512];
};

/* The path ROOT followed by the formatted text. */
struct rmd_sysfile rmd_sysfile(const char *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A file that holds one number; false with errno when there is none. */
bool rmd_sysfile_read(const struct rmd_sysfile *file, uint64_t *value);
/* The first line, without its end, of at most bytes - 1 characters; false and "" when there is
 * none. */
bool rmd_sysfile_read_line(const struct rmd_sysfile *file, char *line, size_t bytes);
/* Writes a number to the file; false with errno. */
bool rmd_sysfile_write(const struct rmd_sysfile *file, uint64_t value);

#endif
