/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sensors.c - sensors ROOT: looks at the sensors below ROOT at each time that it reads, in seconds,
 * and prints how many could be read, are missing, the highest temperature, and whether these are
 * other sensors than before; then the same for each of several chips.  "forget": gives up those that are missing.  The log is on stderr.
 */
#include "rmd/loop/log.h"
#include "rmd/power/sensors.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static struct rmd_sensors s;
    static struct rmd_chips chips;
    char line[32];
    if (argc != 2)
        return 64;
    rmd_log_set_level(RMD_NOTICE);
    rmd_chips_find(&chips, argv[1]);
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'f')
            rmd_sensors_forget_missing(&s);
        else
            rmd_sensors_look(&s, argv[1], &chips, strtoull(line, NULL, 10) * 1000000000);
        printf("%u %u %.0f %d", s.all.read, s.all.missing, s.all.hottest, s.all.changed);
        for (unsigned i = 0; i < chips.count && chips.count > 1; i++)
            printf(" %u %u %.0f %d", s.chip[i].read, s.chip[i].missing, s.chip[i].hottest,
                   s.chip[i].changed);
        putchar('\n');
        fflush(stdout);
    }
    return 0;
}
