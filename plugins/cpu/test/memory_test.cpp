// Tests memory blocks, copies, and the reported amount of memory.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "host.hpp"

using namespace cpu_test;

TEST_CASE("blocks are aligned and writable to their last byte") {
    const catena_backend& backend = *plugin().backend;
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{1000},
                                 uint64_t{5} << 20, (uint64_t{9} << 20) + 7}) {
        CAPTURE(bytes);
        void* data = nullptr;
        REQUIRE(backend.alloc(nullptr, plugin().dev, nullptr, bytes, &data) == CATENA_OK);
        CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
        std::memset(data, 0x5a, bytes);
        CHECK(static_cast<unsigned char*>(data)[bytes - 1] == 0x5a);
        backend.free(plugin().dev, nullptr, data, bytes);
    }
}

TEST_CASE("an empty block is NULL and may be freed") {
    void* data = &data;
    CHECK(plugin().backend->alloc(nullptr, plugin().dev, nullptr, 0, &data) == CATENA_OK);
    CHECK(data == nullptr);
    plugin().backend->free(plugin().dev, nullptr, data, 0);
}

TEST_CASE("more than there is fails with the number of bytes") {
    void* data = &data;
    CHECK(plugin().backend->alloc(nullptr, plugin().dev, nullptr, UINT64_MAX - 1, &data) ==
          CATENA_E_NOMEM);
    CHECK(data == nullptr);
    CHECK(failure.find(std::to_string(UINT64_MAX - 1)) != std::string::npos);
}

TEST_CASE("copies are exact, small and large") {
    const catena_backend& backend = *plugin().backend;
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, (size_t{3} << 20) + 5}) {
        CAPTURE(bytes);
        std::vector<unsigned char> from(bytes + 1);
        std::vector<unsigned char> to(bytes + 1, 0xee);
        for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 251);
        for (const int32_t direction :
             {CATENA_COPY_HOST_TO_DEVICE, CATENA_COPY_DEVICE_TO_HOST, CATENA_COPY_DEVICE_TO_DEVICE})
            REQUIRE(backend.copy(nullptr, plugin().dev, nullptr, to.data(), from.data(), bytes,
                                 direction) == CATENA_OK);
        CHECK(std::memcmp(to.data(), from.data(), bytes) == 0);
        CHECK(to[bytes] == 0xee);
    }
}

TEST_CASE("memory tells what is free") {
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    REQUIRE(plugin().backend->memory(nullptr, plugin().dev, &free_bytes, &total_bytes) ==
            CATENA_OK);
    CHECK(free_bytes > 0);
    CHECK(free_bytes <= total_bytes);
}
