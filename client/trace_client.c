/* SPDX-License-Identifier: GPL-3.0-or-later */
/* trace_client.c - the request for a trace carries the file's descriptor. */
#define _GNU_SOURCE
#include "client/trace_client.h"
#include "libinvasive/table/socket.h"
#include "libinvasive/table/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_S = 20 }; /* for the last of a long trace, on a slow disk */

/* Has the file a content that is no trace?  (rmd itself refuses files that are not regular.) */
static bool is_something_else(const char *path)
{
    char magic[sizeof INV_TRACE_MAGIC - 1];
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool other = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
                 (read(fd, magic, sizeof magic) != (ssize_t)sizeof magic ||
                  memcmp(magic, INV_TRACE_MAGIC, sizeof magic));
    close(fd);
    return other;
}

bool rmd_trace_open(struct rmd_trace_file *file, const char *path, mode_t mode,
                    char why[RMD_TRACE_WHY])
{
    *file = (struct rmd_trace_file){.path = path, .fd = -1};
    if (is_something_else(path)) {
        snprintf(why, RMD_TRACE_WHY, "it is there, and no trace: remove it, or use another name");
        return false;
    }
    file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    file->is_new = file->fd >= 0;
    if (!file->is_new && errno == EEXIST)
        file->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode); /* rmd empties it */
    if (file->fd < 0)
        snprintf(why, RMD_TRACE_WHY, "%s", strerror(errno));
    return file->fd >= 0;
}

void rmd_trace_file_close(struct rmd_trace_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

void rmd_trace_file_discard(struct rmd_trace_file *file)
{
    struct stat ours, there;
    if (file->fd >= 0 && file->is_new && !fstat(file->fd, &ours) && !ours.st_size &&
        !lstat(file->path, &there) && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino)
        unlink(file->path);
    rmd_trace_file_close(file);
}

static bool send_request(int fd, const char *what, uint32_t uid, int file)
{
    struct inv_about about = {.request = inv_request_of(INV_TRACE), .uid = uid};
    snprintf(about.request.program, sizeof about.request.program, "%s", what);
    return inv_socket_send(fd, &about, sizeof about, file, 0) == (ssize_t)sizeof about;
}

static bool receive_reply(int fd, struct inv_reply *reply)
{
    int passed;
    ssize_t n = inv_socket_receive(fd, reply, sizeof *reply, &passed, 0);
    if (passed >= 0)
        close(passed);
    if (n >= 0 && (n != (ssize_t)sizeof *reply || reply->magic != INV_PROTOCOL_MAGIC))
        errno = EPROTO;
    reply->message[sizeof reply->message - 1] = '\0';
    return n == (ssize_t)sizeof *reply && reply->magic == INV_PROTOCOL_MAGIC;
}

static bool ask_rmd(const char *socket, const char *what, uint32_t uid, int file,
                    struct inv_reply *reply, char why[RMD_TRACE_WHY])
{
    int fd = inv_socket_connect(socket, PATIENCE_S);
    bool good = fd >= 0 && send_request(fd, what, uid, file) && receive_reply(fd, reply);
    if (good)
        snprintf(why, RMD_TRACE_WHY, "%s", reply->message);
    else
        snprintf(why, RMD_TRACE_WHY, "cannot ask rmd at %.60s: %.40s", socket,
                 errno == EAGAIN ? "it does not answer" : strerror(errno));
    if (fd >= 0)
        close(fd);
    return good && reply->status == INV_OK;
}

bool rmd_trace_ask_start(const char *socket, uint32_t uid, int file, char why[RMD_TRACE_WHY])
{
    struct inv_reply reply;
    return ask_rmd(socket, "start", uid, file, &reply, why);
}

bool rmd_trace_ask_stop(const char *socket, uint32_t uid, unsigned *lost, char why[RMD_TRACE_WHY])
{
    struct inv_reply reply = {.count = 0};
    bool good = ask_rmd(socket, "stop", uid, -1, &reply, why);
    *lost = good ? reply.count : 0;
    return good;
}
