// Devices: their number, their properties, and requests that are refused.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "host.hpp"

using namespace cuda_test;

TEST_CASE("the plugin brings one backend and products, and no kernels") {
    CHECK(std::strcmp(plugin().manifest->id, "org.catena.cuda") == 0);
    CHECK(plugin().manifest->devices[0] == 0);
    CHECK(plugin().table->n_backends == 1);
    CHECK(plugin().table->n_kernels == 0);
    CHECK(std::strcmp(backend().name, "cuda") == 0);
    CHECK((backend().flags & CATENA_BACKEND_ASYNC) != 0);
    CHECK((backend().flags & CATENA_BACKEND_HOST_MEMORY) == 0);
    CHECK(backend().dlpack_type == 2);
    CHECK(std::strcmp(plugin().table->extensions[0]->id, CATENA_BLAS_1) == 0);
    CHECK(std::strcmp(plugin().table->extensions[0]->device, "cuda") == 0);
}

TEST_CASE("devices are counted and opened; others are refused") {
    int32_t n = -1;
    REQUIRE(backend().count(ctx, &n) == CATENA_OK);
    CHECK(n == device_count());
    void* dev = nullptr;
    CHECK(backend().open(ctx, n, &dev) == CATENA_E_DEVICE);
    CHECK(failure == "[cuda open] ordinal: expected 0 to " + std::to_string(n - 1) + ", got " +
                         std::to_string(n));
    CHECK(backend().open(ctx, -1, &dev) == CATENA_E_DEVICE);
    CHECK(dev == nullptr);
    REQUIRE(backend().open(ctx, n - 1, &dev) == CATENA_OK);
    const std::string about = plugin().extension<catena_about>(CATENA_ABOUT_DRAFT_1).text(dev);
    CHECK(about.find(", capability ") != std::string::npos);
    if (emulated) CHECK(about == "Emulated device, capability 9.0, 4 multiprocessors, 1.0 GiB");
    backend().close(dev);
    CHECK(backend().get_extension(plugin().dev(), "org.example.none/1") == nullptr);
}

TEST_CASE("a device runs code for its own capability and for lower ones") {
    int major = 0;
    int minor = 0;
    REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
    REQUIRE(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) == cudaSuccess);
    const int own = 10 * major + minor;
    const auto supports = [](const std::string& isa) {
        CAPTURE(isa);
        return backend().supports_isa(plugin().dev(), isa.c_str());
    };
    const auto sm = [](int capability) { return "sm_" + std::to_string(capability); };
    CHECK(supports("") == 1);
    CHECK(supports("sm_50") == 1);
    CHECK(supports(sm(own - 1)) == 1);
    CHECK(supports(sm(own)) == 1);
    CHECK(supports(sm(own) + "a") == 1);
    CHECK(supports(sm(own + 1)) == 0);
    CHECK(supports(sm(own + 10)) == 0);
    CHECK(supports(sm(own - 10) + "a") == 0);
    for (const char* isa : {"sm_", "sm_x", "sm_80x", "x86-64", "sm_-1"}) CHECK(supports(isa) == 0);
}

TEST_CASE("the thread's device of CUDA stays as it was") {
    for (const int before : {0, second()}) {
        REQUIRE(cudaSetDevice(before) == cudaSuccess);
        for (const int ordinal : {0, second()}) {
            Stream s(ordinal);
            int* x = s.put(std::vector<int>{1, 2, 3});
            CHECK(s.get(x, 3)[2] == 3);
            const MemoryLeft memory = memory_left(ordinal);
            CHECK(memory.left <= memory.all);
            if (emulated) CHECK(memory.all == uint64_t{1} << 30);
            REQUIRE(backend().sync(ctx, s.dev) == CATENA_OK);
        }
        int now = -1;
        REQUIRE(cudaGetDevice(&now) == cudaSuccess);
        CHECK(now == before);
    }
    cudaSetDevice(0);
    std::thread([] {  // in another thread
        Stream s(second());
        CHECK(s.get(s.put(std::vector<int>{4}), 1)[0] == 4);
    })
        .join();
}

TEST_CASE("a process that fork() made has no devices, and is told why") {
    int32_t n = 0;
    REQUIRE(backend().count(ctx, &n) == CATENA_OK);
    void* const dev = plugin().dev();
    int ends[2] = {};
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        void* data = nullptr;
        const bool refused = backend().count(ctx, &n) == CATENA_E_DEVICE && n == 0;
        std::string text = failure + "\n";
        const bool also = backend().alloc(ctx, dev, nullptr, 4, &data) == CATENA_E_DEVICE;
        text += failure;
        const bool told = write(ends[1], text.data(), text.size()) > 0;
        _exit(refused && also && told ? 0 : 1);
    }
    close(ends[1]);
    std::string text(2000, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(read(ends[0], text.data(), 2000), 0)));
    close(ends[0]);
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    const std::string why =
        "expected the process that first asked for GPUs, or a newly started one, got one that "
        "fork() "
        "made";
    CHECK_MESSAGE(status == 0, text);
    CHECK(text.find("[cuda count] process: " + why + "\n[cuda alloc] ") == 0);
    CHECK(text.find(": cudaErrorInitializationError (" + why + ")") != std::string::npos);
    CHECK(backend().count(ctx, &n) == CATENA_OK);
}

TEST_CASE("what went wrong once is not taken for an error of what comes next") {
    void* data = nullptr;
    Stream s;
    CHECK(backend().alloc(ctx, s.dev, s.stream, uint64_t{1} << 40, &data) == CATENA_E_NOMEM);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}
