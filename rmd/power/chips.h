/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * chips.h - which chip (package) a CPU is in.  Each chip has a temperature and a speed of its own
 * (thermal.h).
 */
#ifndef RMD_CHIPS_H
#define RMD_CHIPS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RMD_CHIPS = 64,       /* that are told apart; CPUs of further ones are in none */
    RMD_CHIP_CPUS = 1024, /* CPUs with higher numbers are in no chip */
    RMD_NO_CHIP = 255,
};

/* Zeros at first. */
struct rmd_chips {
    unsigned count; /* 1..RMD_CHIPS after rmd_chips_find */
    bool known;     /* false: no CPU tells its chip, so all are taken for one chip */
    uint32_t package[RMD_CHIPS]; /* the kernel's number of each chip */
    unsigned char of_cpu[RMD_CHIP_CPUS]; /* index of the CPU's chip, or RMD_NO_CHIP */
};

/* Reads ROOT/sys/devices/system/cpu/cpuN/topology/physical_package_id.  A CPU that is offline has no
 * such file, and stays in the chip that it was found in.  Chips keep their index. */
void rmd_chips_find(struct rmd_chips *chips, const char *root);
/* The index of the chip with the kernel's number `package`, or RMD_NO_CHIP. */
unsigned rmd_chips_of_package(const struct rmd_chips *chips, uint64_t package);
/* The index of the only chip that has CPUs of the list in the file `path`, such as 0-3,8; or
 * RMD_NO_CHIP. */
unsigned rmd_chips_of_cpu_list(const struct rmd_chips *chips, const char *path);

static inline unsigned rmd_chips_of_cpu(const struct rmd_chips *chips, int cpu)
{
    return cpu >= 0 && cpu < RMD_CHIP_CPUS ? chips->of_cpu[cpu] : RMD_NO_CHIP;
}

#endif
