/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * settings.c - strict parsing: text that is not understood in full is refused, with file, line, key
 * and the allowed values.  So operators see a mistake when they make it, and not when a user
 * complains.  No state: the same text gives the same settings (except names of users and
 * groups, which the C library looks up).
 */
#define _GNU_SOURCE
#include "rmd/config/settings.h"
#include "libinvasive/base/cpulist.h"
#include "rmd/config/metrics_address.h"
#include "libinvasive/table/socket.h"
#include "libinvasive/table/table.h"
#include "rmd/loop/text.h"
#include "rmd/power/thermal.h"
#include "libinvasive/table/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BOUND_MAX_US = 60000000, INTERVAL_MIN_MS = 10, INTERVAL_MAX_MS = 60000 };

/* --- values */

static bool parse_cores(const char *text, unsigned *cores)
{
    if (!strcmp(text, "all")) {
        *cores = 0;
        return true;
    }
    return rmd_number(text, 1, INV_MAX_CORES, cores);
}

static bool set_group(struct rmd_settings *s, const char *text)
{
    unsigned id;
    if (!strcmp(text, "*")) {
        s->group = RMD_GROUP_ANY;
        return true;
    }
    const struct group *g = NULL;
    if (rmd_number(text, 0, UINT32_MAX - 1, &id))
        s->gid = id;
    else if ((g = getgrnam(text)) != NULL)
        s->gid = g->gr_gid;
    else
        return false;
    s->group = RMD_GROUP_ONE;
    return true;
}

static int find_name(const char *text, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(text, names[i]))
            return i;
    return -1;
}

static bool set_log_level(struct rmd_settings *s, const char *text)
{
    int l = find_name(text, rmd_level_names, RMD_LOG_LEVELS);
    if (l >= 0)
        s->log_level = (enum rmd_level)l;
    return l >= 0;
}

static bool set_enforcement(struct rmd_settings *s, const char *text)
{
    static const char *const names[] = {"none", "affinity", "cpuset"};
    int e = find_name(text, names, 3);
    if (e >= 0)
        s->enforce = (enum rmd_enforce)e;
    return e >= 0;
}

static bool set_enforced_on(struct rmd_user_settings *u, const char *text)
{
    static const char *const names[] = {"descendants", "user"};
    int e = find_name(text, names, 2);
    u->whole_user = e == 1;
    return e >= 0;
}

static bool set_yes_or_no(bool *to, const char *text)
{
    *to = !strcmp(text, "yes");
    return *to || !strcmp(text, "no");
}

static bool is_socket_name(const char *text)
{
    struct sockaddr_un unused;
    return (text[0] == '/' || text[0] == '@') && inv_socket_address(&unused, text);
}

static bool set_smt(struct rmd_settings *s, const char *text)
{
    int how = rmd_smt_named(text);
    if (how >= 0)
        s->smt = (enum rmd_smt)how;
    return how >= 0;
}

/* Parses a number of small units, such as microseconds, of which one whole has `units`. */
static bool parse_fraction(const char *text, unsigned least, unsigned most, double units,
                           double *value)
{
    unsigned n;
    if (!rmd_number(text, least, most, &n))
        return false;
    *value = n / units;
    return true;
}

static bool is_machine(const char *text)
{
    struct inv_topology unused;
    return !inv_topology_emulate(&unused, text, false);
}

static bool is_metrics_address(const char *text)
{
    union rmd_metrics_address unused;
    return rmd_metrics_address(text, &unused) > 0;
}

static bool is_cpu_list(const char *text)
{
    struct inv_cpus unused;
    return !inv_cpulist_parse(text, &unused);
}

/* --- keys */

