/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * env.c - reading the environment: upstream's, whose output waits for the first use (use.h).
 */
#define _GNU_SOURCE /* as upstream has it */
#include "libgomp.h"
#include "messages.h"
#undef stderr
#define stderr (gomp_messages())
#include <../libgomp/env.c>
