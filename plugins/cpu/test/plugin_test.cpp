// Tests the manifest, the tables, and the devices.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "catena/abi/ext/compiled.h"
#include "catena/abi/ext/compiler.h"
#include "host.hpp"

using namespace cpu_test;

TEST_CASE("the manifest describes the plugin") {
    const catena_manifest& manifest = *plugin().manifest;
    CHECK(std::memcmp(manifest.magic, CATENA_MANIFEST_MAGIC, 8) == 0);
    CHECK(manifest.struct_size == sizeof(catena_manifest));
    CHECK(manifest.abi_major == CATENA_ABI_MAJOR);
    CHECK(std::string(manifest.id) == "org.catena.cpu");
    CHECK(std::string(manifest.devices) == "cpu");
}

TEST_CASE("the tables are complete") {
    const catena_plugin& table = *plugin().table;
    REQUIRE(table.n_backends == 1);
    REQUIRE(table.n_extensions == 4);
    CHECK(std::string(plugin().backend->name) == "cpu");
    CHECK((plugin().backend->flags & CATENA_BACKEND_HOST_MEMORY) != 0);
    CHECK((plugin().backend->flags & CATENA_BACKEND_ASYNC) == 0);
    CHECK(std::string(table.extensions[0]->id) == CATENA_BLAS_1);
    CHECK(std::string(table.extensions[0]->device) == "cpu");
    CHECK(std::string(table.extensions[1]->id) == CATENA_COMPILER_1);
    CHECK(std::string(table.extensions[1]->device) == "cpu");
    CHECK(std::string(table.extensions[2]->id) == CATENA_TARGETS_1);
    CHECK(std::string(table.extensions[2]->device) == "cpu");
    CHECK(plugin().threads != nullptr);
    CHECK(plugin().backend->get_extension(plugin().dev, "org.example.thing/1") == nullptr);
    CHECK(plugin().backend->sync(nullptr, plugin().dev) == CATENA_OK);
}

// NOLINTBEGIN(concurrency-mt-unsafe): no other thread reads the environment.
TEST_CASE("the environment sets the number of devices") {
    const catena_backend& backend = *plugin().backend;
    int32_t n = 0;
    CHECK(backend.count(nullptr, &n) == CATENA_OK);
    CHECK(n == 8);
    setenv("CATENA_CPU_DEVICES", "3", 1);
    CHECK(backend.count(nullptr, &n) == CATENA_OK);
    CHECK(n == 3);
    void* dev = nullptr;
    CHECK(backend.open(nullptr, 3, &dev) == CATENA_E_DEVICE);
    CHECK(failure == "[cpu open] ordinal: expected 0 to 2, got 3");
    CHECK(backend.open(nullptr, 2, &dev) == CATENA_OK);
    backend.close(dev);
    for (const char* wrong : {"", "many", "0", "2x"}) {
        setenv("CATENA_CPU_DEVICES", wrong, 1);
        CHECK(backend.count(nullptr, &n) == CATENA_E_INVALID);
    }
    unsetenv("CATENA_CPU_DEVICES");
}
// NOLINTEND(concurrency-mt-unsafe)

TEST_CASE("instruction sets are those of this CPU") {
    const auto supports = [](const char* isa) {
        return plugin().backend->supports_isa(plugin().dev, isa);
    };
    CHECK(supports("") == 1);
    CHECK(supports("x86-64-v5") == 0);
    CHECK(supports("neon") == 0);
#if defined(__x86_64__)
    CHECK(supports("x86-64") == 1);
    CHECK(supports("x86-64-v2") == (__builtin_cpu_supports("sse4.2") != 0));
    CHECK(supports("x86-64-v3") ==
          (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0));
    CHECK(supports("x86-64-v4") ==
          (__builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0));
#else
    CHECK(supports("x86-64") == 0);
#endif
}
