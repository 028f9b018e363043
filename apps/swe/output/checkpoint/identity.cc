// SPDX-License-Identifier: GPL-3.0-or-later
// identity.cc - see identity.h.
#include "identity.h"

#include <sstream>
#include "../../../lib/output/failure.h"

namespace swe {

using namespace apps;

namespace {

std::string first_difference(const std::string &there, const std::string &here)
{
    std::istringstream a(there), b(here);
    std::string line_a, line_b;
    for (int line = 1;; line++) {
        const bool more_a = static_cast<bool>(std::getline(a, line_a));
        const bool more_b = static_cast<bool>(std::getline(b, line_b));
        if (!more_a && !more_b)
            return "in line ends";
        if (more_a != more_b || line_a != line_b)
            return "line " + std::to_string(line) + " is '" + (more_a ? line_a : "") +
                   "' there and '" + (more_b ? line_b : "") + "' now";
    }
}

} // namespace

const char *const MOVE_IT_AWAY = "; move it away to begin a new one, or set output.directory";

void expect_same(const std::string &path, const std::string &what, const std::string &there,
                 const std::string &here, const std::string &advice)
{
    if (there != here)
        throw OutputError(path + ": written with another " + what + ": " +
                          first_difference(there, here) + advice);
}

void fail_without_identity(const std::string &path, const std::string &advice)
{
    throw OutputError(path + ": does not say which simulation it is of, as files of earlier "
                             "versions do not" +
                      advice);
}

} // namespace swe
