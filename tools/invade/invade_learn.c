/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_learn.c - --learn: the team size with which earlier runs of the same command were fastest.
 *
 * A file remembers, for each command line, how long it took with the default team and with smaller ones.  The
 * first runs try them in turns; from then on the fastest is used.  The same program with other arguments, whose times
 * cannot be compared, uses what is known of it.  The format is in invade(1), LEARNING.
 *
 * Users may write anything into that file: it is checked when it is read, and a file that is not
 * understood stays as it is.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "libinvasive/base/hash.h"
#include "invade_model.h"
#include "libinvasive/launch/preload.h"
#include "rmd/loop/text.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    VERSION = 1,
    TRIES = 2,        /* runs with each team size before one is chosen */
    KEPT = 5,         /* number of times of each size that are remembered, the latest */
    COMMANDS = 1000,  /* that are remembered; for a further one the least recently used is
                         removed */
    HASHED = 1 << 26, /* bytes of a program's file that are hashed */
};
/* A team must be faster than the default team by this factor to be chosen. */
static const double FASTER = 1.03;

/* --- the program of a command */

enum { HASH_BYTES = sizeof((struct invade_hash *)0)->text };

/* Hashes the file of a program.  False: it is no program, or cannot be read. */
static bool hash_file(const char *path, char text[HASH_BYTES])
{
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode) || access(path, X_OK))
        return false;
    char bytes[1 << 16];
    uint64_t hash = INV_HASH_BASIS;
    ssize_t got = -1, all = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && all < HASHED && (got = read(file, bytes, sizeof bytes)) > 0) {
        hash = inv_hash(hash, bytes, (size_t)got);
        all += got;
    }
    if (file >= 0)
        close(file);
    snprintf(text, HASH_BYTES, "%016llx", (unsigned long long)hash);
    return file >= 0 && got >= 0;
}

/* The hash of the program that a word of the command names; "": it names none that can be read.
 * *latest keeps the last hash, since all entries of a program need the same one, and the file may
 * have changed after the run. */
static const char *hash_of(const char *word, struct invade_hash *latest)
{
    char path[PATH_MAX];
    const char *file = strchr(word, '/') ? word : inv_search_path(word, path);
    if (latest->of != word && !(file && hash_file(file, latest->text)))
        latest->text[0] = '\0';
    latest->of = word;
    return latest->text;
}

static const char *base_name(const char *word)
{
    const char *slash = strrchr(word, '/');
    return slash ? slash + 1 : word;
}

/* Is this an interpreter, whose arguments name the program that it runs? */
static bool is_interpreter(const char *name)
{
    static const char *const names[] = {"python", "perl", "ruby", "julia", "java", "octave", "R",    "Rscript",
                                        "sh",     "bash", "dash", "zsh",   "env",  "time",   "make"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (!strncmp(name, names[i], length) && !name[length + strspn(name + length, "0123456789.-")])
            return true; /* python3.11 */
    }
    return false;
}

/* Finds the word of the command that names the program which rmd has seen.  False: there is none
 * that can be read; the whole command counts as the program. */
static bool find_word(char **command, const char *program, struct invade_hash *latest, size_t *at)
{
    for (*at = 0; command[*at]; ++*at)
        if (program[0] && !strcmp(base_name(command[*at]), program) && hash_of(command[*at], latest)[0])
            return true;
    *at = 0;
    return false;
}

/* --- entries */

static const char *text_in(const json_t *entry, const char *key)
{
    const char *text = json_string_value(json_object_get(entry, key));
    return text ? text : "";
}

static unsigned number_in(const json_t *entry, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(entry, key));
    return n > 0 && n <= 1 << 16 ? (unsigned)n : 0;
}

/* Are these the first `count` words of the command? */
static bool are_words(const json_t *list, char **words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (!words[i] || !word || strcmp(word, words[i]))
            return false;
    }
    return true;
}

