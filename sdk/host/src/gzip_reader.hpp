// GzipReader: a file that may be compressed by gzip, read as what is in it.
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

// All throw DataError, "[reader] file: expected ..., got ...".
class GzipReader {
public:
    // reader: whose name errors bear. A file that ends in .gz has to be compressed.
    GzipReader(const std::filesystem::path& file, std::string reader);

    // So many bytes, which are `what`. Memory grows with what arrives: a size that the file has of
    // itself may be wrong.
    std::vector<std::uint8_t> read(std::uint64_t size, const std::string& what);
    void expect_end();  // nothing may follow
    // Fills `to` and returns its size; less only at the end of the file.
    std::size_t read_some(std::span<char> to, const std::string& what = "readable data");

    // The most bytes that can be in the file.
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
