// PNG by libpng's simplified interface, which needs no error handlers.
#include "decode.hpp"

#include <catena/write_file.hpp>

#include <fmt/format.h>
#include <png.h>

namespace catena {
namespace {

struct Png {
    png_image image{};
    Png() { image.version = PNG_IMAGE_VERSION; }
    Png(const Png&) = delete;
    Png& operator=(const Png&) = delete;
    ~Png() { png_image_free(&image); }
};

}  // namespace

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
    // A warning is what libpng makes of data that end early.
    if (png.image.warning_or_error & PNG_IMAGE_ERROR)
        image_error(name, "a PNG image", png.image.message);
    return image;
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

}  // namespace catena
