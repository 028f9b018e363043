/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layout.c - prints as JSON where the fields of structures are that tests read and write, and the
 * values of constants: what the headers say, compiled as all else is.  layout.py reads it.
 *
 * A field's format is that of Python's struct.pack; arrays and nested structures are bytes.
 */
#include "libinvasive/table/protocol.h"
#include "rmd/config/control_protocol.h"
#include "rmd/config/persisted_orders.h"
#include "rmd/domain/state.h"
#include "rmd/restart/fd_holder.h"
#include "libinvasive/table/trace_file.h"

#include <inttypes.h>
#include <stdio.h>

static const char *separator;

static void begin(const char *name, size_t bytes)
{
    static const char *before = "";
    printf("%s\"%s\": {\"size\": %zu, \"fields\": {", before, name, bytes);
    before = "}}, ";
    separator = "";
}

static void field(const char *name, size_t offset, size_t bytes, char format)
{
    printf("%s\"%s\": [%zu, \"", separator, name, offset);
    if (format == 's')
        printf("%zu", bytes);
    printf("%c\"]", format);
    separator = ", ";
}

static void constant(const char *name, intmax_t value)
{
    printf("%s\"%s\": %" PRIdMAX, separator, name, value);
    separator = ", ";
}

#define FORMAT(object)                                                                             \
    _Generic(&(object), int32_t *: 'i', uint32_t *: 'I', uint64_t *: 'Q', _Atomic uint32_t *: 'I', \
             _Atomic uint64_t *: 'Q', default: 's')
#define FIELD(structure, name)                                                                     \
    field(#name, offsetof(struct structure, name), sizeof((struct structure *)0)->name,            \
          FORMAT(((struct structure *)0)->name))
#define BEGIN(structure) begin(#structure, sizeof(struct structure))
#define CONSTANT(name) constant(#name, (intmax_t)(name))

static void print_structures(void)
{
    BEGIN(inv_request);
    FIELD(inv_request, magic);
    FIELD(inv_request, version);
    FIELD(inv_request, kind);
    FIELD(inv_request, rank);
    FIELD(inv_request, size);
    FIELD(inv_request, local_size);
    FIELD(inv_request, local_rank);
    FIELD(inv_request, program);
    BEGIN(inv_reply);
    FIELD(inv_reply, magic);
    FIELD(inv_reply, version);
    FIELD(inv_reply, status);
    FIELD(inv_reply, slot);
    FIELD(inv_reply, count);
    FIELD(inv_reply, message);
    BEGIN(inv_report);
    FIELD(inv_report, pid);
    FIELD(inv_report, alive);
    FIELD(inv_report, energy);
    FIELD(inv_report, energy_uj);
    BEGIN(inv_control);
    FIELD(inv_control, request);
    FIELD(inv_control, verb);
    FIELD(inv_control, uid);
    FIELD(inv_control, cores);
    FIELD(inv_control, job_cores);
    BEGIN(inv_outcome);
    FIELD(inv_outcome, status);
    BEGIN(inv_watch);
    FIELD(inv_watch, request);
    FIELD(inv_watch, since);
    FIELD(inv_watch, follow);
    BEGIN(inv_about);
    FIELD(inv_about, request);
    FIELD(inv_about, uid);
    BEGIN(rmd_holder_message);
    FIELD(rmd_holder_message, kind);
    FIELD(rmd_holder_message, uid);
    FIELD(rmd_holder_message, what);
    BEGIN(rmd_state);
    FIELD(rmd_state, version);
    FIELD(rmd_state, table_version);
    BEGIN(rmd_persisted_memory);
    FIELD(rmd_persisted_memory, version);
    BEGIN(inv_trace_file);
    FIELD(inv_trace_file, magic);
    FIELD(inv_trace_file, order);
    FIELD(inv_trace_file, version);
    FIELD(inv_trace_file, monotonic_ns);
    FIELD(inv_trace_file, realtime_ns);
    BEGIN(inv_trace_chunk);
    FIELD(inv_trace_chunk, type);
    FIELD(inv_trace_chunk, bytes);
    FIELD(inv_trace_chunk, time_ns);
    FIELD(inv_trace_chunk, a);
    FIELD(inv_trace_chunk, b);
    BEGIN(inv_trace_first);
    FIELD(inv_trace_first, os_cpu);
    FIELD(inv_trace_first, unused);
    FIELD(inv_trace_first, word);
    BEGIN(inv_trace_process);
    FIELD(inv_trace_process, rank);
    FIELD(inv_trace_process, size);
    FIELD(inv_trace_process, program);
    BEGIN(inv_trace_site);
    FIELD(inv_trace_site, number);
    FIELD(inv_trace_site, unused);
    FIELD(inv_trace_site, offset);
    FIELD(inv_trace_site, function);
    FIELD(inv_trace_site, symbol);
    FIELD(inv_trace_site, module);
    BEGIN(inv_trace_event);
    FIELD(inv_trace_event, head);
    FIELD(inv_trace_event, body);
}

