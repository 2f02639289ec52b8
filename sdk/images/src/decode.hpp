// One decoder for each format. All throw DataError, "[read_image] name: expected ..., got ...".
#pragma once

#include <catena/images/image.hpp>

#include <string>

namespace catena {

constexpr std::int64_t max_pixels = std::int64_t{1} << 28;   // of a file: the largest photographs
constexpr std::int64_t max_resized = std::int64_t{1} << 24;  // far above what a net sees

[[noreturn]] void image_error(const std::string& name, const std::string& expected,
                              const std::string& got);
// Throws unless there are pixels, and not too many.
void check_size(const std::string& name, std::int64_t height, std::int64_t width);

Image decode_png(std::span<const std::byte> bytes, const std::string& name);
Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name, std::int64_t least);

}  // namespace catena
