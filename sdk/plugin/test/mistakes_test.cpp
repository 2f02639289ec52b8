// Tests that a plugin's mistakes are reported with the port, the dtype, and the request.
#include <doctest/doctest.h>

#include <catena/plugin/kernel.hpp>
#include <catena/testing.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace catena::testing;

namespace {

World& world() {
    static World all(MISTAKES);
    return all;
}
std::string failures(const char* function) { return conform(world(), function).failures(); }
bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }
std::ptrdiff_t lines(const std::string& text, const char* part) {
    std::ptrdiff_t n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++n;
    return n;
}

}  // namespace

TEST_CASE("a hidden output that is asked to add: one line, with its name") {
    const Report report = conform(world(), "org.example.hidden_add");
    const std::string text = report[Check::add].text;
    INFO(text);
    CHECK(lines(text, "\n") == 1);
    CHECK(has(text, "forward float32,float32 '' (and "));
    CHECK(has(text, " more, of bfloat16,float32 or float16,float32 or "));
    CHECK(
        has(text, "asked to add to what is there, which is 1: kept: element 0: expected 3, got 2"));
}

TEST_CASE("a tensor that is taken for another dtype: an error that names port and dtypes") {
    CHECK(failures("org.example.mistyped.none") == "");
    const auto check = [](const char* function, const char* said) {
        const std::string text = failures(function);
        INFO(text);
        CHECK(has(text, said));
        CHECK(!has(text, "out of bounds"));
    };
    check("org.example.mistyped.x", "] x: expected float64 for call.x<T>(0), got float32");
    check("org.example.mistyped.y", "] y: expected float64 for call.y<T>(0), got float32");
    check("org.example.mistyped.gy", "] y: expected float64 for call.gy<T>(0), got float32");
    check("org.example.mistyped.gx", "] x: expected float64 for call.gx<T>(0), got float32");
}

TEST_CASE("infer() with a wrong dtype is the reason why kernels are not reached") {
    const Report report = conform(world(), "org.example.wrong_infer");
    const std::string text = report[Check::reached].text;
    INFO(text);
    CHECK(has(text, "no example reaches forward float32 ''"));
    CHECK(has(text, "infer() gives y as float64, the kernel has float32"));
    CHECK(lines(text, "\n") == 2);  // one for float32 and float16, one for bfloat16
}

TEST_CASE("what a piece of parallel() throws is the error of the call, on any number of threads") {
    Array x = Array::constant({100000}, dtype_of<float>(), 1);
    for (const int threads : {1, 3}) {
        Options options;
        options.threads = threads;
        CHECK_NOTHROW(world().forward("org.example.throws", {x}, {}, options));
        Array bad = x;
        bad.set(70000, -2);
        bad.set(99999, -2);
        CHECK_THROWS_WITH(world().forward("org.example.throws", {bad}, {}, options),
                          "[org.example.throws] x: expected numbers from 0 on, got -2.0");
    }
    CHECK(failures("org.example.throws") == "");
}

TEST_CASE("pieces of parallel() that have not begun when one throws are left out") {
    static std::size_t threads;
    catena_host host = {};
    // A free thread takes the next piece, as in the CPU's thread pool.
    host.parallel_for = [](catena_ctx*, std::int64_t n, std::int64_t grain, catena_range_fn fn,
                           void* user) {
        std::atomic<std::int64_t> next{0};
        const auto work = [&](std::int32_t slot) {
            for (std::int64_t begin; (begin = grain * next++) < n;)
                fn(user, begin, std::min(begin + grain, n), slot);
        };
        std::vector<std::thread> team;
        while (team.size() < threads) team.emplace_back(work, static_cast<int>(team.size()));
        for (std::thread& thread : team) thread.join();
    };
    catena::plugin::the_host = &host;
    // The first piece that begins throws; the others take long.
    const auto began = [](std::size_t on) {
        threads = on;
        std::atomic<int> n{0};
        std::atomic<bool> throws{false};
        auto body = [&](std::int64_t, std::int64_t) {
            if (n++ == 0) {
                throws = true;
                throw std::runtime_error("the first");
            }
            while (!throws) std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        };
        CHECK_THROWS_WITH(catena::plugin::parallel<catena::plugin::Isa::baseline>(
                              nullptr, 6000, catena::plugin::serial_work, body),
                          "the first");
        return n.load();
    };
    CHECK(began(1) == 1);
    // Each thread begins one piece. On a busy machine, the other threads may begin more before the
    // first exception is caught.
    CHECK(began(3) < 6000);
    catena::plugin::the_host = nullptr;
}

TEST_CASE("bytes that are written beside an array, however many, are counted") {
    Array a = Array::constant({6}, dtype_of<float>(), 0);
    CHECK(a.damage() == "");
    for (int i = 0; i < 6; ++i) a.data<double>()[i] = 1;
    CHECK(a.damage() == "bytes 1 to 24 behind its end, as if its elements had 8 bytes");
    Array b = Array::constant({3}, dtype_of<std::uint8_t>(), 0);
    b.data<std::uint8_t>()[3] = 1;
    CHECK(b.damage() == "byte 1 behind its end");
    Array c = Array::constant({3}, dtype_of<double>(), 0);
    c.data<double>()[-1] = 1;
    CHECK(c.damage() == "bytes 1 to 8 before its beginning");
    CHECK(c.moved(8).damage() == "");
}
