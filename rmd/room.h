/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * room.h - the memory of a policy while it decides: the snapshot's room, handed out from the
 * front.  A function that takes a struct rmd_room by value gives back what it took when it
 * returns.
 */
#ifndef RMD_ROOM_H
#define RMD_ROOM_H

#include <stdalign.h>
#include <stddef.h>

struct rmd_room {
    char *at;
};

static inline void *rmd_take(struct rmd_room *room, size_t count, size_t size)
{
    void *taken = room->at;
    size_t align = alignof(max_align_t);
    room->at += (count * size + align - 1) / align * align;
    return taken;
}

#endif
