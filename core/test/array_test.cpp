// Tests of arrays: creation, views, copies between devices, errors.
#include "toys.hpp"

#include <catena/core/array.hpp>
#include <catena/core/error.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

TEST_CASE("arrays of every dtype are made, filled and read on every kind of device") {
    for (const char* device : {"toy:0", "vault:0"}) {
        for (int i = 0; i < dtype_count; ++i) {
            const auto dtype = static_cast<Dtype>(i);
            const Array a = Array::full({2, 3}, 1, dtype, Device::get(device));
            CHECK(a.shape() == Shape{2, 3});
            CHECK(a.ndim() == 2);
            CHECK(a.size() == 6);
            CHECK(a.nbytes() == 6 * item_size(dtype));
            CHECK(a.dtype() == dtype);
            CHECK(a.device().name() == device);
            CHECK(values(a) == Values(6, 1));
            CHECK(values(Array::zeros({3}, dtype, Device::get(device))) == Values(3, 0));
            CHECK(values(Array::ones({}, dtype, Device::get(device))) == Values(1, 1));
            for (int j = 0; j < dtype_count; ++j) {
                const Array b = a.astype(static_cast<Dtype>(j));
                CHECK(b.dtype() == static_cast<Dtype>(j));
                CHECK(values(b) == Values(6, 1));
                CHECK((b.body() == a.body()) == (i == j));
            }
        }
    }
}

