// MNIST, handwritten digits from four IDX files, and what has its form, such as Fashion-MNIST.
#pragma once

#include <catena/minibatches.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace catena {

struct Mnist {
    Dataset train;  // images, float32 (N, height * width) in 0 .. 1; labels, int32 (N), 0 .. 9
    Dataset test;
    Shape image;  // of one: (1, height, width)
};

// Whether a folder has the four files: train-images-idx3-ubyte, train-labels-idx1-ubyte and the same
// with t10k, each as it is or with .gz.
bool has_mnist(const std::filesystem::path& folder);

// Throws DataError if a file is missing or not as it should be (see read_idx), numbers of images and
// labels or sizes of images differ, or a label is above 9. The arrays are in host memory, whatever the current device.
Mnist load_mnist(const std::filesystem::path& folder);

// Where data sets may be, best first: $CATENA_DATA/NAME, then catena/NAME in the user's cache
// ($XDG_CACHE_HOME, else ~/.cache).
std::vector<std::filesystem::path> data_folders(const std::string& name);

}  // namespace catena
