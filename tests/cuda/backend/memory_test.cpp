// Memory: blocks, copies in every direction, fills, and requests that do not fit.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "host.hpp"

using namespace cuda_test;

namespace {

std::vector<unsigned char> numbers(std::size_t n, int first) {
    std::vector<unsigned char> v(n);
    for (std::size_t i = 0; i < n; ++i)
        v[i] = static_cast<unsigned char>(static_cast<std::size_t>(first) + i * 7 + i / 256);
    return v;
}

}  // namespace

TEST_CASE("blocks are aligned, apart, and come back") {
    Stream s;
    const uint64_t before = memory_left().left;
    void* none = &s;
    CHECK(backend().alloc(ctx, s.dev, s.stream, 0, &none) == CATENA_OK);
    CHECK(none == nullptr);
    backend().free(s.dev, s.stream, none, 0);
    void* data[3];
    for (void*& d : data) {
        REQUIRE(backend().alloc(ctx, s.dev, s.stream, 100, &d) == CATENA_OK);
        CHECK(reinterpret_cast<uintptr_t>(d) % 256 == 0);
    }
    if (emulated) CHECK(memory_left().left == before - 300);
    for (void* d : data) backend().free(s.dev, s.stream, d, 100);
    if (emulated) CHECK(memory_left().left == before);
}

TEST_CASE("too much is refused with what was asked for and what there is") {
    Stream s;
    void* data = nullptr;
    const uint64_t all = memory_left().all;
    CHECK(backend().alloc(ctx, s.dev, s.stream, 2 * all, &data) == CATENA_E_NOMEM);
    CHECK(
        says("[cuda alloc] cudaMalloc on device 0: cudaErrorMemoryAllocation (out of memory): "
             "expected " +
             std::to_string(2 * all) + " bytes, got "));
    CHECK(says(" left of " + std::to_string(all)));
    CHECK(backend().alloc(ctx, s.dev, s.stream, 16, &data) == CATENA_OK);
    backend().free(s.dev, s.stream, data, 16);
}

TEST_CASE("a block is freed when the stream is done with it") {
    Stream s;
    void* data = nullptr;
    REQUIRE(backend().alloc(ctx, s.dev, s.stream, 64, &data) == CATENA_OK);
    const int value[4] = {1, 2, 3, 4};
    for (int i = 0; i < 100; ++i)
        REQUIRE(memory().fill(ctx, s.dev, s.stream, data, value, 16, 4) == CATENA_OK);
    backend().free(s.dev, s.stream, data, 64);
    CHECK(backend().stream_sync(ctx, s.dev, s.stream) == CATENA_OK);
}

TEST_CASE("copies in every direction, at odd places") {
    Stream s;
    for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{4099}}) {
        const auto background = numbers(n + 20, 50);
        unsigned char* x = s.put(background);
        unsigned char* y = s.put(background);
        auto given = numbers(n, 1);
        REQUIRE(backend().copy(ctx, s.dev, s.stream, x + 3, given.data(), n,
                               CATENA_COPY_HOST_TO_DEVICE) == CATENA_OK);
        const auto kept = given;
        std::fill(given.begin(), given.end(), static_cast<unsigned char>(0));  // already read
        REQUIRE(backend().copy(ctx, s.dev, s.stream, y + 5, x + 3, n,
                               CATENA_COPY_DEVICE_TO_DEVICE) == CATENA_OK);
        auto expected = background;
        std::copy(kept.begin(), kept.end(), expected.begin() + 5);
        CHECK(s.get(y, n + 20) == expected);
    }
    CHECK(backend().copy(ctx, s.dev, s.stream, nullptr, nullptr, 0, CATENA_COPY_HOST_TO_DEVICE) ==
          CATENA_OK);
}

TEST_CASE("a copy from pinned memory has read it when it returns, as from any other") {
    Stream s;
    void* pinned = nullptr;
    REQUIRE(memory().host_alloc(ctx, s.dev, 64, &pinned) == CATENA_OK);
    CHECK(reinterpret_cast<uintptr_t>(pinned) % 64 == 0);
    int* x = s.alloc<int>(1);
    auto* value = static_cast<int*>(pinned);
    for (int i = 0; i < 50; ++i) {
        *value = i;
        REQUIRE(backend().copy(ctx, s.dev, s.stream, x, value, 4, CATENA_COPY_HOST_TO_DEVICE) ==
                CATENA_OK);
        *value = -1;
        CHECK(s.get(x, 1)[0] == i);
    }
    memory().host_free(s.dev, pinned, 64);
}