TEST_CASE("host elements go in and come out in row-major order") {
    const Array a = Array::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
    CHECK(a.device().name() == "toy:0");
    CHECK(a.to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
    CHECK(a.host<float>()[4] == 5);
    a.host<float>()[4] = 50;
    CHECK(values(a)[4] == 50);
    const Array hidden = Array::from<std::int64_t>({7, 8}, {2}, Device::get("vault:1"));
    CHECK(hidden.to_vector<std::int64_t>() == std::vector<std::int64_t>{7, 8});
    CHECK(Array::from<bool>({true, false}, {2}).to_vector<std::uint8_t>() ==
          std::vector<std::uint8_t>{1, 0});
    CHECK_THROWS_WITH_AS(Array::from<float>({1, 2}, {3}),
                         "[array] values: expected 3 for shape (3,), got 2", ShapeError);
}

TEST_CASE("arrays without elements and without axes") {
    const Array none = Array::empty({0, 3});
    CHECK(none.size() == 0);
    CHECK(none.nbytes() == 0);
    CHECK(values(none).empty());
    none.fill(1);
    CHECK(values(none.copy()).empty());
    CHECK(none.astype(Dtype::float64).size() == 0);
    CHECK(none.to(Device::get("vault")).to(Device::get("toy")).shape() == Shape{0, 3});
    CHECK(Array::from<float>({}, {2, 0}).size() == 0);
    const Array scalar = Array::full({}, 2.5);
    CHECK(scalar.ndim() == 0);
    CHECK(scalar.size() == 1);
    CHECK(scalar.item<double>() == 2.5);
    CHECK(Array::from<float>({2}, {1, 1}).item<float>() == 2);
    CHECK_THROWS_WITH_AS((void)Array::zeros({2}).item<float>(),
                         "[array] item(): expected one element, got shape (2,)", ShapeError);
    CHECK_THROWS_WITH_AS((void)none.item<float>(),
                         "[array] item(): expected one element, got shape (0, 3)", ShapeError);
}

TEST_CASE("a reshaped array is the same memory") {
    const Array a = Array::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
    const Array b = a.reshape({3, -1});
    CHECK(b.shape() == Shape{3, 2});
    b.host<float>()[0] = 10;
    CHECK(values(a)[0] == 10);
    CHECK(a.reshape({-1}).shape() == Shape{6});
    CHECK(a.reshape({1, -1, 1, 2}).shape() == Shape{1, 3, 1, 2});
    const Array flat = b.reshape({6});
    CHECK(flat.host<float>().data() == a.host<float>().data());
    CHECK(Array::zeros({0, 4}).reshape({-1, 4}).shape() == Shape{0, 4});
    CHECK(Array::zeros({1}).reshape(Shape{}).ndim() == 0);
    CHECK_THROWS_WITH_AS(a.reshape({4, 2}),
                         "[reshape] shape: expected 6 elements as in (2, 3), got (4, 2)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(a.reshape({4, -1}),
                         "[reshape] shape: expected 6 elements as in (2, 3), got (4, -1)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(a.reshape({-1, -1}),
                         "[shape] extents: expected none below 0, got (-1, -1)", ShapeError);
    CHECK_THROWS_WITH_AS(a.reshape({-1, 0}),
                         "[reshape] shape: expected 6 elements as in (2, 3), got (-1, 0)",
                         ShapeError);
    CHECK_THROWS_AS(a.reshape({-2, -3}), ShapeError);
    CHECK_THROWS_AS(a.reshape({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3}), ShapeError);
}

TEST_CASE("a view keeps its memory alive") {
    Array view;
    {
        const Array a = Array::full({100, 100}, 3);
        view = a.reshape({10000}).reshape({50, 200});
    }
    const Array other = Array::full({100, 100}, 4);
    CHECK(values(view) == Values(10000, 3));
}

TEST_CASE("strided host views are gathered") {
    const std::vector<double> host = {0, 1, 2, 3, 4, 5};
    const std::int64_t transposed[] = {1, 3};
    CHECK(values(Array::from_strided(host.data(), {3, 2}, transposed)) == Values{0, 3, 1, 4, 2, 5});
    const std::int64_t backwards[] = {-2};
    CHECK(values(Array::from_strided(host.data() + 5, {3}, backwards)) == Values{5, 3, 1});
    const std::int64_t repeated[] = {0, 1};
    CHECK(values(Array::from_strided(host.data(), {2, 3}, repeated)) == Values{0, 1, 2, 0, 1, 2});
    const std::int64_t mixed[] = {-3, 0, 1};
    CHECK(values(Array::from_strided(host.data() + 3, {2, 2, 2}, mixed, Device::get("vault"))) ==
          Values{3, 4, 3, 4, 0, 1, 0, 1});
    CHECK(Array::from_strided(host.data(), {0, 2}, transposed).size() == 0);
    CHECK(values(Array::from_strided(host.data() + 4, {}, transposed)) == Values{4});
}

TEST_CASE("copies between all devices") {
    const Array source = Array::from<std::int32_t>({1, 2, 3}, {3});
    const std::string names[] = {"toy:0", "toy:1", "vault:0", "vault:1"};
    for (const std::string& from : names) {
        for (const std::string& to : names) {
            INFO(from << " to " << to);
            const Array a = source.to(Device::get(from));
            const Array b = a.to(Device::get(to));
            CHECK(b.device().name() == to);
            CHECK(b.to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 2, 3});
            CHECK((a.body() == b.body()) == (from == to));
            const Array c = Array::zeros({3}, Dtype::int32, Device::get(to));
            c.copy_from(a);
            CHECK(values(c) == Values{1, 2, 3});
        }
        const Array a = source.to(Device::get("toy:1")).to(Device::get(from)).copy();
        const Array copy = a.copy();
        CHECK(copy.body() != a.body());
        a.fill(9);
        CHECK(values(a) == Values{9, 9, 9});
        CHECK(values(copy) == Values{1, 2, 3});
        CHECK(values(a.astype(Dtype::float64)) == Values{9, 9, 9});
    }
    CHECK_THROWS_WITH_AS(Array::zeros({2}).copy_from(Array::zeros({3}, Dtype::int64)),
                         "[copy] source: expected (2,) float32, got (3,) int64", ShapeError);
}

