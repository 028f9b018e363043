/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tuning.c - which of the runtime's parameters is tuned when (tuning.h).  The searches are control points
 * (control_point.h).
 */
#include "libinvasive/record/tuning.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/record/control_point.h"
#include "libinvasive/process/state.h"

#include <string.h>

/* WARM: samples before a search: the first ones of a program often take longer.  RESTARTS: searches that begin
 * anew.  UNIT: percent in a unit of the slot's word. */
enum { WARM = 16, VALUES = 8, RESTARTS = 4, UNIT = 5 };

enum state { NOT_OFFERED, OFFERED, SEARCHED, DONE };

struct inv_tuning inv_tuning = {.value = {[INV_TUNED_SPIN] = 100, [INV_TUNED_POLL] = 100}};

/* Of values and usual: written by the thread that changed `state` from NOT_OFFERED, before OFFERED. */
struct parameter {
    const char *name, *word; /* control point; in INVASIVE_TUNE */
    /* enum state.  OFFERED is stored with release; partner: the acquire in begin_next.  Writers:
     * inv_tuning_offer, inv_tuning_keep_team, and the thread that tells of iterations */
    _Atomic int state;
    int values[VALUES], usual;
    unsigned count;
};

/* Only the thread that has set `busy` reads and writes the rest, but for the parameters. */
static struct {
    atomic_flag busy; /* acquire; release where it is cleared; partner: the next thread */
    enum inv_iteration_source source;
    uint64_t kind;
    unsigned samples, restarts; /* of this kind; of all kinds */
    struct parameter *now; /* SEARCHED; NULL: none */
    struct parameter parameter[INV_TUNED_PARAMETERS];
} search = {.busy = ATOMIC_FLAG_INIT,
            .parameter = {[INV_TUNED_TEAM] = {.name = "omp.team", .word = "team"},
                          [INV_TUNED_SPIN] = {.name = "wait.spin", .word = "spin"},
                          [INV_TUNED_POLL] = {.name = "mpi.poll", .word = "poll"}}};