TEST_CASE("asynchronous copies of pinned memory wait for their stream, not the host for them") {
    Stream s;
    void* pinned = nullptr;
    REQUIRE(memory().host_alloc(ctx, s.dev, 8, &pinned) == CATENA_OK);
    auto* value = static_cast<int*>(pinned);
    value[0] = 1;
    value[1] = -1;
    int* x = s.alloc<int>(1);
    Gate gate(s.stream);
    REQUIRE(memory().copy_async(ctx, s.dev, s.stream, x, value, 4, CATENA_COPY_HOST_TO_DEVICE) ==
            CATENA_OK);
    REQUIRE(memory().copy_async(ctx, s.dev, s.stream, value + 1, x, 4,
                                CATENA_COPY_DEVICE_TO_HOST) == CATENA_OK);
    CHECK(value[1] == -1);
    value[0] = 2;
    gate.go();
    s.sync();
    CHECK(value[1] == 2);  // read when the stream got to it
    memory().host_free(s.dev, pinned, 8);
    CHECK(memory().host_alloc(ctx, s.dev, 0, &pinned) == CATENA_OK);
    CHECK(pinned == nullptr);
}

TEST_CASE("wrong addresses are refused with CUDA's words" * doctest::skip(!emulated)) {
    Stream s;
    int host[4] = {};
    int* x = s.alloc<int>(4);
    CHECK(backend().copy(ctx, s.dev, s.stream, host, x, 16, CATENA_COPY_HOST_TO_DEVICE) ==
          CATENA_E_DEVICE);
    CHECK(says("[cuda copy] cudaMemcpyAsync on device 0: cudaErrorInvalidValue"));
    CHECK(backend().copy(ctx, s.dev, s.stream, x, host, 17, CATENA_COPY_HOST_TO_DEVICE) ==
          CATENA_E_DEVICE);
}

