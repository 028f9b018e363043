/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * error.c - messages and fatal errors: upstream's, whose output waits for the first use (use.h).
 */
#include "libgomp.h"
#include "messages.h"
#undef stderr
#define stderr (gomp_messages())
#define exit(status) (gomp_messages_release(), exit(status))
#include <../libgomp/error.c>