static size_t count_words(char **words)
{
    size_t count = 0;
    while (words[count])
        count++;
    return count;
}

enum match { NO_MATCH, OTHER_ARGUMENTS, SAME_COMMAND };

static enum match match_entry(const json_t *entry, char **command, unsigned cores, struct invade_hash *latest)
{
    const json_t *before = json_object_get(entry, "before"), *after = json_object_get(entry, "arguments");
    size_t at = json_array_size(before);
    if (at >= count_words(command) || !are_words(before, command, at) || number_in(entry, "cores") != cores ||
        strcmp(base_name(command[at]), text_in(entry, "program")))
        return NO_MATCH;
    char **rest = &command[at + 1];
    size_t count = json_array_size(after);
    bool same = count == count_words(rest) && are_words(after, rest, count);
    if (!same && !json_is_true(json_object_get(entry, "any_arguments")))
        return NO_MATCH;
    const char *hash = hash_of(command[at], latest);
    if (!hash[0] || strcmp(hash, text_in(entry, "hash")))
        return NO_MATCH;
    return same ? SAME_COMMAND : OTHER_ARGUMENTS;
}

/* The shortest time of a team size: other work of the machine, and the first reading of files, only
 * make a run longer.  Infinite: there is no time. */
static double shortest_time(const json_t *team)
{
    json_t *time;
    size_t i;
    double least = INFINITY;
    json_array_foreach(json_object_get(team, "seconds"), i, time)
        if (json_number_value(time) > 0)
            least = fmin(least, json_number_value(time));
    return least;
}

/* The number of runs with a team size.  If a user has overwritten the list, the size is not tried
 * again. */
static size_t runs_of(const json_t *team)
{
    const json_t *list = json_object_get(team, "seconds");
    return json_is_array(list) ? json_array_size(list) : TRIES;
}

/* The team size to try next; NULL: all have been tried. */
static json_t *team_to_try(const json_t *entry)
{
    json_t *team, *least = NULL;
    size_t i;
    json_array_foreach(json_object_get(entry, "teams"), i, team)
        if (runs_of(team) < TRIES && (!least || runs_of(team) < runs_of(least)))
            least = team;
    return least;
}

/* The fastest team size; the first element is the default team. */
static json_t *fastest_team(const json_t *entry)
{
    json_t *team, *teams = json_object_get(entry, "teams"), *best = json_array_get(teams, 0);
    double least = shortest_time(best) / FASTER;
    size_t i;
    json_array_foreach(teams, i, team)
        if (i > 0 && shortest_time(team) < least) {
            best = team;
            least = shortest_time(team);
        }
    return best;
}

/* --- the file */

static const char *default_file(char file[PATH_MAX])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = state && state[0] == '/' ? snprintf(file, PATH_MAX, "%s/invasive/learnt.json", state)
            : home && *home ? snprintf(file, PATH_MAX, "%s/.local/state/invasive/learnt.json", home)
                            : -1;
    return n > 0 && n < PATH_MAX ? file : NULL;
}

/* The content of the file; a new object if there is no file, or an empty one.  NULL: the user has
 * been told why the file cannot be used. */
static json_t *read_file(const char *file)
{
    json_error_t why;
    struct stat st;
    bool there = !stat(file, &st);
    if (there ? S_ISREG(st.st_mode) && st.st_size == 0 : errno == ENOENT || errno == ENOTDIR)
        return json_pack("{s:i, s:[]}", "invade_learn", VERSION, "commands");
    if (!there || !S_ISREG(st.st_mode) || access(file, R_OK)) {
        invade_say("--learn: cannot read %s: %s. Nothing is learnt.", file,
                   there && !S_ISREG(st.st_mode) ? "it is not a regular file" : strerror(errno));
        return NULL;
    }
    json_t *root = json_load_file(file, 0, &why);
    if (!root)
        invade_say("--learn: cannot read %s, line %d: %s. It is left as it is, and nothing is learnt.", file,
                   why.line, why.text);
    else if (json_integer_value(json_object_get(root, "invade_learn")) != VERSION ||
             !json_is_array(json_object_get(root, "commands"))) {
        invade_say("--learn: %s is no file of invade --learn (it has no \"invade_learn\": %d with \"commands\"). "
                   "It is left as it is, and nothing is learnt.", file, VERSION);
        json_decref(root);
        root = NULL;
    }
    return root;
}

