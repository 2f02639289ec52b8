// The readers, with valid and hostile inputs.
#include "target.hpp"

#include "npz.hpp"
#include "packed_npz.hpp"

#include <catena/catena.hpp>
#include <catena/images/image.hpp>

#include <zlib.h>

#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace catena_fuzz {
namespace {

using namespace catena;
namespace fs = std::filesystem;

// Returns the path of the file for all inputs, in memory if the system has /dev/shm.
const fs::path& scratch() {
    static const fs::path file =
        (fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
        ("catena-fuzz-" + std::to_string(getpid()));
    return file;
}

fs::path put(const std::string& input, const char* ending = "") {
    fs::path file = scratch();
    file += ending;
    std::ofstream(file, std::ios::binary) << input;
    return file;
}

std::string take(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(in), {}};
    in.close();
    fs::remove(file);
    return content;
}

struct Snapshot : Link {
    links::Linear l{2, 3};
    Array ids = Array::from<std::int64_t>({-1, 1LL << 40}, {1, 2});
    Array flags = Array::from<bool>({true, false, true}, {3});
    std::int64_t count = 5;
    void visit(Visitor& v) override {
        v("l", l)("ids", ids)("flags", flags)("count", count).require("text", "a text");
    }
};

std::string saved(const char* ending) {
    fs::path file = scratch();
    file += ending;
    save_snapshot(file, Snapshot());
    return take(file);
}

void load(const std::string& input, const char* ending) {
    const fs::path file = put(input, ending);
    Snapshot snapshot;
    try {
        (void)load_arrays(file);
    } catch (const DataError&) {
    }
    load_snapshot(file, snapshot);
}

// Returns a header with nested arrays.
std::string deep_json(std::size_t depth) {
    const std::string header =
        R"({"l/W":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
    return little_endian(header.size(), 8) + header;
}

std::string gzip(const std::string& text) {
    fs::path file = scratch();
    file += ".gz";
    gzFile out = gzopen(file.c_str(), "wb");
    gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    gzclose(out);
    return take(file);
}

// Returns an archive of `n` members of a megabyte each. Snapshot expects the name of the first.
std::string megabytes_npz(int n, bool apart) {
    std::vector<std::string> names{"l/W"};
    for (int i = 1; i < n; ++i) names.push_back("x" + std::to_string(i));
    const std::string dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (1048576,), }";
    return packed_npz(names, npy(dict, std::size_t{1} << 20), apart);
}

std::string idx(int ndim, const std::vector<int>& sizes, std::size_t bytes) {
    std::string text{0, 0, 8, static_cast<char>(ndim)};
    for (const int size : sizes) text += {0, 0, 0, static_cast<char>(size)};
    return text + std::string(bytes, '\3');
}

std::string png(std::int64_t height, std::int64_t width) {
    Image image{height, width,
                std::vector<std::uint8_t>(static_cast<std::size_t>(3 * height * width))};
    for (std::size_t i = 0; i < image.pixels.size(); ++i)
        image.pixels[i] = static_cast<std::uint8_t>(i * i);
    fs::path file = scratch();
    file += ".png";
    write_png(file, image);
    return take(file);
}

