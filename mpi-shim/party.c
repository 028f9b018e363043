/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * party.c - ranks that come together before MPI makes them wait for each other, where no
 * communicator with an arrival board is at hand: the ranks of a window, of a file, of a group.
 *
 * They exchange empty messages on the communicator of their managed group (managed_group.c), in a
 * dissemination barrier.  In round k each rank sends to the rank 2^k places after it and receives
 * from the rank 2^k places before.  After the last round each rank knows that all have come.  The
 * wait engine waits for these messages, so a rank lends its core until the last one has come.
 *
 * What a message is about is in its tag.  Two things may share a tag: messages between two
 * ranks keep their order, so only threads that are in both at once could mix them up.
 */
#include "shim.h"

#include <pthread.h>
#include <stdlib.h>

/* What the message says; the rest of the tag says for whom.  MPI has tags up to 32767 at least,
 * and the last ones are SHIM_TAG_NOBODY and SHIM_TAG_REPORT. */
enum topic { TOPIC_MEETING, TOPIC_POSTED, TOPIC_GROUP, TOPIC_LEADERS, TOPICS };
enum { NUMBERS = SHIM_TAG_REPORT / TOPICS };

static int message_tag(int number, enum topic topic)
{
    return number % NUMBERS * TOPICS + (int)topic;
}

static int member_at(int world_rank) { return shim_world.member_of[world_rank]; }

/* An empty message to one and from one; they may be the same. */
static void tell_and_hear(const struct shim_managed_group *managed, int to, int from, int tag,
                          const void *call_site)
{
    MPI_Request heard, told;
    if (shim_pmpi.Irecv(NULL, 0, MPI_BYTE, managed->rank_of[from], tag, managed->own, &heard) !=
        MPI_SUCCESS)
        return;
    if (shim_pmpi.Isend(NULL, 0, MPI_BYTE, managed->rank_of[to], tag, managed->own, &told) ==
        MPI_SUCCESS) {
        shim_ring_member(member_at(to));
        shim_wait_request(&told, MPI_STATUS_IGNORE, NULL, false, call_site);
    }
    shim_wait_request(&heard, MPI_STATUS_IGNORE, NULL, false, call_site);
}

/* False between MPI_Finalize and the end of the sessions, where the group has no communicator. */
static bool can_tell(const struct shim_managed_group *managed)
{
    return managed->own != MPI_COMM_NULL;
}

static void disseminate(const struct shim_party *p, int tag, const void *call_site)
{
    if (!can_tell(p->managed))
        return;
    for (int hop = 1; hop < p->size; hop *= 2)
        tell_and_hear(p->managed, p->world_rank[(p->me + hop) % p->size],
                      p->world_rank[(p->me + p->size - hop) % p->size], tag, call_site);
}

void shim_assemble_two(int peer, int tag, const void *call_site)
{
    const int both[2] = {peer, shim_world.rank};
    const struct shim_managed_group *managed = shim_managed_group_of(both, 2);
    if (managed && can_tell(managed))
        tell_and_hear(managed, peer, peer, message_tag(tag, TOPIC_LEADERS), call_site);
}

/* The group's ranks in MPI_COMM_WORLD, for the caller to free; NULL if one is outside. */
static int *ranks_of(MPI_Group group, int *size)
{
    if (group == MPI_GROUP_NULL || shim_pmpi.Group_size(group, size) != MPI_SUCCESS || *size < 1)
        return NULL;
    int *ranks = malloc((size_t)*size * 2 * sizeof *ranks);
    if (!ranks)
        return NULL;
    for (int r = 0; r < *size; r++)
        ranks[*size + r] = r;
    shim_pmpi.Group_translate_ranks(group, *size, ranks + *size, shim_world.group, ranks);
    for (int r = 0; r < *size; r++)
        if (ranks[r] < 0) {
            free(ranks);
            return NULL;
        }
    return ranks;
}

/* Who I am in it, and who the others are.  False: not a party that we can wait for. */
static bool invite(struct shim_party *p, MPI_Group group)
{
    *p = (struct shim_party){.me = -1};
    p->world_rank = ranks_of(group, &p->size);
    p->managed = p->world_rank ? shim_managed_group_of(p->world_rank, p->size) : NULL;
    for (int r = 0; p->world_rank && r < p->size; r++)
        if (p->world_rank[r] == shim_world.rank)
            p->me = r;
    if (p->managed && p->me >= 0 && p->size > 1)
        return true;
    free(p->world_rank);
    return false;
}

void shim_assemble_group(MPI_Group group, int tag, const void *call_site)
{
    struct shim_party p;
    if (!invite(&p, group))
        return;
    disseminate(&p, message_tag(tag, TOPIC_GROUP), call_site);
    free(p.world_rank);
}