/* The entry of the command; or, of those of the same program with other arguments that have no trials left, the one
 * that was used last. */
static json_t *find_entry(const json_t *root, char **command, unsigned cores, enum match wanted,
                          struct invade_hash *latest)
{
    json_t *entry, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(root, "commands"), i, entry)
        if (match_entry(entry, command, cores, latest) == wanted &&
            (wanted == SAME_COMMAND || !team_to_try(entry)) &&
            (!found || strcmp(text_in(entry, "used"), text_in(found, "used")) >= 0))
            found = entry;
    return found;
}

static bool make_folders(const char *file)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s", file) >= (int)sizeof path)
        return false;
    for (char *at = path + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        if (mkdir(path, 0700) && errno != EEXIST)
            return false;
    }
    return true;
}

/* Locks the folder of the file.  Returns a descriptor, whose closing ends the lock; -1 with
 * errno. */
static int lock_folder(const char *file)
{
    enum { TRIES_MOST = 500, PAUSE_US = 10000 }; /* others hold it for milliseconds */
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", file);
    int folder = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; folder >= 0 && flock(folder, LOCK_EX | LOCK_NB); i++) {
        if (errno == EWOULDBLOCK && i < TRIES_MOST) {
            usleep(PAUSE_US);
            continue;
        }
        int error = errno;
        close(folder);
        folder = -1;
        errno = error;
    }
    return folder;
}

/* Writes the file; if it is a symbolic link, the file that the link names.  Only the user may read
 * a new file, since it has command lines in it. */
static bool write_file(const char *file, json_t *root)
{
    enum { OWN_MODE = 0600, MODE_BITS = 07777 };
    char real[PATH_MAX];
    struct stat st;
    bool there = !stat(file, &st) && realpath(file, real);
    return invade_json_replace(there ? real : file, there ? st.st_mode & MODE_BITS : OWN_MODE, root);
}

/* --- before the run */

static void say_choice(const json_t *entry, const json_t *team, enum match match)
{
    const json_t *teams = json_object_get(entry, "teams");
    unsigned threads = number_in(team, "threads");
    const char *other = match == SAME_COMMAND ? "" : ", with other arguments";
    if (json_array_size(teams) < 2)
        return; /* nothing was tried */
    if (threads)
        invade_say("--learn: %u thread%s, which took %.2f of the default team's time%s", threads,
                   rmd_plural(threads, "s"), shortest_time(team) / shortest_time(json_array_get(teams, 0)), other);
    else
        invade_say("--learn: the default team, which was the fastest%s", other);
}

static const char *why_not(const struct invade_options *o)
{
    char job[32];
    const char *size = getenv("OMP_NUM_THREADS"), *ours = getenv("INVASIVE_THREADS");
    if (inv_job_name(job, sizeof job))
        return "one rank cannot choose for all: write invade --learn mpiexec ...";
    if (size && *size)
        return "OMP_NUM_THREADS gives teams their size: unset it";
    if (ours && *ours)
        return "INVASIVE_THREADS, which a surrounding invade may have set, gives teams their size";
    return o->learn_file ? NULL : "neither HOME nor XDG_STATE_HOME says where: use --learn=FILE";
}

static unsigned use_fastest(const json_t *entry, enum match match)
{
    const json_t *team = fastest_team(entry);
    say_choice(entry, team, match);
    return number_in(team, "threads");
}

