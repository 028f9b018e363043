/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * remote_report.c - reports of processes: remote reports, which members submit to rmd, and the text that
 * `invade --report` makes of their unchecked records.
 *
 * The input is two remote reports, one after the other.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include "fuzz.h"
#include "invade_model.h"
#include "rmd/journal/report.h"

#include <stdlib.h>
#include <string.h>

/* In the place of invade_symbols.c, which asks other programs. */
void places_resolve(void *first, size_t bytes, unsigned count)
{
    (void)first;
    (void)bytes;
    (void)count;
}

static bool unpack(struct fuzz_input *in, struct rmd_report *to)
{
    static struct inv_remote_report remote;
    size_t bytes = fuzz_number(in, 2), sites = bytes % INV_SITES;
    bytes =
        bytes & 0x8000 ? bytes % sizeof remote : INV_REMOTE_REPORT_BYTES(INV_RECORD_BYTES(sites));
    fuzz_take(in, &remote, bytes);
    remote.request = inv_request_of(INV_SUBMIT_REPORT);
    if (!(bytes & 1)) /* else rmd would refuse nearly all */
        remote.report.record_bytes = (uint32_t)(bytes - INV_REMOTE_REPORT_BYTES(0));
    char *exact = aligned_alloc(_Alignof(struct inv_remote_report), sizeof remote);
    memcpy(exact, &remote, sizeof remote);
    bool good =
        rmd_report_from_remote(to, (struct inv_remote_report *)exact, bytes, UINT64_MAX / 4);
    free(exact);
    if (good && (to->report.record_bytes > sizeof(struct inv_record) ||
                 !memchr(to->report.program, '\0', sizeof to->report.program) ||
                 !memchr(to->report.host, '\0', sizeof to->report.host)))
        abort();
    return good;
}

/* A record has room for as many sites as came, and memory for all (client/client.c). */
static struct rmd_client_report as_client_has_it(struct rmd_report *r)
{
    size_t bytes = r->report.record_bytes;
    struct inv_record *record = aligned_alloc(_Alignof(struct inv_record), sizeof *record);
    if (!record)
        abort();
    memcpy((void *)record, (void *)r->record, bytes);
    free(r->record);
    return (struct rmd_client_report){
        r->report, record,
        (unsigned)((bytes - INV_RECORD_BYTES(0)) / sizeof(struct inv_site))};
}

static void print(struct rmd_client_report *reports, unsigned count)
{
    static char name[] = "fuzz", *command[] = {name, NULL};
    struct launch launch = {.command = command, .ncores = 4};
    static FILE *nowhere;
    if (!nowhere && !(nowhere = fopen("/dev/null", "w")))
        abort();
    if (launch_fill(&launch, reports, count)) {
        launch_print(nowhere, &launch);
        launch_free(&launch);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input in = {data, bytes};
    struct rmd_client_report *reports = calloc(2, sizeof *reports);
    unsigned count = 0;
    while (count < 2 && in.left > 2) {
        struct rmd_report r;
        if (unpack(&in, &r))
            reports[count++] = as_client_has_it(&r);
    }
    if (count)
        print(reports, count);
    else
        free(reports);
    return 0;
}
