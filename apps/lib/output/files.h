// SPDX-License-Identifier: GPL-3.0-or-later
// files.h - files that are there as a whole or not at all.
//
// Contents go to a temporary name, to the disk, and only then to their name: a run that is killed,
// or a disk that is full, leaves the file that was there before.
#ifndef APPS_LIB_FILES_H
#define APPS_LIB_FILES_H

#include <string>

namespace apps {

// All of these throw OutputError, with path and reason.

void make_directories(const std::string &path);

// Throw where a file could not be written, or be made in the directory or in the nearest one above
// that is there.  Nothing is changed to find that out; a disk that will be full is not foreseen.
void expect_writable(const std::string &path);
void expect_directory(const std::string &path);

// What a file or directory is called until move_into_place().
std::string temporary_name(const std::string &path);

// Renames temporary_name(path), a file that is written and closed, to path.
void move_into_place(const std::string &path);

// While that file is written: it goes at the end of the scope, if it has not got its name.  A full
// disk has better use for it.
class Temporary {
public:
    explicit Temporary(const std::string &path) : name(temporary_name(path)) {}
    ~Temporary();
    Temporary(const Temporary &) = delete;
    Temporary &operator=(const Temporary &) = delete;

private:
    const std::string name;
};

void write_whole_file(const std::string &path, const std::string &contents);
std::string read_whole_file(const std::string &path);

// Not an error: there is no such file.
void remove_file(const std::string &path);

// Waits until the file or directory is on the disk.
void sync_path(const std::string &path);

} // namespace apps
#endif