/* The team size for a run of a known command: the next one to try, or the fastest. */
static unsigned team_of_same(const json_t *entry)
{
    const json_t *team = team_to_try(entry);
    unsigned threads = number_in(team, "threads");
    if (!team)
        return use_fastest(entry, SAME_COMMAND);
    if (threads)
        invade_say("--learn: a trial with %u thread%s", threads, rmd_plural(threads, "s"));
    return threads;
}

void invade_learn_begin(struct invade_options *o, unsigned cores)
{
    if (!o->learn)
        return;
    if (!o->learn_file)
        o->learn_file = default_file(o->default_learn_file);
    const char *why = why_not(o);
    json_t *root = why ? NULL : read_file(o->learn_file);
    if (why)
        invade_say("--learn: %s. Nothing is learnt.", why);
    json_t *same = find_entry(root, o->command, cores, SAME_COMMAND, &o->hash);
    json_t *other = same ? NULL : find_entry(root, o->command, cores, OTHER_ARGUMENTS, &o->hash);
    if (same)
        o->threads = team_of_same(same);
    if (other)
        o->threads = use_fastest(other, OTHER_ARGUMENTS);
    o->learn = root && !other;
    json_decref(root);
}

/* --- after it */

/* What rmd knows of the run, for the job with most processes, and the node of its first process. */
struct facts {
    char program[INV_NAME_BYTES];
    unsigned processes, team;
};

static bool learn_facts(struct facts *f, const struct invade_report *report, const struct invade_manager *m,
                        int *error)
{
    struct launch l = {.ncores = m->ncores};
    if (!invade_report_fetch(report, m, &l, error))
        return false;
    const struct job *most = NULL;
    for (unsigned i = 0; i < l.njobs; i++)
        if (!most || l.jobs[i].count > most->count)
            most = &l.jobs[i];
    for (unsigned i = 0; most && i < most->count; i++) {
        const struct process *p = &most->at[i];
        f->team = p->team_threads > f->team ? p->team_threads : f->team;
        f->processes += p->node == most->at[0].node;
    }
    if (most)
        snprintf(f->program, sizeof f->program, "%s", most->at[0].counters->program);
    launch_free(&l);
    return f->processes > 0;
}

/* The index of the team size in the list; the length of the list: it is not there. */
static size_t place_of(const json_t *teams, unsigned threads)
{
    size_t i = 0;
    while (i < json_array_size(teams) && number_in(json_array_get(teams, i), "threads") != threads)
        i++;
    return i;
}

static void add_team(json_t *teams, unsigned threads)
{
    if (place_of(teams, threads) == json_array_size(teams))
        json_array_append_new(teams, json_pack("{s:i, s:[]}", "threads", (int)threads, "seconds"));
}

/* 0 is the default team.  Smaller ones: a process's share of the cores, which it needs to compute while all do, and
 * twice that; one that has all cores may be better off with half of them, or with one. */
static json_t *teams_for(const struct facts *f, unsigned cores)
{
    json_t *teams = json_array();
    unsigned share = (cores + f->processes - 1) / f->processes;
    unsigned sizes[] = {share, share < cores ? 2 * share : (cores + 1) / 2, share < cores ? share : 1};
    add_team(teams, 0);
    for (size_t i = 0; f->team && i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < f->team && sizes[i] <= cores)
            add_team(teams, sizes[i]);
    return teams;
}

static json_t *make_words(char **from, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(from[i]));
    return list;
}

/* Are all words UTF-8, as JSON needs them, and is there a hash, by which the entry can be found
 * again? */
static bool can_be_remembered(char **command, size_t at, struct invade_hash *latest)
{
    for (size_t i = 0; command[i]; i++) {
        json_t *word = json_string(command[i]);
        json_decref(word);
        if (!word) {
            invade_say("--learn: word %zu of the command is not UTF-8. Nothing is learnt.", i + 1);
            return false;
        }
    }
    if (hash_of(command[at], latest)[0])
        return true;
    invade_say("--learn: the file of %s cannot be read. Nothing is learnt.", command[at]);
    return false;
}

