// IDX reader over zlib.
#include <catena/data_error.hpp>
#include <catena/idx.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <span>
#include <string>

namespace catena {
namespace {

// Deflate cannot compress better than this.
constexpr std::uint64_t max_ratio = 1032;

class Reader {
public:
    explicit Reader(const std::filesystem::path& file) : name_(file.string()) {
        std::error_code error;
        file_size_ = std::filesystem::file_size(file, error);
        if (error) fail("a file", error.message());
        std::array<char, 2> magic{};
        std::ifstream(file, std::ios::binary).read(magic.data(), 2);
        compressed_ = magic[0] == '\x1f' && magic[1] == '\x8b';
        if (!compressed_ && file.extension() == ".gz") {
            fail("gzip data (1f 8b)",
                 fmt::format("{:02x} {:02x}", static_cast<unsigned char>(magic[0]),
                             static_cast<unsigned char>(magic[1])));
        }
        file_.reset(gzopen(file.c_str(), "rb"));
        if (!file_) fail("a readable file", "one that cannot be opened");
        gzbuffer(file_.get(), 1 << 17);
    }

    // Fills bytes, which are `what`; end: nothing may follow.
    void read(std::span<std::uint8_t> bytes, const std::string& what) {
        std::size_t done = 0;
        while (done < bytes.size()) {
            const auto piece =
                static_cast<unsigned>(std::min<std::size_t>(bytes.size() - done, 1 << 24));
            const int got = gzread(file_.get(), bytes.data() + done, piece);
            if (got < 0) fail(what, zlib_error());
            if (got == 0) {
                fail(fmt::format("{} ({} bytes)", what, bytes.size()),
                     fmt::format("{} bytes: the file is cut off", done));
            }
            done += static_cast<std::size_t>(got);
        }
    }

    void expect_end() {
        std::uint8_t byte = 0;
        const int got = gzread(file_.get(), &byte, 1);  // also verifies the checksum
        if (got > 0) fail("the end of the file", "more bytes");
        int code = Z_OK;
        gzerror(file_.get(), &code);
        if (got < 0 || code == Z_BUF_ERROR) fail("the end of the file", zlib_error());
    }

    // The most bytes that can be in the file.
    std::uint64_t limit() const noexcept {
        return compressed_ ? file_size_ * max_ratio : file_size_;
    }

    [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
        throw DataError(fmt::format("[read_idx] {}: expected {}, got {}", name_, expected, got));
    }

private:
    struct Close {
        void operator()(gzFile file) const { gzclose(file); }
    };

    std::string zlib_error() {
        int code = 0;
        const char* text = gzerror(file_.get(), &code);
        if (code == Z_BUF_ERROR) return "a gzip stream that is cut off";
        return fmt::format("damaged gzip data ({})", text);
    }

    std::string name_;
    std::uint64_t file_size_ = 0;
    bool compressed_ = false;
    std::unique_ptr<gzFile_s, Close> file_;
};

std::uint32_t big_endian(const std::uint8_t* bytes) {
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
           std::uint32_t{bytes[2]} << 8 | bytes[3];
}

}  // namespace

IdxFile read_idx(const std::filesystem::path& file, int ndim) {
    Reader reader(file);
    std::array<std::uint8_t, 4> magic{};
    reader.read(magic, "a magic number");
    const std::uint32_t expected = 0x0800u | static_cast<std::uint32_t>(ndim);
    if (big_endian(magic.data()) != expected) {
        reader.fail(fmt::format("magic number 0x{:08x} (bytes, {} dimensions)", expected, ndim),
                    fmt::format("0x{:08x}", big_endian(magic.data())));
    }
    std::vector<std::uint8_t> sizes(4 * static_cast<std::size_t>(ndim));
    reader.read(sizes, "the sizes");

    IdxFile result;
    std::uint64_t total = 1;
    for (int i = 0; i < ndim; ++i) {
        const std::uint32_t size = big_endian(sizes.data() + 4 * i);
        result.shape.push_back(size);
        if (size != 0 && total > reader.limit() / size) {
            reader.fail(fmt::format("at most {} values in a file of this size", reader.limit()),
                        fmt::format("sizes {}, ...", fmt::join(result.shape, ", ")));
        }
        total *= size;
    }
    result.values.resize(total);
    reader.read(result.values, "the values");
    reader.expect_end();
    return result;
}

}  // namespace catena