TEST_CASE("misuse of arrays is told") {
    const Array none;
    CHECK_FALSE(none);
    CHECK_THROWS_WITH_AS((void)none.shape(), "[array] expected an array, got an empty handle",
                         InvalidError);
    CHECK_THROWS_AS((void)none.size(), InvalidError);
    CHECK_THROWS_AS((void)none.copy(), InvalidError);
    CHECK_THROWS_AS((void)none.to_vector<float>(), InvalidError);
    const Array zeros = Array::zeros({2});
    CHECK_THROWS_WITH_AS((void)zeros.host<double>(),
                         "[array] host(): expected float64, got float32", DtypeError);
    const Array far = Array::zeros({2}, Dtype::float32, Device::get("vault"));
    CHECK_THROWS_WITH_AS((void)far.host<float>(),
                         "[array] host(): expected a device that the host can reach, got vault:0; "
                         "copy it with to()",
                         DeviceError);
    CHECK_THROWS_WITH_AS(Array::zeros({2, -1}),
                         "[shape] extents: expected none below 0, got (2, -1)", ShapeError);
    CHECK_THROWS_WITH_AS(Array::zeros({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
                         "[shape] rank: expected at most 16, got 17", ShapeError);
    constexpr std::int64_t much = std::int64_t{1} << 40;
    CHECK_THROWS_WITH_AS(
        Array::empty({much, much}),
        "[array] shape (1099511627776, 1099511627776): expected extents other than "
        "0 that multiply to at most 2^59",
        MemoryError);
    // The size of an empty array does not overflow either, whichever extent is 0.
    CHECK_THROWS_AS(Array::empty({0, much, much}), MemoryError);
    CHECK_THROWS_AS(Array::empty({much, 0, much}), MemoryError);
    CHECK_THROWS_AS(Array::empty({much, much, 0}), MemoryError);
    CHECK(Array::empty({much, 0, 3}).size() == 0);
    for (int log = 30; log < 61; ++log) {  // an error, not a crash, in every size class
        CHECK_THROWS_AS(Array::empty({std::int64_t{1} << log}), MemoryError);
    }
}

TEST_CASE("the 16th axis counts") {
    const Shape shape{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3};
    const Array a = Array::from<float>({1, 2, 3, 4, 5, 6}, shape);
    CHECK(a.ndim() == 16);
    CHECK(a.reshape({6}).shape() == Shape{6});
    CHECK(to_string(shape) == "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3)");
    CHECK(to_string(Shape{}) == "()");
    CHECK(to_string(Shape{5}) == "(5,)");
}

TEST_CASE("a view of elements shares memory and version, and has its own alignment") {
    for (const char* device : {"toy:0", "vault:0"}) {
        const Array a = Array::from<float>({0, 1, 2, 3, 4, 5}, {2, 3}, Device::get(device));
        const Array tail = a.view(2, {2, 2});
        CHECK(tail.shape() == Shape{2, 2});
        CHECK(values(tail) == Values{2, 3, 4, 5});
        CHECK(tail.body()->tensor.align_log2 == 3);
        CHECK(tail.reshape({4}).body()->tensor.align_log2 == 3);
        CHECK(a.view(0, {1}).body()->tensor.align_log2 == 6);
        a.view(3, {}).fill(9);
        CHECK(values(a) == Values{0, 1, 2, 9, 4, 5});
        tail.view(2, {2}).copy_from(Array::from<float>({7, 8}, {2}, Device::get(device)));
        CHECK(values(a) == Values{0, 1, 2, 9, 7, 8});
        CHECK(values(a.view(6, {0})) == Values{});
    }
    const Array a = Array::zeros({2, 3});
    for (const auto& [begin, size] : {std::pair<std::int64_t, std::int64_t>{-1, 2}, {5, 2}, {7, 0}})
        CHECK_THROWS_AS((void)a.view(begin, {size}), ShapeError);
    CHECK_THROWS_WITH_AS((void)a.view(5, {2}),
                         "[view] elements: expected some of the 6 of (2, 3), got 2 from 5 on",
                         ShapeError);
}
