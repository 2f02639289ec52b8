// Makes each CUDA call of creating operations fail: the error must say so, and nothing may leak.
#include <new>
#include <thread>

#include "catena/abi/ext/compiler.h"
#include "emulator/control.h"
#include "host.hpp"

using namespace cuda_test;

namespace {

// Index of the plugin's heap allocation that fails; negative if none does.
thread_local int failing_new = -1;

bool fails(const void* caller) {
    if (failing_new < 0) return false;
    Dl_info from = {};
    Dl_info to = {};
    dladdr(caller, &from);
    dladdr(plugin().manifest, &to);
    return from.dli_fbase == to.dli_fbase && failing_new-- == 0;
}

void* take(std::size_t bytes, const void* caller) {
    return fails(caller) ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (void* data = take(bytes, __builtin_return_address(0))) return data;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return take(bytes, __builtin_return_address(0));
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, std::size_t) noexcept { std::free(data); }

namespace {

// Calls make() with each of the plugin's allocations failing in turn, then with none; counts them.
template <class Make, class Undo>
int fail_each_new(const Make& make, const Undo& undo) {
    for (int number = 0;; ++number) {
        CAPTURE(number);
        const long before = catena_emulator_live(0);
        failure.clear();
        failing_new = number;
        const catena_status status = make();
        const bool failed = failing_new < 0;
        failing_new = -1;
        if (status == CATENA_OK) undo();
        CHECK(catena_emulator_live(0) == before);
        CHECK(status == (failed ? CATENA_E_NOMEM : CATENA_OK));
        if (!failed) return number;
        CHECK(says(" out of memory"));
    }
}

// Calls make() with each of its CUDA calls failing in turn, then with none; returns the count.
// undo() releases what make() created.
template <class Make, class Undo>
int fail_each(const Make& make, const Undo& undo) {
    for (int number = 0;; ++number) {
        CAPTURE(number);
        const long before = catena_emulator_live(0);
        failure.clear();
        catena_emulator_fail(number, cudaErrorMemoryAllocation);
        const catena_status status = make();
        const int calls = catena_emulator_fail(-1, cudaSuccess);
        if (status == CATENA_OK) undo();
        CHECK(catena_emulator_live(0) == before);
        if (calls <= number) {
            CHECK(status == CATENA_OK);
            return number;
        }
        if (status == CATENA_OK) continue;  // make() does not depend on that call
        CHECK(status == CATENA_E_NOMEM);
        CHECK_MESSAGE(says("on device " + std::to_string(second()) + ": "), failure);
        CHECK(cudaPeekAtLastError() == cudaSuccess);
    }
}

void* dev() { return plugin().dev(second()); }  // not the thread's current device

}  // namespace

TEST_CASE("failures: streams and events") {
    catena_stream* stream = nullptr;
    const auto& table = backend();
    CHECK(fail_each([&] { return table.stream_create(ctx, dev(), &stream); },
                    [&] { table.stream_destroy(dev(), stream); }) > 0);
    catena_event* event = nullptr;
    const auto undo = [&] { table.event_destroy(dev(), event); };
    CHECK(fail_each([&] { return table.event_create(ctx, dev(), &event); }, undo) == 1);
    const auto& events = plugin().extension<catena_events>(CATENA_EVENTS_DRAFT_1);
    CHECK(fail_each([&] { return events.timed_event_create(ctx, dev(), &event); }, undo) == 1);
    const auto& ipc = plugin().extension<catena_ipc>(CATENA_IPC_DRAFT_1);
    CHECK(fail_each([&] { return ipc.event_create(ctx, dev(), &event); }, undo) == 1);
}

TEST_CASE("failures: memory") {
    void* data = nullptr;
    CHECK(fail_each([&] { return backend().alloc(ctx, dev(), nullptr, 100, &data); },
                    [&] { backend().free(dev(), nullptr, data, 100); }) > 0);
    CHECK(fail_each([&] { return memory().host_alloc(ctx, dev(), 100, &data); },
                    [&] { memory().host_free(dev(), data, 100); }) == 3);  // 2 set the capture mode
}

TEST_CASE("failures: the heap of the process is full, which no exception tells the host") {
    void* data = nullptr;
    CHECK(fail_each_new([&] { return backend().alloc(ctx, dev(), nullptr, 100, &data); },
                        [&] { backend().free(dev(), nullptr, data, 100); }) > 0);
    void* opened = nullptr;
    CHECK(fail_each_new([&] { return backend().open(ctx, 0, &opened); },
                        [&] { backend().close(opened); }) == 1);
    Stream s(second());
    float* x = s.put(std::vector<float>{3});
    s.sync();  // other streams do not wait for this one
    catena_stream* stream = nullptr;
    const auto undo = [&] {
        backend().stream_sync(ctx, dev(), stream);
        backend().stream_destroy(dev(), stream);
    };
    const auto on_new_stream = [&](const auto& body) {
        catena_status status = backend().stream_create(ctx, dev(), &stream);
        if (status == CATENA_OK) status = body();
        if (status != CATENA_OK) undo();
        return status;
    };
    const auto product = [&] {
        catena_gemm g = {};
        g.struct_size = sizeof g;
        g.dtype = {CATENA_CODE_FLOAT, 32, 1};
        g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 1;
        g.alpha = 1;
        g.a = g.b = g.c = x;
        g.stream = stream;
        return plugin().blas->gemm(ctx, &g);
    };
    CHECK(fail_each_new([&] { return on_new_stream(product); }, undo) >= 2);
    CHECK(s.get(x, 1)[0] == 9);
    const auto& vendor = plugin().extension<catena_vendor>(CATENA_VENDOR_DRAFT_1);
    void* handle = nullptr;
    const auto find = [&] { return vendor.handle(ctx, dev(), stream, "cudnn", &handle); };
    if (is_here("cudnn")) CHECK(fail_each_new([&] { return on_new_stream(find); }, undo) >= 1);
    const auto& graphs = plugin().extension<catena_graph>(CATENA_GRAPH_DRAFT_1);
    catena_graph_exec* graph = nullptr;
    const auto record = [&] {
        const catena_status begun = graphs.begin(ctx, s.dev, s.stream);
        return begun == CATENA_OK ? graphs.end(ctx, s.dev, s.stream, &graph) : begun;
    };
    CHECK(fail_each_new(record, [&] { graphs.destroy(s.dev, graph); }) == 1);
}

TEST_CASE("failures: graphs") {
    const auto& graphs = plugin().extension<catena_graph>(CATENA_GRAPH_DRAFT_1);
    Stream s(second());
    int* x = s.alloc<int>(8);
    s.sync();
    catena_graph_exec* graph = nullptr;
    const auto undo = [&] { graphs.destroy(s.dev, graph); };
    const auto record = [&] {
        const int value = 5;
        const catena_status begun = graphs.begin(ctx, s.dev, s.stream);
        if (begun != CATENA_OK) return begun;
        const catena_status filled = memory().fill(ctx, s.dev, s.stream, x, &value, 4, 8);
        const std::string said = failure;
        const catena_status ended = graphs.end(ctx, s.dev, s.stream, &graph);
        if (filled == CATENA_OK) return ended;
        if (ended == CATENA_OK) undo();
        failure = said;
        return filled;
    };
    CHECK(fail_each(record, undo) == 5);
    CHECK(graph != nullptr);
}

TEST_CASE("failures: handles of the vendor's libraries") {
    const auto& vendor = plugin().extension<catena_vendor>(CATENA_VENDOR_DRAFT_1);
    for (const char* library : {"cublas", "cudnn"}) {
        CAPTURE(library);
        if (!is_here(library)) continue;
        catena_stream* stream = nullptr;
        const auto undo = [&] { backend().stream_destroy(dev(), stream); };
        const auto make = [&] {
            catena_status status = backend().stream_create(ctx, dev(), &stream);
            if (status != CATENA_OK) return status;
            void* handle = nullptr;
            status = vendor.handle(ctx, dev(), stream, library, &handle);
            if (status != CATENA_OK) undo();
            return status;
        };
        CHECK(fail_each(make, undo) > 0);
    }
}

TEST_CASE("failures: code that was made at run time") {
    const auto& compiler =
        *static_cast<const catena_compiler*>(plugin().table->extensions[1]->table);
    std::string code;
    const catena_compilation source = {
        .struct_size = sizeof(catena_compilation),
        .reserved = 0,
        .name = "nothing",
        .source =
            "namespace catena_kernel { struct catena_arguments { int x; };\n"
            "inline void catena_body(const catena_arguments&) {} }",
        .options = nullptr,
        .binary =
            [](void* user, const void* data, uint64_t bytes) {
                static_cast<std::string*>(user)->assign(static_cast<const char*>(data), bytes);
            },
        .messages = [](void*, const char* text) { failure = text; },
        .user = &code,
    };
    REQUIRE_MESSAGE(compiler.compile(ctx, dev(), &source) == CATENA_OK, failure);
    catena_compilation linked_later = source;
    const char* const options[] = {"-dlto", nullptr};
    linked_later.options = options;
    linked_later.binary = [](void*, const void*, uint64_t) { FAIL("there is no code to keep"); };
    CHECK(compiler.compile(ctx, dev(), &linked_later) == CATENA_E_DEVICE);
    CHECK(
        says("[cuda compiler] NVRTC: expected code of 'nothing' for --gpu-architecture=sm_90, got "
             "none"));
    catena_binary binary = {};
    binary.struct_size = sizeof binary;
    binary.name = "nothing";
    binary.data = code.data();
    binary.bytes = code.size();
    const catena_compiled* kernel = nullptr;
    static auto& kept = *new std::vector<const catena_compiled*>;  // never freed, as in a host
    CHECK(fail_each([&] { return compiler.load(ctx, dev(), &binary, &kernel); },
                    [&] {
                        kept.push_back(kernel);
                        catena_emulator_live(-1);
                    }) == 4);
    binary.name = "another";
    const long before = catena_emulator_live(0);
    CHECK(compiler.load(ctx, dev(), &binary, &kernel) == CATENA_E_DEVICE);
    CHECK(says(": cudaErrorSymbolNotFound"));
    CHECK(catena_emulator_live(0) == before);
}

TEST_CASE("failures: where memory cannot be shared with other processes") {
    Stream s;
    int* x = s.alloc<int>(8);
    catena_ipc_handle handle = {};
    uint64_t offset = 0;
    catena_emulator_fail(0, cudaErrorNotSupported);
    CHECK(plugin()
              .extension<catena_ipc>(CATENA_IPC_DRAFT_1)
              .memory_export(ctx, s.dev, x, &handle, &offset) == CATENA_E_DEVICE);
    catena_emulator_fail(-1, cudaSuccess);
    CHECK(
        failure ==
        "[cuda ipc export] cudaIpcGetMemHandle on device 0: cudaErrorNotSupported (not supported): "
        "the driver, or this container, may share none");
}

TEST_CASE("a context that another library made current is left, and found again") {
    for (const int ordinal : {0, second()}) {
        catena_emulator_foreign(ordinal);
        {
            Stream s(0);
            CHECK(s.get(s.put(std::vector<int>{4}), 1)[0] == 4);
            REQUIRE(backend().sync(ctx, s.dev) == CATENA_OK);
        }
        CHECK(catena_emulator_leave() == 1);
    }
}

TEST_CASE("a process that works on one device has no context on another") {
    if (second() == 0) return;
    int32_t n = 0;
    REQUIRE(backend().count(ctx, &n) == CATENA_OK);
    plugin().dev(1);  // opening a device makes no context
    catena_emulator_contexts(1);
    std::thread([] {  // no device was selected here: CUDA would take 0
        {
            Stream s(1);
            CHECK(s.get(s.put(std::vector<int>{4}), 1)[0] == 4);
            REQUIRE(backend().sync(ctx, s.dev) == CATENA_OK);
            void* handle = nullptr;
            CHECK(plugin()
                      .extension<catena_vendor>(CATENA_VENDOR_DRAFT_1)
                      .handle(ctx, s.dev, s.stream, "cublas", &handle) == CATENA_OK);
        }
        int now = -1;
        REQUIRE(cudaGetDevice(&now) == cudaSuccess);
        CHECK(now == 0);
    })
        .join();
    CHECK(catena_emulator_contexts(0) == 2u);  // only on device 1
    int* data = nullptr;
    REQUIRE(cudaMalloc(&data, 4) == cudaSuccess);
    CHECK(catena_emulator_contexts(0) == 3u);  // cudaMalloc() makes one on device 0
    cudaFree(data);
}
