// Arrays by name in files.
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
    for (int before = 0; before < 2; ++before) {  // also where a file is replaced
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
    for (const std::string descr : {"<u8", ">f8", "<i8x", "<i2"}) {  // one wording for all of them
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
