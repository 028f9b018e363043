/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * taskdeps.c - dependences between the children of a task.
 *
 * The parent has a table from addresses to their last users: a *set* of children that may run
 * at the same time (one writer, or many readers), and the set before it, which new elements of the
 * current set must wait for.  Only the thread that executes the parent touches the table.
 *
 * A child with dependences that could not run at once has a node: how many nodes it waits for, and
 * the list of nodes that wait for it.  The list is under the node's lock, since it grows while the
 * child may end on another thread.  A node has a count of references: one of its task, and one of
 * each set that it is in.
 *
 * mutexinoutset: the children of such a set run in any order but one at a time.  Each address has a
 * mutex (struct mutex); a child takes those of all its addresses when it has nothing else to wait
 * for, in one go or not at all, and gives them back when it is complete.
 */
#include "tasks.h"
#include "upstream.h"
#include <stddef.h>
#include <string.h>

enum kind { DEP_OUT, DEP_MUTEX, DEP_INOUTSET, DEP_IN, DEP_KINDS }; /* strongest first */

/* One dependence, as decoded from what the compiler hands over. */
struct dep {
    void *addr;
    enum kind kind;
};

enum { EDGES_INLINE = 3, EDGES_MORE = 13, FROM_MALLOC = 255 };

/* More nodes that wait for a node. */
struct edges {
    struct edges *next;
    struct gomp_dep_node *to[EDGES_MORE];
};

/* The mutex of an address: of a mutexinoutset there, the child that has it may run. */
struct mutex {
    struct gomp_spinlock lock; /* over held, first */
    _Atomic unsigned references;
    bool held;
    struct gomp_dep_node *first; /* nodes that wait for nothing else, or did when they came */
};

struct mutexes {
    unsigned count;
    struct mutex *mutex[]; /* by rising address */
};

/* A node in a set. */
struct element {
    struct gomp_dep_node *node;
    struct element *next;
};

struct gomp_dep_node {
    struct gomp_spinlock lock; /* over finished, count, to, more */
    _Atomic bool finished;
    uint8_t size_class; /* of this block's memory */
    _Atomic unsigned references;
    /* predecessors that have not finished, and 1 while they are being counted; acq_rel */
    _Atomic unsigned awaits;
    /* 0, where a task has its depth: a thief that still looks at the task whose memory this was
     * goes no further (is_descendant in taskrun.c) */
    uint32_t no_depth;
    unsigned count;         /* nodes that wait for this one: three here, the rest in `more` */
    struct gomp_task *task; /* whose node this is; NULL: `waiter` waits for it */
    union {
        struct gomp_task *waiter;
        struct gomp_dep_node *next_for_mutex;
    };
    struct edges *more;
    struct mutexes *mutexes; /* to be taken before the task may run */
    struct gomp_dep_node *to[EDGES_INLINE];
    struct element element[];
};

struct set {
    struct element *first, *last;
};

struct entry {
    void *addr;
    bool used;
    enum kind kind; /* of the current set */
    struct set current, before;
    struct mutex *mutex;
};

_Static_assert(offsetof(struct gomp_dep_node, no_depth) == offsetof(struct gomp_task, own.depth),
               "thieves take a node for a task of depth 0");

/* The table of a parent, and the last task that depends on all memory. */
struct gomp_deps {
    size_t mask, used;
    struct gomp_dep_node *all;
    struct entry entry[];
};

/* Tasks that wait for nothing any more, by own.link in the order in which they came to that. */
struct ready {
    struct gomp_task *first, **last;
};

static struct gomp_deps *deps_of (const struct gomp_task *parent)
{
    return (struct gomp_deps *)parent->depend_hash;
}

/* --- decoding
 *
 * The compiler's array: [0] n > 0: the number of dependences, [1] how many of them are out or
 * inout, [2...] their addresses, those first.  Or [0] 0, [1] n, [2] out and inout, [3]
 * mutexinoutset, [4] in, [5...] the addresses in that order, then addresses of depend objects:
 * pairs of address and kind. */

struct layout {
    void **address;
    size_t out, mutex, normal, n; /* each kind ends before this one */
};