// Corrects the checksums of all chunks.
void repair_png(std::string& text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    for (std::size_t at = 8; at + 12 <= text.size();) {
        const std::size_t length = std::size_t{byte(at)} << 24 | std::size_t{byte(at + 1)} << 16 |
                                   std::size_t{byte(at + 2)} << 8 | byte(at + 3);
        if (length > text.size() - at - 12) return;
        const auto crc = crc32(0, reinterpret_cast<const Bytef*>(text.data()) + at + 4,
                               static_cast<uInt>(length + 4));
        for (std::size_t i = 0; i < 4; ++i)
            text[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
        at += 12 + length;
    }
}

// Corrects the checksums of all members, in their local headers and in the directory.
void repair_zip(std::string& text) {
    const auto number = [&](std::size_t at, std::size_t bytes) {
        std::size_t value = 0;
        for (std::size_t i = 0; i < bytes; ++i)
            value |= std::size_t{static_cast<unsigned char>(text[at + i])} << 8 * i;
        return value;
    };
    for (std::size_t at = text.find("PK\1\2"); at != text.npos && at + 46 <= text.size();
         at = text.find("PK\1\2", at + 4)) {
        const std::size_t local = number(at + 42, 4), size = number(at + 20, 4);
        if (local > text.size() || text.size() - local < 30) continue;
        const std::size_t begin = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        if (begin > text.size() || size > text.size() - begin) continue;
        const auto crc =
            crc32(0, reinterpret_cast<const Bytef*>(text.data()) + begin, static_cast<uInt>(size));
        for (std::size_t i = 0; i < 4; ++i)
            text[local + 14 + i] = text[at + 16 + i] = static_cast<char>(crc >> 8 * i);
    }
}

std::vector<std::string> files(const char* folder) {
    std::vector<std::string> contents;
    for (const auto& entry : fs::directory_iterator(fs::path(CATENA_FUZZ_SEEDS) / folder)) {
        std::ifstream in(entry.path(), std::ios::binary);
        contents.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return contents;
}

void decode(const std::string& input) {
    for (const std::int64_t least : {0, 3}) {
        const Image image = decode_image(std::as_bytes(std::span(input)), "input", least);
        (void)resize_shorter(image, 3);
        const auto [shorter, longer] = std::minmax(image.height, image.width);
        if (longer / shorter >= 1000) (void)resize_shorter(image, 4096);  // must be refused
    }
}

}  // namespace

std::vector<Target> all_targets() {
    const std::string text = "One <unk> two,\n three 3.5 'quoted' \xc3\xbc\xe2\x82\xac\n";
    return {
        {"npz",
         {saved(".npz")},
         {megabytes_npz(2, false), megabytes_npz(300, false), megabytes_npz(30, true)},
         [](const std::string& input) { load(input, ".npz"); },
         repair_zip},
        {"npy",
         {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24),
          npy("{'descr': '|b1', 'fortran_order': True, 'shape': (2, 2, 1), }", 4),
          npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", 8),
          npy("{'descr': '|S5', 'fortran_order': False, 'shape': (), }", 5)},
         {},
         [](const std::string& input) {
             NpyArray array;
             const auto bytes = std::as_bytes(std::span(input));
             const std::string wrong = parse_npy({bytes.begin(), bytes.end()}, array);
             if (!wrong.empty()) throw DataError(wrong);
         },
         {}},
        {"safetensors",
         {saved(".safetensors")},
         {deep_json(64), deep_json(100'000)},
         [](const std::string& input) { load(input, ".safetensors"); },
         {}},
        {"idx",
         {idx(3, {2, 3, 4}, 24), idx(1, {5}, 5), gzip(idx(3, {1, 2, 2}, 4))},
         {},
         [](const std::string& input) {
             const fs::path file = put(input);
             try {
                 (void)read_idx(file, 3);
             } catch (const DataError&) {
             }
             (void)read_idx(file, 1);
         },
         {}},
        {"png", {png(5, 7), png(1, 900)}, {png(1, 20'000)}, decode, repair_png},
        {"jpeg", files("jpeg"), {}, decode, {}},
        {"text",
         {text, gzip(text)},
         {},
         [](const std::string& input) {
             const std::string content = read_text(put(input));
             for (const auto tokens : {Tokens::words, Tokens::spaces, Tokens::characters}) {
                 const Vocabulary vocabulary = Vocabulary::of(content, tokens);
                 (void)vocabulary.decode(vocabulary.encode(content));
                 if (Vocabulary::of(text_pieces(scratch()), tokens).encode(content) !=
                     vocabulary.encode(text_pieces(scratch())))
                     throw std::logic_error("a text in pieces has other tokens");
             }
         },
         {}},
    };
}

}  // namespace catena_fuzz
