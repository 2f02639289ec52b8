// Tests of dtypes: names, and bit-exact conversion of float16 and bfloat16.
#include <catena/core/dtype.hpp>
#include <catena/core/error.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace catena;

TEST_CASE("a dtype has a name, a size and one ABI code") {
    const char* names[] = {"float16", "bfloat16", "float32", "float64",
                           "int32",   "int64",    "uint8",   "bool"};
    const std::int64_t sizes[] = {2, 2, 4, 8, 4, 8, 1, 1};
    for (int i = 0; i < dtype_count; ++i) {
        const auto dtype = static_cast<Dtype>(i);
        CHECK(name(dtype) == names[i]);
        CHECK(dtype_from_name(names[i]) == dtype);
        CHECK(item_size(dtype) == sizes[i]);
        CHECK(is_floating(dtype) == (i < 4));
        Dtype back{};
        CHECK(from_abi(to_abi(dtype), back));
        CHECK(back == dtype);
    }
    Dtype none{};
    CHECK_FALSE(from_abi({CATENA_CODE_FLOAT, 8, 1}, none));
    CHECK_FALSE(from_abi({CATENA_CODE_FLOAT, 32, 4}, none));
    CHECK(name(catena_dtype{CATENA_CODE_FLOAT, 8, 1}) == "dtype(code 2, 8 bits, 1 lanes)");
    CHECK_THROWS_WITH_AS(dtype_from_name("float"),
                         "[dtype] name: expected one of float16 bfloat16 float32 float64 int32 "
                         "int64 uint8 bool, got 'float'",
                         DtypeError);
}

TEST_CASE("every float16 survives the way to float32 and back") {
    int wrong = 0;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float16 half{static_cast<std::uint16_t>(bits)};
        const float wide = to_float(half);
        const std::uint32_t exponent = bits >> 10 & 31;
        const std::uint32_t mantissa = bits & 1023;
        // The value according to IEEE 754.
        double expected = exponent == 0
                              ? std::ldexp(mantissa, -24)
                              : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
        if (exponent == 31) expected = std::numeric_limits<double>::infinity();
        if (bits & 0x8000) expected = -expected;
        if (exponent == 31 && mantissa) {
            const float16 back = to_float16(wide);
            wrong += !std::isnan(wide) || std::signbit(wide) != bool(bits & 0x8000) ||
                     (back.bits & 0x7c00) != 0x7c00 || (back.bits & 0x3ff) == 0 ||
                     (back.bits & 0x8000) != (bits & 0x8000);
            continue;
        }
        wrong += wide != expected || std::signbit(wide) != std::signbit(expected);
        wrong += to_float16(wide).bits != bits;
    }
    CHECK(wrong == 0);
}

TEST_CASE("float16 rounds to nearest, ties to even") {
    // Tests the midpoint of each two neighbours, and the float32 values just below and above it.
    int wrong = 0;
    for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
        const float low = to_float(float16{static_cast<std::uint16_t>(bits)});
        const float high = to_float(float16{static_cast<std::uint16_t>(bits + 1)});
        const float middle = low + (high - low) / 2;
        const std::uint32_t even = bits % 2 ? bits + 1 : bits;
        wrong += to_float16(middle).bits != even;
        wrong += to_float16(std::nextafter(middle, 0.0f)).bits != bits;
        wrong += to_float16(std::nextafter(middle, 1e9f)).bits != bits + 1;
        wrong += to_float16(-middle).bits != (even | 0x8000);
    }
    CHECK(wrong == 0);
    struct Case {
        float value;
        std::uint32_t bits;
    };
    const Case cases[] = {{0.0f, 0},           {-0.0f, 0x8000},          {1.0f, 0x3c00},
                          {65504.0f, 0x7bff},  {65519.99f, 0x7bff},      {65520.0f, 0x7c00},
                          {1e38f, 0x7c00},     {-1e38f, 0xfc00},         {0.1f, 0x2e66},
                          {1.0f / 3, 0x3555},  {6.1035156e-05f, 0x0400}, {5.9604645e-08f, 1},
                          {2.9802322e-08f, 0}, {2.98023259e-08f, 1},     {1e-40f, 0}};
    for (const Case& c : cases) {
        INFO(c.value);
        CHECK(to_float16(c.value).bits == c.bits);
    }
}

