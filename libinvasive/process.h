/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * process.h - this process as a member of a domain: joining it, the cores that its threads hold,
 * and waiting.  All of it, for the OpenMP runtime and the MPI shim, which do not know each other; files of
 * libinvasive include the headers that they need.
 */
#ifndef INV_PROCESS_H
#define INV_PROCESS_H

#include "libinvasive/base/environment.h"
#include "libinvasive/base/now.h"
#include "libinvasive/hold/hold.h"
#include "libinvasive/hold/parked.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/hold/wait.h"
#include "libinvasive/hold/want.h"
#include "libinvasive/member/join.h"
#include "libinvasive/member/manager.h"
#include "libinvasive/member/ranks.h"
#include "libinvasive/record/record.h"
#include "libinvasive/member/remote_report.h"
#include "libinvasive/record/tuning.h"
#include "libinvasive/process/background.h"
#include "libinvasive/process/holdings.h"
#include "libinvasive/process/openmp.h"
#include "libinvasive/process/others.h"
#include "libinvasive/process/state.h"
#include "libinvasive/process/thread.h"
#include "libinvasive/process/triggers.h"
#include "libinvasive/table/core.h"
#include "libinvasive/table/trace.h"

#endif
