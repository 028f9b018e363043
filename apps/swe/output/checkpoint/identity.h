// SPDX-License-Identifier: GPL-3.0-or-later
// identity.h - which simulation a file is of.
//
// Files that a run goes on with have the text that checkpoints have too: all that must be the same
// when one is continued (RankState::configuration).  What of another simulation is left in a
// directory is thereby never gone on with.
#ifndef SWE_OUTPUT_IDENTITY_H
#define SWE_OUTPUT_IDENTITY_H

#include <string>

namespace swe {

// What to do with a file of another simulation.
extern const char *const MOVE_IT_AWAY;

// Throws OutputError with the first line that differs, and the advice, if the texts are not the
// same.  `what`: of what they are.
void expect_same(const std::string &path, const std::string &what, const std::string &there,
                 const std::string &here, const std::string &advice);

// Throws OutputError: the file says nothing about that.
[[noreturn]] void fail_without_identity(const std::string &path, const std::string &advice);

} // namespace swe
#endif
