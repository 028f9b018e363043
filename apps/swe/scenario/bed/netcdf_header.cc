// SPDX-License-Identifier: GPL-3.0-or-later
// netcdf_header.cc - see netcdf_header.h.
#include "netcdf_header.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

namespace swe {
namespace {

constexpr std::uint64_t MOST_LISTED = 8192; // dimensions, attributes, variables
constexpr std::uint64_t LONGEST_NAME = 256; // bytes
constexpr std::uint64_t LONGEST_DIMENSION = std::uint64_t{1} << 40;
constexpr std::uint32_t DIMENSIONS = 10, VARIABLES = 11, ATTRIBUTES = 12; // tags of lists
constexpr int TYPES = 12;
constexpr unsigned TYPE_BYTES[TYPES] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
constexpr int CLASSIC_TYPES = 7; // of which CDF-1 and CDF-2 have so many

struct Problem {
    std::string what;
};

struct Variable {
    std::string name;
    std::uint64_t bytes, begin; // of a record, if it has records
    bool records;
};

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 3) & ~std::uint64_t{3}; }

class Header {
public:
    explicit Header(const std::string &file) : in_(file, std::ios::binary)
    {
        if (!in_)
            throw Problem{std::strerror(errno)};
        in_.seekg(0, std::ios::end);
        if (!in_ || in_.tellg() < 0)
            throw Problem{"cannot be read"};
        size_ = static_cast<std::uint64_t>(in_.tellg());
        in_.seekg(0);
    }

    void read()
    {
        char magic[4] = {};
        bytes(magic, 4, "signature");
        if (!std::memcmp(magic, "\x89HDF", 4))
            return;
        version_ = magic[3];
        if (std::memcmp(magic, "CDF", 3) || (version_ != 1 && version_ != 2 && version_ != 5))
            throw Problem{
                "NetCDF: unknown file format: the file begins neither with CDF nor with HDF"};
        records_ = count();
        list(DIMENSIONS, "dimensions", [this] { dimension(); });
        attributes();
        list(VARIABLES, "variables", [this] { variable(); });
        extents();
    }

    // So many records are in the file, of those that the header tells of.
    std::uint64_t whole_records() const { return whole_; }

    void expect_all_records() const
    {
        const std::uint64_t from_one_to_next = stride();
        for (const Variable &v : variables_)
            if (v.records &&
                (v.begin > size_ || records_of(v, from_one_to_next) < records_))
                cut_off(v);
    }

private:
    std::ifstream in_;
    std::uint64_t size_ = 0, at_ = 0, records_ = 0, whole_ = UINT64_MAX;
    int version_ = 0;
    std::vector<std::uint64_t> dimensions_;
    std::vector<Variable> variables_;

    [[noreturn]] void fail(const std::string &what) const
    {
        throw Problem{"NetCDF header, byte " + std::to_string(at_) + ": " + what};
    }

    void room(std::uint64_t many, const std::string &what) const
    {
        if (many > size_ - at_)
            fail("cut off in " + what + ": the file has " + std::to_string(size_) + " bytes");
    }
    void bytes(char *to, std::uint64_t many, const std::string &what)
    {
        room(many, what);
        if (!in_.read(to, static_cast<std::streamsize>(many)))
            fail("cannot be read");
        at_ += many;
    }
    void skip(std::uint64_t many, const std::string &what)
    {
        room(many, what);
        at_ += many;
        in_.seekg(static_cast<std::streamoff>(at_));
    }

    // Numbers are big-endian.
    std::uint64_t number(int width)
    {
        unsigned char digits[8];
        std::uint64_t value = 0;
        bytes(reinterpret_cast<char *>(digits), static_cast<std::uint64_t>(width), "the header");
        for (int i = 0; i < width; i++)
            value = value << 8 | digits[i];
        return value;
    }
    std::uint64_t count() { return number(version_ == 5 ? 8 : 4); }

    std::string name()
    {
        std::uint64_t length = count();
        if (length == 0 || length > LONGEST_NAME)
            fail("a name of " + std::to_string(length) + " bytes");
        std::string text(padded(length), '\0');
        bytes(text.data(), text.size(), "a name");
        text.resize(length);
        auto bad = [](char c) {
            return static_cast<unsigned char>(c) < 32 || c == 127 || c == '/';
        };
        if (std::any_of(text.begin(), text.end(), bad))
            fail("a name with control characters");
        return text;
    }

    int type()
    {
        std::uint64_t type = number(4);
        if (type == 0 || type >= static_cast<std::uint64_t>(version_ == 5 ? TYPES : CLASSIC_TYPES))
            fail("no type " + std::to_string(type));
        return static_cast<int>(type);
    }

