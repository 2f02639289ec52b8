// Handles of the vendor's libraries: one for each device, stream and running thread.
#include <dlfcn.h>

#include <cstring>
#include <future>
#include <set>
#include <thread>

#include "host.hpp"

using namespace cuda_test;

namespace {

const catena_vendor& vendor() { return plugin().extension<catena_vendor>(CATENA_VENDOR_DRAFT_1); }

void* handle(Stream& s, const char* library) {
    void* found = nullptr;
    const catena_status status = vendor().handle(ctx, s.dev, s.stream, library, &found);
    CHECK_MESSAGE(status == CATENA_OK, failure);
    return found;
}

}  // namespace

TEST_CASE("libraries are opened once, with their versions") {
    for (const auto& [name, version] :
         {std::pair<const char*, int64_t>{"cublas", 130000}, {"cudnn", 91900}, {"nvrtc", 0}}) {
        CAPTURE(name);
        if (std::strcmp(name, "cudnn") == 0 && !is_here(name)) continue;
        void* dl = nullptr;
        int64_t got = 0;
        REQUIRE(vendor().open(ctx, name, &dl, &got) == CATENA_OK);
        CHECK(dl != nullptr);
        if (emulated && version > 0) CHECK(got == version);
        else CHECK(got > 0);  // always NVIDIA's NVRTC
        void* again = nullptr;
        REQUIRE(vendor().open(ctx, name, &again, &got) == CATENA_OK);
        CHECK(again == dl);
    }
    void* dl = nullptr;
    int64_t version = 1;
    CHECK(vendor().open(ctx, "cufft", &dl, &version) == CATENA_E_UNSUPPORTED);
    CHECK(failure == "[cuda vendor] library: expected cublas, cudnn or nvrtc, got 'cufft'");
    void* none = nullptr;
    CHECK(vendor().handle(ctx, plugin().dev(), nullptr, "nvrtc", &none) == CATENA_E_UNSUPPORTED);
    CHECK(failure == "[cuda vendor] library with handles: expected cublas or cudnn, got 'nvrtc'");
}

TEST_CASE("a handle is of its stream and thread, and stays the same") {
    for (const char* library : {"cublas", "cudnn"}) {
        CAPTURE(library);
        if (std::strcmp(library, "cudnn") == 0 && !is_here(library)) continue;
        Stream one;
        Stream two;
        Stream far(second());
        std::set<void*> handles;
        for (Stream* s : {&one, &two, &far}) {
            void* const mine = handle(*s, library);
            CHECK(handle(*s, library) == mine);
            handles.insert(mine);
            void* theirs = nullptr;
            std::thread([&] {
                theirs = handle(*s, library);
                CHECK(handle(*s, library) == theirs);
            }).join();
            handles.insert(theirs);
            CHECK(handle(*s, library) == mine);
            void* dl = nullptr;
            int64_t version = 0;
            REQUIRE(vendor().open(ctx, library, &dl, &version) == CATENA_OK);
            const char* name =
                std::strcmp(library, "cublas") == 0 ? "cublasGetStream_v2" : "cudnnGetStream";
            auto* const get_stream = reinterpret_cast<int (*)(void*, void**)>(dlsym(dl, name));
            REQUIRE(static_cast<bool>(get_stream));
            void* stream = nullptr;
            REQUIRE(get_stream(mine, &stream) == 0);
            CHECK(stream == s->stream);
        }
        CHECK(handles.size() == 6);
    }
}

TEST_CASE("threads that end leave their handles to later ones") {
    if (!is_here("cublas")) return;
    Stream s;
    const auto of_a_thread = [&] {
        void* theirs = nullptr;
        std::thread([&] { theirs = handle(s, "cublas"); }).join();
        return theirs;
    };
    void* const mine = handle(s, "cublas");
    void* const first = of_a_thread();
    CHECK(first != mine);
    // The idle thread takes over the stack, and so the ID, of the ended one; the next has another.
    std::promise<void> end;
    const std::shared_future<void> ended = end.get_future().share();
    std::vector<std::thread> idle;
    for (int i = 0; i < 10; ++i) {
        idle.emplace_back([ended] { ended.wait(); });
        CHECK(of_a_thread() == first);
    }
    end.set_value();
    for (std::thread& thread : idle) thread.join();
}

TEST_CASE("what is set in a handle does not reach the backend's products") {
    if (!is_here("cublas")) return;
    Stream s;
    void* dl = nullptr;
    int64_t version = 0;
    REQUIRE(vendor().open(ctx, "cublas", &dl, &version) == CATENA_OK);
    auto* const set_mode =
        reinterpret_cast<int (*)(void*, int)>(dlsym(dl, "cublasSetPointerMode_v2"));
    REQUIRE(static_cast<bool>(set_mode));
    constexpr int device_pointers = 1;  // CUBLAS_POINTER_MODE_DEVICE
    REQUIRE(set_mode(handle(s, "cublas"), device_pointers) == 0);
    catena_gemm g = {};
    g.struct_size = sizeof g;
    g.dtype = {CATENA_CODE_FLOAT, 32, 1};
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 1;
    g.alpha = 1;
    g.a = s.put(std::vector<float>{3});
    g.b = s.put(std::vector<float>{5});
    float* c = s.alloc<float>(1);
    g.c = c;
    g.stream = s.stream;
    REQUIRE(plugin().blas->gemm(ctx, &g) == CATENA_OK);
    CHECK(s.get(c, 1)[0] == 15);
}

TEST_CASE("stream 0 of each device has handles of its own") {
    if (!is_here("cublas")) return;
    void* handles[2] = {};
    for (int round = 0; round < 2; ++round)
        for (const int ordinal : {0, second()}) {
            void* found = nullptr;
            REQUIRE(vendor().handle(ctx, plugin().dev(ordinal), nullptr, "cublas", &found) ==
                    CATENA_OK);
            if (round == 0) handles[ordinal] = found;
            CHECK(found == handles[ordinal]);
        }
    CHECK((second() == 0 || handles[0] != handles[1]));
}

TEST_CASE("handles and the workspace end with the stream" * doctest::skip(!emulated)) {
    const uint64_t before = memory_left().left;
    {
        Stream s;
        handle(s, "cublas");
        std::thread([&] { handle(s, "cublas"); }).join();
        CHECK(before - memory_left().left == uint64_t{32} << 20);  // one workspace for all threads
    }
    CHECK(memory_left().left == before);
}