static void print_constants(void)
{
    separator = "";
    CONSTANT(INV_NOBODY);
    CONSTANT(INV_ELSEWHERE);
    CONSTANT(INV_MODE_PINNED);
    CONSTANT(INV_MODE_ANONYMOUS);
    CONSTANT(INV_MAX_CORES);
    CONSTANT(INV_MAX_SLOTS);
    CONSTANT(INV_SITES);
    CONSTANT(INV_PROTOCOL_MAGIC);
    CONSTANT(INV_PROTOCOL_VERSION);
    CONSTANT(INV_JOIN);
    CONSTANT(INV_OBSERVE);
    CONSTANT(INV_LEAVE);
    CONSTANT(INV_REPORT);
    CONSTANT(INV_CONTROL);
    CONSTANT(INV_EVENTS);
    CONSTANT(INV_METRICS);
    CONSTANT(INV_ADMIN_SNAPSHOT);
    CONSTANT(INV_TRACE);
    CONSTANT(INV_OK);
    CONSTANT(INV_E_PROTOCOL);
    CONSTANT(INV_E_UID);
    CONSTANT(INV_ENERGY_COUNTED);
    CONSTANT(INV_ENERGY_FORBIDDEN);
    CONSTANT(INV_ENERGY_GONE);
    CONSTANT(INV_LIMIT);
    CONSTANT(INV_UNSAID);
    CONSTANT(INV_NOT_YET);
    CONSTANT(INV_REFUSED);
    CONSTANT(RMD_HOLDER_STORE);
    CONSTANT(RMD_HOLDER_DROP);
    CONSTANT(RMD_HOLDER_ALL);
    CONSTANT(RMD_STORED_TABLE);
    CONSTANT(RMD_STORED_STATE);
    CONSTANT(RMD_STORED_ORDERS);
    CONSTANT(RMD_STORED_USERS);
    CONSTANT(RMD_STATE_VERSION);
    CONSTANT(INV_TRACE_VERSION);
    CONSTANT(INV_TRACE_ORDER);
    CONSTANT(INV_TRACE_EVENTS);
    CONSTANT(INV_TRACE_RMD);
    CONSTANT(INV_TRACE_RINGS);
    CONSTANT(INV_TRACE_REPORT_MOST);
    CONSTANT(INV_TRACE_INTENT);
    CONSTANT(INV_TRACE_DONE);
    CONSTANT(INV_TRACE_CORE);
    CONSTANT(INV_TRACE_TOKEN);
    CONSTANT(INV_TRACE_WORKLOAD);
    CONSTANT(INV_TRACE_RANGE);
    CONSTANT(INV_TRACE_ITERATION);
    CONSTANT(INV_TRACE_SPEEDUP);
    CONSTANT(INV_TRACE_SLEEP);
    CONSTANT(INV_TRACE_WAIT);
    CONSTANT(INV_CHUNK_TABLE);
    CONSTANT(INV_CHUNK_EVENTS);
    CONSTANT(INV_CHUNK_PROCESS);
    CONSTANT(INV_CHUNK_GONE);
    CONSTANT(INV_CHUNK_SITES);
    CONSTANT(INV_CHUNK_LAST);
    CONSTANT(INV_CHUNK_END);
    CONSTANT(INV_CHUNK_REPORT);
}

int main(void)
{
    printf("{\"structures\": {");
    print_structures();
    printf("}}}, \"constants\": {");
    print_constants();
    puts("}}");
    return 0;
}