TEST_CASE("fills: elements of every size, at any place, in any number") {
    Stream s;
    const unsigned char value[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    const unsigned char zeros[16] = {};
    constexpr std::size_t room = 70000;
    const auto background = numbers(room, 100);
    unsigned char* x = s.put(background);
    for (const unsigned char* pattern : {value, zeros})
        for (const uint32_t size : {1u, 2u, 4u, 8u, 16u})
            for (const std::size_t n : {0, 1, 2, 3, 17, 100, 4001})
                for (const std::size_t shift : {0, 1, 3}) {
                    CAPTURE(size);
                    CAPTURE(n);
                    CAPTURE(shift);
                    const std::size_t begin = 16 + shift * size;
                    REQUIRE(backend().copy(ctx, s.dev, s.stream, x, background.data(), room,
                                           CATENA_COPY_HOST_TO_DEVICE) == CATENA_OK);
                    REQUIRE(memory().fill(ctx, s.dev, s.stream, x + begin, pattern, size, n) ==
                            CATENA_OK);
                    auto expected = background;
                    for (std::size_t i = 0; i < n * size; ++i)
                        expected[begin + i] = pattern[i % size];
                    CHECK(s.get(x, room) == expected);
                }
    CHECK(memory().fill(ctx, s.dev, s.stream, x, value, 3, 1) == CATENA_E_INVALID);
    CHECK(failure == "[cuda fill] element: expected 1, 2, 4, 8 or 16 bytes, got 3");
}

namespace {

// Converts elements to another dtype; the result must equal that of C's conversion.
template <class From, class To>
void check_convert(const std::vector<From>& x, catena_dtype from, catena_dtype to,
                   const std::vector<To>& wanted) {
    Stream s(second());
    const From* in = s.put(x);
    To* out = s.alloc<To>(x.size());
    CAPTURE(to.code);
    CAPTURE(to.bits);
    const catena_status status =
        memory().convert(ctx, s.dev, s.stream, out, to, in, from, x.size());
    REQUIRE_MESSAGE(status == CATENA_OK, failure);
    CHECK(s.get(out, x.size()) == wanted);
}
constexpr catena_dtype float16 = {CATENA_CODE_FLOAT, 16, 1}, bfloat16 = {CATENA_CODE_BFLOAT, 16, 1},
                       float32 = {CATENA_CODE_FLOAT, 32, 1}, float64 = {CATENA_CODE_FLOAT, 64, 1},
                       int32 = {CATENA_CODE_INT, 32, 1}, int64 = {CATENA_CODE_INT, 64, 1},
                       uint8 = {CATENA_CODE_UINT, 8, 1}, bool8 = {CATENA_CODE_BOOL, 8, 1};

}  // namespace

TEST_CASE("elements of one dtype become those of another") {
    const std::vector<double> x = {0, 1, -2.75, 250.5, 65504};
    check_convert<double, float>(x, float64, float32, {0, 1, -2.75f, 250.5f, 65504});
    check_convert<double, int32_t>(x, float64, int32, {0, 1, -2, 250, 65504});
    check_convert<double, int64_t>(x, float64, int64, {0, 1, -2, 250, 65504});
    check_convert<double, unsigned char>(x, float64, bool8, {0, 1, 1, 1, 1});
    check_convert<double, uint16_t>(x, float64, float16, {0, 0x3c00, 0xc180, 0x5bd4, 0x7bff});
    check_convert<double, uint16_t>(x, float64, bfloat16, {0, 0x3f80, 0xc030, 0x437a, 0x4780});
    check_convert<uint16_t, double>({0x3c00, 0xc180, 1}, float16, float64, {1, -2.75, 0x1p-24});
    check_convert<uint16_t, float>({0x3f80, 0x7f80}, bfloat16, float32, {1, HUGE_VALF});
    check_convert<int64_t, float>({int64_t{1} << 40, -3}, int64, float32, {0x1p40f, -3});
    check_convert<int32_t, unsigned char>({0, 7, -1}, int32, uint8, {0, 7, 255});
    check_convert<unsigned char, double>({0, 1}, bool8, float64, {0, 1});
    check_convert<unsigned char, int64_t>({0, 200}, uint8, int64, {0, 200});
    // Rounded once: by way of float, these would become ties, which are rounded to even.
    check_convert<double, uint16_t>({1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40}, float64,
                                    float16, {0x3c01, 0x3c00});
    check_convert<int64_t, uint16_t>({(int64_t{1} << 40) + (int64_t{1} << 32) + 1}, int64, bfloat16,
                                     {0x5381});
    std::vector<int32_t> many(100003);
    std::iota(many.begin(), many.end(), -7);
    check_convert<int32_t, double>(many, int32, float64, {many.begin(), many.end()});
    Stream s;
    CHECK(memory().convert(ctx, s.dev, s.stream, nullptr, float32, nullptr, int32, 0) == CATENA_OK);
    const catena_dtype pair = {CATENA_CODE_FLOAT, 32, 2};
    CHECK(memory().convert(ctx, s.dev, s.stream, nullptr, pair, nullptr, int32, 4) ==
          CATENA_E_UNSUPPORTED);
}

TEST_CASE("copies between devices wait for both streams by an event") {
    Stream from(0);
    Stream to(second());
    std::vector<int> values(1000);
    std::iota(values.begin(), values.end(), 0);
    void* pinned = nullptr;  // a copy from pageable memory may block at the gate
    REQUIRE(memory().host_alloc(ctx, from.dev, 4000, &pinned) == CATENA_OK);
    int* x = from.put(std::vector<int>(1000, -1));
    int* y = to.alloc<int>(1000);
    catena_event* event = nullptr;
    REQUIRE(backend().event_create(ctx, from.dev, &event) == CATENA_OK);
    for (int round = 0; round < 2; ++round) {  // the second finds peer access enabled
        std::copy(values.begin(), values.end(), static_cast<int*>(pinned));
        Gate gate(from.stream);
        REQUIRE(memory().copy_async(ctx, from.dev, from.stream, x, pinned, 4000,
                                    CATENA_COPY_HOST_TO_DEVICE) == CATENA_OK);
        REQUIRE(backend().event_record(ctx, from.dev, event, from.stream) == CATENA_OK);
        REQUIRE(backend().event_wait(ctx, to.dev, event, to.stream) == CATENA_OK);
        REQUIRE(memory().copy_peer(ctx, to.dev, to.stream, y, from.dev, x, 4000) == CATENA_OK);
        gate.go();
        CHECK(to.get(y, 1000) == values);
        std::reverse(values.begin(), values.end());
    }
    CHECK(memory().copy_peer(ctx, to.dev, to.stream, y, from.dev, x, 0) == CATENA_OK);
    backend().event_destroy(from.dev, event);
    memory().host_free(from.dev, pinned, 4000);
}
