/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * opened_group.c - arrival barriers without a communicator that has an arrival board.  Their ranks
 * are those of a window or a file, which have an opened group, or those of a group that the
 * program passes.
 *
 * They exchange empty messages on the communicator of their managed group (managed_group.c), in a
 * dissemination barrier.  In round k each rank sends to the rank 2^k places after it and receives
 * from the rank 2^k places before.  After the last round each rank knows that all have arrived.
 * The wait engine waits for these messages, so a rank lends its core until the last one has
 * arrived.
 *
 * The tag of a message says what it is for.  Two barriers may have the same tag: messages between
 * two ranks keep their order, so only threads that are in both barriers at once could confuse them.
 */
#include "mpi-shim/arrival/opened_group.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/managed_group.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/wait/check.h"
#include "mpi-shim/wait/ring.h"

#include <pthread.h>
#include <stdlib.h>

/* The purpose of a message.  The rest of the tag is a number that its ranks share.  MPI guarantees
 * tags up to 32767; the last two are SHIM_TAG_UNUSED and SHIM_TAG_REPORT. */
enum topic { TOPIC_ARRIVAL, TOPIC_POSTED, TOPIC_GROUP, TOPIC_LEADERS, TOPICS };
enum { NUMBERS = SHIM_TAG_REPORT / TOPICS };

static int message_tag(int number, enum topic topic)
{
    inv_assert(number >= 0 && topic < TOPICS);
    return number % NUMBERS * TOPICS + (int)topic;
}

static int domain_rank_at(int world_rank)
{
    inv_assert(world_rank >= 0 && world_rank < shim_world.size);
    return shim_world.domain_rank_of[world_rank];
}

/* An empty message to one and from one; they may be the same. */
static void exchange_empty(const struct shim_managed_group *managed, int to, int from, int tag,
                           const void *call_site)
{
    MPI_Request heard, told;
    inv_assert(managed->rank_of[from] >= 0 && managed->rank_of[to] >= 0);
    if (shim_pmpi.Irecv(NULL, 0, MPI_BYTE, managed->rank_of[from], tag, managed->own, &heard) !=
        MPI_SUCCESS)
        return;
    if (shim_pmpi.Isend(NULL, 0, MPI_BYTE, managed->rank_of[to], tag, managed->own, &told) ==
        MPI_SUCCESS) {
        shim_ring(domain_rank_at(to));
        shim_wait_request(&told, MPI_STATUS_IGNORE, NULL, false, call_site);
    }
    shim_wait_request(&heard, MPI_STATUS_IGNORE, NULL, false, call_site);
}

/* False between MPI_Finalize and the end of the sessions, where the group has no communicator. */
static bool can_send(const struct shim_managed_group *managed)
{
    return managed->own != MPI_COMM_NULL;
}

static void run_barrier(const struct shim_opened_group *g, int tag, const void *call_site)
{
    inv_assert(g->me >= 0 && g->me < g->size);
    if (!can_send(g->managed))
        return;
    for (int hop = 1; hop < g->size; hop *= 2)
        exchange_empty(g->managed, g->world_rank[(g->me + hop) % g->size],
                       g->world_rank[(g->me + g->size - hop) % g->size], tag, call_site);
}

void shim_arrival_barrier_two(int peer, int tag, const void *call_site)
{
    const int both[2] = {peer, shim_world.rank};
    const struct shim_managed_group *managed = shim_managed_group_of(both, 2);
    if (managed && can_send(managed))
        exchange_empty(managed, peer, peer, message_tag(tag, TOPIC_LEADERS), call_site);
}

/* The group's ranks in MPI_COMM_WORLD, for the caller to free; NULL if one is outside. */
static int *get_world_ranks(MPI_Group group, int *size)
{
    if (group == MPI_GROUP_NULL || shim_pmpi.Group_size(group, size) != MPI_SUCCESS || *size < 1)
        return NULL;
    int *ranks = shim_world_ranks(group, *size);
    for (int r = 0; ranks && r < *size; r++)
        if (ranks[r] < 0) {
            free(ranks);
            return NULL;
        }
    return ranks;
}

/* The ranks of the group.  False: this rank has none to wait for. */
static bool init_opened_group(struct shim_opened_group *g, MPI_Group group)
{
    *g = (struct shim_opened_group){.me = -1};
    g->world_rank = get_world_ranks(group, &g->size);
    g->managed = g->world_rank ? shim_managed_group_of(g->world_rank, g->size) : NULL;
    for (int r = 0; g->world_rank && r < g->size; r++)
        if (g->world_rank[r] == shim_world.rank)
            g->me = r;
    if (g->managed && g->me >= 0 && g->size > 1)
        return true;
    free(g->world_rank);
    return false;
}

void shim_arrival_barrier_group(MPI_Group group, int tag, const void *call_site)
{
    struct shim_opened_group g;
    if (!init_opened_group(&g, group))
        return;
    run_barrier(&g, message_tag(tag, TOPIC_GROUP), call_site);
    free(g.world_rank);
}

