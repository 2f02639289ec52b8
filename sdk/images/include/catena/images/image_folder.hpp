// ImageFolder: images in folders, one folder for each class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace catena {

struct ImageFolder {
    std::vector<std::string> classes;  // the folders' names, sorted
    std::vector<std::filesystem::path> files;
    std::vector<std::int32_t> labels;  // the class of each file

    std::int64_t size() const noexcept { return static_cast<std::int64_t>(files.size()); }
};

// Whether the name ends in .png, .jpg or .jpeg, in upper or lower case.
bool is_image_file(const std::filesystem::path& file);

// Lists such files in the folders below root, in alphabetical order, without reading them. A folder
// without images is no class. Throws DataError if root is not a folder or contains no class.
ImageFolder list_images(const std::filesystem::path& root);

// Splits off a random part of each class: {the rest, the held-out part}. Both keep all classes.
std::pair<ImageFolder, ImageFolder> hold_out(const ImageFolder& folder, double share,
                                             std::uint64_t seed);

}  // namespace catena