static struct layout layout_of (void **depend)
{
    struct layout l;
    bool old = depend[0] != NULL;
    l.n = (size_t)depend[old ? 0 : 1];
    l.out = (size_t)depend[old ? 1 : 2];
    l.mutex = l.out + (old ? 0 : (size_t)depend[3]);
    l.normal = old ? l.n : l.mutex + (size_t)depend[4];
    l.address = depend + (old ? 2 : 5);
    return l;
}

/* GOMP_DEPEND_INOUTSET of GCC 13, whose programs run with builds from releases before that, too. */
enum { OBJECT_INOUTSET = 5 };

static enum kind kind_of_object (uintptr_t kind)
{
    switch (kind) {
    case GOMP_DEPEND_IN:
        return DEP_IN;
    case GOMP_DEPEND_OUT:
    case GOMP_DEPEND_INOUT:
        return DEP_OUT;
    case GOMP_DEPEND_MUTEXINOUTSET:
        return DEP_MUTEX;
    case OBJECT_INOUTSET:
        return DEP_INOUTSET;
    default:
        gomp_fatal("unknown omp_depend_t dependence type %d", (int)kind);
    }
}

static inline struct dep dep_at (const struct layout *l, size_t i)
{
    if (i < l->normal)
        return (struct dep){l->address[i], i < l->out     ? DEP_OUT
                                           : i < l->mutex ? DEP_MUTEX
                                                          : DEP_IN};
    void **object = l->address[i];
    return (struct dep){object[0], kind_of_object((uintptr_t)object[1])};
}

/* The strongest first, so that the first of an address counts.  NULL: they are in that order, as
 * all are but objects.  On the heap, since an iterator makes as many as the program likes. */
static struct dep *sort_deps (const struct layout *l)
{
    if (l->normal == l->n)
        return NULL;
    struct dep *sorted = gomp_malloc(l->n * sizeof *sorted);
    size_t at[DEP_KINDS + 1] = {0}; /* where the next of each kind goes */
    for (size_t i = 0; i < l->n; i++)
        at[dep_at(l, i).kind + 1]++;
    for (enum kind k = 1; k < DEP_KINDS; k++)
        at[k] += at[k - 1];
    for (size_t i = 0; i < l->n; i++) {
        struct dep d = dep_at(l, i);
        sorted[at[d.kind]++] = d;
    }
    return sorted;
}

/* depend(inout : omp_all_memory), as GCC 13 and later hand it over. */
static bool is_all_memory (const struct dep *d)
{
    return d->addr == NULL && d->kind == DEP_OUT;
}

/* --- nodes */

static bool has_finished (struct gomp_dep_node *node)
{
    /* acquire: what the task did is there when its successor does not wait for it */
    return atomic_load_explicit(&node->finished, memory_order_acquire);
}

static void release_mutex (struct mutex *mutex)
{
    inv_assert(!mutex || atomic_load_explicit(&mutex->references, memory_order_relaxed) > 0);
    if (mutex && atomic_fetch_sub_explicit(&mutex->references, 1, memory_order_acq_rel) == 1)
        free(mutex);
}

static void free_node (struct gomp_dep_node *node)
{
    inv_assert(atomic_load_explicit(&node->references, memory_order_relaxed) == 0);
    inv_assert(atomic_load_explicit(&node->awaits, memory_order_relaxed) == 0 && node->finished);
    for (unsigned i = 0; node->mutexes && i < node->mutexes->count; i++)
        release_mutex(node->mutexes->mutex[i]);
    free(node->mutexes);
    if (node->size_class == FROM_MALLOC)
        free(node);
    else
        gomp_pool_free(node->size_class, node);
}

static void release_node (struct gomp_dep_node *node)
{
    unsigned before = atomic_fetch_sub_explicit(&node->references, 1, memory_order_acq_rel);
    inv_assert(before > 0);
    if (before == 1)
        free_node(node);
}

static void init_node (struct gomp_dep_node *node, struct gomp_task *task)
{
    /* release, before all else: partner is the acquire load of a parent in is_descendant, which then
     * reads this depth */
    __atomic_store_n(&node->no_depth, 0, __ATOMIC_RELAXED);
    atomic_thread_fence(memory_order_release);
    memset(node, 0, sizeof *node);
    atomic_init(&node->references, 1);
    atomic_init(&node->awaits, 1);
    node->task = task;
}