/* An entry for a command that has run with the default team for the first time.  NULL: it cannot be
 * remembered; the user has been told. */
static json_t *new_entry(char **command, const struct facts *f, unsigned cores, struct invade_hash *latest)
{
    size_t at;
    bool any_arguments = find_word(command, f->program, latest, &at) && !is_interpreter(f->program);
    if (!can_be_remembered(command, at, latest))
        return NULL;
    return json_pack("{s:o, s:s, s:s, s:o, s:b, s:i, s:i, s:i, s:o}", "before", make_words(command, at), "program",
                     base_name(command[at]), "hash", hash_of(command[at], latest), "arguments",
                     make_words(&command[at + 1], count_words(&command[at + 1])), "any_arguments", any_arguments,
                     "cores", (int)cores, "processes", (int)f->processes, "team", (int)f->team, "teams",
                     teams_for(f, cores));
}

/* Removes the command that was used least lately if there is no room for another one. */
static void make_room(json_t *commands)
{
    json_t *entry, *oldest = NULL;
    size_t i, where = 0;
    if (json_array_size(commands) < COMMANDS)
        return;
    json_array_foreach(commands, i, entry)
        if (!oldest || strcmp(text_in(entry, "used"), text_in(oldest, "used")) < 0) {
            oldest = entry;
            where = i;
        }
    json_array_remove(commands, where);
}

static void add_run(json_t *entry, unsigned threads, double seconds)
{
    char now[32];
    time_t clock = time(NULL);
    struct tm utc;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&clock, &utc));
    json_object_set_new(entry, "used", json_string(now));
    json_t *teams = json_object_get(entry, "teams");
    json_t *list = json_object_get(json_array_get(teams, place_of(teams, threads)), "seconds");
    json_array_append_new(list, json_real(round(1e4 * seconds) / 1e4));
    while (json_array_size(list) > KEPT)
        json_array_remove(list, 0);
}

/* The largest team of the program has the same size as by default: its own. */
static void forget_team(json_t *entry, unsigned threads)
{
    json_t *teams = json_object_get(entry, "teams");
    json_array_remove(teams, place_of(teams, threads));
    invade_say("--learn: the program has teams of its own size: %u thread%s %s not tried again", threads,
               rmd_plural(threads, "s"), threads == 1 ? "is" : "are");
}

void invade_learn_end(const struct invade_options *o, const struct invade_report *report,
                      const struct invade_manager *m, int status, double seconds)
{
    struct facts facts = {0};
    struct invade_hash latest = o->hash;
    if (!o->learn || status != 0 || invade_end_signal())
        return; /* the time of a run that has failed, or was told to end, is of no use */
    int error;
    bool ours = learn_facts(&facts, report, m, &error);
    if (error || (!ours && o->threads != 1))
        return; /* none of the processes has teams of ours; of those with one thread nothing is known without MPI */
    bool made = make_folders(o->learn_file);
    int folder = made ? lock_folder(o->learn_file) : -1;
    json_t *root = folder < 0 ? NULL : read_file(o->learn_file); /* again: others may have written it */
    json_t *commands = json_object_get(root, "commands");
    json_t *entry = find_entry(root, o->command, m->ncores, SAME_COMMAND, &latest);
    if (root && !entry && !o->threads && (entry = new_entry(o->command, &facts, m->ncores, &latest))) {
        make_room(commands);
        json_array_append_new(commands, entry);
    }
    if (entry && facts.team > o->threads && o->threads && facts.team == number_in(entry, "team"))
        forget_team(entry, o->threads);
    else if (entry && !(ours && facts.team < o->threads)) /* else something has made the team smaller this time */
        add_run(entry, o->threads, seconds);
    if (folder < 0 || (entry && !write_file(o->learn_file, root)))
        invade_say("--learn: cannot write %s: %s", o->learn_file, strerror(errno));
    json_decref(root);
    if (folder >= 0)
        close(folder);
}
