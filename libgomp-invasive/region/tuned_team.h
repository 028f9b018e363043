/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tuned_team.h - `invade --tune` in the OpenMP runtime: the size of default teams, and iterations of
 * programs without other ranks (libinvasive/record/tuning.h).
 */
#ifndef GOMP_TUNED_TEAM_H
#define GOMP_TUNED_TEAM_H 1

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* proc.c: the sizes that may be tried in the calling thread, at most GOMP_TEAM_CHOICES, rising, the last of which is
 * the default one.  Returns how many; 1: the program may not allow another size. */
enum { GOMP_TEAM_CHOICES = 5 };
typedef unsigned gomp_team_choices_fn (int sizes[GOMP_TEAM_CHOICES]);
extern gomp_team_choices_fn gomp_team_choices;

/* A region of fn begins, for which `requested` threads are asked for; 0: the default team.  Returns how many are
 * to be asked for.  Tells of a sample of iterations, if one ends here.  choices: gomp_team_choices. */
extern unsigned gomp_tuned_team (void (*fn) (void *), unsigned requested, gomp_team_choices_fn *choices);
/* The program has asked for the size of teams, and may divide its data by it: the size is the default one from now
 * on.  Any thread. */
extern void gomp_tuned_team_is_told (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