static const struct {
    const char *name, *allowed; /* NULL: a policy */
    bool reloadable, of_user;
} keys[RMD_KEYS] = {
    [RMD_KEY_CORES] = {"cores", "a list of CPUs such as 0-3,8", false, false},
    [RMD_KEY_EMULATE_CORES] = {"emulate-cores",
                               "a number from 1 to 1024, with speeds such as 4x1.0,4x0.6, or a machine "
                               "with so many cores such as package:2 core:4 pu:2",
                               false, false},
    [RMD_KEY_SMT] = {"smt", RMD_SMT_NAMES, false, false},
    [RMD_KEY_POLICY] = {"policy", NULL, true, true},
    [RMD_KEY_ENERGY_LOSS] = {"energy-loss", "a number from 0 to 99", true, false},
    [RMD_KEY_MOVE_COST] = {"move-cost-us", "a number from 0 to 60000000", true, false},
    [RMD_KEY_PAY_WITHIN] = {"pay-within-ms", "a number from 1 to 3600000", true, false},
    [RMD_KEY_POWER_CAP] = {"power-cap", "watts, such as 95, or a percentage, such as 80%", false,
                           false},
    [RMD_KEY_TEMPERATURE_LIMIT] = {"temperature-limit", "degrees Celsius from 30 to 120", false, false},
    [RMD_KEY_RECLAIM_BOUND] = {"reclaim-bound-us", "a number from 1 to 60000000", true, false},
    [RMD_KEY_LEND_BLOCKED] = {"lend-blocked", "yes or no", true, false},
    [RMD_KEY_MAX_CORES] = {"max-cores", "a number from 1 to 1024, or all", true, true},
    [RMD_KEY_MAX_JOB_CORES] = {"max-job-cores", "a number from 1 to 1024, or all", true, true},
    [RMD_KEY_SOCKET] = {"socket", "a path from / on, or @NAME, of 2 to 107 characters", false,
                        false},
    [RMD_KEY_SOCKET_GROUP] = {"socket-group",
                              "the name of a group that there is, its number, or * for all users",
                              false, false},
    [RMD_KEY_ENFORCE] = {"enforce", "none, affinity or cpuset", false, false},
    [RMD_KEY_ENFORCE_ON] = {"enforce-on", "descendants or user", true, true},
    [RMD_KEY_CGROUP] = {"cgroup", "auto or a path from / on", false, false},
    [RMD_KEY_CHECK_INTERVAL] = {"check-interval-ms", "a number from 10 to 60000", true, false},
    [RMD_KEY_LOG_LEVEL] = {"log-level", "error, warning, notice, info or debug", true, false},
    [RMD_KEY_METRICS] = {"metrics",
                         "a path from / on, @NAME, 127.0.0.1:PORT or [::1]:PORT", false, false},
    [RMD_KEY_SUBUID] = {"subuid-file", "none or a path from / on", false, false},
};

const char *rmd_key_name(enum rmd_key key) { return keys[key].name; }
bool rmd_key_reloadable(enum rmd_key key) { return keys[key].reloadable; }

/* Says why this value of the key is not allowed, and what is. */
static void explain_refusal(enum rmd_key key, const char *value, char why[RMD_CONFIG_MESSAGE])
{
    char unfit[INV_SOCKET_UNFIT];
    const struct rmd_policy_names policies = rmd_policy_names();
    const char *allowed = keys[key].allowed ? keys[key].allowed : policies.text;
    bool is_socket = (key == RMD_KEY_SOCKET || key == RMD_KEY_METRICS) &&
                     (value[0] == '/' || value[0] == '@');
    if (is_socket && inv_socket_unfit(value, unfit))
        snprintf(why, RMD_CONFIG_MESSAGE, "%s: use %s", unfit, allowed);
    else
        snprintf(why, RMD_CONFIG_MESSAGE, "'%.60s' is not allowed: use %s", value, allowed);
}

