/* SPDX-License-Identifier: GPL-3.0-or-later */
/* smt.h - what is done with the hardware threads of a physical core; its names for rmd and invade. */
#ifndef RMD_SMT_H
#define RMD_SMT_H

enum rmd_smt {
    RMD_SMT_EACH, /* every hardware thread is a core of its own */
    RMD_SMT_CORE, /* the threads of a physical core go together */
    RMD_SMT_FIRST /* only the first thread of each is used: the topology has no other */
};

/* For messages. */
#define RMD_SMT_NAMES "each, core or first"

/* A value of enum rmd_smt, or -1 when it is none of the names. */
int rmd_smt_named(const char *name);

#endif
