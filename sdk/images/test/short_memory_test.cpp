// Each reader of files names its file, and names it once, wherever memory runs out in it.
#include <catena/catena.hpp>
#include <catena/images/image.hpp>
#include <catena_test/child.hpp>

#include "files.hpp"
#include "packed_npz.hpp"

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

using namespace catena;
namespace fs = std::filesystem;

namespace {

constexpr int done = 0, named = 1, wrong = 2;

// Reads in a process that gets so many bytes more: done, named, or, with a line about it, wrong.
int read_with(std::uint64_t more, const std::string& file, const std::function<void()>& read) {
    const std::uint64_t there = catena_test::address_space();
    return catena_test::end_of([&] {
        int result = wrong;
        catena_test::limit_address_space(there);
        while (std::malloc(1 << 15) != nullptr) continue;  // what lies free in the heap
        catena_test::limit_address_space(there + more);
        try {
            read();
            result = done;
        } catch (const Error& error) {
            const char* first = std::strstr(error.what(), file.c_str());
            const bool once = first != nullptr && std::strstr(first + 1, file.c_str()) == nullptr;
            result = once ? named : wrong;
            if (!once) std::fprintf(stderr, "%s\n", error.what());
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
        }
        return result;
    });
}

std::string noise(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t random = 1;
    for (char& byte : bytes)
        byte = static_cast<char>((random = random * 1664525 + 1013904223) >> 24);
    return bytes;
}

struct State : Visitable {
    Vocabulary vocabulary;
    void visit(Visitor& v) override { v("vocabulary", vocabulary); }
};

}  // namespace

TEST_CASE("memory that runs out in a reader is told with its file") {
    mallopt(M_MMAP_THRESHOLD, 1 << 16);  // what is freed goes back to the system
    const TemporaryFolder folder;
    const auto path = [&](const char* name) { return folder.path / name; };
    constexpr int side = 1500;
    const std::string values = noise(std::size_t{side} * side * 3);
    const auto n = static_cast<std::int64_t>(values.size());
    for (const char* name : {"a.npz", "a.safetensors"}) {
        links::Linear layer(1000, 2000);
        save_snapshot(path(name), layer);
    }
    write_file(path("a.idx"),
               big_endian(0x801) + big_endian(static_cast<std::uint32_t>(n)) + values);
    std::vector<std::string> rows;
    for (std::size_t y = 0; y < side; ++y) rows.push_back(values.substr(y * side * 3, side * 3));
    write_file(path("a.png"), png_file(side, side, 8, 2, rows));
    write_file(path("a.jpg"), jpeg_file(side, side, 3, {values.begin(), values.end()}, true));
    std::string text;
    for (int i = 0; i < 300'000; ++i) text += "word" + std::to_string(i % 50'000) + ' ';
    write_file(path("a.txt"), text);
    State state;
    state.vocabulary = Vocabulary::of(text, Tokens::words);
    save_snapshot(path("words.npz"), state);
    save_snapshot(path("words.safetensors"), state);

    const struct {
        const char* file;
        std::function<void(const fs::path&)> read;
    } readers[] = {
        {"a.npz", [](const fs::path& file) { (void)load_arrays(file); }},
        {"a.safetensors", [](const fs::path& file) { (void)load_arrays(file); }},
        {"a.npz", [layer = std::make_shared<links::Linear>(1000, 2000)](
                      const fs::path& file) { load_snapshot(file, *layer); }},
        {"words.npz", [](const fs::path& file) { (void)load_texts(file); }},
        {"words.npz", [](const fs::path& file) { (void)Vocabulary::load(file); }},
        {"words.safetensors", [](const fs::path& file) { (void)Vocabulary::load(file); }},
        {"a.idx", [](const fs::path& file) { (void)read_idx(file, 1); }},
        {"a.png", [](const fs::path& file) { (void)read_image(file); }},
        {"a.jpg", [](const fs::path& file) { (void)read_image(file); }},
        {"a.jpg", [](const fs::path& file) { (void)read_resized(file, 1600); }},
        {"a.txt", [](const fs::path& file) { (void)read_text(file); }},
        {"a.txt", [&](const fs::path& file) { (void)state.vocabulary.encode(text_pieces(file)); }},
    };
    int row = -1;
    for (const auto& [name, read] : readers) {
        ++row;
        const std::string file = path(name).string();
        CAPTURE(row);
        CAPTURE(file);
        const auto reading = [&, &how = read] { how(file); };
        reading();  // what it loads once is there
        Device::current().release_cached();
        int refused = 0, result = named;
        for (std::uint64_t more = 0; more < 64 << 20 && result != done; more += 512 << 10) {
            CAPTURE(more);
            result = read_with(more, file, reading);
            CHECK(result != wrong);
            refused += static_cast<int>(result == named);
        }
        CHECK(result == done);
        CHECK(refused > 0);
    }
}

