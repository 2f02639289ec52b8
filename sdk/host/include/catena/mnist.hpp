// MNIST, handwritten digits in four IDX files, and data sets in the same format, such as
// Fashion-MNIST.
#pragma once

#include <catena/minibatches.hpp>

#include <filesystem>

namespace catena {

struct Mnist {
    Dataset train;  // images, float32 (N, height * width) in 0 .. 1; labels, int32 (N), 0 .. 9
    Dataset test;
    Shape image;  // shape of an image: (1, height, width)
};

// Whether a folder contains the four files: train-images-idx3-ubyte, train-labels-idx1-ubyte and
// the same with t10k, each plain or with .gz.
bool has_mnist(const std::filesystem::path& folder);

// Throws DataError if a file is missing or invalid (see read_idx), if the numbers of images and
// labels or the sizes of images differ, or if a label is above 9. The arrays are in host memory,
// whatever the current device is.
Mnist load_mnist(const std::filesystem::path& folder);

// The folders to search for a data set, in order: $CATENA_DATA/NAME, then catena/NAME in the user's
// cache ($XDG_CACHE_HOME, else ~/.cache).
std::vector<std::filesystem::path> data_folders(const std::string& name);

}  // namespace catena
