/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * service.c - sd_notify(3), sd_listen_fds(3), sd_pid_notify_with_fds(3).
 *
 * Stored descriptors have names: table-UID, state-UID and orders-0.  A descriptor of another name
 * WORD-NUMBER that is no socket was stored by another version of rmd.  All others are listening
 * sockets.
 */
#define _GNU_SOURCE
#include "config.h"
#include "rmd/restart/service.h"
#include "rmd/loop/log.h"

#ifdef HAVE_LIBSYSTEMD

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

static const char *const kinds[RMD_STORED_KINDS] = {"table-", "state-", "orders-"};

/* The user and the kind of a stored descriptor, from its name. */
static bool parse_name(const char *name, uid_t *uid, enum rmd_stored_kind *what)
{
    for (int k = 0; k < RMD_STORED_KINDS; k++) {
        size_t length = strlen(kinds[k]);
        char *end;
        if (strncmp(name, kinds[k], length) != 0 || name[length] == '\0')
            continue;
        *uid = (uid_t)strtoul(name + length, &end, 10);
        *what = (enum rmd_stored_kind)k;
        return *end == '\0';
    }
    return false;
}

/* True: the name is a word and a number, and fd is no socket. */
static bool is_of_another_version(const char *name, int fd)
{
    struct stat st;
    size_t word = strspn(name, "abcdefghijklmnopqrstuvwxyz");
    const char *number = name + word + 1;
    return word && name[word] == '-' && *number && !number[strspn(number, "0123456789")] &&
           !fstat(fd, &st) && !S_ISSOCK(st.st_mode);
}

static void give_up_fd(const char *name, int fd)
{
    rmd_log(RMD_WARNING, "%s, which systemd has stored, is of another version of rmd: given up",
            name);
    sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
    close(fd);
}

bool rmd_service_receive(int *listening, rmd_stored_callback *stored)
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(1, &names), sockets = 0;
    *listening = -1;
    for (int i = 0; i < n; i++) {
        uid_t uid;
        enum rmd_stored_kind what;
        int fd = SD_LISTEN_FDS_START + i;
        if (parse_name(names[i], &uid, &what)) {
            stored(uid, what, fd);
        } else if (is_of_another_version(names[i], fd)) {
            give_up_fd(names[i], fd);
        } else {
            *listening = fd;
            sockets++;
        }
        free(names[i]);
    }
    free(names);
    if (n < 0)
        rmd_error("the descriptors of LISTEN_FDS are not there: %s", strerror(-n));
    if (sockets > 1)
        rmd_error("%d sockets to listen on: one is allowed", sockets);
    return n >= 0 && sockets <= 1;
}

bool rmd_service_can_store(void)
{
    const char *socket = getenv("NOTIFY_SOCKET");
    return socket && *socket;
}

static void store_fd(uid_t uid, enum rmd_stored_kind what, int fd)
{
    char text[80];
    snprintf(text, sizeof text, "FDSTORE%s=1\nFDNAME=%s%u", fd < 0 ? "REMOVE" : "", kinds[what],
             (unsigned)uid);
    if (fd < 0)
        sd_notify(0, text);
    else if (sd_pid_notify_with_fds(0, 0, text, &fd, 1) < 0)
        rmd_log(RMD_WARNING, "%s%u is not kept for a restart", kinds[what], (unsigned)uid);
}

void rmd_service_store(uid_t uid, int table_fd, int state_fd)
{
    store_fd(uid, RMD_STORED_TABLE, table_fd);
    store_fd(uid, RMD_STORED_STATE, state_fd);
}

void rmd_service_store_orders(int fd) { store_fd(0, RMD_STORED_ORDERS, fd); }

void rmd_service_ready(const char *status)
{
    sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

/* systemd compares the time with that of its request to reload. */
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

bool rmd_service_receive(int *socket, rmd_stored_callback *stored)
{
    (void)stored;
    *socket = -1;
    return true;
}

bool rmd_service_can_store(void) { return false; }

void rmd_service_store(uid_t uid, int table_fd, int state_fd)
{
    (void)uid;
    (void)table_fd;
    (void)state_fd;
}

void rmd_service_store_orders(int fd) { (void)fd; }
void rmd_service_ready(const char *status) { (void)status; }
void rmd_service_reloading(void) {}
void rmd_service_stopping(void) {}

#endif
