/* SPDX-License-Identifier: GPL-3.0-or-later */
/* share.c - see share.h. */
#include "rmd/users/share.h"
#include "libinvasive/base/assertion.h"

#include <stdbool.h>

/* Gives one unit in turn to each share that may have another.  In the last turn, shares that have
 * one more already come first, so that no unit moves for nothing. */
static void divide_equally(struct rmd_share *share, unsigned n, unsigned left)
{
    unsigned hungry;
    do {
        hungry = 0;
        for (unsigned i = 0; i < n; i++)
            hungry += share[i].units < share[i].most;
        bool last = left < hungry;
        for (int keeps = 1; keeps >= 0; keeps--)
            for (unsigned i = 0; i < n && left; i++) {
                bool has = share[i].has > share[i].units;
                if (share[i].units == share[i].most || (last && has != keeps) || (!last && !keeps))
                    continue;
                inv_assert(share[i].units < share[i].most);
                share[i].units++;
                left--;
            }
    } while (hungry && left);
}

/* Lists the persons, in the order of their first users.  Returns how many there are. */
static unsigned group_by_person(const struct rmd_share *share, unsigned n, struct rmd_share *person)
{
    unsigned persons = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned p = 0;
        while (p < persons && person[p].person != share[i].person)
            p++;
        if (p == persons)
            person[persons++] = (struct rmd_share){.person = share[i].person,
                                                   .person_most = share[i].person_most};
        person[p].most += share[i].most;
        person[p].has += share[i].has;
    }
    for (unsigned p = 0; p < persons; p++)
        if (person[p].most > person[p].person_most)
            person[p].most = person[p].person_most;
    return persons;
}

/* Divides the person's share among its users. */
static void divide_in_person(struct rmd_share *share, unsigned n, const struct rmd_share *person)
{
    struct rmd_share own[RMD_SHARES_MAX];
    unsigned at[RMD_SHARES_MAX], ids = 0;
    for (unsigned i = 0; i < n; i++)
        if (share[i].person == person->person) {
            at[ids] = i;
            own[ids++] = share[i];
        }
    divide_equally(own, ids, person->units);
    for (unsigned k = 0; k < ids; k++)
        share[at[k]].units = own[k].units;
}

void rmd_share_units(struct rmd_share *share, unsigned n, unsigned units)
{
    struct rmd_share person[RMD_SHARES_MAX];
    unsigned persons = group_by_person(share, n, person);
    inv_assert(persons <= n && n <= RMD_SHARES_MAX);
    divide_equally(person, persons, units);
    for (unsigned p = 0; p < persons; p++)
        divide_in_person(share, n, &person[p]);
}
