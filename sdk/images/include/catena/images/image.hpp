// Images from PNG and JPEG files as pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace catena {

// Rows from top to bottom, pixels from left to right, with red, green and blue each.
struct Image {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::vector<std::uint8_t> pixels;  // height * width * 3
};

// Reads a PNG or JPEG file, identified by its content. Grey, palette and CMYK images become RGB, 16
// bits become 8, and transparent pixels are blended with white. A JPEG whose sides are both at
// least twice `least` is decoded at a smaller size whose sides are at least that long (0: full
// size). EXIF orientation is ignored. Throws DataError with the file's name if it is not an image,
// damaged, truncated, or has more than 2^28 pixels.
Image read_image(const std::filesystem::path& file, std::int64_t least = 0);
// The same from memory; name is used in errors.
Image decode_image(std::span<const std::byte> bytes, const std::string& name,
                   std::int64_t least = 0);

constexpr std::int64_t max_resized = std::int64_t{1} << 24;  // pixels of a scaled image
// Scales by averaging the covered pixels, or by linear interpolation for enlarging. Throws
// ShapeError for sides below 1, and for a new size of more than max_resized pixels.
Image resize(const Image& image, std::int64_t height, std::int64_t width);
// Scales so that the shorter side has this length. Throws the errors of resize().
Image resize_shorter(const Image& image, std::int64_t side);
// The same for a file: resize_shorter(read_image(file, side), side). Throws DataError with the
// file's name, also for an image that would become too large.
Image read_resized(const std::filesystem::path& file, std::int64_t side);

// Writes an RGB PNG with write_file(). Throws DataError.
void write_png(const std::filesystem::path& file, const Image& image);

}  // namespace catena
