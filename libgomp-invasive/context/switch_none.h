/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * switch_none.h - in place of a switch, on processors that have none here (context.c).
 */
#ifndef GOMP_SWITCH_NONE_H
#define GOMP_SWITCH_NONE_H 1

static void *gomp_context_swap (void **save, void *to, void *carried)
{
    (void)save;
    (void)to;
    return carried;
}

static void *prepare (char *top, void (*first) (void *, void *), void *arg)
{
    (void)first;
    (void)arg;
    return top;
}

static const char *unswitchable (void)
{
    return "the processor";
}

#endif
