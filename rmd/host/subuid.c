/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * subuid.c - the file of subordinate user IDs, NAME:FIRST:COUNT in each line.
 *
 * The first line that has an ID counts, as lines may overlap.  Ranges of root are those of system
 * containers, with users of their own, so IDs in them stay apart.  An ID with a line in passwd is a
 * user, whatever ranges say.  Names are looked up when an ID of their range asks for the first
 * time, since that may take long (NSS), and once for each state of the file.
 */
#define _GNU_SOURCE
#include "rmd/host/subuid.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PASSWD "/etc/passwd"

enum {
    LINE_BYTES = 512,
    RANGES_MAX = 1 << 16,
    FILE_BYTES = 1 << 22, /* more is not read */
    CACHED = 1024,        /* IDs */
    DEPTH = 8,            /* of ranges in ranges */
};
#define LOOK_NS UINT64_C(1000000000)

struct range {
    uint32_t first, count;
    char *name;  /* NULL: `owner` is known */
    uid_t owner; /* 0: root, or there is none */
};

struct rmd_subuids {
    unsigned count;
    struct range range[];
};

/* --- the text */

/* A decimal number and nothing else. */
static bool whole_number(const char *text, uint64_t most, uint64_t *n)
{
    *n = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || *n > most)
            return false;
        *n = 10 * *n + (uint64_t)(*text - '0');
    }
    return *n <= most;
}

/* The largest ID, (uid_t)-1, is not valid. */
static bool parse_line(char *line, struct range *r)
{
    char *first = strchr(line, ':'), *count = first ? strchr(first + 1, ':') : NULL;
    uint64_t from, n, owner;
    if (!count || first == line)
        return false;
    *first++ = *count++ = '\0';
    if (!whole_number(first, UINT32_MAX - 1, &from) || !whole_number(count, UINT32_MAX, &n) || !from ||
        !n || from + n > UINT32_MAX)
        return false;
    *r = (struct range){.first = (uint32_t)from, .count = (uint32_t)n};
    if (whole_number(line, UINT32_MAX - 1, &owner))
        r->owner = (uid_t)owner;
    else if (strcmp(line, "root") && !(r->name = strdup(line)))
        return false;
    return true;
}

/* Without its end; false: it is too long, or has a NUL. */
static bool copy_line(char line[LINE_BYTES], const char *from, size_t length)
{
    while (length && (from[length - 1] == ' ' || from[length - 1] == '\t' ||
                      from[length - 1] == '\r'))
        length--;
    if (length >= LINE_BYTES || memchr(from, '\0', length))
        return false;
    memcpy(line, from, length);
    line[length] = '\0';
    return true;
}

static unsigned count_lines(const char *text, size_t bytes)
{
    unsigned n = 1;
    for (size_t i = 0; i < bytes; i++)
        n += text[i] == '\n';
    return n < RANGES_MAX ? n : RANGES_MAX;
}

struct rmd_subuids *rmd_subuids_parse(const char *text, size_t bytes, unsigned *wrong)
{
    unsigned most = count_lines(text, bytes);
    struct rmd_subuids *all = calloc(1, sizeof *all + most * sizeof *all->range);
    *wrong = 0;
    for (size_t at = 0, length; all && at < bytes; at += length + 1) {
        char line[LINE_BYTES];
        const char *end = memchr(text + at, '\n', bytes - at);
        length = end ? (size_t)(end - text) - at : bytes - at;
        bool copied = copy_line(line, text + at, length);
        if (copied && (!*line || *line == '#'))
            continue;
        if (copied && all->count < most && parse_line(line, &all->range[all->count]))
            all->count++;
        else
            ++*wrong;
    }
    return all;
}

void rmd_subuids_free(struct rmd_subuids *all)
{
    for (unsigned i = 0; all && i < all->count; i++)
        free(all->range[i].name);
    free(all);
}

/* --- owners */

static void resolve_owner(struct range *r)
{
    const struct passwd *entry = r->name ? getpwnam(r->name) : NULL;
    if (!r->name)
        return;
    r->owner = entry ? entry->pw_uid : 0;
    free(r->name);
    r->name = NULL;
}

static bool is_in_passwd(const char *passwd, uid_t uid)
{
    FILE *f = fopen(passwd, "re");
    bool found = false;
    for (const struct passwd *entry; f && !found && (entry = fgetpwent(f)) != NULL;)
        found = entry->pw_uid == uid;
    if (f)
        fclose(f);
    return found;
}

