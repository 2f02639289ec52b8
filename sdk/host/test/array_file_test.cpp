// Tests of .npz files of named arrays.
#include <catena/array_file.hpp>
#include <catena/data_error.hpp>

#include "npz.hpp"
#include "temporary.hpp"

#include <doctest/doctest.h>

using namespace catena;

TEST_CASE("arrays of every dtype and shape come back as they were") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    std::map<std::string, Array> arrays;
    for (int i = 0; i < dtype_count; ++i) {
        const auto dtype = static_cast<Dtype>(i);
        const std::string key(name(dtype));
        arrays[key] = Array::from({0.0, 1.0, 1.0, 0.0, 1.0, 1.0}, {2, 3}).astype(dtype);
        arrays[key + "_0d"] = Array::full({}, 1, dtype);
        arrays[key + "_empty"] = Array::empty({3, 0, 2}, dtype);
    }
    arrays["none"] = Array();
    save_arrays(file, arrays);
    const auto loaded = load_arrays(file);
    CHECK(loaded.size() == 3 * dtype_count);
    for (const auto& [key, array] : loaded) {
        INFO(key);
        CHECK(array.dtype() == arrays.at(key).dtype());
        CHECK(array.shape() == arrays.at(key).shape());
        CHECK(array.to_vector<double>() == arrays.at(key).to_vector<double>());
    }
    const auto elsewhere = load_arrays(file, Device::get("cpu:1"));
    CHECK(elsewhere.at("float32").device() == Device::get("cpu:1"));
}

TEST_CASE("a file without arrays is a zip archive without members") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    for (int before = 0; before < 2; ++before) {  // the second time the file is replaced
        save_arrays(file, {{"none", Array()}});
        CHECK(std::filesystem::file_size(file) == 22);
        CHECK(load_arrays(file).empty());
        CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
        save_arrays(file, {{"x", Array::ones({2})}});
        CHECK(load_arrays(file).size() == 1);
    }
    contains(error_of<DataError>([&] { save_arrays(folder.path / "no" / "a.npz", {}); }),
             "expected a file that can be written, got No such file");
}

TEST_CASE("what is no array of catena is refused by name") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    for (const std::string descr : {"<u8", ">f8", "<i8x", "<i2"}) {  // the same wording for all
        INFO(descr);
        const std::size_t bytes = descr == "<i2" ? 2 : 8;
        write_npz(file, {{"x", {descr, {1}, std::vector<std::byte>(bytes)}}});
        contains(error_of<DataError>([&] { (void)load_arrays(file); }),
                 descr == "<i8x" ? "got elements of type '<i8x'" : "got '" + descr + "'");
    }
    contains(error_of<DataError>([&] { (void)load_arrays(file); }),
             "x: expected dtypes float16, bfloat16 (as |V2), float32, ");
    CHECK_THROWS_AS((void)load_arrays(folder.path / "none.npz"), DataError);
    CHECK_THROWS_AS(save_arrays(folder.path / "no" / "a.npz", {}), DataError);
}

namespace {

std::uint64_t number(const std::string& text, std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(text[at + i]);
    return value;
}

void put(std::string& text, std::size_t at, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) text[at + i] = static_cast<char>(value >> 8 * i);
}

}  // namespace

TEST_CASE("members that overlap are refused before they are read") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    save_arrays(file, {{"0000", Array::zeros({1000}, Dtype::float32)}});
    const std::string one = read_file(file);
    const std::size_t end = one.size() - 22;  // of the directory, which has one entry
    const auto directory = static_cast<std::size_t>(number(one, end + 16, 4));
    // Members that share the same bytes. With room, the file would be large enough for all of them.
    for (const std::size_t members : {std::size_t{2}, std::size_t{300}}) {
        for (const std::size_t room : {std::size_t{0}, members * directory}) {
            std::string text = one.substr(0, directory) + std::string(room, 'x');
            const std::size_t begin = text.size();
            for (std::size_t i = 0; i < members; ++i) {
                std::string record = one.substr(directory, end - directory);
                const std::size_t at = record.find("0000.npy");
                REQUIRE(at != record.npos);
                record.replace(at, 4, std::to_string(1000 + i));
                text += record;
            }
            const std::size_t size = text.size() - begin;
            text += one.substr(end);
            put(text, text.size() - 14, members, 2);
            put(text, text.size() - 12, members, 2);
            put(text, text.size() - 10, size, 4);
            put(text, text.size() - 6, begin, 4);
            write_file(file, text);
            for (const char* path : {"", "0", "none"}) {  // also if the path selects no member
                contains(error_of<DataError>([&] { (void)load_arrays(file, {}, path); }),
                         file.string() + ": expected a zip archive of arrays (.npz), got");
            }
        }
    }
}

