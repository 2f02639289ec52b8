// ImageFolder: images in folders, one for each class.
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
    std::vector<std::int32_t> labels;  // of each file: its class

    std::int64_t size() const noexcept { return static_cast<std::int64_t>(files.size()); }
};

// Whether it is named *.png, *.jpg or *.jpeg, whatever the case.
bool is_image_file(const std::filesystem::path& file);

// Such files in the folders below root, in order of their names; their content is not looked at.
// A folder without an image is no class. Throws DataError if root is no folder, or has no class.
ImageFolder list_images(const std::filesystem::path& root);

// Some of each class apart, drawn at random: {the rest, the share that is held out}. Classes stay.
std::pair<ImageFolder, ImageFolder> hold_out(const ImageFolder& folder, double share,
                                             std::uint64_t seed);

}  // namespace catena
