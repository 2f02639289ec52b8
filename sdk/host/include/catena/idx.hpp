// IDX files, the format of MNIST, plain or compressed by gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace catena {

// An array of bytes, row-major.
struct IdxFile {
    std::vector<std::int64_t> shape;
    std::vector<std::uint8_t> values;
};

// Reads a file of unsigned bytes with ndim dimensions. Throws DataError, naming the file, what was
// expected and what came: no such file, not gzip although its name ends in .gz, a wrong magic
// number, sizes that the file cannot hold, too few bytes, too many. Memory is taken only for sizes
// that the file can hold.
// Format: two zero bytes, the type (8: unsigned bytes), ndim, the sizes as big-endian 32-bit
// numbers, the values (http://yann.lecun.com/exdb/mnist).
IdxFile read_idx(const std::filesystem::path& file, int ndim);

// The dimensions that such a file says it has, 0 if it is something else. Throws DataError if it cannot be
// read.
int idx_dimensions(const std::filesystem::path& file);

}  // namespace catena
