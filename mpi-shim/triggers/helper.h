/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* helper.h - the thread that tests requests where no other thread does (helper.c). */
#ifndef TRIGGERS_HELPER_H
#define TRIGGERS_HELPER_H

/* Something is pending: wakes the thread, which the first call makes.  Any thread. */
void triggers_helper_call(void);
/* Ends the thread, if it was made. */
void triggers_helper_end(void);

#endif
