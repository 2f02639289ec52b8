// Files by their first bytes; and images of other sizes.
#include "decode.hpp"

#include <catena/core/error.hpp>
#include <catena/data_error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

namespace catena {
namespace {

bool begins_with(std::span<const std::byte> bytes, std::initializer_list<int> magic) {
    return bytes.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), bytes.begin(),
                      [](int a, std::byte b) { return a == std::to_integer<int>(b); });
}

// Which pixels a new one is made of, and how much of each.
struct Taps {
    std::int64_t first;
    std::vector<float> weights;
};

// Triangles about the new pixel's middle, as wide as what it covers, but never less than one pixel.
std::vector<Taps> taps(std::int64_t from, std::int64_t to) {
    std::vector<Taps> all;
    const double ratio = static_cast<double>(from) / static_cast<double>(to);
    const double reach = std::max(1.0, ratio);
    for (std::int64_t i = 0; i < to; ++i) {
        const double middle = (static_cast<double>(i) + 0.5) * ratio - 0.5;
        const auto first = std::max<std::int64_t>(0, std::llround(std::ceil(middle - reach)));
        const auto last =
            std::min<std::int64_t>(from - 1, std::llround(std::floor(middle + reach)));
        Taps tap{first, {}};
        double sum = 0;
        for (std::int64_t at = first; at <= last; ++at) {
            const double weight =
                std::max(0.0, 1 - std::abs(static_cast<double>(at) - middle) / reach);
            tap.weights.push_back(static_cast<float>(weight));
            sum += weight;
        }
        for (float& weight : tap.weights) weight = static_cast<float>(weight / sum);
        all.push_back(std::move(tap));
    }
    return all;
}

std::uint8_t to_byte(float value) {
    return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

}  // namespace

void image_error(const std::string& name, const std::string& expected, const std::string& got) {
    throw DataError(fmt::format("[read_image] {}: expected {}, got {}", name, expected, got));
}

void check_size(const std::string& name, std::int64_t height, std::int64_t width) {
    if (height < 1 || width < 1 || height > max_pixels / width)
        image_error(name, fmt::format("an image of 1 to {} pixels", max_pixels),
                    fmt::format("{} x {}", width, height));
}

Image decode_image(std::span<const std::byte> bytes, const std::string& name, std::int64_t least) {
    if (begins_with(bytes, {0x89, 'P', 'N', 'G'})) return decode_png(bytes, name);
    if (begins_with(bytes, {0xff, 0xd8, 0xff})) return decode_jpeg(bytes, name, least);
    image_error(name, "a PNG or JPEG image", bytes.empty() ? "nothing" : "something else");
}

Image read_image(const std::filesystem::path& file, std::int64_t least) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    if (error) image_error(file.string(), "a file", error.message());
    std::vector<std::byte> bytes(size);
    std::ifstream in(file, std::ios::binary);
    if (!in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
        image_error(file.string(), "a readable file", std::strerror(errno));
    return decode_image(bytes, file.string(), least);
}

Image resize(const Image& image, std::int64_t height, std::int64_t width) {
    if (height < 1 || width < 1)
        throw ShapeError(
            fmt::format("[resize] size: expected at least 1 x 1, got {} x {}", width, height));
    if (height == image.height && width == image.width) return image;
    const std::vector<Taps> across = taps(image.width, width), down = taps(image.height, height);
    const auto row = static_cast<std::size_t>(width * 3);
    std::vector<float> narrow(static_cast<std::size_t>(image.height) * row);
    for (std::int64_t y = 0; y < image.height; ++y) {
        const std::uint8_t* from = image.pixels.data() + y * image.width * 3;
        float* to = narrow.data() + static_cast<std::size_t>(y) * row;
        for (const Taps& tap : across) {
            float sums[3] = {};
            const std::uint8_t* at = from + tap.first * 3;
            for (const float weight : tap.weights) {
                for (float& sum : sums) sum += weight * static_cast<float>(*at++);
            }
            to = std::copy(std::begin(sums), std::end(sums), to);
        }
    }
    Image result{height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height) * row)};
    std::vector<float> sums(row);
    for (std::int64_t y = 0; y < height; ++y) {
        const Taps& tap = down[static_cast<std::size_t>(y)];
        std::ranges::fill(sums, 0.0F);
        for (std::size_t k = 0; k < tap.weights.size(); ++k) {
            const float* at = narrow.data() + (static_cast<std::size_t>(tap.first) + k) * row;
            for (std::size_t i = 0; i < row; ++i) sums[i] += tap.weights[k] * at[i];
        }
        std::ranges::transform(sums, result.pixels.begin() + y * width * 3, to_byte);
    }
    return result;
}

Image resize_shorter(const Image& image, std::int64_t side) {
    const std::int64_t shorter = std::min(image.height, image.width);
    const auto scaled = [&](std::int64_t length) {
        return std::max(side, (length * side + shorter / 2) / shorter);
    };
    return resize(image, scaled(image.height), scaled(image.width));
}

Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height,
           std::int64_t width) {
    if (top < 0 || left < 0 || height < 1 || width < 1 || top > image.height - height ||
        left > image.width - width) {
        throw ShapeError(
            fmt::format("[crop] part: expected one within {} x {}, got {} x {} at ({}, {})",
                        image.width, image.height, width, height, left, top));
    }
    Image part{height, width, {}};
    part.pixels.reserve(static_cast<std::size_t>(height * width * 3));
    for (std::int64_t y = top; y < top + height; ++y) {
        const auto* row = image.pixels.data() + (y * image.width + left) * 3;
        part.pixels.insert(part.pixels.end(), row, row + width * 3);
    }
    return part;
}

}  // namespace catena