TEST_CASE("a member that contains the next one is refused") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    save_arrays(file, {{"0000", Array::zeros({1000})}, {"1111", Array::zeros({1000})}});
    std::string text = read_file(file);
    const auto directory = static_cast<std::size_t>(number(text, text.size() - 6, 4));
    const std::size_t header = 30 + std::string("0000.npy").size();
    for (const std::size_t at :
         {std::size_t{18}, directory + 20}) {      // in the local header and in the directory entry
        put(text, at, directory - header, 4);      // compressed size
        put(text, at + 4, directory - header, 4);  // uncompressed size
    }
    write_file(file, text);
    contains(error_of<DataError>([&] { (void)load_arrays(file); }),
             file.string() + ": expected members that do not overlap, got more bytes of them than");
}

TEST_CASE("two members of one name are refused by name") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    save_arrays(file, {{"part/0000", Array::ones({2})}, {"part/1111", Array::zeros({3})}});
    std::string text = read_file(file);
    for (std::size_t at = 0; (at = text.find("1111.npy", at)) != text.npos;)
        text.replace(at, 4, "0000");
    write_file(file, text);
    for (const char* path : {"", "part/"}) {
        contains(error_of<DataError>([&] { (void)load_arrays(file, {}, path); }),
                 file.string() + ": expected each name once, got part/0000 twice");
    }
    CHECK(load_arrays(file, {}, "other").empty());  // members that are not requested are not read
}

TEST_CASE("elements that are not wanted are not read") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    save_arrays(file, {{"x", Array::ones({2})}, {"y", Array::ones({3, 4}, Dtype::int64)}});
    const Npz arrays = read_npz(file, "", [](const std::string& name, const NpyArray& header) {
        CHECK(header.descr == (name == "x" ? "<f4" : "<i8"));
        return name == "x";
    });
    CHECK(arrays.at("x").bytes.size() == 8);
    CHECK(arrays.at("y").bytes.empty());
    CHECK(arrays.at("y").shape == std::vector<std::int64_t>{3, 4});
    write_npz(file,
              {{"x", {"<f" + std::string(30'000, '0') + "4", {}, std::vector<std::byte>(4)}}});
    contains(error_of<DataError>([&] { (void)read_npz(file); }), "got elements of type '<f000");
}

TEST_CASE("a directory in 64 bits, and what is wrong in one") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    save_arrays(file, {{"x", Array::full({3}, 7, Dtype::int32)}});
    const std::string one = read_file(file);
    const std::size_t end = one.size() - 22;
    const auto directory = static_cast<std::size_t>(number(one, end + 16, 4));
    // Converts the file to Zip64: 32-bit fields are 0xffffffff, 64-bit records have the values.
    const auto in_64_bits = [&](std::uint64_t offset) {
        std::string record = one.substr(directory, end - directory);
        REQUIRE(number(record, 30, 2) == 0);
        std::string extra(28, '\0');
        put(extra, 0, 1, 2);
        put(extra, 2, 24, 2);
        put(extra, 4, number(record, 24, 4), 8);
        put(extra, 12, number(record, 20, 4), 8);
        put(extra, 20, offset, 8);
        for (const std::size_t at : {20U, 24U, 42U}) put(record, at, 0xffffffff, 4);
        put(record, 30, extra.size(), 2);
        record += extra;
        std::string end64(56, '\0'), locator(20, '\0'), last = one.substr(end);
        end64.replace(0, 4, "PK\6\6");
        put(end64, 4, 44, 8);
        put(end64, 12, 45, 2);
        put(end64, 14, 45, 2);
        put(end64, 24, 1, 8);
        put(end64, 32, 1, 8);
        put(end64, 40, record.size(), 8);
        put(end64, 48, directory, 8);
        locator.replace(0, 4, "PK\6\7");
        put(locator, 8, directory + record.size(), 8);
        put(locator, 16, 1, 4);
        put(last, 8, 0xffff, 2);
        put(last, 10, 0xffff, 2);
        put(last, 12, 0xffffffff, 4);
        put(last, 16, 0xffffffff, 4);
        return one.substr(0, directory) + record + end64 + locator + last;
    };
    write_file(file, in_64_bits(0));
    CHECK(load_arrays(file).at("x").to_vector<std::int32_t>() == std::vector<std::int32_t>(3, 7));
    write_file(file, one + "after the end");  // libzip and NumPy accept such a file
    CHECK(load_arrays(file).size() == 1);
    for (const std::uint64_t offset :
         {std::uint64_t{1}, std::uint64_t{directory}, ~std::uint64_t{0}}) {
        CAPTURE(offset);
        write_file(file, in_64_bits(offset));
        contains(error_of<DataError>([&] { (void)load_arrays(file); }), file.string());
    }
    // Changes each byte in turn: loading returns arrays or throws DataError.
    const std::string whole = in_64_bits(0);
    for (std::size_t i = directory; i < whole.size(); ++i) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x35);
        write_file(file, damaged);
        try {
            (void)load_arrays(file);
        } catch (const DataError& error) {
            contains(error.what(), file.string());
        }
    }
}