    template <class Each> void list(std::uint32_t tag, const char *what, const Each &each)
    {
        std::uint64_t found = number(4), many = count();
        if (!(found == tag || (found == 0 && many == 0)) || many > MOST_LISTED)
            fail("a list of " + std::string(what) + " was expected, of " +
                 std::to_string(MOST_LISTED) + " at most");
        for (std::uint64_t i = 0; i < many; i++)
            each();
    }

    std::set<std::string> dimension_names_, variable_names_;

    void dimension()
    {
        if (!dimension_names_.insert(name()).second)
            fail("two dimensions of one name");
        std::uint64_t length = count();
        if (length > LONGEST_DIMENSION ||
            (length == 0 && std::count(dimensions_.begin(), dimensions_.end(), 0u)))
            fail("a dimension of " + std::to_string(length));
        dimensions_.push_back(length);
    }

    void attributes()
    {
        std::set<std::string> names;
        list(ATTRIBUTES, "attributes", [this, &names] {
            if (!names.insert(name()).second)
                fail("two attributes of one name");
            unsigned each = TYPE_BYTES[type()];
            std::uint64_t many = count();
            room(many, "an attribute"); // so that the product is no more than a file can be
            skip(padded(many * each), "an attribute");
        });
    }

    void variable()
    {
        Variable v{name(), 1, 0, false};
        if (!variable_names_.insert(v.name).second)
            fail("two variables of one name");
        std::uint64_t many = count();
        if (many > dimensions_.size() + MOST_LISTED)
            fail("variable " + v.name + " has " + std::to_string(many) + " dimensions");
        for (std::uint64_t i = 0; i < many; i++) {
            std::uint64_t id = count();
            if (id >= dimensions_.size() || (dimensions_[id] == 0 && i > 0))
                fail("variable " + v.name + ": no dimension " + std::to_string(id) + " here");
            if (dimensions_[id] == 0)
                v.records = true;
            else if (__builtin_mul_overflow(v.bytes, dimensions_[id], &v.bytes))
                fail("variable " + v.name + " is larger than any file");
        }
        attributes();
        if (__builtin_mul_overflow(v.bytes, TYPE_BYTES[type()], &v.bytes) || v.bytes > INT64_MAX)
            fail("variable " + v.name + " is larger than any file");
        count(); // its size again, which the format says not to rely on
        v.begin = number(version_ == 1 ? 4 : 8);
        variables_.push_back(v);
    }

    // From one record to the next, bytes.
    std::uint64_t stride() const
    {
        std::uint64_t record = 0, only = 0, kinds = 0;
        for (const Variable &v : variables_)
            if (v.records) {
                kinds++;
                only = v.bytes;
                if (__builtin_add_overflow(record, padded(v.bytes), &record))
                    fail("records are larger than any file");
            }
        return kinds == 1 ? only : record;
    }

    // How many of its records end in the file.
    std::uint64_t records_of(const Variable &v, std::uint64_t from_one_to_next) const
    {
        if (v.begin > size_ || v.bytes > size_ - v.begin)
            return 0;
        if (from_one_to_next == 0) // nothing is in them
            return records_;
        return std::min(records_, (size_ - v.begin - v.bytes) / from_one_to_next + 1);
    }

    // Is all of every variable in the file, after the header?  Of records, how many are?
    void extents()
    {
        const std::uint64_t from_one_to_next = stride();
        for (const Variable &v : variables_) {
            if (v.begin < at_ || (!v.records && (v.begin > size_ || v.bytes > size_ - v.begin)))
                cut_off(v);
            if (v.records)
                whole_ = std::min(whole_, records_of(v, from_one_to_next));
        }
        whole_ = std::min(whole_, records_);
    }

    [[noreturn]] void cut_off(const Variable &v) const
    {
        const std::string many = v.records ? std::to_string(records_) + " records of " : "";
        throw Problem{"variable " + v.name + ": cut off, or its place is wrong: " + many +
                      std::to_string(v.bytes) + " bytes from byte " + std::to_string(v.begin) +
                      " on, of a file of " + std::to_string(size_)};
    }
};

} // namespace

std::string netcdf_problem(const std::string &file)
{
    try {
        Header header(file);
        header.read();
        header.expect_all_records();
        return "";
    } catch (const Problem &problem) {
        return problem.what;
    }
}

std::string netcdf_problem(const std::string &file, std::uint64_t *records)
{
    try {
        Header header(file);
        header.read();
        *records = header.whole_records();
        return "";
    } catch (const Problem &problem) {
        return problem.what;
    }
}

} // namespace swe
