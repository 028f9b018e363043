/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * settings.h - the operator's settings: rmd.conf(5), and the options of the same names on the
 * command line, which win.  One table of keys is for both (settings.c).
 */
#ifndef RMD_SETTINGS_H
#define RMD_SETTINGS_H

#include "rmd/loop/log.h"
#include "rmd/policy/policy.h"
#include "rmd/power/power.h"
#include "rmd/config/units.h"

#include <stddef.h>
#include <sys/types.h>

enum {
    RMD_CONFIG_LINE = 1023,      /* bytes of a line */
    RMD_CONFIG_BYTES = 1 << 20,  /* of a file */
    RMD_CONFIG_USERS = 256,      /* [user] sections */
    RMD_CONFIG_ERRORS = 20,      /* of one file that are told */
    RMD_CONFIG_MESSAGE = 1024,   /* bytes of a complaint, its end included */
};

enum rmd_key {
    RMD_KEY_CORES,
    RMD_KEY_EMULATE_CORES,
    RMD_KEY_SMT,
    RMD_KEY_POLICY,
    RMD_KEY_ENERGY_LOSS,
    RMD_KEY_MOVE_COST,
    RMD_KEY_PAY_WITHIN,
    RMD_KEY_POWER_CAP,
    RMD_KEY_TEMPERATURE_LIMIT,
    RMD_KEY_RECLAIM_BOUND,
    RMD_KEY_LEND_BLOCKED,
    RMD_KEY_MAX_CORES,
    RMD_KEY_MAX_JOB_CORES,
    RMD_KEY_SOCKET,
    RMD_KEY_SOCKET_GROUP,
    RMD_KEY_ENFORCE,
    RMD_KEY_ENFORCE_ON,
    RMD_KEY_CGROUP,
    RMD_KEY_CHECK_INTERVAL,
    RMD_KEY_LOG_LEVEL,
    RMD_KEY_METRICS,
    RMD_KEY_SUBUID,
    RMD_KEYS
};

/* The settings of one user, or of all users that no section names. */
struct rmd_user_settings {
    uid_t uid;
    unsigned max_cores, max_job_cores; /* 0: all */
    const struct rmd_policy *policy;   /* in a section NULL: as for all */
    bool whole_user;                   /* also confine processes that descend from no member */
    unsigned given;                    /* in a section: bit per enum rmd_key */
};

enum rmd_group { RMD_GROUP_DEFAULT, RMD_GROUP_ONE, RMD_GROUP_ANY };
enum rmd_enforce { RMD_ENFORCE_NONE, RMD_ENFORCE_AFFINITY, RMD_ENFORCE_CPUSET };

struct rmd_settings {
    struct rmd_user_settings all;
    struct rmd_user_settings user[RMD_CONFIG_USERS];
    unsigned nusers;
    enum rmd_smt smt;
    struct rmd_tuning tuning;
    struct rmd_power_cap power_cap;
    unsigned temperature_limit; /* degrees Celsius; 0 none */
    unsigned reclaim_bound_us, check_interval_ms;
    bool lend_blocked; /* cores whose threads sleep in the kernel are lent */
    enum rmd_group group;
    gid_t gid; /* RMD_GROUP_ONE */
    enum rmd_enforce enforce;
    enum rmd_level log_level;
    unsigned given; /* bit per enum rmd_key: said by a file or option */
    /* the values as text, "" not given: for keys with a text value, and to compare */
    char text[RMD_KEYS][RMD_CONFIG_LINE + 1];
};

/* The name of a key, and of the option. */
const char *rmd_key_name(enum rmd_key key);
/* May the key's value change while rmd runs? */
bool rmd_key_reloadable(enum rmd_key key);

/* Sets the defaults. */
void rmd_config_defaults(struct rmd_settings *settings);

/*
 * rmd_config_parse - adds the settings of a file to *settings, which has the defaults.
 *   name      of the file, for complaints
 *   text      its content, `bytes` bytes, which may be anything
 *   complain  gets one line for each error, at most RMD_CONFIG_ERRORS
 * Returns the number of errors; with any, the settings are of no use.
 */
typedef void rmd_complain(void *context, const char *line);
unsigned rmd_config_parse(struct rmd_settings *settings, const char *name, const char *text,
                          size_t bytes, rmd_complain *complain, void *context);

/* The same with the content of the file at `path`; complaints go to the log.  A file that is not
 * there is no error if it may be missing. */
unsigned rmd_config_load(struct rmd_settings *settings, const char *path, bool may_be_missing);

/* Sets one key outside any section, as an option does; of `cores` and `emulate-cores` the last one
 * counts.  False: `why` says which values are allowed. */
bool rmd_config_set(struct rmd_settings *settings, enum rmd_key key, const char *value,
                    char why[RMD_CONFIG_MESSAGE]);

/* The settings of this user: those of its section, else those for all. */
struct rmd_user_settings rmd_config_user(const struct rmd_settings *settings, uid_t uid);

#endif