/* False: the value is not allowed.  `u` is where keys of users go. */
static bool set_key(struct rmd_settings *s, struct rmd_user_settings *u, enum rmd_key key,
                    const char *value)
{
    switch (key) {
    case RMD_KEY_CORES:
        return is_cpu_list(value);
    case RMD_KEY_EMULATE_CORES:
        return is_machine(value);
    case RMD_KEY_SMT:
        return set_smt(s, value);
    case RMD_KEY_POLICY:
        return (u->policy = rmd_policy_named(value)) != NULL;
    case RMD_KEY_ENERGY_LOSS:
        return parse_fraction(value, 0, 99, 100, &s->tuning.energy_loss);
    case RMD_KEY_MOVE_COST:
        return parse_fraction(value, 0, 60000000, 1e6, &s->tuning.move_cost_s);
    case RMD_KEY_PAY_WITHIN:
        return parse_fraction(value, 1, 3600000, 1e3, &s->tuning.within_s);
    case RMD_KEY_POWER_CAP:
        return !value[strspn(value, "0123456789.%W")] && rmd_power_parse(value, &s->power_cap);
    case RMD_KEY_TEMPERATURE_LIMIT:
        return rmd_number(value, RMD_THERMAL_LEAST, RMD_THERMAL_MOST, &s->temperature_limit);
    case RMD_KEY_RECLAIM_BOUND:
        return rmd_number(value, 1, BOUND_MAX_US, &s->reclaim_bound_us);
    case RMD_KEY_LEND_BLOCKED:
        return set_yes_or_no(&s->lend_blocked, value);
    case RMD_KEY_MAX_CORES:
        return parse_cores(value, &u->max_cores);
    case RMD_KEY_MAX_JOB_CORES:
        return parse_cores(value, &u->max_job_cores);
    case RMD_KEY_SOCKET:
        return is_socket_name(value);
    case RMD_KEY_SOCKET_GROUP:
        return set_group(s, value);
    case RMD_KEY_ENFORCE:
        return set_enforcement(s, value);
    case RMD_KEY_ENFORCE_ON:
        return set_enforced_on(u, value);
    case RMD_KEY_CGROUP:
        return !strcmp(value, "auto") || value[0] == '/';
    case RMD_KEY_CHECK_INTERVAL:
        return rmd_number(value, INTERVAL_MIN_MS, INTERVAL_MAX_MS, &s->check_interval_ms);
    case RMD_KEY_LOG_LEVEL:
        return set_log_level(s, value);
    case RMD_KEY_METRICS:
        return is_metrics_address(value);
    case RMD_KEY_SUBUID:
        return !strcmp(value, "none") || value[0] == '/';
    case RMD_KEYS:
        break;
    }
    return false;
}

void rmd_config_defaults(struct rmd_settings *s)
{
    memset(s, 0, sizeof *s);
    s->all.policy = &rmd_policies[0];
    s->tuning = (struct rmd_tuning)RMD_TUNING;
    s->reclaim_bound_us = 5000;
    s->lend_blocked = true;
    s->check_interval_ms = 1000;
    s->enforce = RMD_ENFORCE_AFFINITY;
    s->log_level = RMD_INFO;
}

bool rmd_config_set(struct rmd_settings *s, enum rmd_key key, const char *value,
                    char why[RMD_CONFIG_MESSAGE])
{
    if (strlen(value) > RMD_CONFIG_LINE || !set_key(s, &s->all, key, value)) {
        explain_refusal(key, value, why);
        return false;
    }
    if (key == RMD_KEY_CORES)
        s->text[RMD_KEY_EMULATE_CORES][0] = '\0';
    if (key == RMD_KEY_EMULATE_CORES)
        s->text[RMD_KEY_CORES][0] = '\0';
    s->given |= 1u << key;
    strcpy(s->text[key], value);
    return true;
}

struct rmd_user_settings rmd_config_user(const struct rmd_settings *s, uid_t uid)
{
    struct rmd_user_settings u = s->all;
    u.uid = uid;
    for (unsigned i = 0; i < s->nusers; i++) {
        const struct rmd_user_settings *own = &s->user[i];
        if (own->uid != uid)
            continue;
        u.given = own->given;
        if (own->given & 1u << RMD_KEY_MAX_CORES)
            u.max_cores = own->max_cores;
        if (own->given & 1u << RMD_KEY_MAX_JOB_CORES)
            u.max_job_cores = own->max_job_cores;
        if (own->given & 1u << RMD_KEY_POLICY)
            u.policy = own->policy;
        if (own->given & 1u << RMD_KEY_ENFORCE_ON)
            u.whole_user = own->whole_user;
    }
    return u;
}