/* Is the word in the list, which has commas between words? */
static bool lists(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

void inv_tuning_begin(void)
{
    const char *list = inv_getenv("INVASIVE_TUNE");
    for (int i = 0; list && i < INV_TUNED_PARAMETERS; i++)
        if (lists(list, search.parameter[i].word))
            inv_tuning.asked |= UINT32_C(1) << i;
    inv_tuning_offer_percent(INV_TUNED_SPIN);
}

void inv_tuning_offer(enum inv_tuned which, const int *values, unsigned count, int usual)
{
    struct parameter *p = &search.parameter[which];
    inv_assert(count >= 2 && count <= VALUES);
    int state = NOT_OFFERED;
    if (!(inv_tuning.asked >> which & 1) ||
        !atomic_compare_exchange_strong(&p->state, &state, DONE)) /* no search begins meanwhile */
        return;
    memcpy(p->values, values, count * sizeof *values);
    p->count = count;
    p->usual = usual;
    atomic_store_explicit(&p->state, OFFERED, memory_order_release);
}

void inv_tuning_offer_percent(enum inv_tuned which)
{
    static const int percent[] = {25, 50, 100, 200, 400}; /* percent_in has the same bounds */
    inv_tuning_offer(which, percent, sizeof percent / sizeof *percent, 100);
}

/* --- values in use */

/* The word of a slot: the team, and percents in units of UNIT; 0: all are the usual ones. */
static uint32_t word_of(uint32_t team, uint32_t spin, uint32_t poll)
{
    return team | spin / UNIT << 16 | poll / UNIT << 24;
}

static void use(enum inv_tuned which, uint32_t value)
{
    _Atomic uint32_t *all = inv_tuning.value;
    atomic_store_explicit(&all[which], value, memory_order_relaxed);
    uint32_t word = word_of(atomic_load_explicit(&all[INV_TUNED_TEAM], memory_order_relaxed),
                            atomic_load_explicit(&all[INV_TUNED_SPIN], memory_order_relaxed),
                            atomic_load_explicit(&all[INV_TUNED_POLL], memory_order_relaxed));
    atomic_store_explicit(&inv_own_slot()->tuned, word, memory_order_relaxed);
}

/* A team of the usual size is 0, so that a rank whose usual size is another one keeps it. */
static void use_found(const struct parameter *p, int value)
{
    enum inv_tuned which = (enum inv_tuned)(p - search.parameter);
    use(which, which == INV_TUNED_TEAM && value == p->usual ? 0 : (uint32_t)value);
}

void inv_tuning_keep_team(void)
{
    struct parameter *p = &search.parameter[INV_TUNED_TEAM];
    if (atomic_exchange(&p->state, DONE) != DONE)
        atomic_store_explicit(&inv_tuning.value[INV_TUNED_TEAM], 0, memory_order_relaxed);
}

static uint32_t percent_in(uint32_t units)
{
    uint32_t percent = (units & 0xff) * UNIT;
    return percent >= 25 && percent <= 400 ? percent : 100;
}

/* The word is another process's, and may be any. */
void inv_tuning_follow(unsigned slot)
{
    uint32_t word = atomic_load_explicit(&inv_slot_at(inv_process.table, slot)->tuned, memory_order_relaxed);
    _Atomic uint32_t *all = inv_tuning.value;
    bool allowed = atomic_load_explicit(&search.parameter[INV_TUNED_TEAM].state, memory_order_relaxed) == OFFERED;
    uint32_t team = allowed ? word & 0xffff : 0;
    atomic_store_explicit(&all[INV_TUNED_TEAM], team, memory_order_relaxed);
    atomic_store_explicit(&all[INV_TUNED_SPIN], percent_in(word >> 16), memory_order_relaxed);
    atomic_store_explicit(&all[INV_TUNED_POLL], percent_in(word >> 24), memory_order_relaxed);
}

/* --- searches */

/* Begins the next search; none: all that has been offered is done. */
static void begin_next(void)
{
    for (int i = 0; i < INV_TUNED_PARAMETERS && !search.now; i++) {
        struct parameter *p = &search.parameter[i];
        int state = OFFERED;
        if (atomic_load_explicit(&p->state, memory_order_acquire) != OFFERED ||
            !inv_control_begin(p->name, p->values, p->count, p->usual))
            continue;
        if (atomic_compare_exchange_strong(&p->state, &state, SEARCHED))
            search.now = p;
    }
}

/* False: the search goes on. */
static bool search_ends(struct parameter *p, uint64_t ns)
{
    int value = p->usual;
    if (atomic_load_explicit(&p->state, memory_order_relaxed) == DONE) { /* inv_tuning_keep_team */
        use(INV_TUNED_TEAM, 0);
        return true;
    }
    bool settled = inv_control_add(p->name, ns, &value);
    use_found(p, value);
    if (settled)
        atomic_store_explicit(&p->state, DONE, memory_order_relaxed);
    return settled;
}

/* What was measured cannot be compared with what comes.  After some restarts the parameter keeps its usual value. */
static void begin_anew(enum inv_iteration_source source, uint64_t kind)
{
    struct parameter *p = search.now;
    int state = SEARCHED;
    search.source = source;
    search.kind = kind;
    search.samples = 0;
    search.now = NULL;
    if (!p)
        return;
    use_found(p, p->usual);
    atomic_compare_exchange_strong(&p->state, &state, ++search.restarts > RESTARTS ? DONE : OFFERED);
}

static void add(enum inv_iteration_source source, uint64_t kind, uint64_t ns)
{
    if (source < search.source)
        return;
    if (source > search.source || kind != search.kind)
        begin_anew(source, kind);
    if (++search.samples <= WARM)
        return;
    if (search.now && search_ends(search.now, ns))
        search.now = NULL;
    if (!search.now)
        begin_next();
}

void inv_tuning_add(enum inv_iteration_source source, uint64_t kind, uint64_t ns)
{
    if (!inv_is_tuned() || !inv_managed() ||
        atomic_flag_test_and_set_explicit(&search.busy, memory_order_acquire))
        return;
    add(source, kind, ns);
    atomic_flag_clear_explicit(&search.busy, memory_order_release);
}