uid_t rmd_subuids_owner(struct rmd_subuids *all, const char *passwd, uid_t uid)
{
    unsigned i = 0;
    while (i < all->count && (uint32_t)uid - all->range[i].first >= all->range[i].count)
        i++;
    if (i == all->count || is_in_passwd(passwd, uid))
        return uid;
    resolve_owner(&all->range[i]);
    return all->range[i].owner ? all->range[i].owner : uid;
}

/* --- the file */

/* Only rmd's main thread reads and writes it. */
static struct {
    const char *file;
    struct rmd_subuids *ranges; /* of the file as it was at the last look; NULL: none */
    struct stat seen;           /* zeros: it was not there */
    uint64_t looked_ns;
    int complained; /* the errno of what was told last */
    struct {
        bool known;
        uid_t uid, person;
    } cache[CACHED];
} subuid;

static bool same_state(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* NULL with errno. */
static struct rmd_subuids *read_ranges(int fd, const struct stat *st)
{
    unsigned wrong;
    size_t bytes = st->st_size < FILE_BYTES ? (size_t)st->st_size : FILE_BYTES, have = 0;
    char *text = malloc(bytes + 1);
    for (ssize_t n = 1; text && have < bytes && n > 0; have += n > 0 ? (size_t)n : 0)
        n = read(fd, text + have, bytes - have);
    struct rmd_subuids *all = text ? rmd_subuids_parse(text, have, &wrong) : NULL;
    free(text);
    if (all && wrong)
        rmd_log(RMD_WARNING, "%s: %u lines are no USER:FIRST:COUNT of user IDs, and are left out",
                subuid.file, wrong);
    if (all && st->st_size > FILE_BYTES)
        rmd_log(RMD_WARNING, "%s: what is beyond %d bytes is left out", subuid.file, FILE_BYTES);
    return all;
}

/* What cannot be read changes nothing, and is told once. */
static bool keep_ranges(int error)
{
    if (error != subuid.complained)
        rmd_log(RMD_WARNING, "cannot read %s (%s): subordinate user IDs stay as they were known",
                subuid.file, strerror(error));
    subuid.complained = error;
    return false;
}

static bool set_ranges(struct rmd_subuids *now, const struct stat *st)
{
    bool changed = subuid.ranges || now;
    rmd_subuids_free(subuid.ranges);
    subuid.ranges = now;
    subuid.seen = *st;
    subuid.complained = 0;
    memset(subuid.cache, 0, sizeof subuid.cache);
    return changed;
}

static bool check_file(void)
{
    static const struct stat missing;
    struct stat st;
    int fd = open(subuid.file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? set_ranges(NULL, &missing)
                                                   : keep_ranges(errno);
    int error = fstat(fd, &st) ? errno : S_ISREG(st.st_mode) ? 0 : EINVAL;
    bool changed = false;
    if (error) {
        changed = keep_ranges(error);
    } else if (!same_state(&st, &subuid.seen)) {
        struct rmd_subuids *now = read_ranges(fd, &st);
        changed = now ? set_ranges(now, &st) : keep_ranges(ENOMEM);
    }
    close(fd);
    return changed;
}

void rmd_subuid_use(const char *path)
{
    subuid.file = path;
    subuid.looked_ns = 0;
    set_ranges(NULL, &(struct stat){0});
    rmd_subuid_check();
}

bool rmd_subuid_check(void)
{
    uint64_t now = inv_now_ns();
    if (!subuid.file || (subuid.looked_ns && now - subuid.looked_ns < LOOK_NS))
        return false;
    subuid.looked_ns = now;
    return check_file();
}

static uid_t find_person(uid_t uid)
{
    uid_t person = uid, owner = uid;
    for (int depth = 0; depth < DEPTH; depth++) {
        owner = person ? rmd_subuids_owner(subuid.ranges, PASSWD, person) : person;
        if (owner == person)
            return person;
        person = owner;
    }
    return uid; /* ranges that have each other */
}

uid_t rmd_person(uid_t uid)
{
    if (!subuid.ranges)
        return uid;
    unsigned at = (unsigned)uid % CACHED;
    if (!subuid.cache[at].known || subuid.cache[at].uid != uid) {
        subuid.cache[at].person = find_person(uid);
        subuid.cache[at].uid = uid;
        subuid.cache[at].known = true;
    }
    return subuid.cache[at].person;
}
