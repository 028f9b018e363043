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

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

static const char *const kinds[RMD_STORED_KINDS] = {"table-", "state-", "orders-"};

enum { NOTIFICATION_BYTES = 512 };

/* Functions of libsystemd; NULL: systemd has not started this rmd, or the library is not there. */
struct systemd {
    __typeof(sd_listen_fds_with_names) *listen_fds_with_names;
    __typeof(sd_pid_notify_with_fds) *pid_notify_with_fds;
};

/* Loads libsystemd only where systemd has started rmd: with the seven libraries that it needs it
 * takes 1 ms, which each command under `invade` would pay.  It stays loaded: later calls find it.
 * If it cannot be loaded, rmd goes on as one that systemd has not started. */
static struct systemd load_systemd(void)
{
    struct systemd s = {NULL, NULL};
    if (!getenv("NOTIFY_SOCKET") && !getenv("LISTEN_FDS"))
        return s;
    void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library) {
        s.listen_fds_with_names = dlsym(library, "sd_listen_fds_with_names");
        s.pid_notify_with_fds = dlsym(library, "sd_pid_notify_with_fds");
    }
    if (s.listen_fds_with_names && s.pid_notify_with_fds)
        return s;
    const char *why = dlerror();
    rmd_log(RMD_WARNING, "systemd cannot be told anything: %s", why ? why : "libsystemd is too old");
    unsetenv("NOTIFY_SOCKET");
    unsetenv("LISTEN_FDS");
    return (struct systemd){NULL, NULL};
}

/* As sd_notifyf(3), with a descriptor; -1: without.  False: it could not be sent. */
static bool __attribute__((format(printf, 2, 3))) notify(int fd, const char *format, ...)
{
    char text[NOTIFICATION_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct systemd s = load_systemd();
    return !s.pid_notify_with_fds || s.pid_notify_with_fds(0, 0, text, &fd, fd >= 0) >= 0;
}

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
    notify(-1, "FDSTOREREMOVE=1\nFDNAME=%s", name);
    close(fd);
}

bool rmd_service_receive(int *listening, rmd_stored_callback *stored)
{
    char **names = NULL;
    struct systemd s = load_systemd();
    int n = s.listen_fds_with_names ? s.listen_fds_with_names(1, &names) : 0, sockets = 0;
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
    if (!notify(fd, "FDSTORE%s=1\nFDNAME=%s%u", fd < 0 ? "REMOVE" : "", kinds[what],
                (unsigned)uid) && fd >= 0)
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
    notify(-1, "READY=1\nSTATUS=%s", status);
}

/* systemd compares the time with that of its request to reload. */
void rmd_service_reloading(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    notify(-1, "RELOADING=1\nMONOTONIC_USEC=%llu",
           (unsigned long long)t.tv_sec * 1000000u + (unsigned long long)t.tv_nsec / 1000u);
}

void rmd_service_stopping(void)
{
    notify(-1, "STOPPING=1");
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