/* --- the file */

struct parser {
    struct rmd_settings *settings;
    struct rmd_user_settings *section; /* NULL: outside any */
    bool skip;                         /* in a section that was refused */
    const char *name;
    unsigned line, errors;
    rmd_complain *complain;
    void *context;
};

static void __attribute__((format(printf, 2, 3)))
report_error(struct parser *p, const char *format, ...)
{
    char text[RMD_CONFIG_MESSAGE];
    va_list args;
    if (p->errors++ >= RMD_CONFIG_ERRORS)
        return;
    int n = snprintf(text, sizeof text / 2, "%s:%u: ", p->name, p->line);
    size_t head = n < (int)sizeof text / 2 ? (size_t)n : sizeof text / 2 - 1;
    va_start(args, format);
    vsnprintf(text + head, sizeof text - head, format, args);
    va_end(args);
    p->complain(p->context, text);
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static char *trim_blanks(char *text)
{
    while (is_blank(*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && is_blank(end[-1]))
        *--end = '\0';
    return text;
}

enum { KEY_LIST = 400 };

/* The names of keys that may stand here, with commas. */
static const char *allowed_keys(bool of_user, char list[KEY_LIST])
{
    size_t length = 0;
    list[0] = '\0';
    for (int k = 0; k < RMD_KEYS; k++)
        if (!of_user || keys[k].of_user)
            length += (size_t)snprintf(list + length, KEY_LIST - length, "%s%s", length ? ", " : "",
                                       keys[k].name);
    return list;
}

static bool find_user_id(const char *name, uid_t *uid)
{
    unsigned id;
    const struct passwd *entry;
    if (rmd_number(name, 0, UINT32_MAX - 1, &id))
        *uid = id;
    else if ((entry = getpwnam(name)) != NULL)
        *uid = entry->pw_uid;
    else
        return false;
    return true;
}

/* [user NAME] */
static void begin_section(struct parser *p, char *text)
{
    struct rmd_settings *s = p->settings;
    size_t length = strlen(text);
    uid_t uid;
    p->section = NULL;
    p->skip = true;
    if (text[length - 1] != ']' || strncmp(text, "[user", 5) || !is_blank(text[5])) {
        report_error(p, "'%.60s' is no section: allowed is [user NAME]", text);
        return;
    }
    text[length - 1] = '\0';
    char *name = trim_blanks(text + 5);
    if (!find_user_id(name, &uid)) {
        report_error(p, "[user %.60s]: there is no such user: use a name or number of one", name);
        return;
    }
    for (unsigned i = 0; i < s->nusers; i++)
        if (s->user[i].uid == uid) {
            report_error(p, "[user %.60s]: a second section for this user: use one", name);
            return;
        }
    if (s->nusers == RMD_CONFIG_USERS) {
        report_error(p, "[user %.60s]: more than %d users: use max-cores for all", name,
                     RMD_CONFIG_USERS);
        return;
    }
    p->skip = false;
    p->section = &s->user[s->nusers++];
    p->section->uid = uid;
}

static void assign_key(struct parser *p, const char *key_name, const char *value)
{
    char list[KEY_LIST], why[RMD_CONFIG_MESSAGE];
    int key = 0;
    while (key < RMD_KEYS && strcmp(keys[key].name, key_name))
        key++;
    if (key == RMD_KEYS || (p->section && !keys[key].of_user)) {
        report_error(p, "key '%.60s' is %s: allowed are %s", key_name,
                     key == RMD_KEYS ? "unknown" : "not one of a user",
                     allowed_keys(p->section != NULL, list));
        return;
    }
    unsigned *given = p->section ? &p->section->given : &p->settings->given;
    if (*given & 1u << key) {
        report_error(p, "key '%s' is there a second time: use it once", key_name);
        return;
    }
    *given |= 1u << key;
    if (!set_key(p->settings, p->section ? p->section : &p->settings->all, (enum rmd_key)key,
                 value)) {
        explain_refusal((enum rmd_key)key, value, why);
        report_error(p, "key '%s': %s", key_name, why);
    } else if (!p->section) {
        strcpy(p->settings->text[key], value);
    }
}

static void parse_line(struct parser *p, char *text)
{
    text = trim_blanks(text);
    if (*text == '\0' || *text == '#')
        return;
    if (*text == '[') {
        begin_section(p, text);
        return;
    }
    if (p->skip)
        return; /* its section has been complained of */
    char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        report_error(p, "'%.60s' is not allowed: use KEY = VALUE, [user NAME] or # COMMENT", text);
        return;
    }
    *equals = '\0';
    assign_key(p, trim_blanks(text), trim_blanks(equals + 1));
}

/* Bytes that have no place in a text file; 0 when there are none. */
static const char *foreign_byte(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\0')
            return "a NUL byte";
        if (c == '\r')
            return "a carriage return";
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return "a control character";
    }
    return NULL;
}

