/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dependences.c - task/taskdeps.c alone: the children of one task, which are entered and leave as
 * the lines of standard input say.  Each line is answered by a line.
 *
 *   enter ID KIND:ADDRESS...   a new child: "runs" or "waits", and the numbers of other children
 *                              that run now
 *   leave ID                   it is complete: the numbers of children that run now, and "over" if
 *                              a taskwait is
 *   pending KIND:ADDRESS...    would a task with these dependences wait: "yes" or "no"
 *   taskwait KIND:ADDRESS...   the parent waits: "over", or "waits" until an answer to "leave" says
 *                              "over"
 *   nodes                      how many nodes there are
 *   forget                     the parent has ended: how many nodes there are then
 *
 * KIND is out, in or mutex; object-KIND hands the dependence over in a depend object.  inoutset
 * comes in depend objects only, as compilers hand it over.  ADDRESS is a number, 0 with out is
 * omp_all_memory.
 */
#include "dependences.h"
#include <stdio.h>
#include <string.h>

enum { MOST = 1 << 12, WORDS = 256, KINDS = 4 };
static const char *const kinds[KINDS] = {"out", "mutex", "in", "inoutset"};
/* Those of depend objects; 5 is that of inoutset, which GCC 13 has brought. */
static const uintptr_t object_kinds[KINDS] = {GOMP_DEPEND_OUT, GOMP_DEPEND_MUTEXINOUTSET,
                                              GOMP_DEPEND_IN, 5};

static struct gomp_task parent, *children[MOST];
static bool woken;

/* --- what taskdeps.c calls */

void gomp_spinlock_contended (struct gomp_spinlock *lock)
{
    (void)lock;
    gomp_fatal("a lock is held, with one thread");
}

void gomp_task_wake_parked (struct gomp_task *task)
{
    woken = task == &parent;
}

/* --- the commands */

/* What compiled code hands over. */
struct depend {
    void *array[5 + WORDS];
    void *object[WORDS][2];
};

static unsigned count (char **word, const char *kind, struct depend *to, unsigned at)
{
    unsigned found = 0;
    for (; *word; word++) {
        size_t length = strlen(kind);
        if (strncmp(*word, kind, length) == 0 && (*word)[length] == ':') {
            to->array[at + found] = (void *)(uintptr_t)strtoull(*word + length + 1, NULL, 10);
            found++;
        }
    }
    return found;
}

static void add_objects (char **word, struct depend *to, unsigned at)
{
    char name[32];
    for (unsigned kind = 0, objects = 0; kind < KINDS; kind++) {
        snprintf(name, sizeof name, "object-%s", kinds[kind]);
        unsigned found = count(word, name, to, at);
        for (unsigned i = 0; i < found; i++, at++, objects++) {
            to->object[objects][0] = to->array[at];
            to->object[objects][1] = (void *)object_kinds[kind];
            to->array[at] = to->object[objects];
        }
    }
}

/* The array of releases before GCC 9 if there are only out and in. */
static void **encode (char **word, struct depend *to)
{
    size_t n = 0, out, mutex, in;
    while (word[n])
        n++;
    out = count(word, "out", to, 2);
    if (out + (in = count(word, "in", to, 2 + (unsigned)out)) == n) {
        to->array[0] = (void *)n;
        to->array[1] = (void *)out;
        return to->array;
    }
    to->array[0] = NULL;
    to->array[1] = (void *)n;
    to->array[2] = (void *)(size_t)count(word, "out", to, 5);
    to->array[3] = (void *)(mutex = count(word, "mutex", to, 5 + (unsigned)out));
    to->array[4] = (void *)(in = count(word, "in", to, 5 + (unsigned)(out + mutex)));
    add_objects(word, to, 5 + (unsigned)(out + mutex + in));
    return to->array;
}

static void print_ready (struct gomp_task *first)
{
    for (; first; first = first->own.link)
        for (unsigned id = 0; id < MOST; id++)
            if (children[id] == first)
                printf(" %u", id);
}

static void enter (unsigned id, char **word)
{
    struct depend depend;
    struct gomp_task *others = NULL;
    children[id] = gomp_malloc_cleared(sizeof *children[id]);
    bool runs = gomp_deps_enter(&parent, children[id], encode(word, &depend), &others);
    printf(runs ? "runs" : "waits");
    print_ready(others);
}

static void leave (unsigned id)
{
    print_ready(gomp_deps_leave(children[id]));
    free(children[id]);
    children[id] = NULL;
}

static bool obey (void)
{
    char line[4096], *word[WORDS + 1] = {NULL}, *rest = line;
    if (!fgets(line, sizeof line, stdin))
        return false;
    struct depend depend;
    for (unsigned i = 0; i < WORDS && (word[i] = strtok_r(rest, " \n", &rest)); i++)
        ;
    if (strcmp(word[0], "enter") == 0)
        enter((unsigned)atoi(word[1]), word + 2);
    else if (strcmp(word[0], "leave") == 0)
        leave((unsigned)atoi(word[1]));
    else if (strcmp(word[0], "pending") == 0)
        printf(parent.depend_hash && gomp_deps_pending(&parent, encode(word + 1, &depend)) ? "yes"
                                                                                           : "no");
    else if (strcmp(word[0], "taskwait") == 0) {
        GOMP_taskwait_depend(encode(word + 1, &depend));
        printf("over");
    } else {
        if (strcmp(word[0], "forget") == 0)
            gomp_deps_free(&parent);
        printf("%u", nodes);
    }
    return true;
}

static void obey_until (bool (*done) (const void *), const void *arg)
{
    while (!(done && done(arg)) && obey()) {
        if (done && done(arg))
            break;
        putchar('\n');
        fflush(stdout);
    }
}

/* The parent waits in a taskwait: meanwhile its children are complete, as further lines say. */
void gomp_task_wait (enum gomp_wait_for what, bool (*done) (const void *), const void *arg)
{
    if (what != GOMP_WAIT_NODE)
        gomp_fatal("no wait for a node");
    woken = false;
    puts("waits");
    fflush(stdout);
    obey_until(done, arg);
    if (!woken)
        gomp_fatal("the wait is over, and nothing has woken it");
    putchar(' ');
}

int main (void)
{
    struct gomp_thread *thr = gomp_thread();
    thr->task = &parent;
    obey_until(NULL, NULL);
    return 0;
}