TEST_CASE("every bfloat16 survives, and float32 rounds to it") {
    int wrong = 0;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const bfloat16 brain{static_cast<std::uint16_t>(bits)};
        const float wide = to_float(brain);
        if (std::isnan(wide)) wrong += !std::isnan(to_float(to_bfloat16(wide)));
        else wrong += to_bfloat16(wide).bits != bits;
    }
    CHECK(wrong == 0);
    CHECK(to_bfloat16(1.0f).bits == 0x3f80);
    CHECK(to_bfloat16(0x1.01p0f).bits == 0x3f80);  // ties to even
    CHECK(to_bfloat16(0x1.03p0f).bits == 0x3f82);
    CHECK(to_bfloat16(0x1.010002p0f).bits == 0x3f81);  // just above the tie
    CHECK(to_bfloat16(3.4e38f).bits == 0x7f80);        // above the largest finite value: infinity
    CHECK(to_bfloat16(std::numeric_limits<float>::infinity()).bits == 0x7f80);
}

template <class From, class To>
std::vector<To> converted(const std::vector<From>& from) {
    std::vector<To> to(from.size());
    convert(dtype_of<From>, from.data(), dtype_of<To>, to.data(),
            static_cast<std::int64_t>(from.size()));
    return to;
}

TEST_CASE("elements convert as a C cast does") {
    CHECK(converted<double, std::int32_t>({1.9, -1.9, 0}) == std::vector<std::int32_t>{1, -1, 0});
    CHECK(converted<std::int64_t, double>({-3, std::int64_t{1} << 40}) ==
          std::vector<double>{-3, 1099511627776.0});
    CHECK(converted<float, double>({0.5f}) == std::vector<double>{0.5});
    CHECK(converted<std::int32_t, std::uint8_t>({255, 7}) == std::vector<std::uint8_t>{255, 7});
    CHECK(converted<float, float16>({1.5f})[0].bits == 0x3e00);
    CHECK(converted<float16, std::int32_t>({float16{0x4500}}) == std::vector<std::int32_t>{5});
    const double numbers[3] = {0, 0.25, -1};
    bool truths[3];
    convert(Dtype::float64, numbers, Dtype::bool8, truths, 3);
    CHECK((!truths[0] && truths[1] && truths[2]));
    convert(Dtype::float64, nullptr, Dtype::bool8, nullptr, 0);
}

TEST_CASE("float64 rounds to a half once, not by way of float32") {
    // Just above a midpoint of two halves; rounded to float32 first, it would be the midpoint.
    CHECK(converted<double, float16>({1 + 0x1p-11 + 0x1p-40})[0].bits == 0x3c01);
    CHECK(converted<double, float16>({1 + 3 * 0x1p-11 - 0x1p-40})[0].bits == 0x3c01);
    CHECK(converted<double, float16>({-(1 + 0x1p-11 + 0x1p-40)})[0].bits == 0xbc01);
    CHECK(converted<double, float16>({1e300})[0].bits == 0x7c00);
    CHECK(converted<double, float16>({0x1p-25 + 0x1p-60})[0].bits == 1);
    CHECK(converted<double, bfloat16>({1 + 0x1p-8 + 0x1p-40})[0].bits == 0x3f81);
    CHECK(converted<double, bfloat16>({1 + 3 * 0x1p-8 - 0x1p-40})[0].bits == 0x3f81);
    CHECK(std::isnan(to_float(converted<double, float16>({NAN})[0])));
}
