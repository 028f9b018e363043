// SPDX-License-Identifier: GPL-3.0-or-later
// manifest.cc - see manifest.h.
#include "manifest.h"

#include <sstream>
#include <zlib.h>
#include "../../../lib/output/failure.h"

namespace swe {

using namespace apps;

namespace {

const char *const TITLE = "swe checkpoint 1";

} // namespace

std::uint64_t crc_of(const std::string &bytes)
{
    return crc32_z(0, reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size());
}

std::string Manifest::text() const
{
    std::ostringstream out;
    out << TITLE << "\nstep " << step << "\nranks " << files.size() << "\n";
    for (std::size_t rank = 0; rank < files.size(); rank++)
        out << "file " << rank << " " << files[rank].size << " " << files[rank].crc << "\n";
    const std::string lines = out.str();
    return lines + "crc " + std::to_string(crc_of(lines)) + "\n";
}

Manifest Manifest::parse(const std::string &path, const std::string &text)
{
    // Reading is lenient; that the text is what such a manifest would be is asked once, at the end.
    Manifest manifest;
    std::istringstream in(text);
    std::string word;
    std::getline(in, word);
    if (word != TITLE)
        throw OutputError(path +
                          ": not the manifest of a checkpoint of this version: its first "
                          "line is not '" +
                          TITLE + "'");
    std::size_t ranks = 0, rank;
    in >> word >> manifest.step >> word >> ranks;
    File file;
    while (in && manifest.files.size() < ranks && in >> word >> rank >> file.size >> file.crc)
        manifest.files.push_back(file);
    if (manifest.files.empty() || manifest.text() != text)
        throw OutputError(path + ": damaged: the check sum is not that of the lines");
    return manifest;
}

} // namespace swe
