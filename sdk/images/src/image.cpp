// Images of other sizes.
#include <catena/images/image.hpp>

#include <catena/fail.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace catena {
namespace {

// For each new pixel, which pixels it is made of, and how much of each.
struct Taps {
    struct Pixel {
        std::int32_t first, count;
    };
    std::vector<Pixel> pixels;
    std::vector<float> weights;  // of all pixels, one after the other
    std::int32_t most = 0;       // the largest count
};

// Triangles about the new pixel's middle, as wide as what it covers, but never less than one pixel.
Taps taps(std::int64_t from, std::int64_t to) {
    Taps all;
    all.pixels.reserve(static_cast<std::size_t>(to));
    const double ratio = static_cast<double>(from) / static_cast<double>(to);
    const double reach = std::max(1.0, ratio);
    for (std::int64_t i = 0; i < to; ++i) {
        const double middle = (static_cast<double>(i) + 0.5) * ratio - 0.5;
        const auto first = std::max<std::int64_t>(0, std::llround(std::ceil(middle - reach)));
        const auto last =
            std::min<std::int64_t>(from - 1, std::llround(std::floor(middle + reach)));
        const std::size_t begin = all.weights.size();
        double sum = 0;
        for (std::int64_t at = first; at <= last; ++at) {
            const double weight =
                std::max(0.0, 1 - std::abs(static_cast<double>(at) - middle) / reach);
            all.weights.push_back(static_cast<float>(weight));
            sum += weight;
        }
        for (std::size_t k = begin; k < all.weights.size(); ++k)
            all.weights[k] = static_cast<float>(all.weights[k] / sum);
        const auto count = static_cast<std::int32_t>(all.weights.size() - begin);
        all.pixels.push_back({static_cast<std::int32_t>(first), count});
        all.most = std::max(all.most, count);
    }
    return all;
}

std::uint8_t to_byte(float value) {
    return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

}  // namespace

Image resize(const Image& image, std::int64_t height, std::int64_t width) {
    if (height < 1 || width < 1)
        fail<ShapeError>("[resize] size: expected at least 1 x 1, got {} x {}", width, height);
    if (height == image.height && width == image.width) return image;
    if (height > max_resized / width)
        fail<ShapeError>("[resize] size: expected at most {} pixels, got {} x {}", max_resized,
                         width, height);
    const Taps across = taps(image.width, width), down = taps(image.height, height);
    const auto row = static_cast<std::size_t>(width * 3);
    Image result{height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height) * row)};
    // Rows of the image in the new width: those that a new row is made of.
    const auto kept = static_cast<std::size_t>(down.most);
    std::vector<float> narrow(kept * row);
    const auto narrowed = [&](std::int64_t y) {
        return narrow.data() + static_cast<std::size_t>(y) % kept * row;
    };
    std::int64_t next = 0;  // the first row that is not there yet
    std::vector<float> sums(row);
    const float* weight_down = down.weights.data();
    for (std::int64_t y = 0; y < height; ++y) {
        const auto [first, count] = down.pixels[static_cast<std::size_t>(y)];
        for (next = std::max<std::int64_t>(next, first); next < first + count; ++next) {
            const std::uint8_t* from = image.pixels.data() + next * image.width * 3;
            float* to = narrowed(next);
            const float* weight = across.weights.data();
            for (const auto& pixel : across.pixels) {
                float colours[3] = {};
                const std::uint8_t* at = from + std::int64_t{pixel.first} * 3;
                for (std::int32_t k = 0; k < pixel.count; ++k, ++weight) {
                    for (float& colour : colours) colour += *weight * static_cast<float>(*at++);
                }
                to = std::copy(std::begin(colours), std::end(colours), to);
            }
        }
        std::ranges::fill(sums, 0.0F);
        for (std::int32_t k = 0; k < count; ++k, ++weight_down) {
            const float* at = narrowed(first + k);
            for (std::size_t i = 0; i < row; ++i) sums[i] += *weight_down * at[i];
        }
        std::ranges::transform(sums, result.pixels.begin() + y * width * 3, to_byte);
    }
    return result;
}

Image resize_shorter(const Image& image, std::int64_t side) {
    const std::int64_t shorter = std::min(image.height, image.width);
    // Sides that are too long to be computed are refused by resize().
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
    const auto scaled = [&](std::int64_t length) {
        if (side > 0 && length > most / side) return most;
        return std::max(side, (length * side + shorter / 2) / shorter);
    };
    return resize(image, scaled(image.height), scaled(image.width));
}

Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height,
           std::int64_t width) {
    if (top < 0 || left < 0 || height < 1 || width < 1 || top > image.height - height ||
        left > image.width - width)
        fail<ShapeError>("[crop] part: expected one within {} x {}, got {} x {} at ({}, {})",
                         image.width, image.height, width, height, left, top);
    Image part{height, width, {}};
    part.pixels.reserve(static_cast<std::size_t>(height * width * 3));
    for (std::int64_t y = top; y < top + height; ++y) {
        const auto* row = image.pixels.data() + (y * image.width + left) * 3;
        part.pixels.insert(part.pixels.end(), row, row + width * 3);
    }
    return part;
}

}  // namespace catena
