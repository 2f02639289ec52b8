// Images: scaling; PNG by libpng's simplified interface, without error handlers; JPEG by libjpeg.
#include <catena/images/image.hpp>

#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/read_file.hpp>
#include <catena/write_file.hpp>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <limits>

#include <jpeglib.h>
#include <png.h>

namespace catena {
namespace {

constexpr std::int64_t max_pixels = std::int64_t{1} << 28;  // of a file: the largest photographs

// Throws DataError, "[read_image] name: expected ..., got ...".
[[noreturn]] void image_error(const std::string& name, const std::string& expected,
                              const std::string& got) {
    fail<DataError>("[read_image] {}: expected {}, got {}", name, expected, got);
}

// Throws unless there are pixels, and not too many.
void check_size(const std::string& name, std::int64_t height, std::int64_t width) {
    if (height < 1 || width < 1 || height > max_pixels / width)
        image_error(name, fmt::format("an image of 1 to {} pixels", max_pixels),
                    fmt::format("{} x {}", width, height));
}

bool begins_with(std::span<const std::byte> bytes, std::initializer_list<int> magic) {
    return bytes.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), bytes.begin(),
                      [](int a, std::byte b) { return a == std::to_integer<int>(b); });
}
bool is_png(std::span<const std::byte> bytes) { return begins_with(bytes, {0x89, 'P', 'N', 'G'}); }
bool is_jpeg(std::span<const std::byte> bytes) { return begins_with(bytes, {0xff, 0xd8, 0xff}); }

struct Png {
    png_image image{};
    Png() { image.version = PNG_IMAGE_VERSION; }
    ~Png() { png_image_free(&image); }
};

Image decode_png(std::span<const std::byte> bytes, const std::string& name) {
    Png png;
    if (!png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size()))
        image_error(name, "a PNG image", png.image.message);
    check_size(name, png.image.height, png.image.width);
    // Deflate makes at most 1032 bytes of one, and a byte has at most 8 pixels: who says more lies.
    if (std::uint64_t{png.image.height} * png.image.width / (8 * 1032) > bytes.size())
        image_error(name, "an image that fits into its file",
                    fmt::format("{} x {}", png.image.width, png.image.height));
    png.image.format = PNG_FORMAT_RGB;
    png.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // as every program writes them
    Image image{png.image.height, png.image.width,
                std::vector<std::uint8_t>(PNG_IMAGE_SIZE(png.image))};
    const png_color white{255, 255, 255};
    if (!png_image_finish_read(&png.image, &white, image.pixels.data(), 0, nullptr))
        image_error(name, "a PNG image", png.image.message);
    // libpng only warns about truncated data.
    if (png.image.warning_or_error & PNG_IMAGE_ERROR)
        image_error(name, "a PNG image", png.image.message);
    return image;
}

// libjpeg's errors come by longjmp: what is alive then lies outside of the part that jumps.
struct Jpeg {
    jpeg_decompress_struct info{};
    jpeg_error_mgr errors{};
    jpeg_progress_mgr progress{};
    std::jmp_buf failed{};
    char message[JMSG_LENGTH_MAX] = {};
    Image image;
    std::vector<std::uint8_t> line;

    Jpeg() {
        info.err = jpeg_std_error(&errors);
        info.client_data = this;
        errors.error_exit = [](j_common_ptr common) {
            auto& self = *static_cast<Jpeg*>(common->client_data);
            common->err->format_message(common, self.message);
            std::longjmp(self.failed, 1);
        };
        // A warning is damage that libjpeg would hide by making pixels up.
        errors.emit_message = [](j_common_ptr common, int level) {
            if (level < 0) common->err->error_exit(common);
        };
        errors.output_message = [](j_common_ptr) {};
        // Progressive files may say next to nothing in each of very many scans.
        progress.progress_monitor = [](j_common_ptr common) {
            constexpr int most_scans = 500;
            auto& self = *static_cast<Jpeg*>(common->client_data);
            if (self.info.input_scan_number <= most_scans) return;
            std::snprintf(self.message, sizeof self.message, "more than %d scans", most_scans);
            std::longjmp(self.failed, 1);
        };
        jpeg_create_decompress(&info);
        info.progress = &progress;
    }
    ~Jpeg() { jpeg_destroy_decompress(&info); }

