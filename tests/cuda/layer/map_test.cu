// Elementwise kernels of the layer: sizes, alignment, shapes, types.
#include "device.hpp"

using namespace layer;

namespace {

// Compares TwoOf on the device with the host, bit for bit.
template <class T>
void check_two(const Extents& shape, const Extents (&from)[3], std::size_t shift, bool add) {
    const std::int64_t n = size_of(shape);
    std::vector<T> x[3];
    for (unsigned k = 0; k < 3; ++k) x[k] = draw<T>(size_of(from[k]), k + 1);
    const std::vector<T> before = draw<T>(n, 9);
    const OnDevice<T> a(x[0], shift), b(x[1], 2 * shift), c(x[2]);
    const OnDevice<T> y(before, shift), z(before);
    cuda::map(queue, TwoOf<T>(), shape,
              {Operand{a.data(), from[0]}, {b.data(), from[1]}, {c.data(), from[2]}},
              {Result{y.data(), add}, {z.data(), false}});
    std::vector<T> wanted_y(before.size()), wanted_z(before.size());
    for (std::int64_t i = 0; i < n; ++i) {
        using C = cuda::Compute<T>;
        C in[3], out[2];
        for (std::size_t k = 0; k < 3; ++k) in[k] = wide<C>(x[k][offset_of(i, shape, from[k])]);
        TwoOf<T>()(in, out);
        const auto at = static_cast<std::size_t>(i);
        if (add) out[0] = static_cast<C>(out[0] + wide<C>(before[at]));
        wanted_y[at] = narrow<T>(out[0]);
        wanted_z[at] = narrow<T>(out[1]);
    }
    CHECK(same_bits(y.values(), wanted_y));
    CHECK(same_bits(z.values(), wanted_z));
}

}  // namespace

TEST_CASE_TEMPLATE(
    "equal shapes: sizes around packs, blocks and grids; places that are not aligned", T, float,
    double, Float16, BFloat16, std::int32_t, std::int64_t) {
    for (const std::int64_t n : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 1023, 65537})
        for (const std::size_t shift : {0, 1}) {
            CAPTURE(n);
            CAPTURE(shift);
            const Extents shape = {n};
            check_two<T>(shape, {shape, shape, shape}, shift, n % 2 == 1);
        }
}

TEST_CASE_TEMPLATE("one element for all, and nothing for zeros", T, float, double, Float16) {
    const Extents shape = {3, 7};
    check_two<T>(shape, {shape, {}, {1, 1}}, 0, false);
    check_two<T>(shape, {{1}, {1}, {1}}, 1, true);
    check_two<T>({1, 1}, {{}, {1, 1}, {1}}, 0, true);
    const OnDevice<T> a(draw<T>(21, 1)), y(draw<T>(21, 2));
    cuda::map(queue, TwoOf<T>(), shape, {Operand{a.data(), shape}, {}, {}},
              {Result{}, {y.data(), false}});
    CHECK(same_bits(y.values(), draw<T>(21, 1)));
}

TEST_CASE_TEMPLATE("broadcasting of every kind", T, float, double, BFloat16, std::int64_t) {
    const Extents all[][4] = {
        {{2, 3}, {2, 3}, {3}, {2, 1}},
        {{5, 16}, {16}, {5, 1}, {5, 16}},
        {{16, 5}, {1, 5}, {16, 1}, {}},
        {{2, 8, 3}, {8, 1}, {2, 1, 3}, {1, 1, 1}},
        {{4, 3, 8, 8}, {3, 1, 1}, {4, 3, 8, 8}, {8}},
        {{2, 3, 2, 3, 2, 4}, {2, 1, 2, 1, 2, 1}, {3, 1, 3, 1, 4}, {2, 3, 1, 1, 2, 4}},
        {{0, 3}, {3}, {0, 1}, {1, 1}},
        {{2, 0, 4}, {0, 1}, {4}, {2, 1, 1}},
        {{700, 129}, {700, 1}, {129}, {700, 129}}};
    for (const auto& s : all)
        for (const std::size_t shift : {0, 1}) {
            CAPTURE(text_of(Shape(s[0])));
            check_two<T>(s[0], {s[1], s[2], s[3]}, shift, shift == 1);
        }
    std::mt19937 random(4);
    for (int i = 0; i < 60; ++i) {
        Extents s[4];
        for (std::size_t d = random() % 6; d > 0; --d) s[0].push_back(random() % 9);
        for (int k = 1; k < 4; ++k) {
            s[k].assign(s[0].begin() + static_cast<std::ptrdiff_t>(random() % (s[0].size() + 1)),
                        s[0].end());
            for (std::int64_t& extent : s[k])
                if (random() % 3 == 0) extent = 1;
        }
        CAPTURE(text_of(Shape(s[0])));
        check_two<T>(s[0], {s[1], s[2], s[3]}, i % 2, i % 3 == 0);
    }
}

