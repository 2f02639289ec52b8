// GzipReader: reads a file, and decompresses it by zlib if it is compressed by gzip.
#pragma once

#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/read_file.hpp>

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace catena {

// All functions throw DataError, "[reader] file: expected ..., got ...".
class GzipReader {
public:
    // reader: the name in error messages. A file named *.gz must be compressed.
    GzipReader(const std::filesystem::path& file, std::string reader)
        : name_(file.string()), reader_(std::move(reader)), file_(nullptr, gzclose) {
        require_regular(reader_, file, "a file");
        std::error_code error;
        file_size_ = std::filesystem::file_size(file, error);
        if (error) fail("a file", error.message());
        file_.reset(gzopen(file.c_str(), "rb"));
        if (!file_) fail("a readable file", "one that cannot be opened");
        gzbuffer(file_.get(), 1 << 17);
        compressed_ = gzdirect(file_.get()) == 0;
        if (!compressed_ && file.extension() == ".gz") {
            const std::string expected = "gzip data (1f 8b)";
            char magic[2] = {};
            (void)read_some(magic, expected);  // fails if memory was short
            fail(expected, fmt::format("{:02x} {:02x}", static_cast<std::uint8_t>(magic[0]),
                                       static_cast<std::uint8_t>(magic[1])));
        }
    }

    // Returns the next `size` bytes, which messages call `what`. Memory grows only as data arrives,
    // because a size that is stored in the file may be wrong.
    std::vector<std::uint8_t> read(std::uint64_t size, const std::string& what) {
        std::vector<std::uint8_t> bytes;
        bytes.reserve(std::min(size, file_size_));  // not more than the file has: size may be wrong
        while (bytes.size() < size) {
            const std::size_t before = bytes.size();
            bytes.resize(std::min<std::uint64_t>(size, before + piece));
            const auto room = std::as_writable_bytes(std::span(bytes).subspan(before));
            const std::size_t got =
                read_some({reinterpret_cast<char*>(room.data()), room.size()}, what);
            if (got < room.size())
                fail(fmt::format("{} ({} bytes)", what, size),
                     fmt::format("{} bytes: the file is cut off", before + got));
        }
        return bytes;
    }
    // Throws if more bytes follow.
    void expect_end() {
        std::uint8_t byte = 0;
        const int got = gzread(file_.get(), &byte, 1);  // also verifies the checksum
        if (got > 0) fail("the end of the file", "more bytes");
        int code = Z_OK;
        gzerror(file_.get(), &code);
        if (got < 0 || code == Z_BUF_ERROR) fail("the end of the file", zlib_error());
    }
    // Fills `to` and returns the number of bytes: less than its size only at the end of the file.
    std::size_t read_some(std::span<char> to, const std::string& what = "readable data") {
        std::size_t done = 0;
        while (done < to.size()) {
            const auto n = static_cast<unsigned>(std::min(to.size() - done, piece));
            const int got = gzread(file_.get(), to.data() + done, n);
            if (got < 0) fail(what, zlib_error());
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

    // Returns an upper bound for the number of bytes after decompression.
    std::uint64_t limit() const noexcept {
        return compressed_ ? file_size_ * max_ratio : file_size_;
    }
    [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
        catena::fail<DataError>("[{}] {}: expected {}, got {}", reader_, name_, expected, got);
    }

private:
    static constexpr std::uint64_t max_ratio = 1032;  // of deflate
    static constexpr std::size_t piece = std::size_t{1} << 24;

    std::string zlib_error() const {
        int code = 0;
        const char* text = gzerror(file_.get(), &code);
        if (code == Z_BUF_ERROR) return "a gzip stream that is cut off";
        if (code == Z_MEM_ERROR) return "too little memory to read it";
        return fmt::format("damaged gzip data ({})", text);
    }

    std::string name_;
    std::string reader_;
    std::uint64_t file_size_ = 0;
    bool compressed_ = false;
    std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file_;
};

}  // namespace catena
