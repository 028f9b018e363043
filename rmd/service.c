/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * service.c - sd_notify(3), sd_listen_fds(3), sd_pid_notify_with_fds(3).
 *
 * Descriptors come with names: those of tables are table-UID, those of notes state-UID and that of
 * orders is orders-0, as we gave them; the socket has any other name.  What is neither is of
 * another version of rmd.
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
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

static const char *const kinds[RMD_KEPT_KINDS] = {"table-", "state-", "orders-"};

/* Whose and what, from the name that we gave it. */
static bool kept_as(const char *name, uid_t *uid, enum rmd_kept *what)
{
    for (int k = 0; k < RMD_KEPT_KINDS; k++) {
        size_t length = strlen(kinds[k]);
        char *end;
        if (strncmp(name, kinds[k], length) != 0 || name[length] == '\0')
            continue;
        *uid = (uid_t)strtoul(name + length, &end, 10);
        *what = (enum rmd_kept)k;
        return *end == '\0';
    }
    return false;
}

/* A word, a number, and no socket. */
static bool of_another_version(const char *name, int fd)
{
    struct stat st;
    size_t word = strspn(name, "abcdefghijklmnopqrstuvwxyz");
    const char *number = name + word + 1;
    return word && name[word] == '-' && *number && !number[strspn(number, "0123456789")] &&
           !fstat(fd, &st) && !S_ISSOCK(st.st_mode);
}

static void give_back(const char *name, int fd)
{
    rmd_log(RMD_WARNING, "%s, which has been kept for us, is of another version of rmd: given up",
            name);
    sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
    close(fd);
}

bool rmd_service_take(int *listening, rmd_kept_callback *kept)
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(1, &names), sockets = 0;
    *listening = -1;
    for (int i = 0; i < n; i++) {
        uid_t uid;
        enum rmd_kept what;
        int fd = SD_LISTEN_FDS_START + i;
        if (kept_as(names[i], &uid, &what)) {
            kept(uid, what, fd);
        } else if (of_another_version(names[i], fd)) {
            give_back(names[i], fd);
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

bool rmd_service_keeps(void)
{
    const char *socket = getenv("NOTIFY_SOCKET");
    return socket && *socket;
}

static void keep(uid_t uid, enum rmd_kept what, int fd)
{
    char text[80];
    snprintf(text, sizeof text, "FDSTORE%s=1\nFDNAME=%s%u", fd < 0 ? "REMOVE" : "", kinds[what],
             (unsigned)uid);
    if (fd < 0)
        sd_notify(0, text);
    else if (sd_pid_notify_with_fds(0, 0, text, &fd, 1) < 0)
        rmd_log(RMD_WARNING, "%s%u is not kept for a restart", kinds[what], (unsigned)uid);
}

void rmd_service_keep(uid_t uid, int table_fd, int state_fd)
{
    keep(uid, RMD_KEPT_TABLE, table_fd);
    keep(uid, RMD_KEPT_STATE, state_fd);
}

void rmd_service_keep_orders(int fd) { keep(0, RMD_KEPT_ORDERS, fd); }

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

bool rmd_service_take(int *socket, rmd_kept_callback *kept)
{
    (void)kept;
    *socket = -1;
    return true;
}

bool rmd_service_keeps(void)
{
    return false;
}

void rmd_service_keep(uid_t uid, int table_fd, int state_fd)
{
    (void)uid;
    (void)table_fd;
    (void)state_fd;
}

void rmd_service_keep_orders(int fd) { (void)fd; }
void rmd_service_ready(const char *status) { (void)status; }
void rmd_service_reloading(void) {}
void rmd_service_stopping(void) {}

#endif