    bool read_header(std::span<const std::byte> bytes) {
        if (setjmp(failed)) return false;
        jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        jpeg_read_header(&info, TRUE);
        // libjpeg does not convert CMYK to RGB; read_pixels() does.
        const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
        info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
        return true;
    }

    bool read_pixels() {
        if (setjmp(failed)) return false;
        jpeg_start_decompress(&info);
        while (info.output_scanline < info.output_height) {
            std::uint8_t* to =
                image.pixels.data() + std::size_t{info.output_scanline} * info.output_width * 3;
            JSAMPROW row = info.out_color_space == JCS_CMYK ? line.data() : to;
            jpeg_read_scanlines(&info, &row, 1);
            if (info.out_color_space == JCS_CMYK) to_rgb(to);
        }
        jpeg_finish_decompress(&info);
        return true;
    }

private:
    void to_rgb(std::uint8_t* to) const {
        const bool inverted = info.saw_Adobe_marker;  // as Adobe's programs write them
        for (JDIMENSION x = 0; x < info.output_width; ++x) {
            const std::uint8_t* cmyk = line.data() + std::size_t{x} * 4;
            for (int i = 0; i < 3; ++i) {
                const int colour = inverted ? cmyk[i] : 255 - cmyk[i];
                const int key = inverted ? cmyk[3] : 255 - cmyk[3];
                *to++ = static_cast<std::uint8_t>(colour * key / 255);
            }
        }
    }
};

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name, std::int64_t least) {
    Jpeg jpeg;
    if (!jpeg.read_header(bytes)) image_error(name, "a JPEG image", jpeg.message);
    const std::int64_t height = jpeg.info.image_height, width = jpeg.info.image_width;
    check_size(name, height, width);
    const std::int64_t shorter = height < width ? height : width;
    while (least > 0 && jpeg.info.scale_denom < 8 && shorter / (2 * jpeg.info.scale_denom) >= least)
        jpeg.info.scale_denom *= 2;
    jpeg_calc_output_dimensions(&jpeg.info);
    jpeg.image = {jpeg.info.output_height, jpeg.info.output_width, {}};
    jpeg.image.pixels.resize(std::size_t{jpeg.info.output_height} * jpeg.info.output_width * 3);
    jpeg.line.resize(std::size_t{jpeg.info.output_width} * 4);
    if (!jpeg.read_pixels()) image_error(name, "a JPEG image", jpeg.message);
    return std::move(jpeg.image);
}

// For each new pixel, the source pixels and their weights.
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

Image decode_image(std::span<const std::byte> bytes, const std::string& name, std::int64_t least) {
    if (is_png(bytes)) return decode_png(bytes, name);
    if (is_jpeg(bytes)) return decode_jpeg(bytes, name, least);
    image_error(name, "a PNG or JPEG image", bytes.empty() ? "nothing" : "something else");
}

Image read_image(const std::filesystem::path& file, std::int64_t least) {
    return naming_file("read_image", file, [&] {
        const std::string content = read_regular("image", file, "a PNG or JPEG image");
        const auto bytes = std::as_bytes(std::span(content));
        if (is_png(bytes) || is_jpeg(bytes)) return decode_image(bytes, file.string(), least);
        const std::string kind = file_kind(file);
        image_error(file.string(), "a PNG or JPEG image", kind.empty() ? "something else" : kind);
    });
}

Image read_resized(const std::filesystem::path& file, std::int64_t side) {
    return naming_file("read_image", file, [&] {
        const Image image = read_image(file, side);
        try {
            return resize_shorter(image, side);
        } catch (const ShapeError& error) {
            image_error(file.string(),
                        fmt::format("an image of at most {} pixels with a shorter side of {}",
                                    max_resized, side),
                        fmt::format("{} x {} ({})", image.width, image.height, error.what()));
        }
    });
}

void write_png(const std::filesystem::path& file, const Image& image) {
    Png png;
    png.image.format = PNG_FORMAT_RGB;
    png.image.width = static_cast<png_uint_32>(image.width);
    png.image.height = static_cast<png_uint_32>(image.height);
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png.image);
    std::string content(size, '\0');
    if (!png_image_write_to_memory(&png.image, content.data(), &size, 0, image.pixels.data(), 0,
                                   nullptr))
        image_error(file.string(), "an image that can be written", png.image.message);
    content.resize(size);
    write_file(file, content);
}

// ---- other sizes

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
    std::int64_t next = 0;  // the first missing row
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

}  // namespace catena