int shim_text_tag(const char *text)
{
    unsigned hash = 5381;
    for (; text && *text; text++)
        hash = hash * 33 + (unsigned char)*text;
    return (int)(hash >> 1);
}

/* --- opened groups, which live as long as their window or file */

/* Written by attach_group and shim_opened_group_detach, under the lock. */
static struct {
    pthread_mutex_t lock;
    struct shim_opened_group *first;
} opened = {.lock = PTHREAD_MUTEX_INITIALIZER};
static const char of_win, of_file;

static struct shim_opened_group *find_group(const void *kind, uintptr_t handle)
{
    pthread_mutex_lock(&opened.lock);
    struct shim_opened_group *g = opened.first;
    while (g && (g->kind != kind || g->handle != handle))
        g = g->next;
    pthread_mutex_unlock(&opened.lock);
    return g;
}

static void attach_group(struct shim_opened_group *g)
{
    pthread_mutex_lock(&opened.lock);
    g->next = opened.first;
    opened.first = g;
    pthread_mutex_unlock(&opened.lock);
}

void shim_opened_group_detach(struct shim_opened_group *g)
{
    pthread_mutex_lock(&opened.lock);
    for (struct shim_opened_group **link = &opened.first; g && *link; link = &(*link)->next)
        if (*link == g) {
            *link = g->next;
            break;
        }
    pthread_mutex_unlock(&opened.lock);
}

void shim_opened_group_end(struct shim_opened_group *g, bool gone)
{
    if (!g)
        return;
    if (!gone) {
        attach_group(g);
        return;
    }
    free(g->world_rank);
    free(g);
}

static void add_group(const void *kind, uintptr_t handle, MPI_Group group, int tag)
{
    struct shim_opened_group *g = calloc(1, sizeof *g);
    if (g && init_opened_group(g, group)) {
        g->tag = tag;
        g->kind = kind;
        g->handle = handle;
        attach_group(g);
    } else
        free(g);
}

void shim_remember_win(MPI_Win win, int tag)
{
    MPI_Group group;
    if (shim_pmpi.Win_get_group(win, &group) != MPI_SUCCESS)
        return;
    add_group(&of_win, (uintptr_t)win, group, tag);
    shim_pmpi.Group_free(&group);
}

void shim_remember_file(MPI_File file, int tag)
{
    MPI_Group group;
    if (shim_pmpi.File_get_group(file, &group) != MPI_SUCCESS)
        return;
    add_group(&of_file, (uintptr_t)file, group, tag);
    shim_pmpi.Group_free(&group);
}

struct shim_opened_group *shim_opened_group_of_win(MPI_Win win)
{
    return find_group(&of_win, (uintptr_t)win);
}

struct shim_opened_group *shim_opened_group_of_file(MPI_File file)
{
    return find_group(&of_file, (uintptr_t)file);
}

static void drop_group(struct shim_opened_group *g)
{
    shim_opened_group_detach(g);
    shim_opened_group_end(g, true);
}

void shim_forget_win(const MPI_Win *win)
{
    if (win)
        drop_group(shim_opened_group_of_win(*win));
}

void shim_forget_file(const MPI_File *file)
{
    if (file)
        drop_group(shim_opened_group_of_file(*file));
}

void shim_opened_group_barrier(struct shim_opened_group *g, const void *call_site)
{
    if (g)
        run_barrier(g, message_tag(g->tag, TOPIC_ARRIVAL), call_site);
}

void shim_opened_group_ring(const struct shim_opened_group *g)
{
    for (int r = 0; g && r < g->size; r++)
        if (r != g->me)
            shim_ring(domain_rank_at(g->world_rank[r]));
}

/* --- exposure epochs: each post is one message, which a start takes */

void shim_opened_group_notify_posted(const struct shim_opened_group *g, MPI_Group group)
{
    int size, *ranks = get_world_ranks(group, &size);
    MPI_Request told;
    for (int i = 0; ranks && can_send(g->managed) && i < size; i++)
        if (shim_pmpi.Isend(NULL, 0, MPI_BYTE, g->managed->rank_of[ranks[i]],
                            message_tag(g->tag, TOPIC_POSTED), g->managed->own,
                            &told) == MPI_SUCCESS) {
            shim_pmpi.Request_free(&told);
            shim_ring(domain_rank_at(ranks[i]));
        }
    free(ranks);
}

void shim_opened_group_await_posted(const struct shim_opened_group *g, MPI_Group group,
                                    const void *call_site)
{
    int size, *ranks = get_world_ranks(group, &size);
    MPI_Request heard;
    for (int i = 0; ranks && can_send(g->managed) && i < size; i++)
        if (shim_pmpi.Irecv(NULL, 0, MPI_BYTE, g->managed->rank_of[ranks[i]],
                            message_tag(g->tag, TOPIC_POSTED), g->managed->own,
                            &heard) == MPI_SUCCESS)
            shim_wait_request(&heard, MPI_STATUS_IGNORE, NULL, false, call_site);
    free(ranks);
}
