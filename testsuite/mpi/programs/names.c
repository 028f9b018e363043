/* SPDX-License-Identifier: GPL-3.0-or-later */
/* names.c - which of the names in names.h a process sees, in each way in which a program can ask;
 * a line each.  Compiled as a program, and with LIBRARY as a library that the program is linked
 * with, or that it loads: names [FILE [MODE]]. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME(name) extern int name(void) __attribute__((weak));
#include "names.h"
#undef NAME

static const char *const texts[] = {
#define NAME(name) #name,
#include "names.h"
#undef NAME
};
enum { NAMES = sizeof texts / sizeof *texts };

static int (*const in_data[NAMES])(void) = {
#define NAME(name) name,
#include "names.h"
#undef NAME
};

/* By the global offset table. */
static void ask_got(void)
{
#define NAME(name) \
    if (name)      \
        printf(" %s", #name);
#include "names.h"
#undef NAME
}

static void ask_dlsym(void *handle)
{
    for (int i = 0; i < NAMES; i++)
        if (dlsym(handle, texts[i]))
            printf(" %s", texts[i]);
}

static void ask(const char *who)
{
    printf("%s, references in data:", who);
    for (int i = 0; i < NAMES; i++)
        if (in_data[i])
            printf(" %s", texts[i]);
    printf("\n%s, references in code:", who);
    ask_got();
    printf("\n%s, RTLD_DEFAULT:", who);
    ask_dlsym(RTLD_DEFAULT);
    printf("\n%s, RTLD_NEXT:", who);
    ask_dlsym(RTLD_NEXT);
    void *all = dlopen(NULL, RTLD_LAZY);
    printf("\n%s, dlopen(NULL):", who);
    ask_dlsym(all);
    printf("\n%s, dlvsym:", who);
    for (int i = 0; i < NAMES; i++)
        if (dlvsym(RTLD_DEFAULT, texts[i], "MPI_4") || dlvsym(all, texts[i], "GLIBC_2.2.5"))
            printf(" %s", texts[i]);
    printf("\n");
}

#ifdef LIBRARY
void ask_library(const char *who);
void ask_library(const char *who)
{
    ask(who);
}
#else
extern void ask_library(const char *who) __attribute__((weak));

int main(int argc, char **argv)
{
    ask("program");
    if (ask_library)
        ask_library("library");
    for (int i = 1; i + 1 < argc; i += 2) {
        void *loaded = dlopen(argv[i], atoi(argv[i + 1]));
        if (!loaded) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        void (*function)(const char *) = (void (*)(const char *))dlsym(loaded, "ask_library");
        if (function)
            function("plugin");
        ask("program afterwards");
    }
    return 0;
}
#endif
