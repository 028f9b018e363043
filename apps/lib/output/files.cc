// SPDX-License-Identifier: GPL-3.0-or-later
// files.cc - see files.h.
#include "files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fcntl.h>
#include <unistd.h>
#include "failure.h"

namespace apps {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const std::string &tried, const std::string &path, int error)
{
    throw OutputError("cannot " + tried + " " + path + ": " + std::strerror(error));
}

class Descriptor {
public:
    Descriptor(const std::string &path, int flags, const char *tried)
        : number(open(path.c_str(), flags | O_CLOEXEC, 0666))
    {
        if (number < 0)
            fail(tried, path, errno);
    }
    ~Descriptor() { close(number); }
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    const int number;
};

void write_all(const std::string &path, const std::string &contents)
{
    Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC, "create");
    std::size_t done = 0;
    while (done < contents.size()) {
        ssize_t n = write(file.number, contents.data() + done, contents.size() - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            fail("write", path, errno);
        done += static_cast<std::size_t>(n);
    }
}

bool may(const fs::path &path, int mode)
{
    return faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

} // namespace

void make_directories(const std::string &path)
{
    std::error_code error;
    fs::create_directories(path, error);
    if (error)
        fail("make directory", path, error.value());
}

void expect_writable(const std::string &path)
{
    std::error_code none;
    if (fs::is_directory(path, none))
        fail("write", path, EISDIR);
    const fs::path above = fs::path(path).parent_path();
    const bool allowed = fs::exists(path, none) ? may(path, W_OK)
                                                : may(above.empty() ? "." : above, W_OK | X_OK);
    if (!allowed)
        fail("write", path, errno);
}

void expect_directory(const std::string &path)
{
    std::error_code none;
    fs::path above = fs::absolute(path);
    while (!fs::exists(above, none) && above.has_relative_path())
        above = above.parent_path();
    if (!fs::is_directory(above, none))
        fail("make directory", path, ENOTDIR);
    if (!may(above, W_OK | X_OK))
        fail("write into directory", above.string(), errno);
}

void remove_file(const std::string &path)
{
    std::error_code error;
    fs::remove(path, error);
    if (error && error != std::errc::no_such_file_or_directory)
        fail("remove", path, error.value());
}

std::string temporary_name(const std::string &path) { return path + ".tmp"; }

void sync_path(const std::string &path)
{
    Descriptor file(path, O_RDONLY, "open");
    // Some file systems have nothing to wait for, and say EINVAL.
    if (fsync(file.number) != 0 && errno != EINVAL)
        fail("write", path, errno);
}

void move_into_place(const std::string &path)
{
    const std::string temporary = temporary_name(path);
    sync_path(temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0)
        fail("rename " + temporary + " to", path, errno);
}

Temporary::~Temporary() { unlink(name.c_str()); }

void write_whole_file(const std::string &path, const std::string &contents)
{
    const Temporary temporary(path);
    write_all(temporary_name(path), contents);
    move_into_place(path);
}

std::string read_whole_file(const std::string &path)
{
    Descriptor file(path, O_RDONLY, "open");
    std::string contents;
    char piece[65536];
    for (;;) {
        ssize_t n = read(file.number, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            fail("read", path, errno);
        if (n == 0)
            return contents;
        contents.append(piece, static_cast<std::size_t>(n));
    }
}

} // namespace apps
