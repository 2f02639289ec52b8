// Images: every kind of PNG and JPEG, damage, and other sizes.
#include <catena/core/error.hpp>
#include <catena/data_error.hpp>
#include <catena/images/image.hpp>
#include <catena/write_file.hpp>

#include "files.hpp"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <random>

using namespace catena;
namespace fs = std::filesystem;

namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels decoded(const std::string& file) { return decode_image(bytes_of(file), "x").pixels; }

std::string message(const std::string& file) {
    try {
        (void)decode_image(bytes_of(file), "x");
    } catch (const DataError& error) {
        return error.what();
    }
    return "";
}

bool near(const Pixels& a, const Pixels& b, int tolerance) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::abs(a[i] - b[i]) > tolerance) return false;
    }
    return true;
}

Pixels filled(std::size_t pixels, std::uint8_t r, std::uint8_t g, std::uint8_t b) {
    Pixels all;
    for (std::size_t i = 0; i < pixels; ++i) all.insert(all.end(), {r, g, b});
    return all;
}

}  // namespace

TEST_CASE("every kind of PNG becomes RGB") {
    using namespace std::string_literals;
    CHECK(decoded(png_file(2, 1, 8, 2, {"\1\2\3\4\5\6"})) == Pixels{1, 2, 3, 4, 5, 6});
    CHECK(decoded(png_file(2, 1, 8, 0, {"\x10\xff"})) == Pixels{16, 16, 16, 255, 255, 255});
    CHECK(decoded(png_file(9, 1, 1, 0, {"\x80\x80"})).size() == 27);
    CHECK(decoded(png_file(2, 1, 16, 2, {"\xff\xff\0\0\x80\x80\0\0\0\0\0\0"s})) ==
          Pixels{255, 0, 128, 0, 0, 0});
    const std::string palette = png_chunk("PLTE", "\7\10\11\1\2\3"s);
    CHECK(decoded(png_file(2, 1, 8, 3, {"\1\0"s}, palette)) == Pixels{1, 2, 3, 7, 8, 9});
    // Transparent pixels are blended with white.
    CHECK(decoded(png_file(2, 1, 8, 6, {"\0\0\0\0\1\2\3\xff"s})) == Pixels{255, 255, 255, 1, 2, 3});
    CHECK(decoded(png_file(1, 1, 8, 4, {"\5\0"s})) == Pixels{255, 255, 255});
}

TEST_CASE("every kind of JPEG becomes RGB") {
    const Pixels red = filled(64, 200, 30, 60);
    for (const bool progressive : {false, true})
        CHECK(near(decoded(jpeg_file(8, 8, 3, red, progressive)), red, 4));
    CHECK(near(decoded(jpeg_file(8, 8, 1, Pixels(64, 90))), filled(64, 90, 90, 90), 2));
    Pixels cmyk;
    for (int i = 0; i < 64; ++i) cmyk.insert(cmyk.end(), {255, 128, 0, 128});
    const Image image = decode_image(bytes_of(jpeg_file(8, 8, 4, cmyk)), "x");
    CHECK(image.pixels.size() == 192);
    CHECK(near(image.pixels, filled(64, 128, 64, 0), 6));
}

TEST_CASE("large JPEGs are decoded as small as is enough") {
    const std::string file = jpeg_file(200, 120, 3, filled(24000, 10, 120, 240));
    for (const auto& [least, height] : {std::pair{0, 120},
                                        {61, 120},
                                        {60, 60},
                                        {31, 60},
                                        {30, 30},
                                        {15, 15},
                                        {1, 15},
                                        {1000, 120}}) {
        const Image image = decode_image(bytes_of(file), "x", least);
        CHECK(image.height == height);
        CHECK(image.width == 200 * height / 120);
        CHECK(near(image.pixels, filled(image.pixels.size() / 3, 10, 120, 240), 4));
    }
}

TEST_CASE("what is no image, damaged or cut off is refused") {
    const std::string png = png_file(8, 8, 8, 2, std::vector<std::string>(8, std::string(24, 'a')));
    const std::string jpeg = jpeg_file(64, 64, 3, filled(4096, 10, 120, 240));
    CHECK(message("").find("expected a PNG or JPEG image, got nothing") != std::string::npos);
    CHECK(message("GIF89a").find("got something else") != std::string::npos);
    for (const std::string& file : {png, jpeg}) {
        for (std::size_t n = 0; n + 13 < file.size(); n += 7) {
            CAPTURE(n);
            CHECK(message(file.substr(0, n)).starts_with("[read_image] x: expected "));
        }
        // Any byte: an error or pixels, never a crash.
        for (std::size_t i = 0; i < file.size(); ++i) {
            std::string damaged = file;
            damaged[i] = static_cast<char>(damaged[i] ^ 0x35);
            (void)message(damaged);
        }
    }
    // More pixels than anybody has memory for.
    CHECK(message(png_file(1 << 19, 1 << 19, 8, 2, {})).find("an image of 1 to 268435456 pixels") !=
          std::string::npos);
    CHECK(message(png_file(1 << 14, (1 << 14) + 1, 8, 2, {})).find("1 to 268435456 pixels") !=
          std::string::npos);
    CHECK(message(png_file(1 << 14, 1 << 14, 8, 2, {})).find("that fits into its file") !=
          std::string::npos);
    const TemporaryFolder folder;
    CHECK_THROWS_AS((void)read_image(folder.path / "none.png"), DataError);
    CHECK_THROWS_AS((void)read_image(folder.path), DataError);
    write_file(folder.path / "a.jpg", png);
    CHECK(read_image(folder.path / "a.jpg").width == 8);  // known by its content
}

