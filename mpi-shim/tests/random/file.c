/* SPDX-License-Identifier: GPL-3.0-or-later */
/* file.c - MPI-IO on a file that all ranks of a communicator write and read together. */
#include "random.h"

#include <stdlib.h>

struct shared_file {
    MPI_File file;
    int rank, size, ints; /* of each rank's block */
    char *out, *in;
};

static size_t bytes_of(const struct shared_file *f) { return (size_t)f->ints * sizeof(int); }
static MPI_Offset my_block(const struct shared_file *f)
{
    return (MPI_Offset)f->rank * (MPI_Offset)bytes_of(f);
}

/* MPI_Testsome on a request of a file never ends in MPICH 4.0. */
static void write_block(struct world *w, struct shared_file *f, int way)
{
    MPI_Request request;
    MPI_Status s;
    MPI_Offset at = my_block(f);
    MPI_File_seek(f->file, at, MPI_SEEK_SET);
    switch (way) {
    case 0:
        MPI_File_write_at_all(f->file, at, f->out, f->ints, MPI_INT, &s);
        break;
    case 1:
        MPI_File_write_all(f->file, f->out, f->ints, MPI_INT, &s);
        break;
    case 2:
        MPI_File_write_at_all_begin(f->file, at, f->out, f->ints, MPI_INT);
        dawdle(w);
        MPI_File_write_at_all_end(f->file, f->out, &s);
        break;
    case 3:
        MPI_File_iwrite_at_all(f->file, at, f->out, f->ints, MPI_INT, &request);
        MPI_Wait(&request, &s);
        break;
    case 4:
        MPI_File_write_ordered(f->file, f->out, f->ints, MPI_INT, &s);
        break;
    case 5:
        MPI_File_write_all_begin(f->file, f->out, f->ints, MPI_INT);
        dawdle(w);
        MPI_File_write_all_end(f->file, f->out, &s);
        break;
    case 6:
        MPI_File_write_ordered_begin(f->file, f->out, f->ints, MPI_INT);
        MPI_File_write_ordered_end(f->file, f->out, &s);
        break;
    case 7:
        MPI_File_iwrite_all(f->file, f->out, f->ints, MPI_INT, &request);
        MPI_Wait(&request, &s);
        break;
    case 8:
        MPI_File_write(f->file, f->out, f->ints, MPI_INT, &s);
        break;
    case 9: /* which rank writes where is open */
        MPI_File_write_shared(f->file, f->out, f->ints, MPI_INT, &s);
        break;
    case 10:
        MPI_File_iwrite_shared(f->file, f->out, f->ints, MPI_INT, &request);
        MPI_Wait(&request, &s);
        break;
    default:
        MPI_File_write_at(f->file, at, f->out, f->ints, MPI_INT, &s);
    }
    int count = -1;
    MPI_Get_count(&s, MPI_INT, &count);
    note(w, "wrote %d", count);
}

