/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * arrival_board.c - reserves neighbouring lines for an arrival board: first fit in a bit map in
 * shared memory.  It claims word by word with compare-and-swap, and gives them back when a
 * neighbouring word turns out to be taken.  Called when communicators are made and freed.
 */
#include "libinvasive/table/arrival_board.h"

/* The bits of word w that belong to lines [first, first + lines). */
static uint64_t bits_of(unsigned w, unsigned first, unsigned lines)
{
    unsigned lo = w * 64 < first ? first - w * 64 : 0;
    unsigned end = first + lines, hi = end >= (w + 1) * 64 ? 64 : end - w * 64;
    inv_assert(lines > 0 && end <= INV_ARRIVAL_LINES && lo < hi && hi <= 64);
    uint64_t below_hi = hi == 64 ? ~UINT64_C(0) : (UINT64_C(1) << hi) - 1;
    return below_hi & ~((UINT64_C(1) << lo) - 1);
}

/* All of the bits or none.  acquire: partner is the release in inv_arrival_board_free, so that our
 * zeros come after what the previous owner wrote. */
static bool claim_bits(_Atomic uint64_t *word, uint64_t bits)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    inv_assert(bits != 0);
    do {
        if (old & bits)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(word, &old, old | bits, memory_order_acquire,
                                                    memory_order_relaxed));
    return true;
}

static void release_bits(struct inv_table *t, unsigned first, unsigned lines)
{
    if (lines == 0)
        return;
    for (unsigned w = first / 64; w <= (first + lines - 1) / 64; w++)
        atomic_fetch_and_explicit(&t->arrival_lines_used[w], ~bits_of(w, first, lines),
                                  memory_order_release);
}

static bool claim_lines(struct inv_table *t, unsigned first, unsigned lines)
{
    for (unsigned w = first / 64; w <= (first + lines - 1) / 64; w++) {
        if (claim_bits(&t->arrival_lines_used[w], bits_of(w, first, lines)))
            continue;
        if (w * 64 > first)
            release_bits(t, first, w * 64 - first);
        return false;
    }
    return true;
}

int inv_arrival_board_alloc(struct inv_table *t, unsigned lines)
{
    if (lines == 0 || lines > INV_ARRIVAL_LINES)
        return -1;
    for (unsigned first = 0; first + lines <= INV_ARRIVAL_LINES; first++) {
        if (!claim_lines(t, first, lines))
            continue;
        for (unsigned i = first; i < first + lines; i++) {
            struct inv_arrival_line *line = inv_arrival_line_at(t, i);
            atomic_store_explicit(&line->count, 0, memory_order_relaxed);
            atomic_store_explicit(&line->slot, 0, memory_order_relaxed);
            atomic_store_explicit(&line->sleeping, 0, memory_order_relaxed);
        }
        inv_assert(first + lines <= INV_ARRIVAL_LINES);
        return (int)first;
    }
    return -1;
}

void inv_arrival_board_free(struct inv_table *t, int first, unsigned lines)
{
    if (first < 0 || lines > INV_ARRIVAL_LINES || (unsigned)first > INV_ARRIVAL_LINES - lines)
        return;
    release_bits(t, (unsigned)first, lines);
}
