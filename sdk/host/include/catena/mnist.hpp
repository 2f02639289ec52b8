// IDX files, plain or compressed with gzip; and MNIST, handwritten digits in four of them, and data
// sets in the same format, such as Fashion-MNIST.
#pragma once

#include <catena/minibatches.hpp>

#include <filesystem>

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

// The number of dimensions of such a file, or 0 for others. Throws DataError if it is unreadable.
int idx_dimensions(const std::filesystem::path& file);

struct Mnist {
    Dataset train;  // images, float32 (N, height * width) in 0 .. 1; labels, int32 (N), 0 .. 9
    Dataset test;
    Shape image;  // shape of an image: (1, height, width)
};

// Whether a folder contains the four files: train-images-idx3-ubyte, train-labels-idx1-ubyte and
// the same with t10k, each plain or with .gz.
bool has_mnist(const std::filesystem::path& folder);

// Throws DataError if a file is missing or invalid (see read_idx), if the numbers of images and
// labels or the sizes of images differ, or if a label is above 9. Arrays are in host memory.
Mnist load_mnist(const std::filesystem::path& folder);

// The folders to search for a data set, in order: $CATENA_DATA/NAME, then catena/NAME in the user's
// cache ($XDG_CACHE_HOME, else ~/.cache).
std::vector<std::filesystem::path> data_folders(const std::string& name);

}  // namespace catena