static struct gomp_dep_node *make_node (struct gomp_task *task, size_t ndeps)
{
    struct gomp_dep_node *node;
    size_t bytes = sizeof *node + ndeps * sizeof node->element[0];
    int class = gomp_pool_class(bytes);
    node = class < 0 ? gomp_malloc(bytes) : gomp_pool_alloc(class);
    init_node(node, task);
    node->size_class = class < 0 ? FROM_MALLOC : (uint8_t)class;
    return node;
}

/* `node` waits for `earlier`, unless that has finished. */
static void add_edge (struct gomp_dep_node *earlier, struct gomp_dep_node *node)
{
    if (earlier == node || has_finished(earlier))
        return;
    gomp_spinlock_lock(&earlier->lock);
    if (!has_finished(earlier)) {
        unsigned before = atomic_fetch_add_explicit(&node->awaits, 1, memory_order_relaxed);
        inv_assert(before > 0); /* the caller still counts its predecessors */
        if (earlier->count < EDGES_INLINE)
            earlier->to[earlier->count] = node;
        else {
            unsigned at = (earlier->count - EDGES_INLINE) % EDGES_MORE;
            if (at == 0) {
                struct edges *block = gomp_pool_alloc(0);
                block->next = earlier->more;
                earlier->more = block;
            }
            earlier->more->to[at] = node;
        }
        earlier->count++;
    }
    gomp_spinlock_unlock(&earlier->lock);
}

/* --- sets */

static void drop_first (struct set *set)
{
    struct element *x = set->first;
    inv_assert(x->next != NULL || x == set->last);
    set->first = x->next;
    release_node(x->node);
}

static void clear_set (struct set *set)
{
    while (set->first)
        drop_first(set);
}

/* Forget the oldest elements that have finished; elements are entered in order of creation, and
 * mostly finish so. */
static void prune_set (struct set *set)
{
    while (set->first && has_finished(set->first->node))
        drop_first(set);
}

static void append_element (struct set *set, struct element *x, struct gomp_dep_node *node)
{
    prune_set(set);
    x->node = node;
    x->next = NULL;
    atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed);
    if (set->first)
        set->last->next = x;
    else
        set->first = x;
    set->last = x;
}

static void wait_for_set (struct set *set, struct gomp_dep_node *node)
{
    prune_set(set);
    for (struct element *x = set->first; x; x = x->next)
        add_edge(x->node, node);
}

static bool set_pending (struct set *set)
{
    prune_set(set);
    for (struct element *x = set->first; x; x = x->next)
        if (!has_finished(x->node))
            return true;
    return false;
}

/* --- the table */

static size_t hash_address (const struct gomp_deps *deps, void *addr)
{
    return ((uintptr_t)addr * UINT64_C(0x9e3779b97f4a7c15) >> 24) & deps->mask;
}

/* The entry of that address, or where it would go. */
static struct entry *find_entry (struct gomp_deps *deps, void *addr)
{
    size_t at = hash_address(deps, addr);
    while (deps->entry[at].used && deps->entry[at].addr != addr)
        at = (at + 1) & deps->mask;
    return &deps->entry[at];
}

static void clear_entry (struct entry *e)
{
    clear_set(&e->current);
    clear_set(&e->before);
    release_mutex(e->mutex);
    memset(e, 0, sizeof *e);
}

/* Written from end to end at once, which calloc does not do: new memory that is read first is
 * mapped twice, and the second time the kernel interrupts all cores of the process. */
static struct gomp_deps *make_table (size_t size)
{
    size_t bytes = sizeof(struct gomp_deps) + size * sizeof(struct entry);
    struct gomp_deps *deps = gomp_malloc(bytes);
    memset(deps, 0, bytes);
    inv_assert((size & (size - 1)) == 0);
    deps->mask = size - 1;
    return deps;
}

