/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate.c - the two files of `rmctl simulate`: the first line of the input describes a machine,
 * the rest is a workload.  What is wrong is said; a workload that is taken can be written and read
 * again.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *told;

#undef stderr
#define stderr told
#include "../../tools/rmctl/simulate/simulate_machine.c"
#include "../../tools/rmctl/simulate/simulate_workload.c"
#undef stderr

enum { WHY = 200 };

static void machine(const char *text)
{
    struct rmd_machine m = {0};
    char why[WHY] = "";
    if (!sim_machine_parse(text, &m, why)) {
        if (!*why || !memchr(why, '\0', WHY))
            abort();
        return;
    }
    if (!m.ncores || m.ncores > MOST_CORES || m.apart[0] != RMD_LEVELS ||
        m.apart[m.ncores - 1] > RMD_LEVELS)
        abort();
    free((void *)m.apart);
}

static bool read_text(struct sim_workload *w, char *text, size_t bytes)
{
    FILE *file = bytes ? fmemopen(text, bytes, "r") : NULL;
    if (!file)
        return false;
    bool good = sim_workload_read(w, file, "f");
    fclose(file);
    return good;
}

static char *written(const struct sim_workload *w, size_t *bytes)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, bytes);
    if (!file)
        abort();
    sim_workload_write(w, file);
    fclose(file);
    return text;
}

static void workload(char *text, size_t bytes)
{
    struct sim_workload first = {0}, second = {0};
    if (read_text(&first, text, bytes)) {
        size_t length;
        char *once = written(&first, &length);
        if (!read_text(&second, once, length) || first.nprocs != second.nprocs ||
            first.njobs != second.njobs) /* pieces that are alike become one */
            abort();
        free(once);
    } else if (bytes && ftell(told) == 0) {
        abort();
    }
    sim_workload_free(&first);
    sim_workload_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char said[4096];
    if (!told && !(told = fmemopen(said, sizeof said, "w")))
        abort();
    rewind(told);
    char *text = malloc(bytes + 1);
    if (!text)
        abort();
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    size_t line = strcspn(text, "\n");
    bool more = line < bytes && text[line] == '\n';
    text[line] = '\0';
    machine(text);
    if (more)
        workload(text + line + 1, bytes - line - 1);
    free(text);
    return 0;
}
