/* SPDX-License-Identifier: GPL-3.0-or-later */
/* smt.h - how the hardware threads of a physical core are used, and the names of these ways for rmd
 * and invade. */
#ifndef RMD_SMT_H
#define RMD_SMT_H

enum rmd_smt {
    RMD_SMT_EACH, /* every hardware thread is a core of its own */
    RMD_SMT_CORE, /* the threads of a physical core go together */
    RMD_SMT_FIRST /* only the first thread of each is used: the topology has no other */
};

/* All names, for messages. */
#define RMD_SMT_NAMES "each, core or first"

/* The enum rmd_smt of this name, or -1: there is none. */
int rmd_smt_named(const char *name);

#endif