/* A table for the entries that still matter, with as much room again. */
static struct gomp_deps *rebuild (struct gomp_deps *old)
{
    size_t live = 0;
    for (size_t i = 0; i <= old->mask; i++)
        if (old->entry[i].used) {
            if (set_pending(&old->entry[i].current))
                live++;
            else
                clear_entry(&old->entry[i]);
        }
    size_t size = 16;
    while (size < 4 * live)
        size *= 2;
    struct gomp_deps *deps = make_table(size);
    deps->all = old->all;
    for (size_t i = 0; i <= old->mask; i++)
        if (old->entry[i].used) {
            *find_entry(deps, old->entry[i].addr) = old->entry[i];
            deps->used++;
        }
    free(old);
    return deps;
}

static struct entry *entry_for (struct gomp_task *parent, void *addr)
{
    struct gomp_deps *deps = deps_of(parent);
    struct entry *e = find_entry(deps, addr);
    if (e->used)
        return e;
    if (2 * deps->used > deps->mask) {
        deps = rebuild(deps);
        parent->depend_hash = (struct htab *)deps;
        e = find_entry(deps, addr);
    }
    inv_assert(!e->used && deps->used <= deps->mask); /* a search always comes to an end */
    deps->used++;
    e->addr = addr;
    e->used = true;
    e->kind = DEP_OUT;
    return e;
}

void gomp_deps_free (struct gomp_task *parent)
{
    struct gomp_deps *deps = deps_of(parent);
    if (!deps)
        return;
    for (size_t i = 0; i <= deps->mask; i++)
        if (deps->entry[i].used)
            clear_entry(&deps->entry[i]);
    if (deps->all)
        release_node(deps->all);
    free(deps);
    parent->depend_hash = NULL;
}

/* --- the mutexes of mutexinoutsets */

static void add_ready (struct ready *ready, struct gomp_task *task)
{
    inv_assert(*ready->last == NULL);
    task->own.link = NULL;
    *ready->last = task;
    ready->last = &task->own.link;
}

static bool take_mutexes (struct gomp_dep_node *node, struct ready *ready);

/* Gives a mutex back; a node that waits for it may go on, or wait for another mutex. */
static void give_mutex (struct mutex *mutex, struct ready *ready)
{
    struct gomp_dep_node *next;
    /* Kept meanwhile: the node that gets the mutex may be the last to need it, and free it. */
    atomic_fetch_add_explicit(&mutex->references, 1, memory_order_relaxed);
    gomp_spinlock_lock(&mutex->lock);
    inv_assert(mutex->held); /* by the caller */
    mutex->held = false;
    while (!mutex->held && (next = mutex->first)) {
        mutex->first = next->next_for_mutex;
        gomp_spinlock_unlock(&mutex->lock);
        if (take_mutexes(next, ready))
            add_ready(ready, next->task);
        gomp_spinlock_lock(&mutex->lock);
    }
    gomp_spinlock_unlock(&mutex->lock);
    release_mutex(mutex);
}

/* Takes all mutexes of the node, or none: then it is in the list of one that another node has. */
static bool take_mutexes (struct gomp_dep_node *node, struct ready *ready)
{
    struct mutexes *mutexes = node->mutexes;
    for (unsigned i = 0; mutexes && i < mutexes->count; i++) {
        struct mutex *mutex = mutexes->mutex[i];
        gomp_spinlock_lock(&mutex->lock);
        bool held = mutex->held;
        if (held) {
            node->next_for_mutex = mutex->first;
            mutex->first = node;
        } else
            mutex->held = true;
        gomp_spinlock_unlock(&mutex->lock);
        if (!held)
            continue;
        /* Another thread may have the node now.  `mutexes` stays: sets of the parent keep it. */
        while (i-- > 0)
            give_mutex(mutexes->mutex[i], ready);
        return false;
    }
    return true;
}

static void need_mutex (struct gomp_dep_node *node, struct entry *e, size_t ndeps)
{
    if (!e->mutex) {
        e->mutex = gomp_malloc_cleared(sizeof *e->mutex);
        atomic_init(&e->mutex->references, 1);
    }
    if (!node->mutexes)
        node->mutexes = gomp_malloc_cleared(sizeof *node->mutexes + ndeps * sizeof(struct mutex *));
    struct mutex **list = node->mutexes->mutex;
    unsigned at = node->mutexes->count++;
    inv_assert(at < ndeps);
    for (; at > 0 && list[at - 1] > e->mutex; at--)
        list[at] = list[at - 1];
    list[at] = e->mutex;
    atomic_fetch_add_explicit(&e->mutex->references, 1, memory_order_relaxed);
}