TEST_CASE("sizes that a file only claims to have take no memory") {
    const TemporaryFolder folder;
    constexpr std::uint64_t mebibyte = 1 << 20;
    const auto claimed = static_cast<std::uint32_t>(900 * mebibyte);
    const auto npz = folder.path / "a.npz", idx = folder.path / "a.idx.gz";
    save_arrays(npz, {{"x", Array::zeros({1 << 18})}});
    // The member says in its record of the directory that deflate made it so much smaller.
    std::string archive = read_file(npz);
    const std::size_t record = archive.rfind("PK\1\2");
    REQUIRE(record != archive.npos);
    for (const std::size_t header : {record + 2, std::size_t{0}}) archive[header + 8] = '\x8';
    for (std::size_t i = 0; i < 4; ++i)
        archive[record + 24 + i] = static_cast<char>(claimed >> 8 * i);
    write_file(npz, archive);
    gzFile out = gzopen(idx.c_str(), "wb");
    const std::string content = big_endian(0x801) + big_endian(claimed) + noise(mebibyte);
    REQUIRE(gzwrite(out, content.data(), static_cast<unsigned>(content.size())) > 0);
    gzclose(out);
    const auto refused = [](const auto& read) {
        try {
            read();
        } catch (const DataError&) {  // and no MemoryError
            return;
        }
        throw std::logic_error("expected a DataError, got none");
    };
    CHECK(read_with(100 * mebibyte, npz.string(),
                    [&] { refused([&] { (void)load_arrays(npz); }); }) == done);
    CHECK(read_with(100 * mebibyte, idx.string(),
                    [&] { refused([&] { (void)read_idx(idx, 1); }); }) == done);
}

TEST_CASE("elements that do not fit what is loaded take no memory") {
    const TemporaryFolder folder;
    constexpr std::uint64_t mebibyte = 1 << 20;
    const auto file = folder.path / "a.npz";
    std::vector<std::string> names{"W", "b", "text"};
    for (int i = 0; i < 27; ++i) names.push_back("x" + std::to_string(i));
    struct Layer : links::Linear {
        using Linear::Linear;
        void visit(Visitor& v) override {
            Linear::visit(v);
            v.require("text", "");
        }
    };
    const auto load = [&](const std::string& descr, const std::string& shape) {
        // 3 GB in a file of 3 MB.
        write_file(file,
                   packed_npz(names,
                              npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" +
                                      shape + "), }",
                                  100 * mebibyte),
                              true));
        REQUIRE(fs::file_size(file) < 4 * mebibyte);
        return [&](const std::vector<std::string>& parts, bool rename) {
            Layer layer(2, 3);
            LoadOptions options;
            if (rename) options.rename = renaming({});
            const auto reading = [&] {
                try {
                    load_npz(file, layer, options);
                } catch (const DataError& error) {
                    for (const std::string& part : parts)
                        if (std::string(error.what()).find(part) == std::string::npos) throw;
                    return;
                }
                throw std::logic_error("expected a DataError, got none");
            };
            CHECK(read_with(32 * mebibyte, file.string(), reading) == done);
        };
    };
    for (const bool rename : {false, true}) {
        CAPTURE(rename);
        load("<f4", "26214400,")({"W: expected float32 (3, 2), got float32 (26214400,)",
                                  "text: expected , got no text", "x26: not expected"},
                                 rename);
        load("|S104857600", "")({"W: expected float32 (3, 2), got a text",
                                 "text: expected , got a text of 104857600 bytes"},
                                rename);
        // The header has the shape that is expected, and more follows it.
        load("<f4", "3, 2")({"expected an array W that fits its header"}, rename);
    }
}