int shim_text_tag(const char *text)
{
    unsigned hash = 5381;
    for (; text && *text; text++)
        hash = hash * 33 + (unsigned char)*text;
    return (int)(hash >> 1);
}

/* --- parties that last */

static struct shim_party *parties;
static pthread_mutex_t parties_lock = PTHREAD_MUTEX_INITIALIZER;
static const char of_win, of_file;

static struct shim_party *find(const void *kind, uintptr_t handle)
{
    pthread_mutex_lock(&parties_lock);
    struct shim_party *p = parties;
    while (p && (p->kind != kind || p->handle != handle))
        p = p->next;
    pthread_mutex_unlock(&parties_lock);
    return p;
}

static void put(struct shim_party *p)
{
    pthread_mutex_lock(&parties_lock);
    p->next = parties;
    parties = p;
    pthread_mutex_unlock(&parties_lock);
}

void shim_party_take(struct shim_party *p)
{
    pthread_mutex_lock(&parties_lock);
    for (struct shim_party **link = &parties; p && *link; link = &(*link)->next)
        if (*link == p) {
            *link = p->next;
            break;
        }
    pthread_mutex_unlock(&parties_lock);
}

void shim_party_end(struct shim_party *p, bool gone)
{
    if (!p)
        return;
    if (!gone) {
        put(p);
        return;
    }
    free(p->world_rank);
    free(p);
}

static void remember(const void *kind, uintptr_t handle, MPI_Group group, int tag)
{
    struct shim_party *p = calloc(1, sizeof *p);
    if (p && invite(p, group)) {
        p->tag = tag;
        p->kind = kind;
        p->handle = handle;
        put(p);
    } else
        free(p);
}

void shim_remember_win(MPI_Win win, int tag)
{
    MPI_Group group;
    if (shim_pmpi.Win_get_group(win, &group) != MPI_SUCCESS)
        return;
    remember(&of_win, (uintptr_t)win, group, tag);
    shim_pmpi.Group_free(&group);
}

void shim_remember_file(MPI_File file, int tag)
{
    MPI_Group group;
    if (shim_pmpi.File_get_group(file, &group) != MPI_SUCCESS)
        return;
    remember(&of_file, (uintptr_t)file, group, tag);
    shim_pmpi.Group_free(&group);
}

struct shim_party *shim_party_of_win(MPI_Win win) { return find(&of_win, (uintptr_t)win); }
struct shim_party *shim_party_of_file(MPI_File file) { return find(&of_file, (uintptr_t)file); }

static void forget(struct shim_party *p)
{
    shim_party_take(p);
    shim_party_end(p, true);
}

void shim_forget_win(const MPI_Win *win)
{
    if (win)
        forget(shim_party_of_win(*win));
}

void shim_forget_file(const MPI_File *file)
{
    if (file)
        forget(shim_party_of_file(*file));
}

void shim_assemble_party(struct shim_party *p, const void *call_site)
{
    if (p)
        disseminate(p, message_tag(p->tag, TOPIC_MEETING), call_site);
}

void shim_party_ring(const struct shim_party *p)
{
    for (int r = 0; p && r < p->size; r++)
        if (r != p->me)
            shim_ring_member(member_at(p->world_rank[r]));
}

/* --- exposure epochs: each post is one message, which a start takes */

void shim_party_tell_posted(const struct shim_party *p, MPI_Group group)
{
    int size, *ranks = ranks_of(group, &size);
    MPI_Request told;
    for (int i = 0; ranks && can_tell(p->managed) && i < size; i++)
        if (shim_pmpi.Isend(NULL, 0, MPI_BYTE, p->managed->rank_of[ranks[i]],
                            message_tag(p->tag, TOPIC_POSTED), p->managed->own,
                            &told) == MPI_SUCCESS) {
            shim_pmpi.Request_free(&told);
            shim_ring_member(member_at(ranks[i]));
        }
    free(ranks);
}

void shim_party_await_posted(const struct shim_party *p, MPI_Group group, const void *call_site)
{
    int size, *ranks = ranks_of(group, &size);
    MPI_Request heard;
    for (int i = 0; ranks && can_tell(p->managed) && i < size; i++)
        if (shim_pmpi.Irecv(NULL, 0, MPI_BYTE, p->managed->rank_of[ranks[i]],
                            message_tag(p->tag, TOPIC_POSTED), p->managed->own,
                            &heard) == MPI_SUCCESS)
            shim_wait_request(&heard, MPI_STATUS_IGNORE, NULL, false, call_site);
    free(ranks);
}
