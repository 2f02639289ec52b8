// Image files made by hand.
#pragma once

#include "temporary.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <jpeglib.h>
#include <zlib.h>

inline std::string big_endian(std::uint32_t value) {
    return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
            static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string png_chunk(const std::string& kind, const std::string& data) {
    const std::string body = kind + data;
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    return big_endian(static_cast<std::uint32_t>(data.size())) + body +
           big_endian(static_cast<std::uint32_t>(crc));
}

// Makes a file from rows as PNG has them, without filters; more: chunks before the pixels.
inline std::string png_file(int width, int height, int depth, int colour_type,
                            const std::vector<std::string>& rows, const std::string& more = {}) {
    std::string raw;
    for (const std::string& row : rows) raw += '\0' + row;
    std::string packed(compressBound(raw.size()), '\0');
    uLongf size = packed.size();
    REQUIRE(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                     reinterpret_cast<const Bytef*>(raw.data()), raw.size()) == Z_OK);
    packed.resize(size);
    std::string header = big_endian(static_cast<std::uint32_t>(width)) +
                         big_endian(static_cast<std::uint32_t>(height));
    header += {static_cast<char>(depth), static_cast<char>(colour_type), 0, 0, 0};
    return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + more + png_chunk("IDAT", packed) +
           png_chunk("IEND", "");
}

// Makes a file from rows with `components` bytes a pixel: 1 grey, 3 RGB, 4 CMYK as Adobe writes it.
inline std::string jpeg_file(int width, int height, int components,
                             const std::vector<std::uint8_t>& pixels, bool progressive = false) {
    jpeg_compress_struct info{};
    jpeg_error_mgr errors{};
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char* memory = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&info, &memory, &size);
    info.image_width = static_cast<JDIMENSION>(width);
    info.image_height = static_cast<JDIMENSION>(height);
    info.input_components = components;
    info.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 95, TRUE);
    if (progressive) jpeg_simple_progression(&info);
    jpeg_start_compress(&info, TRUE);
    std::vector<std::uint8_t> row(static_cast<std::size_t>(width * components));
    for (int y = 0; y < height; ++y) {
        std::copy_n(pixels.begin() + y * width * components, row.size(), row.begin());
        JSAMPROW line = row.data();
        jpeg_write_scanlines(&info, &line, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    std::string file(reinterpret_cast<char*>(memory), size);
    free(memory);
    return file;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}