static void read_block(struct world *w, struct shared_file *f, int way)
{
    MPI_Request request;
    MPI_Status s;
    MPI_Offset at = my_block(f);
    MPI_File_seek(f->file, at, MPI_SEEK_SET);
    MPI_File_seek_shared(f->file, 0, MPI_SEEK_SET);
    switch (way) {
    case 0:
        MPI_File_read_at_all(f->file, at, f->in, f->ints, MPI_INT, &s);
        break;
    case 1:
        MPI_File_read_all(f->file, f->in, f->ints, MPI_INT, &s);
        break;
    case 2:
        MPI_File_read_at_all_begin(f->file, at, f->in, f->ints, MPI_INT);
        MPI_File_read_at_all_end(f->file, f->in, &s);
        break;
    case 3:
        MPI_File_iread_at(f->file, at, f->in, f->ints, MPI_INT, &request);
        MPI_Wait(&request, &s);
        break;
    case 4:
        MPI_File_read_all_begin(f->file, f->in, f->ints, MPI_INT);
        dawdle(w);
        MPI_File_read_all_end(f->file, f->in, &s);
        break;
    case 5:
        MPI_File_read_ordered_begin(f->file, f->in, f->ints, MPI_INT);
        MPI_File_read_ordered_end(f->file, f->in, &s);
        break;
    case 6:
        MPI_File_iread_at_all(f->file, at, f->in, f->ints, MPI_INT, &request);
        MPI_Wait(&request, &s);
        break;
    case 7:
        MPI_File_iread_all(f->file, f->in, f->ints, MPI_INT, &request);
        MPI_Wait(&request, &s);
        break;
    case 8:
        MPI_File_read(f->file, f->in, f->ints, MPI_INT, &s);
        break;
    case 9:
        MPI_File_read_at(f->file, at, f->in, f->ints, MPI_INT, &s);
        break;
    case 10:
        MPI_File_read_shared(f->file, f->in, f->ints, MPI_INT, &s);
        break;
    case 11:
        MPI_File_iread_shared(f->file, f->in, f->ints, MPI_INT, &request);
        MPI_Wait(&request, &s);
        break;
    default:
        MPI_File_read_ordered(f->file, f->in, f->ints, MPI_INT, &s);
    }
    int count = -1;
    MPI_Get_count(&s, MPI_INT, &count);
    note(w, "read %d", count);
}

/* What I have read; where a shared pointer was moved, what all have: each has one block, but
 * which one is open. */
static void note_blocks(struct world *w, const struct shared_file *f, MPI_Comm comm, bool any)
{
    unsigned long mine = hash_of(f->in, bytes_of(f) + GUARD), sum = mine;
    if (any)
        MPI_Allreduce(&mine, &sum, 1, MPI_UNSIGNED_LONG, MPI_SUM, comm);
    note(w, "data %016lx", sum);
}

/* What concerns the file as a whole. */
static void set_file(struct shared_file *f, int how)
{
    MPI_Offset all = (MPI_Offset)f->size * (MPI_Offset)bytes_of(f);
    if (how == 0)
        MPI_File_preallocate(f->file, all);
    else if (how == 1)
        MPI_File_set_view(f->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    else if (how == 2)
        MPI_File_set_info(f->file, MPI_INFO_NULL);
    else if (how == 3)
        MPI_File_set_atomicity(f->file, 1);
}

static void use_file(struct world *w, struct comm *c, int ints, int write_way, int read_way,
                     int how)
{
    char name[4096];
    MPI_Offset size = -1;
    struct shared_file f = {.rank = c->rank, .size = comm_size(c), .ints = ints};
    f.out = filled(bytes_of(&f), w->seed + (uint64_t)(w->step * RANKS + w->rank));
    f.in = blank(bytes_of(&f));
    snprintf(name, sizeof name, "%s/file-%d-%d", w->directory, w->thread, w->step);
    note(w, "file of %d ints a rank, written %d, read %d, set %d", ints, write_way, read_way, how);
    MPI_File_open(c->handle, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &f.file);
    MPI_File_set_size(f.file, 0);
    set_file(&f, how);
    write_block(w, &f, write_way);
    MPI_File_sync(f.file);
    MPI_Barrier(c->handle);
    MPI_File_sync(f.file);
    read_block(w, &f, read_way);
    note_blocks(w, &f, c->handle,
                write_way == 9 || write_way == 10 || read_way == 10 || read_way == 11);
    MPI_File_get_size(f.file, &size);
    note(w, "size %lld", (long long)size);
    MPI_File_close(&f.file);
    free(f.out);
    free(f.in);
}

void step_file(struct world *w)
{
    struct comm *c = pick_comm(w, false);
    int ints = below(&w->shared, 4000), write_way = below(&w->shared, 12);
    int read_way = below(&w->shared, 13), how = below(&w->shared, 6);
    if (c->side >= 0 && w->directory)
        use_file(w, c, ints, write_way, read_way, how);
}
