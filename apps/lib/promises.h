// SPDX-License-Identifier: GPL-3.0-or-later
// promises.h - a test program is a list of promises.  --list prints their names, a name checks that
// one, nothing checks all; the program returns 1 when one is broken, and says what was expected.
#ifndef APPS_LIB_PROMISES_H
#define APPS_LIB_PROMISES_H

#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace apps {

// Counts what fails in one promise.
class Check {
public:
    void that(bool holds, const std::string &what)
    {
        if (!holds && failures_++ < 10)
            std::printf("    broken: %s\n", what.c_str());
    }
    void near(double value, double expected, double tolerance, const std::string &what)
    {
        that(std::fabs(value - expected) <= tolerance, what + ": " + text(value) + ", expected " +
                                                           text(expected) + " within " +
                                                           text(tolerance));
    }
    void at_most(double value, double bound, const std::string &what)
    {
        that(value <= bound, // not if it is no number
             what + ": " + text(value) + ", expected at most " + text(bound));
    }
    void contains(const std::string &message, const std::string &part)
    {
        that(message.find(part) != std::string::npos,
             "\"" + message + "\" does not say \"" + part + '"');
    }
    int failures() const { return failures_; }

    static std::string text(double value)
    {
        char digits[40];
        std::snprintf(digits, sizeof digits, "%.17g", value);
        return digits;
    }

private:
    int failures_ = 0;
};

struct Promise {
    const char *name;
    void (*check)(Check &);
};

inline bool kept(const Promise &promise)
{
    Check check;
    try {
        promise.check(check);
    } catch (const std::exception &e) {
        check.that(false, std::string("exception: ") + e.what());
    }
    std::printf("%s: %s\n", promise.name, check.failures() ? "BROKEN" : "kept");
    return !check.failures();
}

inline int run_promises(int argc, char **argv, const std::vector<Promise> &promises)
{
    bool list = argc > 1 && !std::strcmp(argv[1], "--list"), all = true, known = argc < 2 || list;
    for (const Promise &promise : promises) {
        if (list)
            std::puts(promise.name);
        else if (argc < 2 || !std::strcmp(argv[1], promise.name)) {
            known = true;
            all = kept(promise) && all;
        }
    }
    if (!known)
        std::printf("%s: no such promise; see --list\n", argv[1]);
    return all && known ? 0 : 1;
}

} // namespace apps
#endif
