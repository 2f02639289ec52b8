// GzipReader: reads a file, and decompresses it if it is compressed by gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct gzFile_s;

namespace catena {

// All functions throw DataError, "[reader] file: expected ..., got ...".
class GzipReader {
public:
    // reader: the name in error messages. A file named *.gz must be compressed.
    GzipReader(const std::filesystem::path& file, std::string reader);

    // Returns the next `size` bytes, which messages call `what`. Memory grows only as data arrives,
    // because a size that is stored in the file may be wrong.
    std::vector<std::uint8_t> read(std::uint64_t size, const std::string& what);
    void expect_end();  // throws if more bytes follow
    // Fills `to` and returns the number of bytes: less than its size only at the end of the file.
    std::size_t read_some(std::span<char> to, const std::string& what = "readable data");

    // Returns an upper bound for the number of bytes after decompression.
    std::uint64_t limit() const noexcept;
    [[noreturn]] void fail(const std::string& expected, const std::string& got) const;

private:
    std::string zlib_error() const;

    std::string name_;
    std::string reader_;
    std::uint64_t file_size_ = 0;
    bool compressed_ = false;
    std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file_;
};

}  // namespace catena