/* --- entering and leaving */

/* A child that depends on everything before it, and everything after it on the child. */
static void enter_all_memory (struct gomp_deps *deps, struct gomp_dep_node *node)
{
    for (size_t i = 0; i <= deps->mask; i++)
        if (deps->entry[i].used) {
            wait_for_set(&deps->entry[i].current, node);
            clear_entry(&deps->entry[i]);
        }
    deps->used = 0;
    if (deps->all)
        release_node(deps->all);
    deps->all = node;
    atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed);
}

static void enter_one (struct gomp_task *parent, struct gomp_dep_node *node,
                       struct element *element, const struct dep *d, size_t ndeps)
{
    struct entry *e = entry_for(parent, d->addr);
    if (e->current.first && e->current.last->node == node)
        return; /* the same address once more */
    if (d->kind == DEP_OUT || d->kind != e->kind) {
        clear_set(&e->before);
        e->before = e->current;
        e->current.first = NULL;
        e->kind = d->kind;
    }
    wait_for_set(&e->before, node);
    append_element(&e->current, element, node);
    if (d->kind == DEP_MUTEX)
        need_mutex(node, e, ndeps);
}

bool gomp_deps_enter (struct gomp_task *parent, struct gomp_task *child, void **depend,
                      struct gomp_task **others)
{
    struct layout layout = layout_of(depend);
    size_t n = layout.n;
    if (n == 0)
        return true;
    struct dep *sorted = sort_deps(&layout);
    if (!parent->depend_hash)
        parent->depend_hash = (struct htab *)make_table(16);
    struct gomp_dep_node *node = make_node(child, n);
    child->own.node = node;
    if (deps_of(parent)->all)
        add_edge(deps_of(parent)->all, node);
    for (size_t i = 0; i < n; i++) {
        struct dep d = sorted ? sorted[i] : dep_at(&layout, i);
        if (is_all_memory(&d)) {
            enter_all_memory(deps_of(parent), node);
            break;
        }
        enter_one(parent, node, &node->element[i], &d, n);
    }
    free(sorted);
    /* acq_rel: partner is finish_node, by the thread that finishes the last predecessor */
    unsigned before = atomic_fetch_sub(&node->awaits, 1);
    inv_assert(before > 0);
    if (before != 1)
        return false;
    struct ready ready = {NULL, others};
    return take_mutexes(node, &ready);
}

/* One predecessor less. */
static void finish_node (struct gomp_dep_node *node, struct ready *ready)
{
    struct gomp_task *waiter = node->task ? NULL : node->waiter;
    unsigned before = atomic_fetch_sub(&node->awaits, 1);
    inv_assert(before > 0);
    if (before != 1)
        return;
    if (waiter) /* the node, on its stack, may be gone; the waiter, parent of this task, is not */
        gomp_task_wake_parked(waiter);
    else if (take_mutexes(node, ready))
        add_ready(ready, node->task);
}

struct gomp_task *gomp_deps_leave (struct gomp_task *child)
{
    struct gomp_dep_node *node = child->own.node;
    struct ready ready = {NULL, &ready.first};
    inv_assert(node->task == child && !has_finished(node));
    inv_assert(atomic_load_explicit(&node->awaits, memory_order_relaxed) == 0);
    for (unsigned i = 0; node->mutexes && i < node->mutexes->count; i++)
        give_mutex(node->mutexes->mutex[i], &ready);
    gomp_spinlock_lock(&node->lock);
    atomic_store_explicit(&node->finished, true, memory_order_release);
    gomp_spinlock_unlock(&node->lock);
    /* No thread adds to the list any more. */
    unsigned n = node->count < EDGES_INLINE ? node->count : EDGES_INLINE;
    for (unsigned i = 0; i < n; i++)
        finish_node(node->to[i], &ready);
    unsigned rest = node->count - n;
    for (struct edges *next, *block = node->more; block; block = next) {
        next = block->next;
        unsigned here = (rest - 1) % EDGES_MORE + 1; /* the first block is the newest: part full */
        for (unsigned i = 0; i < here; i++)
            finish_node(block->to[i], &ready);
        inv_assert(here <= EDGES_MORE && here <= rest);
        rest -= here;
        gomp_pool_free(0, block);
    }
    inv_assert(rest == 0);
    child->own.node = NULL;
    release_node(node);
    return ready.first;
}