TEST_CASE_TEMPLATE("every half there and back; what lies between is rounded to even", H, Float16,
                   BFloat16) {
    std::vector<H> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
    const Extents shape = {65536};
    const OnDevice<H> from(all), back(all);
    const OnDevice<float> wide(std::vector<float>(65536, 1.0f));
    cuda::map(queue, cuda::Copy<H, float>(), shape, {Operand{from.data(), shape}},
              {Result{wide.data(), false}});
    const std::vector<float> floats = wide.values();
    const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
    for (std::size_t i = 0; i < all.size(); ++i) {
        const float wanted = to_float(all[i]);  // hardware may change the bits of a NaN
        REQUIRE((std::isnan(wanted) ? std::isnan(floats[i]) : bits(floats[i]) == bits(wanted)));
    }
    cuda::map(queue, cuda::Copy<float, H>(), shape, {Operand{wide.data(), shape}},
              {Result{back.data(), false}});
    const std::vector<H> again = back.values();
    for (std::size_t i = 0; i < all.size(); ++i)
        REQUIRE((std::isnan(floats[i]) ? std::isnan(to_float(again[i]))
                                       : again[i].bits == to_half<H>(floats[i]).bits));

    // The same with the kernels for either half type; NaNs have the same bits.
    const cuda::Queue either = {"layer", nullptr, 0, std::is_same_v<H, BFloat16>};
    cuda::map(either, cuda::Copy<cuda::AnyHalf, float>(), shape, {Operand{from.data(), shape}},
              {Result{wide.data(), false}});
    CHECK(same_bits(wide.values(), floats));
    cuda::map(either, cuda::Copy<float, cuda::AnyHalf>(), shape, {Operand{wide.data(), shape}},
              {Result{back.data(), false}});
    CHECK(same_bits(back.values(), again));

    std::vector<float> between;
    for (std::size_t i = 0; i + 1 < 0x7800; ++i) between.push_back((floats[i] + floats[i + 1]) / 2);
    const Extents fewer = {std::ssize(between)};
    const OnDevice<float> middle(between);
    const OnDevice<H> rounded(std::vector<H>(between.size()));
    cuda::map(queue, cuda::Copy<float, H>(), fewer, {Operand{middle.data(), fewer}},
              {Result{rounded.data(), false}});
    const std::vector<H> even = rounded.values();
    for (std::size_t i = 0; i < even.size(); ++i) REQUIRE(even[i].bits == (i + 1) / 2 * 2);
}

TEST_CASE("sums into a half are rounded once") {
    // From 2048 on, float16 has only even numbers: 2048 + (0.5 + 0.6), computed in float, is 2050.
    const Extents shape = {1};
    const OnDevice<Float16> a({to_float16(0.5f)}), b({to_float16(1)}), c({to_float16(0.6f)}),
        y({to_float16(2048)});
    cuda::map(queue, TwoOf<Float16>(), shape,
              {Operand{a.data(), shape}, {b.data(), shape}, {c.data(), shape}},
              {Result{y.data(), true}, {}});
    CHECK(to_float(y.values()[0]) == 2050);
}

TEST_CASE("NaN, infinities and huge numbers go through") {
    const float inf = std::numeric_limits<float>::infinity();
    const Extents shape = {4};
    const OnDevice<float> a({inf, 1e38f, -inf, 0}), b({1, 1e38f, inf, inf}), y({0, 0, 0, 0});
    cuda::map(queue, TwoOf<float>(), shape, {Operand{a.data(), shape}, {b.data(), shape}, {}},
              {Result{y.data(), false}, {}});
    const std::vector<float> v = y.values();
    CHECK(v[0] == inf);
    CHECK(v[1] == inf);
    CHECK(v[2] == -inf);
    CHECK(std::isnan(v[3]));
}

TEST_CASE("other types: whole numbers, truth, bytes") {
    const Extents shape = {19};
    std::vector<float> floats(19);
    for (std::size_t i = 0; i < 19; ++i) floats[i] = static_cast<float>(i) / 2 - 4;
    const OnDevice<float> x(floats);
    const OnDevice<std::int64_t> whole(std::vector<std::int64_t>(19, 100));
    const OnDevice<std::uint8_t> truth(std::vector<std::uint8_t>(19, 7));
    cuda::map(queue, cuda::Copy<float, std::int64_t>(), shape, {Operand{x.data(), shape}},
              {Result{whole.data(), true}});
    cuda::map(queue, cuda::Copy<float, bool>(), shape, {Operand{x.data(), shape}},
              {Result{truth.data(), false}});
    for (std::size_t i = 0; i < 19; ++i) {
        CHECK(whole.values()[i] == 100 + static_cast<std::int64_t>(floats[i]));
        CHECK(truth.values()[i] == (floats[i] != 0 ? 1 : 0));
    }
}

namespace {
__global__ void nothing(int) {}
}  // namespace

TEST_CASE("a launch that fails says so, once") {
    CHECK_THROWS_WITH(queue.launch(&nothing, dim3(1), 4096, 1),
                      doctest::Contains("[layer] launch: "));
    CHECK_NOTHROW(queue.launch(&nothing, dim3(1), 32, 1));
    CHECK(cudaGetLastError() == cudaSuccess);
}
