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

static bool same_state(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* NULL with errno. */
static struct rmd_subuids *read_ranges(const struct rmd_persons *p, int fd, const struct stat *st)
{
    unsigned wrong;
    size_t bytes = st->st_size < FILE_BYTES ? (size_t)st->st_size : FILE_BYTES, have = 0;
    char *text = malloc(bytes + 1);
    for (ssize_t n = 1; text && have < bytes && n > 0; have += n > 0 ? (size_t)n : 0)
        n = read(fd, text + have, bytes - have);
    struct rmd_subuids *all = text ? rmd_subuids_parse(text, have, &wrong) : NULL;
    free(text);
    if (all && wrong)
        rmd_log(RMD_WARNING, "%s: %u lines that are not USER:FIRST:COUNT of user IDs are left out",
                p->file, wrong);
    if (all && st->st_size > FILE_BYTES)
        rmd_log(RMD_WARNING, "%s: what is beyond %d bytes is left out", p->file, FILE_BYTES);
    return all;
}

/* The file cannot be read: keeps the ranges, and logs the error once. */
static bool keep_ranges(struct rmd_persons *p, int error)
{
    if (error != p->complained)
        rmd_log(RMD_WARNING, "cannot read %s (%s): subordinate user IDs stay as they were known",
                p->file, strerror(error));
    p->complained = error;
    return false;
}

static bool set_ranges(struct rmd_persons *p, struct rmd_subuids *now, const struct stat *st)
{
    bool changed = p->ranges || now;
    rmd_subuids_free(p->ranges);
    p->ranges = now;
    p->seen = *st;
    p->complained = 0;
    memset(p->cache, 0, sizeof p->cache);
    return changed;
}

static bool check_file(struct rmd_persons *p)
{
    static const struct stat missing;
    struct stat st;
    int fd = open(p->file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? set_ranges(p, NULL, &missing)
                                                   : keep_ranges(p, errno);
    int error = fstat(fd, &st) ? errno : S_ISREG(st.st_mode) ? 0 : EINVAL;
    bool changed = false;
    if (error) {
        changed = keep_ranges(p, error);
    } else if (!same_state(&st, &p->seen)) {
        struct rmd_subuids *now = read_ranges(p, fd, &st);
        changed = now ? set_ranges(p, now, &st) : keep_ranges(p, ENOMEM);
    }
    close(fd);
    return changed;
}

void rmd_subuid_use(struct rmd_persons *p, const char *path)
{
    p->file = path;
    p->looked_ns = 0;
    set_ranges(p, NULL, &(struct stat){0});
    rmd_subuid_check(p);
}

bool rmd_subuid_check(struct rmd_persons *p)
{
    uint64_t now = inv_now_ns();
    if (!p->file || (p->looked_ns && now - p->looked_ns < LOOK_NS))
        return false;
    p->looked_ns = now;
    return check_file(p);
}

static uid_t find_person(const struct rmd_persons *p, uid_t uid)
{
    uid_t person = uid, owner = uid;
    for (int depth = 0; depth < DEPTH; depth++) {
        owner = person ? rmd_subuids_owner(p->ranges, PASSWD, person) : person;
        if (owner == person)
            return person;
        person = owner;
    }
    return uid; /* ranges that have each other */
}

uid_t rmd_person(struct rmd_persons *p, uid_t uid)
{
    if (!p->ranges)
        return uid;
    unsigned at = (unsigned)uid % RMD_PERSONS_CACHED;
    if (!p->cache[at].known || p->cache[at].uid != uid) {
        p->cache[at].person = find_person(p, uid);
        p->cache[at].uid = uid;
        p->cache[at].known = true;
    }
    return p->cache[at].person;
}
