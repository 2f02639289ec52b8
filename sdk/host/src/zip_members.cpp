// The directory of a zip file, which libzip reads but does not show. The format is PKWARE's
// APPNOTE.TXT, 4.3 and 4.5.3.
#include "zip_members.hpp"

#include <catena/data_error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>

namespace catena {
namespace {

constexpr std::uint64_t end_size = 22, locator_size = 20, end64_size = 56;
constexpr std::uint64_t record_size = 46, header_size = 30;
constexpr std::uint64_t in_extra = 0xffffffff;  // in place of a number that needs 64 bits

// A number in little endian. The caller has checked that it is there.
std::uint64_t number(std::string_view text, std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(text[at + i]);
    return value;
}

class Directory {
public:
    explicit Directory(const std::filesystem::path& file)
        : file_(file), in_(file, std::ios::binary) {
        std::error_code error;
        size_ = std::filesystem::file_size(file, error);
        if (error) fail("a file", error.message());
        find();
    }

    std::vector<ZipMember> members() {
        const std::string all = read(begin_, bytes_, "a directory");
        std::string_view rest = all;
        std::vector<ZipMember> members;
        for (std::uint64_t i = 0; i < count_; ++i) {
            if (!rest.starts_with("PK\1\2") || rest.size() < record_size) damaged();
            const std::uint64_t name = number(rest, 28, 2), extra = number(rest, 30, 2);
            const std::uint64_t whole = record_size + name + extra + number(rest, 32, 2);
            if (rest.size() < whole) damaged();
            members.push_back(member(rest, rest.substr(record_size, name),
                                     rest.substr(record_size + name, extra)));
            rest.remove_prefix(whole);
        }
        return members;
    }

private:
    [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
        throw DataError(
            fmt::format("[npz] {}: expected {}, got {}", file_.string(), expected, got));
    }
    [[noreturn]] void damaged() const { fail("a directory of members", "a damaged one"); }

    std::string read(std::uint64_t at, std::uint64_t bytes, const char* what) {
        std::string text;
        const bool there = at <= size_ && bytes <= size_ - at;
        if (there) text.resize(bytes);
        if (!there || !in_.seekg(static_cast<std::streamoff>(at)) ||
            !in_.read(text.data(), static_cast<std::streamsize>(bytes)))
            fail(fmt::format("{} of {} bytes at {}", what, bytes, at), "the end of the file");
        return text;
    }

    // The record at the end of the file, behind which is a comment of at most 2^16 bytes.
    void find() {
        const std::uint64_t tail = std::min<std::uint64_t>(size_, end_size + 0xffff);
        const std::string text = read(size_ - tail, tail, "an end");
        const std::size_t at = tail < end_size ? text.npos : text.rfind("PK\5\6", tail - end_size);
        if (at == text.npos) fail("a zip archive of arrays", "a file without a directory");
        count_ = number(text, at + 10, 2);
        bytes_ = number(text, at + 12, 4);
        begin_ = number(text, at + 16, 4);
        const std::uint64_t end = size_ - tail + at;
        if (end < locator_size) return;
        const std::string locator = read(end - locator_size, locator_size, "a locator");
        if (!locator.starts_with("PK\6\7")) return;
        const std::string end64 = read(number(locator, 8, 8), end64_size, "an end of 64 bits");
        if (!end64.starts_with("PK\6\6")) damaged();
        count_ = number(end64, 32, 8);
        bytes_ = number(end64, 40, 8);
        begin_ = number(end64, 48, 8);
    }

    ZipMember member(std::string_view record, std::string_view name, std::string_view extra) {
        std::uint64_t size = number(record, 24, 4);
        ZipMember found{std::string(name), number(record, 20, 4), number(record, 42, 4), 0};
        while (extra.size() >= 4) {
            const std::uint64_t id = number(extra, 0, 2);
            std::string_view field = extra.substr(4, number(extra, 2, 2));
            extra.remove_prefix(4 + field.size());
            if (id != 1) continue;
            for (std::uint64_t* value : {&size, &found.packed, &found.begin}) {
                if (*value != in_extra) continue;
                if (field.size() < 8) damaged();
                *value = number(field, 0, 8);
                field.remove_prefix(8);
            }
            break;
        }
        const std::string header = read(found.begin, header_size, "the header of a member");
        if (!header.starts_with("PK\3\4")) damaged();
        const std::uint64_t data =
            found.begin + header_size + number(header, 26, 2) + number(header, 28, 2);
        if (data > begin_ || found.packed > begin_ - data)
            fail("members before the directory", fmt::format("{} at {}", name, found.begin));
        found.end = data + found.packed;
        return found;
    }

    const std::filesystem::path& file_;
    std::ifstream in_;
    std::uint64_t size_ = 0, begin_ = 0, bytes_ = 0, count_ = 0;
};

}  // namespace

std::vector<ZipMember> zip_members(const std::filesystem::path& file) {
    return Directory(file).members();
}

}  // namespace catena
