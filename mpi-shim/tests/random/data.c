/* SPDX-License-Identifier: GPL-3.0-or-later */
/* data.c - buffers whose every byte can be checked, and data types with and without gaps. */
#include "random.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct record {
    int number;
    double value;
    char letter;
};

static MPI_Datatype make_record(void)
{
    MPI_Datatype plain, sized, types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    int lengths[] = {1, 1, 1};
    MPI_Aint at[] = {offsetof(struct record, number), offsetof(struct record, value),
                     offsetof(struct record, letter)};
    MPI_Type_create_struct(3, lengths, at, types, &plain);
    MPI_Type_create_resized(plain, 0, sizeof(struct record), &sized);
    MPI_Type_free(&plain);
    return sized;
}

static MPI_Datatype make_indexed(void)
{
    MPI_Datatype type;
    int lengths[] = {1, 0, 3}, at[] = {5, 4, 0};
    MPI_Type_indexed(3, lengths, at, MPI_SHORT, &type);
    return type;
}

MPI_Datatype make_type(int kind)
{
    MPI_Datatype type;
    switch (kind) {
    case 0:
        return MPI_INT;
    case 1:
        return MPI_DOUBLE;
    case 2:
        return MPI_BYTE;
    case 3:
        MPI_Type_contiguous(3, MPI_INT, &type);
        break;
    case VECTOR:
        MPI_Type_vector(2, 2, 3, MPI_INT, &type);
        break;
    case RECORD:
        type = make_record();
        break;
    default:
        type = make_indexed();
    }
    MPI_Type_commit(&type);
    return type;
}

void drop_type(int kind, MPI_Datatype *type)
{
    if (kind > 2)
        MPI_Type_free(type);
}

size_t type_extent(int kind)
{
    static const size_t extents[TYPE_KINDS] = {
        sizeof(int),           sizeof(double),   1, 3 * sizeof(int), 5 * sizeof(int),
        sizeof(struct record), 6 * sizeof(short)};
    return extents[kind];
}

static void clean_record(struct record *r)
{
    struct record clean;
    memset(&clean, 0, sizeof clean);
    clean.number = r->number;
    clean.value = r->value;
    clean.letter = r->letter;
    memcpy(r, &clean, sizeof clean);
}

void clean_gaps(int kind, char *buffer, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *element = buffer + i * type_extent(kind);
        if (kind == VECTOR)
            memset(element + 2 * sizeof(int), 0, sizeof(int));
        else if (kind == RECORD)
            clean_record((struct record *)element);
        else if (kind == INDEXED)
            memset(element + 3 * sizeof(short), 0, 2 * sizeof(short));
    }
}

char *blank(size_t bytes)
{
    char *buffer = malloc(bytes + GUARD);
    if (!buffer)
        abort();
    memset(buffer, 0xa5, bytes + GUARD);
    return buffer;
}

char *filled(size_t bytes, uint64_t key)
{
    char *buffer = blank(bytes);
    struct rng r = {key};
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word = draw(&r);
        memcpy(buffer + i, &word, 8);
    }
    for (size_t i = bytes & ~(size_t)7; i < bytes; i++)
        buffer[i] = (char)draw(&r);
    return buffer;
}

uint64_t hash_of(const void *bytes, size_t count)
{
    uint64_t hash = count, word;
    const char *p = bytes;
    for (; count >= 8; count -= 8, p += 8) {
        memcpy(&word, p, 8);
        hash = mix(hash ^ word) + 1;
    }
    for (; count; count--, p++)
        hash = mix(hash ^ (unsigned char)*p) + 1;
    return hash;
}

int some_count(struct rng *r, size_t extent, size_t most_bytes)
{
    size_t bytes;
    int kind = below(r, 100);
    if (kind < 10)
        return 0;
    if (kind < 70)
        bytes = (size_t)below(r, 200);
    else if (kind < 90)
        bytes = (size_t)below(r, 20000);
    else
        bytes = (size_t)below(r, (int)most_bytes);
    if (bytes > most_bytes)
        bytes = most_bytes;
    return bytes < extent ? 1 : (int)(bytes / extent);
}