TEST_CASE("an image that would become too large is refused with its file") {
    const TemporaryFolder folder;
    const auto file = folder.path / "thin.png";
    for (const auto& [width, height] : {std::pair{1'000'000, 1}, {1, 1'000'000}}) {
        const auto side = static_cast<std::size_t>(width);
        write_file(file, png_file(width, height, 8, 0,
                                  std::vector<std::string>(static_cast<std::size_t>(height),
                                                           std::string(side, 'a'))));
        CHECK(read_image(file).width == width);
        std::string got;
        try {
            (void)read_resized(file, 256);
        } catch (const DataError& error) {
            got = error.what();
        }
        CAPTURE(got);
        CHECK(got.starts_with("[read_image] " + file.string() +
                              ": expected an image of at most 16777216 pixels with a shorter side "
                              "of 256, got "));
        const Image small = read_resized(file, 2);
        CHECK(std::pair(small.width, small.height) ==
              std::pair<std::int64_t, std::int64_t>(2 * width, 2 * height));
    }
    const Image image{2, 2, filled(4, 1, 2, 3)};
    CHECK(resize(image, 4096, 4096).pixels.size() == std::size_t{3} << 24);
    CHECK_THROWS_AS((void)resize(image, 4096, 4097), ShapeError);
    CHECK_THROWS_AS((void)resize(image, std::int64_t{1} << 40, std::int64_t{1} << 40), ShapeError);
    CHECK_THROWS_AS((void)resize_shorter(image, std::int64_t{1} << 62), ShapeError);
}

TEST_CASE("rows are resized as columns are") {
    const auto turned = [](const Image& image) {
        Image result{image.width, image.height, Pixels(image.pixels.size())};
        for (std::int64_t y = 0; y < image.height; ++y) {
            for (std::int64_t x = 0; x < image.width; ++x) {
                for (std::int64_t c = 0; c < 3; ++c) {
                    result.pixels[static_cast<std::size_t>((x * image.height + y) * 3 + c)] =
                        image.pixels[static_cast<std::size_t>((y * image.width + x) * 3 + c)];
                }
            }
        }
        return result;
    };
    Image image{37, 23, Pixels(37 * 23 * 3)};
    std::uint32_t random = 1;
    for (auto& value : image.pixels)
        value = static_cast<std::uint8_t>((random = random * 1664525 + 1013904223) >> 24);
    for (const auto& [h, w] : {std::pair{5, 7}, {90, 11}, {3, 100}, {37, 1}, {1, 23}, {100, 100}}) {
        CAPTURE(h);
        const Image there = resize(image, h, w), back = turned(resize(turned(image), w, h));
        CHECK(near(there.pixels, back.pixels, 1));
    }
}

TEST_CASE("other sizes") {
    Image image{2, 4, {}};
    for (const int v : {0, 0, 100, 200, 0, 0, 100, 200})
        image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(v));
    const Image half = resize(image, 1, 2);
    CHECK(half.pixels[0] < half.pixels[3]);
    CHECK(resize(image, 2, 4).pixels == image.pixels);
    const Image large = resize(image, 6, 12);
    for (std::size_t x = 1; x < 12; ++x) CHECK(large.pixels[x * 3] >= large.pixels[x * 3 - 3]);
    CHECK(large.pixels[0] == 0);
    CHECK(large.pixels[33] == 200);
    // One colour stays that colour, in every size.
    for (const auto& [h, w] : {std::pair{1, 1}, {3, 5}, {64, 2}, {7, 99}}) {
        const Image plain = resize({5, 9, filled(45, 7, 77, 177)}, h, w);
        CHECK(plain.pixels == filled(static_cast<std::size_t>(h * w), 7, 77, 177));
    }
    const Image shorter = resize_shorter({5, 9, filled(45, 1, 2, 3)}, 10);
    CHECK(shorter.height == 10);
    CHECK(shorter.width == 18);
    CHECK_THROWS_AS((void)resize(image, 0, 1), ShapeError);
    const TemporaryFolder folder;
    write_png(folder.path / "a.png", image);
    CHECK(read_image(folder.path / "a.png").pixels == image.pixels);
}

TEST_CASE("a PNG is written whole or not at all, and through no symbolic link") {
    Image image{100, 200, Pixels(60'000)};  // of noise, which does not become smaller
    std::mt19937 random(1);
    for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random());
    const TemporaryFolder folder;
    const fs::path file = folder.path / "a.png", link = folder.path / "link.png";
    write_file(file, "old");
    fs::create_symlink(file, link);
    contains(error_of<DataError>([&] { write_png(link, image); }), "got a symbolic link");
    rlimit limit{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{20'000, limit.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const std::string error = error_of<DataError>([&] { write_png(file, image); });
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
    contains(error, file.string() + ": expected a file that can be written, got File too large");
    CHECK(read_file(file) == "old");
    CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 2);
}
