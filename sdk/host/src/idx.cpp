// IDX reader.
#include "gzip_reader.hpp"

#include <catena/data_error.hpp>
#include <catena/idx.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace catena {
namespace {

std::uint32_t big_endian(const std::uint8_t* bytes) {
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
           std::uint32_t{bytes[2]} << 8 | bytes[3];
}

IdxFile read(const std::filesystem::path& file, int ndim) {
    GzipReader reader(file, "read_idx");
    const auto magic = reader.read(4, "a magic number");
    const std::uint32_t expected = 0x0800u | static_cast<std::uint32_t>(ndim);
    if (big_endian(magic.data()) != expected) {
        reader.fail(fmt::format("magic number 0x{:08x} (bytes, {} dimensions)", expected, ndim),
                    fmt::format("0x{:08x}", big_endian(magic.data())));
    }
    const auto sizes = reader.read(4 * static_cast<std::uint64_t>(ndim), "the sizes");
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
    result.values = reader.read(total, "the values");
    reader.expect_end();
    return result;
}

}  // namespace

IdxFile read_idx(const std::filesystem::path& file, int ndim) {
    return naming_file("read_idx", file, [&] { return read(file, ndim); });
}

int idx_dimensions(const std::filesystem::path& file) {
    GzipReader reader(file, "idx_dimensions");
    const auto magic = reader.read(4, "a magic number");
    return magic[0] == 0 && magic[1] == 0 && magic[2] == 8 ? magic[3] : 0;
}

}  // namespace catena
