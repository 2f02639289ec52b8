// IDX files, the format of MNIST, plain or compressed with gzip.
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

// Reads a file of unsigned bytes with ndim dimensions. Throws DataError with the file, the expected
// and the actual content: missing file, not gzip although its name ends in .gz, wrong magic number,
// sizes larger than the file, too few or too many bytes. Memory is allocated only for sizes that
// fit into the file.
// Format: two zero bytes, the type (8: unsigned bytes), ndim, the sizes as big-endian 32-bit
// numbers, the values (http://yann.lecun.com/exdb/mnist).
IdxFile read_idx(const std::filesystem::path& file, int ndim);

// The number of dimensions that the header of such a file declares, or 0 if it is another kind of
// file. Throws DataError if it cannot be read.
int idx_dimensions(const std::filesystem::path& file);

}  // namespace catena