/* --- waiting for siblings without being one */

/* The set that such a task waits for: elements of a set of its own kind do not hinder it, but for
 * those that run one at a time. */
static struct set *relevant_set (struct entry *e, enum kind kind)
{
    return kind == e->kind && (kind == DEP_IN || kind == DEP_INOUTSET) ? &e->before : &e->current;
}

static bool table_pending (struct gomp_deps *table)
{
    for (size_t k = 0; k <= table->mask; k++)
        if (table->entry[k].used && set_pending(&table->entry[k].current))
            return true;
    return false;
}

static bool dep_pending (struct gomp_deps *table, const struct dep *d)
{
    if (is_all_memory(d))
        return table_pending(table);
    struct entry *e = find_entry(table, d->addr);
    return e->used && set_pending(relevant_set(e, d->kind));
}

bool gomp_deps_pending (struct gomp_task *parent, void **depend)
{
    struct gomp_deps *table = deps_of(parent);
    if (table->all && !has_finished(table->all))
        return true;
    struct layout layout = layout_of(depend);
    for (size_t i = 0; i < layout.n; i++) {
        struct dep d = dep_at(&layout, i);
        if (dep_pending(table, &d))
            return true;
    }
    return false;
}

static bool node_done (const void *arg)
{
    return atomic_load_explicit(&((struct gomp_dep_node *)arg)->awaits, memory_order_acquire) == 0;
}

static void wait_for_table (struct gomp_deps *table, struct gomp_dep_node *node)
{
    for (size_t k = 0; k <= table->mask; k++)
        wait_for_set(&table->entry[k].current, node);
}

static void wait_for_dep (struct gomp_deps *table, const struct dep *d, struct gomp_dep_node *node)
{
    if (is_all_memory(d)) {
        wait_for_table(table, node);
        return;
    }
    struct entry *e = find_entry(table, d->addr);
    if (e->used)
        wait_for_set(relevant_set(e, d->kind), node);
}

/* An undeferred task with dependences, a taskwait with some: wait for the siblings in question. */
void gomp_task_maybe_wait_for_dependencies (void **depend)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task *parent = thr->task;
    struct gomp_deps *table = deps_of(parent);
    struct layout layout = layout_of(depend);
    struct gomp_dep_node node;
    init_node(&node, NULL);
    node.waiter = parent;
    if (table->all)
        add_edge(table->all, &node);
    for (size_t i = 0; i < layout.n; i++) {
        struct dep d = dep_at(&layout, i);
        wait_for_dep(table, &d, &node);
    }
    unsigned before = atomic_fetch_sub(&node.awaits, 1);
    inv_assert(before > 0);
    if (before != 1)
        gomp_task_wait(GOMP_WAIT_NODE, node_done, &node);
}

void GOMP_taskwait_depend (void **depend)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_team *team = thr->ts.team;
    if (team && gomp_task_discarded(team, thr->task->taskgroup))
        return;
    if (thr->task && thr->task->depend_hash)
        gomp_task_maybe_wait_for_dependencies(depend);
}

static void empty_task (void *data)
{
    (void)data;
}

/* An empty task on which other tasks can depend.  Since GCC 13: see newer.c. */
void GOMP_taskwait_depend_nowait (void **depend)
{
    struct gomp_thread *thr = gomp_thread();
    if (thr->ts.team && thr->task->depend_hash && gomp_deps_pending(thr->task, depend))
        GOMP_task(empty_task, NULL, NULL, 0, 1, true, GOMP_TASK_FLAG_DEPEND, depend, 0, NULL);
}
