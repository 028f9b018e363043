/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * errors.c - wrong arguments to a function of each kind: which class of error comes back, and which
 * error handler has been called, how often.  The test compares a managed run with a stock one.
 */
#include "expect.h"

static int on_comm, on_other, on_win, on_file;
static MPI_Comm comm;

static void comm_handler(MPI_Comm *where, int *code, ...)
{
    (void)code;
    if (*where == comm)
        on_comm++;
    else
        on_other++;
}
static void win_handler(MPI_Win *where, int *code, ...)
{
    (void)where;
    (void)code;
    on_win++;
}
static void file_handler(MPI_File *where, int *code, ...)
{
    (void)where;
    (void)code;
    on_file++;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        on_comm = on_other = on_win = on_file = 0;                                                 \
        int code_of_call = (call);                                                                 \
        note("%s: class %d, handlers %d %d %d %d\n", #call, class_of(code_of_call), on_comm,       \
             on_other, on_win, on_file);                                                           \
    } while (0)

static int v[64];
static MPI_Request r;
static MPI_Status s;
static MPI_Message message;
static int flag, size, rank, many[64];

static void messages(void)
{
    TRY(MPI_Send(v, 1, MPI_INT, size, 1, comm));
    TRY(MPI_Send(v, -1, MPI_INT, 0, 1, comm));
    TRY(MPI_Send(v, 1, MPI_INT, 0, -5, comm));
    TRY(MPI_Send(v, 1, MPI_DATATYPE_NULL, 0, 1, comm));
    TRY(MPI_Send(v, 1, MPI_INT, 0, 1, MPI_COMM_NULL));
    TRY(MPI_Ssend(v, 1, MPI_INT, -7, 1, comm));
    TRY(MPI_Bsend(v, 1, MPI_INT, size, 1, comm));
    TRY(MPI_Rsend(v, -1, MPI_INT, 0, 1, comm));
    TRY(MPI_Isend(v, 1, MPI_INT, size, 1, comm, &r));
    TRY(MPI_Irecv(v, 1, MPI_INT, size, 1, comm, &r));
    TRY(MPI_Recv(v, 1, MPI_INT, size, 1, comm, &s));
    TRY(MPI_Recv(v, -1, MPI_INT, 0, 1, comm, &s));
    TRY(MPI_Recv(v, 1, MPI_INT, 0, -7, comm, &s));
    TRY(MPI_Sendrecv(v, 1, MPI_INT, size, 1, many, 1, MPI_INT, 0, 1, comm, &s));
    TRY(MPI_Sendrecv(v, 1, MPI_INT, 0, 1, many, -1, MPI_INT, 0, 1, comm, &s));
    TRY(MPI_Sendrecv(v, -1, MPI_INT, MPI_PROC_NULL, 1, many, 1, MPI_INT, 0, 1, comm, &s));
    TRY(MPI_Sendrecv_replace(v, 1, MPI_INT, size, 1, 0, 1, comm, &s));
    TRY(MPI_Send_init(v, 1, MPI_INT, size, 1, comm, &r));
    TRY(MPI_Recv_init(v, -1, MPI_INT, 0, 1, comm, &r));
    TRY(MPI_Probe(size, 1, comm, &s));
    TRY(MPI_Iprobe(size, 1, comm, &flag, &s));
    TRY(MPI_Mprobe(-9, 1, comm, &message, &s));
    TRY(MPI_Improbe(size, 1, comm, &flag, &message, &s));
    r = MPI_REQUEST_NULL;
    TRY(MPI_Start(&r));
    TRY(MPI_Waitall(-1, &r, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitany(-1, &r, &flag, &s));
    TRY(MPI_Testall(-1, &r, &flag, MPI_STATUSES_IGNORE));
    TRY(MPI_Wait(&r, &s));
    TRY(MPI_Test(&r, &flag, &s));
#ifdef MPICH /* others crash */
    message = MPI_MESSAGE_NULL;
    TRY(MPI_Mrecv(v, 1, MPI_INT, &message, &s));
    TRY(MPI_Send(NULL, 1, MPI_INT, 0, 1, comm));
    TRY(MPI_Recv(NULL, 1, MPI_INT, 0, 1, comm, &s));
    TRY(MPI_Wait(NULL, &s));
    TRY(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE));
    TRY(MPI_Test(NULL, &flag, &s));
    TRY(MPI_Test(&r, NULL, &s));
    TRY(MPI_Mrecv(v, 1, MPI_INT, NULL, &s));
    MPI_Comm freed;
    MPI_Comm_dup(comm, &freed);
    MPI_Comm gone = freed;
    MPI_Comm_free(&freed);
    TRY(MPI_Send(v, 1, MPI_INT, 0, 1, gone));
    TRY(MPI_Barrier(gone));
    TRY(MPI_Bcast(v, 1, MPI_INT, 0, gone));
    TRY(MPI_Comm_dup(gone, &freed));
#endif
}