static void read_line(struct parser *p, const char *text, size_t bytes)
{
    char line[RMD_CONFIG_LINE + 1];
    const char *foreign;
    p->line++;
    if (bytes > RMD_CONFIG_LINE) {
        report_error(p, "a line of %zu bytes: at most %d are allowed", bytes, RMD_CONFIG_LINE);
    } else if ((foreign = foreign_byte(text, bytes)) != NULL) {
        report_error(p, "%s: only text is allowed", foreign);
    } else {
        memcpy(line, text, bytes);
        line[bytes] = '\0';
        parse_line(p, line);
    }
}

unsigned rmd_config_parse(struct rmd_settings *settings, const char *name, const char *text,
                          size_t bytes, rmd_complain *complain, void *context)
{
    struct parser p = {
        .settings = settings, .name = name, .complain = complain, .context = context};
    if (bytes > RMD_CONFIG_BYTES) {
        report_error(&p, "a file of %zu bytes: at most %d are allowed", bytes, RMD_CONFIG_BYTES);
        return p.errors;
    }
    while (bytes) {
        const char *end = memchr(text, '\n', bytes);
        size_t length = end ? (size_t)(end - text) : bytes;
        read_line(&p, text, length);
        bytes -= length + (end != NULL);
        text += length + (end != NULL);
    }
    if (settings->given & 1u << RMD_KEY_CORES && settings->given & 1u << RMD_KEY_EMULATE_CORES)
        report_error(&p, "keys 'cores' and 'emulate-cores' exclude each other: use one");
    return p.errors;
}

static void complain_in_log(void *context, const char *line)
{
    (void)context;
    rmd_error("%s", line);
}

/* The whole file, for the caller to free; NULL with errno. */
static char *read_file(int fd, size_t *bytes)
{
    size_t size = RMD_CONFIG_BYTES + 1;
    char *text = malloc(size);
    *bytes = 0;
    while (text && *bytes < size) {
        ssize_t n = read(fd, text + *bytes, size - *bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int saved = errno;
            free(text);
            errno = saved;
            return NULL;
        }
        if (n == 0)
            break;
        *bytes += (size_t)n;
    }
    return text;
}

/* A user that may write to root's configuration decides about the cores of all users. */
static bool is_world_writable(int fd)
{
    struct stat st;
    return geteuid() == 0 && !fstat(fd, &st) && st.st_mode & S_IWOTH && S_ISREG(st.st_mode);
}

unsigned rmd_config_load(struct rmd_settings *settings, const char *path, bool may_be_missing)
{
    size_t bytes;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT && may_be_missing)
        return 0;
    char *text = fd < 0 ? NULL : read_file(fd, &bytes);
    unsigned errors = 1;
    if (!text)
        rmd_error("%s: cannot be read: %s", path, strerror(errno));
    else if (is_world_writable(fd))
        rmd_error("%s: all users may write to it: use chmod o-w", path);
    else
        errors = rmd_config_parse(settings, path, text, bytes, complain_in_log, NULL);
    if (errors > RMD_CONFIG_ERRORS)
        rmd_error("%s: %u more errors", path, errors - RMD_CONFIG_ERRORS);
    free(text);
    if (fd >= 0)
        close(fd);
    return errors;
}
