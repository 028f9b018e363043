/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * subuid.h - owners of user IDs: the subordinate IDs of subuid(5), which containers use.
 *
 * A person is a user with its subordinate IDs.  Shares, limits and rate limits are the person's.
 * Trust is not: tables, signals and reports stay each user ID's own.
 * Only rmd's main thread uses a struct rmd_persons.
 */
#ifndef RMD_SUBUID_H
#define RMD_SUBUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct rmd_subuids;

/*
 * rmd_subuids_parse - the ranges in a file's text, which may be anything and need not end in NUL.
 * Malformed lines, and lines whose range has user 0 or ends beyond the largest ID, are left out;
 * *wrong is their number.  The caller frees the result; NULL: no memory.
 */
struct rmd_subuids *rmd_subuids_parse(const char *text, size_t bytes, unsigned *wrong);
void rmd_subuids_free(struct rmd_subuids *all);

/* The user in whose range the ID is, by the first such line.  The ID itself if there is no such
 * line, if the line's user is root or unknown, or if the ID has a line in the file `passwd`, a
 * path. */
uid_t rmd_subuids_owner(struct rmd_subuids *all, const char *passwd, uid_t uid);

enum { RMD_PERSONS_CACHED = 1024 }; /* IDs */

/* Persons by a file.  Zeros at first: every ID is a person. */
struct rmd_persons {
    const char *file;
    struct rmd_subuids *ranges; /* of the file as it was at the last look; NULL: none */
    struct stat seen;           /* zeros: it was not there */
    uint64_t looked_ns;
    int complained; /* errno of the failure that was logged last */
    struct {
        bool known;
        uid_t uid, person;
    } cache[RMD_PERSONS_CACHED];
};

/* Uses this file from now on, which may be missing; NULL: no file, and every ID is a person. */
void rmd_subuid_use(struct rmd_persons *persons, const char *file);
/* Reads the file again if it has changed; looks once a second at most.  True: a user may be of
 * another person now. */
bool rmd_subuid_check(struct rmd_persons *persons);
/* The person of a user: an ID of that person. */
uid_t rmd_person(struct rmd_persons *persons, uid_t uid);

#endif
