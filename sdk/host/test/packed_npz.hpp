// Builds .npz files whose members deflate to few bytes.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

inline std::string little_endian(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value);
    return text;
}

// Returns a .npy file with the header dict and `bytes` bytes of 1.
inline std::string npy(const std::string& dict, std::size_t bytes) {
    const std::string header = dict + '\n';
    return "\x93NUMPY" + little_endian(1, 2) + little_endian(header.size(), 2) + header +
           std::string(bytes, '\1');
}

// Returns an archive with a member for each name, all with the same content. If apart is false, all
// members refer to the same bytes of the file.
inline std::string packed_npz(const std::vector<std::string>& names, const std::string& content,
                              bool apart) {
    const auto size = static_cast<uInt>(content.size());
    const auto* data = reinterpret_cast<const Bytef*>(content.data());
    std::string packed(compressBound(size) + 64, '\0');
    z_stream stream{};
    stream.next_in = const_cast<Bytef*>(data);
    stream.avail_in = size;
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    // -15: raw deflate data, without header and trailer.
    if (deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
        deflate(&stream, Z_FINISH) != Z_STREAM_END)
        throw std::runtime_error("[deflate] expected a stream, got none");
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    // Version, flags, method (deflate), time and date.
    const std::string sizes = little_endian(20, 2) + little_endian(0, 2) + little_endian(8, 2) +
                              little_endian(0, 4) + little_endian(crc32(0, data, size), 4) +
                              little_endian(packed.size(), 4) + little_endian(size, 4);
    std::string text, directory;
    std::size_t begin = 0;
    for (const std::string& each : names) {
        const std::string name = each + ".npy";
        if (apart || text.empty()) {
            begin = text.size();
            text += "PK\3\4" + sizes + little_endian(name.size(), 2) + little_endian(0, 2) + name +
                    packed;
        }
        directory += "PK\1\2" + little_endian(20, 2) + sizes + little_endian(name.size(), 2) +
                     little_endian(0, 12) + little_endian(begin, 4) + name;
    }
    return text + directory + "PK\5\6" + little_endian(0, 4) + little_endian(names.size(), 2) +
           little_endian(names.size(), 2) + little_endian(directory.size(), 4) +
           little_endian(text.size(), 4) + little_endian(0, 2);
}
