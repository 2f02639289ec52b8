// Images from PNG and JPEG files, as pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace catena {

// Rows from the top, pixels from the left, red, green and blue of each.
struct Image {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::vector<std::uint8_t> pixels;  // height * width * 3
};

// Reads a PNG or JPEG file, known by its content: grey ones, palettes and CMYK become RGB, 16 bits become
// 8, what is transparent is put on white. Of a JPEG whose sides are both at least twice `least` only as
// much is decoded as leaves them at least that long (0: all). Orientation in EXIF is not looked at.
// Throws DataError, naming the file, for what is no image, damaged or cut off, or has more than 2^28
// pixels.
Image read_image(const std::filesystem::path& file, std::int64_t least = 0);
// The same from memory; name stands in errors.
Image decode_image(std::span<const std::byte> bytes, const std::string& name,
                   std::int64_t least = 0);

// By the mean of what each new pixel covers, and on straight lines between pixels where it grows. Throws
// ShapeError for sides below 1, and for another size of more than 2^24 pixels.
Image resize(const Image& image, std::int64_t height, std::int64_t width);
// So that the shorter side has this length. Throws as resize().
Image resize_shorter(const Image& image, std::int64_t side);
// Both of a file: resize_shorter(read_image(file, side), side). Throws DataError, naming the file, also
// for an image that becomes too large.
Image read_resized(const std::filesystem::path& file, std::int64_t side);
// Throws ShapeError unless the part lies in the image.
Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height,
           std::int64_t width);

// Writes an RGB PNG, as write_file(). Throws DataError.
void write_png(const std::filesystem::path& file, const Image& image);

}  // namespace catena
