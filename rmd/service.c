/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * service.c - sd_notify(3), sd_listen_fds(3), sd_pid_notify_with_fds(3).
 *
 * Descriptors come with names: those of tables are table-UID, as we gave them; the socket has
 * any other name.
 */
#define _GNU_SOURCE
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "service.h"
#include "log.h"

#ifdef HAVE_LIBSYSTEMD

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#define TABLE "table-"

/* A table's user, from the name that we gave it. */
static bool user_in(const char *name, uid_t *uid)
{
    char *end;
    if (strncmp(name, TABLE, strlen(TABLE)) != 0 || name[strlen(TABLE)] == '\0')
        return false;
    *uid = (uid_t)strtoul(name + strlen(TABLE), &end, 10);
    return *end == '\0';
}

bool rmd_service_take(int *listening, void (*table)(uid_t uid, int fd))
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(1, &names), sockets = 0;
    *listening = -1;
    for (int i = 0; i < n; i++) {
        uid_t uid;
        int fd = SD_LISTEN_FDS_START + i;
        if (user_in(names[i], &uid)) {
            table(uid, fd);
        } else {
            *listening = fd;
            sockets++;
        }
        free(names[i]);
    }
    free(names);
    if (n < 0)
        rmd_say("the descriptors of LISTEN_FDS are not there: %s", strerror(-n));
    if (sockets > 1)
        rmd_say("%d sockets to listen on: one is allowed", sockets);
    return n >= 0 && sockets <= 1;
}

void rmd_service_keep(uid_t uid, int fd)
{
    char text[80];
    snprintf(text, sizeof text, "FDSTORE%s=1\nFDNAME=" TABLE "%u", fd < 0 ? "REMOVE" : "",
             (unsigned)uid);
    if (fd < 0)
        sd_notify(0, text);
    else if (sd_pid_notify_with_fds(0, 0, text, &fd, 1) < 0)
        rmd_log(RMD_WARNING, "the core table of user %u is not kept", (unsigned)uid);
}

void rmd_service_ready(const char *status)
{
    sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

/* The time tells whether a reload was asked for before or after it. */
void rmd_service_reloading(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
               (unsigned long long)t.tv_sec * 1000000u + (unsigned long long)t.tv_nsec / 1000u);
}

void rmd_service_stopping(void)
{
    sd_notify(0, "STOPPING=1");
}

#else

bool rmd_service_take(int *socket, void (*table)(uid_t uid, int fd))
{
    (void)table;
    *socket = -1;
    return true;
}

void rmd_service_keep(uid_t uid, int fd)
{
    (void)uid;
    (void)fd;
}

void rmd_service_ready(const char *status) { (void)status; }
void rmd_service_reloading(void) {}
void rmd_service_stopping(void) {}

#endif
