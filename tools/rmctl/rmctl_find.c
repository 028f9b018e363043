/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_find.c - finds the rmds that rmctl may ask. */
#define _GNU_SOURCE
#include "tools/rmctl/rmctl.h"
#include "libinvasive/table/socket.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVICE "/run/invasive/rmd.sock"

static void add_socket(struct rmctl_sockets *s, const char *name)
{
    for (unsigned i = 0; i < s->count; i++)
        if (!strcmp(s->name[i], name))
            return;
    if (s->count < RMCTL_SOCKETS)
        snprintf(s->name[s->count++], sizeof s->name[0], "%s", name);
}

/* Does an rmd of our user or of root listen on this name?  Any user may listen on such a name; the
 * kernel tells the listener's user of a connection, which an rmd accepts at once. */
static bool is_ours(const char *name)
{
    struct sockaddr_un address;
    socklen_t size = inv_socket_address(&address, name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ours = fd >= 0 && size && !connect(fd, (struct sockaddr *)&address, size) &&
                inv_socket_serves_us(fd);
    if (fd >= 0)
        close(fd);
    return ours;
}

/* Every private rmd of ours has an abstract socket whose name begins like this. */
static void add_private_ones(struct rmctl_sockets *s)
{
    char line[512], prefix[32];
    FILE *f = fopen("/proc/net/unix", "re");
    snprintf(prefix, sizeof prefix, "@invasive-%u-", (unsigned)getuid());
    while (f && fgets(line, sizeof line, f)) {
        unsigned flags = 0;
        char *name = strchr(line, '@');
        line[strcspn(line, "\n")] = '\0';
        /* listening ones only (flag 0x10000): each connection has a line of its own */
        if (name && !strncmp(name, prefix, strlen(prefix)) &&
            sscanf(line, "%*s %*s %*s %x", &flags) == 1 && flags & 0x10000 && is_ours(name))
            add_socket(s, name);
    }
    if (f)
        fclose(f);
}

bool rmctl_find(struct rmctl_sockets *s)
{
    const char *told = rmctl_common.socket ? rmctl_common.socket : getenv("INVASIVE_SOCKET");
    s->count = 0;
    s->told = told && *told;
    char unfit[INV_SOCKET_UNFIT];
    if (s->told && inv_socket_unfit(told, unfit)) {
        fprintf(stderr, "rmctl: %s: %s another one\n", unfit,
                rmctl_common.socket ? "use --socket with" : "set INVASIVE_SOCKET to");
        return false;
    }
    if (s->told) {
        add_socket(s, told);
        return true;
    }
    if (!access(SERVICE, F_OK))
        add_socket(s, SERVICE);
    add_private_ones(s);
    if (!s->count)
        fprintf(stderr, "rmctl: no rmd of yours is running; start a program under invade\n");
    return s->count;
}

const char *rmctl_find_one(struct rmctl_sockets *s)
{
    if (!rmctl_find(s))
        return NULL;
    if (s->count == 1 || !strcmp(s->name[0], SERVICE))
        return s->name[0];
    fprintf(stderr, "rmctl: several rmd of yours are running: choose one with --socket=S, of");
    for (unsigned i = 0; i < s->count; i++)
        fprintf(stderr, " %s", s->name[i]);
    fprintf(stderr, "\n");
    return NULL;
}

bool rmctl_find_for(struct rmctl_sockets *s, uint32_t uid)
{
    if (!rmctl_of_another(uid))
        return rmctl_find(s);
    s->count = rmctl_find_one(s) != NULL; /* it is the first */
    return s->count;
}

bool rmctl_complain(const char *what, const char *name)
{
    fprintf(stderr, "rmctl: cannot %s rmd at %s: %s%s\n", what, name,
            errno == EPERM    ? "it serves another user"
            : errno == ECONNRESET ? "it hung up: it has ended, or keeps no more connections"
            : errno == EPROTO ? "it did not understand: mixed installations?"
                              : strerror(errno),
            errno == ENOENT || errno == ECONNREFUSED ? ": is it running?" : "");
    return false;
}

bool rmctl_complain_of(const char *what, const char *name, const struct rmd_client_user *of)
{
    if (!*of->why)
        return rmctl_complain(what, name);
    fprintf(stderr, "rmctl: cannot %s rmd at %s: %s\n", what, name, of->why);
    return false;
}

/* --- whose domain */

uint32_t rmctl_meant(uint32_t uid)
{
    return uid == INV_UNSAID ? getuid() : uid;
}

bool rmctl_of_another(uint32_t uid)
{
    return rmctl_meant(uid) != getuid();
}

uint32_t rmctl_user(struct argp_state *state, const char *text)
{
    const struct passwd *entry = getpwnam(text);
    if (entry)
        return entry->pw_uid;
    if (*text < '0' || *text > '9')
        argp_error(state, "there is no user '%s': use a name or number of one", text);
    return rmctl_number(state, "user", text, 0, UINT32_MAX - 1);
}
