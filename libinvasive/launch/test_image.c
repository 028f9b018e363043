/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * test_image.c - says what image.c makes of programs, then gives it damaged copies of them.
 *
 *   test_image LD_PRELOAD COPY COUNT PROGRAM...
 *
 * COPY is a file that is written and removed.  Each program is damaged COUNT times: some bytes of its
 * first 8 KiB, where the tables of small programs are, or its length.
 */
#define _GNU_SOURCE
#include "libinvasive/launch/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 20, DAMAGED_BYTES = 8192, CHANGES = 8 };

static unsigned char file[MAX_BYTES], copy[MAX_BYTES];

static size_t read_program(const char *path)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(file, 1, sizeof file, f) : 0;
    if (!n) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return n;
}

static void write_damaged(const char *path, size_t bytes)
{
    size_t end = bytes < DAMAGED_BYTES ? bytes : DAMAGED_BYTES;
    memcpy(copy, file, bytes);
    for (long i = random() % CHANGES; i >= 0; i--)
        copy[(size_t)random() % end] = (unsigned char)(random() % 3 ? random() : 255);
    if (random() % 4 == 0)
        bytes = (size_t)random() % bytes;
    FILE *f = fopen(path, "we");
    if (!f || fwrite(copy, 1, bytes, f) != bytes || fclose(f)) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    struct inv_image image;
    srandom(1);
    for (int p = 4; p < argc; p++) {
        inv_image_inspect(&image, argv[p], argv[1], NULL);
        printf("%d %s\n", image.fit, image.need);
        size_t bytes = read_program(argv[p]);
        for (int i = atoi(argv[3]); i > 0; i--) {
            write_damaged(argv[2], bytes);
            inv_image_inspect(&image, argv[2], argv[1], NULL);
        }
    }
    unlink(argv[2]);
    return 0;
}
