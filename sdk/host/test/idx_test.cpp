// Tests of the IDX reader and MNIST: valid files, and all ways in which a file can be invalid.
#include <catena/data_error.hpp>
#include <catena/mnist.hpp>

#include "temporary.hpp"

#include <zlib.h>

using namespace catena;

namespace {

std::string number(std::uint32_t n) {
    return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
            static_cast<char>(n)};
}

std::string idx(std::initializer_list<std::uint32_t> sizes, const std::string& values) {
    std::string text = number(0x0800u | static_cast<std::uint32_t>(sizes.size()));
    for (const auto size : sizes) text += number(size);
    return text + values;
}

void write_gz(const std::filesystem::path& file, const std::string& content) {
    gzFile out = gzopen(file.c_str(), "wb");
    REQUIRE(gzwrite(out, content.data(), static_cast<unsigned>(content.size())) ==
            static_cast<int>(content.size()));
    REQUIRE(gzclose(out) == Z_OK);
}

}  // namespace

TEST_CASE("plain and compressed files read alike") {
    const TemporaryFolder folder;
    const std::string content = idx({2, 3}, {'\0', '\1', '\2', '\3', '\xfe', '\xff'});
    write_file(folder.path / "a", content);
    write_gz(folder.path / "a.gz", content);
    for (const char* name : {"a", "a.gz"}) {
        const IdxFile read = read_idx(folder.path / name, 2);
        CHECK(read.shape == std::vector<std::int64_t>{2, 3});
        CHECK(read.values == std::vector<std::uint8_t>{0, 1, 2, 3, 254, 255});
    }
    write_file(folder.path / "empty", idx({0, 3}, ""));
    CHECK(read_idx(folder.path / "empty", 2).values.empty());
}

TEST_CASE("bad files are named, with what was expected and what came") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.gz";
    const auto refused = [&](const std::string& part, int ndim = 1) {
        const auto text = error_of<DataError>([&] { read_idx(file, ndim); });
        contains(text, file.string());
        contains(text, part);
    };
    refused("expected a file, got none: there is no such file");
    write_file(file, "hello");
    refused("expected gzip data (1f 8b), got 68 65");
    write_gz(file, "");
    refused("a magic number (4 bytes), got 0 bytes");
    write_gz(file, idx({2, 3}, "123456"));
    refused("expected magic number 0x00000801 (bytes, 1 dimensions), got 0x00000802");
    write_gz(file, number(0x801) + "12");
    refused("the sizes (4 bytes), got 2 bytes");
    write_gz(file, idx({5}, "1234"));
    refused("the values (5 bytes), got 4 bytes: the file is cut off");
    write_gz(file, idx({3}, "1234"));
    refused("expected the end of the file, got more bytes");

    SUBCASE("a gzip stream that is cut off or damaged") {
        std::string noise;
        for (unsigned i = 0; i < 4000; ++i) noise += static_cast<char>(i * i * 2654435761u >> 13);
        write_gz(file, idx({4000}, noise));
        const std::string whole = read_file(file);
        for (const std::size_t length : {whole.size() / 2, whole.size() - 9, whole.size() - 4}) {
            write_file(file, whole.substr(0, length));
            refused("expected");
        }
        std::string damaged = whole;
        damaged[damaged.size() - 6] ^= 1;  // damages the checksum
        write_file(file, damaged);
        refused("damaged gzip data");
    }
    SUBCASE("sizes that the file cannot hold take no memory") {
        write_gz(file, idx({0xffffffff, 0xffffffff, 0xffffffff}, "1"));
        refused("in a file of this size, got sizes 4294967295", 3);
        write_gz(file, idx({0xffffffff}, "1"));
        refused("in a file of this size, got sizes 4294967295");
    }
}

TEST_CASE("MNIST is checked as a whole") {
    const TemporaryFolder folder;
    const auto put = [&](const char* name, const std::string& text) {
        write_file(folder.path / name, text);
    };
    CHECK_FALSE(has_mnist(folder.path));
    contains(error_of<DataError>([&] { load_mnist(folder.path); }), "train-images-idx3-ubyte");
    put("train-images-idx3-ubyte", idx({2, 1, 2}, {'\0', '\x33', '\xff', '\0'}));
    put("train-labels-idx1-ubyte", idx({2}, {'\3', '\x9'}));
    put("t10k-images-idx3-ubyte", idx({1, 1, 2}, {'\0', '\0'}));
    put("t10k-labels-idx1-ubyte", idx({1}, {'\0'}));
    CHECK(has_mnist(folder.path));
    const Mnist mnist = load_mnist(folder.path);
    CHECK(mnist.train.size() == 2);
    CHECK(mnist.test.size() == 1);
    CHECK(mnist.train.arrays[0].shape() == Shape{2, 2});
    CHECK(mnist.train.arrays[0].to_vector<float>() == std::vector<float>{0, 0.2F, 1, 0});
    CHECK(mnist.train.arrays[1].dtype() == Dtype::int32);
    CHECK(mnist.train.arrays[1].to_vector<std::int32_t>() == std::vector<std::int32_t>{3, 9});

    put("train-labels-idx1-ubyte", idx({2}, {'\3', '\xa'}));
    contains(error_of<DataError>([&] { load_mnist(folder.path); }),
             "expected labels 0 to 9, got 10 at 1");
    put("train-labels-idx1-ubyte", idx({1}, {'\3'}));
    contains(error_of<DataError>([&] { load_mnist(folder.path); }),
             "expected 2 labels, one for each image, got 1");
}