#ifdef MPICH
/* A receive of what is refused takes no message. */
static void refused(void)
{
    MPI_Datatype open_type;
    MPI_Type_contiguous(2, MPI_INT, &open_type); /* not committed */
    TRY(MPI_Sendrecv(v, 1, open_type, rank, 60, many, 4, MPI_INT, rank, 60, comm, &s));
    MPI_Type_free(&open_type);
    v[0] = 60;
    many[0] = many[8] = 0;
    MPI_Isend(v, 4, MPI_INT, rank, 60, comm, &r);
    TRY(MPI_Recv(many + 8, 4, MPI_INT, rank, 60, comm, &s));
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    note("received: %d %d\n", many[0], many[8]);
    v[0] = 0;
}
#endif

static void truncation(void)
{
    MPI_Request two[2];
    MPI_Status both[2];
    MPI_Isend(v, 4, MPI_INT, rank, 40, comm, &r);
    TRY(MPI_Recv(many, 2, MPI_INT, rank, 40, comm, &s));
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Isend(v, 4, MPI_INT, next, 44, comm, &r);
    TRY(MPI_Sendrecv(v, 1, MPI_INT, MPI_PROC_NULL, 1, many, 2, MPI_INT, previous, 44, comm, &s));
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (size > 1)
        TRY(MPI_Sendrecv(v, 4, MPI_INT, next, 45, many, 2, MPI_INT, previous, 45, comm, &s));
    MPI_Isend(v, 4, MPI_INT, rank, 41, comm, &two[0]);
    MPI_Irecv(many, 2, MPI_INT, rank, 41, comm, &two[1]);
    TRY(MPI_Waitall(2, two, both));
    note("in statuses: %d %d\n", class_of(both[0].MPI_ERROR), class_of(both[1].MPI_ERROR));
}

