/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The same as waits_by_hand, with sections beside the loop.
 * @helper
 */
#define SECTIONS
#include "waits_by_hand.c"
