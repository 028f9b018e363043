/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * callbacks.c - functions of the program that the MPI library calls, and which call MPI: the
 * operation of a reduction, attribute functions, an error handler that comes back and one
 * that leaves by longjmp.  And file operations, inside which the library calls itself.
 */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static int rank, size, called, named;
static jmp_buf back;

/* Communicates with itself, which works anywhere. */
static void call_mpi(void)
{
    int in = 3, out = 0, again = 0;
    MPI_Request request;
    MPI_Irecv(&out, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &request);
    MPI_Send(&in, 1, MPI_INT, 0, 9, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&out, &again, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    called += again == 3;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
    call_mpi();
}

static int copy_attribute(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    call_mpi();
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    call_mpi();
    return MPI_SUCCESS;
}

/* MPICH names the function that found the error: MPI_Recv, unless something made another of it. */
static void name_error(void)
{
    int out[2] = {0}, in, length;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Isend(out, 2, MPI_INT, 0, 10, MPI_COMM_SELF, &request);
    int code = MPI_Recv(&in, 1, MPI_INT, 0, 10, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Error_string(code, text, &length);
    named = strstr(text, "MPI_Recv") != NULL || strstr(text, "internal_Recv") != NULL;
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    call_mpi();
    name_error();
}

static void on_error_leave(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(back, 1);
}

static void say(const char *what, int value)
{
    if (rank == size - 1)
        printf("%s: %d\n", what, value);
}

static void reductions(void)
{
    MPI_Op op;
    int all = 0;
    called = 0;
    MPI_Op_create(add, 1, &op);
    for (int i = 0; i < 10; i++)
        MPI_Allreduce(&rank, &all, 1, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    say("sum", all);
    MPI_Allreduce(&called, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* on whichever ranks */
    say("an operation was called", all > 0 || size == 1);
}

static void attributes(void)
{
    int key;
    MPI_Comm comm;
    called = 0;
    MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_free_keyval(&key);
    say("attribute functions", called);
}

static void handlers(void)
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    called = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    MPI_Send(&rank, 1, MPI_INT, size + 1, 1, comm);
    MPI_Barrier(comm);
    say("handler calls", called);
    say("an error's text names MPI_Recv", named);
    MPI_Comm_create_errhandler(on_error_leave, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    if (setjmp(back) == 0)
        MPI_Send(&rank, 1, MPI_INT, size + 1, 1, comm);
    else
        say("left", 1);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    for (int i = 0; i < 20; i++)
        MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

/* Communicators that the library makes and frees for itself while ours come and go. */
static void files(const char *name)
{
    int wrong = 0, all = 0;
    for (int i = 0; i < 6; i++) {
        MPI_File file;
        MPI_Comm comm;
        int out[4] = {rank + i, rank * i, i, size}, in[4] = {0}, sum = 0;
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_File_set_view(file, (MPI_Offset)rank * (MPI_Offset)sizeof out, MPI_INT, MPI_INT,
                          "native", MPI_INFO_NULL);
        MPI_File_write_all(file, out, 4, MPI_INT, MPI_STATUS_IGNORE);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        MPI_File_sync(file);
        MPI_File_read_at_all(file, 0, in, 4, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
        MPI_Comm_free(&comm);
        wrong += memcmp(in, out, sizeof in) != 0 || sum != size * (size - 1) / 2;
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    say("wrong after file operations", all);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    reductions();
    attributes();
    handlers();
    if (argc > 1)
        files(argv[1]);
    MPI_Finalize();
    return 0;
}
