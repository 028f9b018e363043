/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * files.c - collectives on a file, and what else may wait there.  The argument is the file's name.
 * Every rank writes EACH integers, and reads them back in another way.
 */
#include "expect.h"

enum { EACH = 100 };
static int data[EACH], back[EACH];
static MPI_File file;
static MPI_Offset mine; /* in units of the view: int */

static void fresh(int seed)
{
    for (int i = 0; i < EACH; i++)
        data[i] = seed * 10000 + world_rank * EACH + i;
    memset(back, 0, sizeof back);
    MPI_File_seek(file, mine, MPI_SEEK_SET);
}

static void same(const char *what)
{
    expect(memcmp(data, back, sizeof data) == 0, what);
}

/* Writes with the one, reads with the other. */
#define PAIR(seed, what, write, read)                                                              \
    do {                                                                                           \
        fresh(seed);                                                                               \
        write;                                                                                     \
        MPI_File_sync(file);                                                                       \
        MPI_Barrier(MPI_COMM_WORLD);                                                               \
        MPI_File_seek(file, mine, MPI_SEEK_SET);                                                   \
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);                                               \
        read;                                                                                      \
        same(what);                                                                                \
        MPI_Barrier(MPI_COMM_WORLD);                                                               \
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);                                               \
    } while (0)

/* The shared pointer gives the pieces out in any order. */
#define SHARED(seed, S)                                                                            \
    do {                                                                                           \
        int src = -1;                                                                              \
        fresh(seed);                                                                               \
        MPI_File_write_shared##S(file, data, EACH, MPI_INT, &s);                                   \
        MPI_File_sync(file);                                                                       \
        MPI_Barrier(MPI_COMM_WORLD);                                                               \
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);                                               \
        MPI_File_read_shared##S(file, back, EACH, MPI_INT, &s);                                    \
        src = (back[0] - (seed)*10000) / EACH;                                                     \
        expect(src >= 0 && src < world_size && back[EACH - 1] == back[0] + EACH - 1, "shared");    \
        MPI_Barrier(MPI_COMM_WORLD);                                                               \
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);                                               \
        MPI_File_iwrite_shared##S(file, data, EACH, MPI_INT, &r);                                  \
        MPI_Wait(&r, &s);                                                                          \
        MPI_File_sync(file);                                                                       \
        MPI_Barrier(MPI_COMM_WORLD);                                                               \
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);                                               \
        MPI_File_iread_shared##S(file, back, EACH, MPI_INT, &r);                                   \
        MPI_Wait(&r, &s);                                                                          \
        expect(back[EACH - 1] == back[0] + EACH - 1, "non-blocking shared");                       \
        MPI_Barrier(MPI_COMM_WORLD);                                                               \
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);                                               \
    } while (0)

#define EVERY(seed, S)                                                                             \
    do {                                                                                           \
        PAIR((seed) + 0, "all" #S, MPI_File_write_all##S(file, data, EACH, MPI_INT, &s),           \
             MPI_File_read_at_all##S(file, mine, back, EACH, MPI_INT, &s));                        \
        PAIR((seed) + 1, "at_all" #S,                                                              \
             MPI_File_write_at_all##S(file, mine, data, EACH, MPI_INT, &s),                        \
             MPI_File_read_all##S(file, back, EACH, MPI_INT, &s));                                 \
        PAIR((seed) + 2, "ordered" #S, MPI_File_write_ordered##S(file, data, EACH, MPI_INT, &s),   \
             MPI_File_read_ordered##S(file, back, EACH, MPI_INT, &s));                             \
        PAIR((seed) + 3, "all_begin" #S,                                                           \
             (MPI_File_write_all_begin##S(file, data, EACH, MPI_INT),                              \
              MPI_File_write_all_end(file, data, &s)),                                             \
             (MPI_File_read_all_begin##S(file, back, EACH, MPI_INT),                               \
              MPI_File_read_all_end(file, back, &s)));                                             \
        PAIR((seed) + 4, "at_all_begin" #S,                                                        \
             (MPI_File_write_at_all_begin##S(file, mine, data, EACH, MPI_INT),                     \
              MPI_File_write_at_all_end(file, data, &s)),                                          \
             (MPI_File_read_at_all_begin##S(file, mine, back, EACH, MPI_INT),                      \
              MPI_File_read_at_all_end(file, back, &s)));                                          \
        PAIR((seed) + 5, "ordered_begin" #S,                                                       \
             (MPI_File_write_ordered_begin##S(file, data, EACH, MPI_INT),                          \
              MPI_File_write_ordered_end(file, data, &s)),                                         \
             (MPI_File_read_ordered_begin##S(file, back, EACH, MPI_INT),                           \
              MPI_File_read_ordered_end(file, back, &s)));                                         \
        PAIR((seed) + 6, "iall" #S,                                                                \
             (MPI_File_iwrite_all##S(file, data, EACH, MPI_INT, &r), MPI_Wait(&r, &s)),            \
             (MPI_File_iread_all##S(file, back, EACH, MPI_INT, &r), MPI_Wait(&r, &s)));            \
        PAIR((seed) + 7, "iat_all" #S,                                                             \
             (MPI_File_iwrite_at_all##S(file, mine, data, EACH, MPI_INT, &r), MPI_Wait(&r, &s)),   \
             (MPI_File_iread_at_all##S(file, mine, back, EACH, MPI_INT, &r), MPI_Wait(&r, &s)));   \
        PAIR((seed) + 8, "one" #S, MPI_File_write##S(file, data, EACH, MPI_INT, &s),               \
             MPI_File_read##S(file, back, EACH, MPI_INT, &s));                                     \
        PAIR((seed) + 9, "one at" #S, MPI_File_write_at##S(file, mine, data, EACH, MPI_INT, &s),   \
             MPI_File_read_at##S(file, mine, back, EACH, MPI_INT, &s));                            \
        SHARED((seed) + 10, S);                                                                    \
    } while (0)

int main(int argc, char **argv)
{
    MPI_Status s;
    MPI_Request r;
    MPI_Offset size;
    start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    mine = (MPI_Offset)world_rank * EACH;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_File_preallocate(file, (MPI_Offset)world_size * EACH * (int)sizeof(int));
    MPI_File_get_size(file, &size);
    expect(size == (MPI_Offset)world_size * EACH * (int)sizeof(int), "size");
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_set_info(file, MPI_INFO_NULL);
    MPI_File_set_atomicity(file, 1);
    MPI_File_set_atomicity(file, 0);
    EVERY(0, );
#if MPI_VERSION >= 4
    EVERY(20, _c);
#endif
    MPI_File_close(&file);
    expect(file == MPI_FILE_NULL, "closed");
    MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at_all(file, mine, back, EACH, MPI_INT, &s);
    MPI_File_close(&file);
    expect(MPI_File_open(MPI_COMM_WORLD, "/no/such/place", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) !=
               MPI_SUCCESS,
           "no such file");
    return finish();
}