static void collectives(void)
{
    TRY(MPI_Barrier(MPI_COMM_NULL));
    TRY(MPI_Bcast(v, 1, MPI_INT, size, comm));
#ifdef MPICH
    MPI_Errhandler own;
    MPI_Comm_get_errhandler(comm, &own);
    MPI_Errhandler_set(comm, own);
    MPI_Errhandler_free(&own);
#endif
    TRY(MPI_Bcast(v, -1, MPI_INT, 0, comm));
    TRY(MPI_Bcast(v, 1, MPI_DATATYPE_NULL, 0, comm));
    TRY(MPI_Allreduce(v, many, 1, MPI_INT, MPI_OP_NULL, comm));
    TRY(MPI_Allreduce(v, many, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
    TRY(MPI_Reduce(v, many, 1, MPI_INT, MPI_SUM, -4, comm));
    TRY(MPI_Reduce(v, many, 1, MPI_INT, MPI_OP_NULL, 0, comm));
    TRY(MPI_Scan(v, many, 1, MPI_INT, MPI_OP_NULL, comm));
    TRY(MPI_Exscan(v, many, 1, MPI_INT, MPI_OP_NULL, comm));
    TRY(MPI_Gather(v, 1, MPI_INT, many, 1, MPI_INT, size, comm));
    TRY(MPI_Scatter(v, 1, MPI_INT, many, 1, MPI_INT, size, comm));
    TRY(MPI_Allgather(v, 1, MPI_INT, many, -1, MPI_INT, comm));
    TRY(MPI_Alltoall(v, 1, MPI_INT, many, 1, MPI_DATATYPE_NULL, comm));
    TRY(MPI_Ibcast(v, 1, MPI_INT, size, comm, &r));
    TRY(MPI_Neighbor_allgather(v, 1, MPI_INT, many, 1, MPI_INT, comm));
    TRY(MPI_Ineighbor_alltoall(v, 1, MPI_INT, many, 1, MPI_INT, comm, &r));
#if MPI_VERSION >= 4
    TRY(MPI_Bcast_init(v, 1, MPI_INT, size, comm, MPI_INFO_NULL, &r));
    TRY(MPI_Bcast_c(v, -1, MPI_INT, 0, comm));
    TRY(MPI_Allreduce_c(v, many, 1, MPI_INT, MPI_OP_NULL, comm));
    TRY(MPI_Psend_init(v, 2, 1, MPI_INT, size, 1, comm, MPI_INFO_NULL, &r));
#endif
}

static void constructors(void)
{
    MPI_Comm made;
    int zero = 0, huge = 1000;
    TRY(MPI_Comm_dup(MPI_COMM_NULL, &made));
    TRY(MPI_Comm_split(comm, -5, 0, &made));
    TRY(MPI_Comm_create(comm, MPI_GROUP_NULL, &made));
    TRY(MPI_Cart_create(comm, -1, &huge, &zero, 0, &made));
    TRY(MPI_Cart_create(comm, 1, &huge, &zero, 0, &made));
    TRY(MPI_Cart_sub(comm, &zero, &made));
    TRY(MPI_Graph_create(comm, -1, many, many, 0, &made));
    TRY(MPI_Dist_graph_create_adjacent(comm, -1, many, MPI_UNWEIGHTED, 0, many, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &made));
    TRY(MPI_Intercomm_create(comm, size, MPI_COMM_WORLD, 0, 1, &made));
    made = MPI_COMM_NULL;
    TRY(MPI_Comm_free(&made));
    TRY(MPI_Comm_disconnect(&made));
}

static void windows(void)
{
    MPI_Win win = MPI_WIN_NULL, made;
    MPI_Errhandler handler;
    TRY(MPI_Win_create(v, sizeof v, 0, MPI_INFO_NULL, comm, &made));
    TRY(MPI_Win_create(v, -1, 1, MPI_INFO_NULL, comm, &made));
    TRY(MPI_Win_create(v, sizeof v, 1, MPI_INFO_NULL, MPI_COMM_NULL, &made));
    TRY(MPI_Win_fence(0, win));
    TRY(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    TRY(MPI_Win_free(&win));
    MPI_Win_create(v, sizeof v, sizeof(int), MPI_INFO_NULL, comm, &win);
    MPI_Win_create_errhandler(win_handler, &handler);
    MPI_Win_set_errhandler(win, handler);
    TRY(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
    TRY(MPI_Win_lock(-77, 0, 0, win));
    TRY(MPI_Win_unlock(0, win));
    TRY(MPI_Win_unlock_all(win));
    TRY(MPI_Win_flush(0, win));
    TRY(MPI_Win_wait(win));
    TRY(MPI_Win_test(win, &flag));
    TRY(MPI_Win_complete(win));
    TRY(MPI_Win_start(MPI_GROUP_NULL, 0, win));
    TRY(MPI_Win_post(MPI_GROUP_NULL, 0, win));
    TRY(MPI_Win_lock_all(0, win));
    TRY(MPI_Rput(many, 1, MPI_INT, size, 0, 1, MPI_INT, win, &r));
    TRY(MPI_Rget(many, -1, MPI_INT, 0, 0, 1, MPI_INT, win, &r));
    TRY(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    TRY(MPI_Win_unlock_all(win));
    MPI_Errhandler_free(&handler);
    MPI_Win_free(&win);
}

static void files(const char *name)
{
    MPI_File file = MPI_FILE_NULL;
    MPI_Errhandler handler;
    MPI_File_create_errhandler(file_handler, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    TRY(MPI_File_open(comm, "/no/such/place", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    TRY(MPI_File_open(MPI_COMM_NULL, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    TRY(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    TRY(MPI_File_read_all(file, many, -1, MPI_INT, &s));
    TRY(MPI_File_read_at_all(file, -3, many, 1, MPI_INT, &s));
    TRY(MPI_File_write_all(file, many, 1, MPI_DATATYPE_NULL, &s));
    TRY(MPI_File_iwrite_all(file, many, -1, MPI_INT, &r));
    TRY(MPI_File_set_size(file, -1));
    TRY(MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    TRY(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nonsense", MPI_INFO_NULL));
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    TRY(MPI_File_write_all(file, many, -1, MPI_INT, &s));
    MPI_File_close(&file);
#ifdef MPICH
    TRY(MPI_File_sync(MPI_FILE_NULL));
#endif
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    /* The handler is not freed: MPICH miscounts those of files. */
}

/* Functions of the program that the library calls set handlers, too: here an attribute's, in
 * MPI_Comm_dup, when all handlers were the same before. */
static int set_when_copied(MPI_Comm where, int key, void *unused, void *handler, void *copy,
                           int *flag_of_copy)
{
    (void)key;
    (void)unused;
    (void)copy;
    *flag_of_copy = 0;
    return MPI_Comm_set_errhandler(where, *(MPI_Errhandler *)handler);
}

static void truncated(const char *when)
{
    note("%s:\n", when);
    MPI_Isend(v, 4, MPI_INT, rank, 50, comm, &r);
    TRY(MPI_Recv(many, 2, MPI_INT, rank, 50, comm, &s));
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void handlers_set_in_callbacks(MPI_Errhandler handler)
{
    int key;
    MPI_Comm made;
    MPI_Comm_create_keyval(set_when_copied, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(comm, key, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    truncated("with none");
    MPI_Comm_dup(comm, &made);
    truncated("with one that a callback has set");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    truncated("with none again");
    MPI_Comm_free(&made);
    MPI_Comm_delete_attr(comm, key);
    MPI_Comm_free_keyval(&key);
}

#ifdef MPICH
static void forgiving_comm_handler(MPI_Comm *where, int *code, ...)
{
    comm_handler(where, code);
    *code = MPI_SUCCESS;
}
static void forgiving_file_handler(MPI_File *where, int *code, ...)
{
    file_handler(where, code);
    *code = MPI_SUCCESS;
}

/* The function returns what its handler says, and has not written its results then. */
static void forgiven(void)
{
    MPI_Datatype open_type;
    MPI_Errhandler handler;
    MPI_File file;
    memset(&file, 0x55, sizeof file);
    MPI_Comm_create_errhandler(forgiving_comm_handler, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Type_contiguous(2, MPI_INT, &open_type); /* not committed */
    TRY(MPI_Send(v, 1, open_type, rank, 1, comm));
    TRY(MPI_Recv(v, 1, open_type, rank, 1, comm, &s));
    TRY(MPI_Sendrecv(v, 1, open_type, rank, 1, many, 1, open_type, rank, 1, comm, &s));
    TRY(MPI_Sendrecv(v, 1, open_type, rank, 1, many, 1, MPI_INT, rank, 1, comm, &s));
    TRY(MPI_Bcast(v, 1, open_type, 0, comm));
    TRY(MPI_Allgather(v, 1, open_type, many, 1, open_type, comm));
    MPI_Type_free(&open_type);
    MPI_Errhandler_free(&handler);
    MPI_File_create_errhandler(forgiving_file_handler, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    TRY(MPI_File_open(comm, "/no/such/place", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
}

/* A communicator with no handler of its own has that of MPI_COMM_WORLD, also one set later. */
static void follows_world(MPI_Comm first)
{
    TRY(MPI_Bcast(v, -1, MPI_INT, 0, first));
    TRY(MPI_Comm_split(first, -5, 0, &first));
}
#endif

int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    MPI_Comm first;
    start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_create_errhandler(comm_handler, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    messages();
#ifdef MPICH
    refused();
#endif
    truncation();
    collectives();
    constructors();
    windows();
    files(argv[1]);
    handlers_set_in_callbacks(handler);
#ifdef MPICH
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    follows_world(first);
    forgiven();
#endif
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&first);
    MPI_Comm_free(&comm);
    return finish();
}
