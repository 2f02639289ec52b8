// Tests of memory on streams: pinned and foreign arrays, copies between devices, statistics, limits.
#include <catena/core/memory.hpp>
#include "river.hpp"

#include <thread>

using namespace river;

TEST_CASE("pinned arrays: copies run asynchronously, and their users wait") {
    const Device d = device();
    const Stream copies(d);
    Array host = Array::pinned({1000}, Dtype::float64, d);
    CHECK(host.is_pinned());
    CHECK(host.device() == cpu());
    host.fill(4);
    Array there, back;
    {
        const Hold hold(d);
        const river_counts before = counts(d);
        there = host.to(d, copies);
        back = (there + there).to(cpu(), copies);
        CHECK(counts(d).async_copies == before.async_copies + 2);
        CHECK(back.is_pinned());
        CHECK_FALSE(copies.done());
    }
    SUBCASE("read by the host") { CHECK(values(back) == same(8, 1000)); }
    SUBCASE("read as a span") { CHECK(back.host<double>()[999] == 8); }
    SUBCASE("read by a kernel of the host's device") {
        CHECK(values(back * back) == same(64, 1000));
    }
    SUBCASE("read by a view of it") { CHECK(values(back.reshape({10, 100})) == same(8, 1000)); }
    SUBCASE("waited for") {
        back.synchronize();
        CHECK(values(back) == same(8, 1000));
    }
    SUBCASE("sent back") { CHECK(values(back.to(d)) == same(8, 1000)); }
    SUBCASE("written by the host while the device reads it") {
        delay(d, 2000);
        for (int i = 0; i < 10; ++i) {
            host.fill(i);
            const Array copy = host.to(d, copies);
            if (i % 2) host.fill(-1);
            else host.host<double>()[0] = -1;
            CHECK(values(copy) == same(i, 1000));
        }
        delay(d, 100);
    }
    SUBCASE("dropped while the device reads it") {
        delay(d, 2000);
        for (int i = 0; i < 10; ++i) {
            Array source = Array::pinned({1000}, Dtype::float64, d);
            source.fill(i);
            const Array copy = source.to(d, copies);
            source = Array();
            Array::pinned({1000}, Dtype::float64, d).fill(-1);
            CHECK(values(copy) == same(i, 1000));
        }
        delay(d, 100);
    }
    SUBCASE("dropped while the device writes it") {
        delay(d, 2000);
        for (int i = 0; i < 10; ++i) {
            there.to(cpu(), copies);
            Array next = Array::pinned({1000}, Dtype::float64, d);
            next.fill(-1);
            copies.synchronize();
            CHECK(values(next) == same(-1, 1000));
        }
        delay(d, 100);
    }
    CHECK_FALSE(full(1, 3, cpu()).is_pinned());
    CHECK_FALSE(Array::pinned({3}, Dtype::float32, cpu()).is_pinned());  // the CPU cannot pin
    CHECK(Array::pinned({0}, Dtype::float32, d).size() == 0);
}

TEST_CASE("pinned memory is used again and given back") {
    const Device d = device();
    d.synchronize();
    d.release_cached();
    const std::int64_t before = counts(d).pinned;
    for (int i = 0; i < 10; ++i) Array::pinned({100'000}, Dtype::float32, d).fill(1);
    CHECK(counts(d).pinned == before + 1);
    d.release_cached();
    CHECK(counts(d).pinned == before);
}

TEST_CASE("to() on a stream: which devices and streams go together") {
    const Device d = device(), e = device(1);
    const Array x = full(5, 10, d);
    CHECK(values(x.to(e, Stream(e))) == same(5, 10));
    CHECK(values(full(6, 10, cpu()).to(d, Stream(d))) == same(6, 10));  // not pinned: works too
    CHECK(x.to(d, Stream(d)).body() == x.body());
    CHECK_THROWS_AS(x.to(e, Stream(d)), DeviceError);
    CHECK_THROWS_AS(x.to(cpu(), Stream(e)), DeviceError);
    CHECK_THROWS_AS(full(1, 2, cpu()).to(d, Stream(e)), DeviceError);
    CHECK_THROWS_AS(x.to(e, Stream()), InvalidError);
}

TEST_CASE("devices of one backend copy without the host") {
    const Device d = device(), e = device(1);
    const river_counts before = counts(e);
    {
        Array x = full(1, 2000, d);
        for (int i = 0; i < 20; ++i) {
            const Array y = (x + x).to(e);
            x = (y + full(1, 2000, e)).to(d);
            x = x + full(-1, 2000, d);
        }
        CHECK(values(x) == same(1 << 20, 2000));
    }
    CHECK(counts(e).peer_copies == before.peer_copies + 20);
    CHECK(counts(e).stream_syncs == before.stream_syncs);
}

TEST_CASE("fill() is work of the device") {
    const Device d = device();
    const river_counts before = counts(d);
    for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::int32, Dtype::int64,
                              Dtype::uint8, Dtype::float16}) {
        CHECK(values(Array::full({1001}, 3, dtype, d)) == same(3, 1001));
    }
    CHECK(values(Array::zeros({}, Dtype::float32, d)) == Values{0});
    CHECK(Array::zeros({0}, Dtype::float32, d).size() == 0);
    CHECK(counts(d).fills == before.fills + 7);
}

TEST_CASE("foreign memory: used like any other, and let go once no work uses it") {
    const Device d = device();
    SUBCASE("of the host") {
        std::vector<float> data{1, 2, 3, 4};
        int released = 0;
        {
            const Array x =
                Array::wrap(cpu(), data.data(), {2, 2}, Dtype::float32, [&] { ++released; });
            CHECK(x.shape() == Shape{2, 2});
            const Array view = x.reshape({4});
            CHECK(values(F::relu(view)) == Values{1, 2, 3, 4});
            view.fill(9);
            CHECK(released == 0);
        }
        CHECK(released == 1);
        CHECK(data[3] == 9);
    }
    SUBCASE("of a device") {
        const Array owner = full(3, 100, d);
        std::atomic<bool> released{false};
        const Stream side(d);
        Array y;
        std::thread late;
        {
            Array x = Array::wrap(d, owner.body()->tensor.dl.data, {100}, Dtype::float64,
                                  [&] { released = true; });
            auto hold = std::make_unique<Hold>(d);
            {
                const using_stream scope(side);
                y = x * x;
            }
            late = std::thread([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                CHECK_FALSE(released);
                hold.reset();
            });
            x = Array();  // waits until its work is done
            CHECK(side.done());
            CHECK(released);
            late.join();
        }
        CHECK(values(y) == same(9, 100));
    }
    SUBCASE("without elements, without a callback, or not to be had") {
        CHECK(Array::wrap(cpu(), nullptr, {0, 3}).to_vector<float>().empty());
        alignas(8) char bytes[16] = {};
        CHECK(Array::wrap(cpu(), bytes + 4, {2}).to_vector<float>() == std::vector<float>{0, 0});
        CHECK_THROWS_AS(Array::wrap(cpu(), bytes + 1, {2}), InvalidError);
        CHECK_THROWS_AS(Array::wrap(cpu(), nullptr, {2}), InvalidError);
        CHECK_NOTHROW(Array::wrap(cpu(), bytes, {2}, Dtype::float32,
                                  [] { throw std::runtime_error("late"); }));
    }
}

TEST_CASE("a program's own work on a stream: use() says what it touches") {
    const Device d = device();
    const Stream side(d);
    const Array x = full(1, 100, d), y = full(2, 100, d);
    {
        const Hold hold(d);
        use(side, x, false);
        use(side, y, true);
        call_backend(d, "test", [&](catena_ctx*, void*) -> catena_status { return CATENA_OK; });
    }
    const river_counts before = counts(d);
    y + y;  // waits for the side stream
    CHECK(counts(d).event_waits == before.event_waits + 1);
    CHECK(has(what<DeviceError>([&] {
                  call_backend(d, "test", [](catena_ctx*, void*) { return CATENA_E_DEVICE; });
              }),
              "[test] failed with status 6"));
}

TEST_CASE("what is counted: a device's streams together, and each of them") {
    const Device d = device(2);
    const Stream side(d);
    const MemoryStats before = d.memory(), side_before = side.memory();
    {
        const Array a = full(1, 1 << 17, d);
        const using_stream scope(side);
        const Array b = full(1, 1 << 17, d), c = full(1, 8, d);
        CHECK(d.memory().in_use == before.in_use + (2 << 20) + 64);
        CHECK(side.memory().in_use == side_before.in_use + (1 << 20) + 64);
        CHECK(d.memory().peak >= before.in_use + (2 << 20) + 64);
    }
    CHECK(d.memory().in_use == before.in_use);
    CHECK(side.memory().in_use == side_before.in_use);
    d.reset_peak_memory();
    CHECK(d.memory().peak < before.in_use + (2 << 20));
    CHECK(side.memory().peak < side_before.in_use + (1 << 20));
    CHECK(d.memory_size().total == std::int64_t{1} << 40);
    CHECK(d.memory_size().free < d.memory_size().total);
    CHECK(d.memory_size().free > 0);
}

TEST_CASE("out of memory: what all streams keep is given back first, then it is an error") {
    const Device d = device(2);
    const Stream side(d);
    d.synchronize();
    d.release_cached();
    d.synchronize();
    const auto limit = [&](std::int64_t bytes) { control(d).limit(backend_device(d), bytes); };
    limit(counts(d).live_bytes + 5'000'000);
    {
        const using_stream scope(side);
        full(1, 500'000, d);  // 4 MB, cached for the side stream
    }
    CHECK(values(full(1, 400'000, d)) == same(1, 400'000));  // fits once the cache is freed
    const std::string text = what<MemoryError>([&] { full(1, 1'000'000, d); });
    INFO(text);
    CHECK(has(text, "[river] out of memory (8003584 bytes wanted, "));
    CHECK(has(text, " in use by arrays, "));
    CHECK(has(text, " free of "));
    limit(std::int64_t{1} << 40);
    CHECK(values(full(2, 1'000'000, d)) == same(2, 1'000'000));
}

TEST_CASE("a kernel that finds no memory: what is cached is given back, and it runs again" *
          doctest::skip(!recycle)) {
    const Device d = device(2);
    d.synchronize();
    d.release_cached();
    d.synchronize();
    const auto limit = [&](std::int64_t bytes) { control(d).limit(backend_device(d), bytes); };
    const auto workspace = [&](std::int64_t bytes) {
        control(d).workspace(backend_device(d), bytes);
    };
    const Array x = full(3, 10, d), w = full(1, 10, d);
    const Variable p(w);
    Variable y = p * as_variable(x);
    y.set_grad(x);
    limit(counts(d).live_bytes + 5'000'000);
    const auto fill_cache = [&] {
        full(1, 500'000, d);  // 4 MB
        workspace(3'000'000);
    };
    const char* const refusal = "[river] no memory for a workspace";
    SUBCASE("forward") {
        fill_cache();
        CHECK(values(x + x) == same(6, 10));
        CHECK(d.memory().cached < 4'000'000);
        workspace(9'000'000);
        const std::string text = what<MemoryError>([&] { x + x; });
        INFO(text);
        CHECK(has(text, refusal));
    }
    SUBCASE("backward; not where it adds to a gradient") {
        fill_cache();
        y.backward();
        CHECK(values(p.grad()) == same(9, 10));
        fill_cache();
        CHECK(has(what<MemoryError>([&] { y.backward(); }), refusal));
        CHECK(values(p.grad()) == same(9, 10));
        d.release_cached();
        d.synchronize();
        y.backward();
        CHECK(values(p.grad()) == same(18, 10));
    }
    SUBCASE("random numbers: those of the first run") {
        const Array many = full(1, 1000, d);
        seed(7, d);
        const Values expected = values(F::dropout(many));
        const std::uint64_t drawn = random_state(d).offset;
        seed(7, d);
        fill_cache();
        CHECK(values(F::dropout(many)) == expected);
        CHECK(d.memory().cached < 4'000'000);
        CHECK(random_state(d).offset == drawn);
        CHECK(values(F::dropout(many)) != expected);  // the next random numbers
        fill_cache();
        workspace(9'000'000);
        CHECK(has(what<MemoryError>([&] { F::dropout(many); }), refusal));
    }
    SUBCASE("pinned memory") {
        fill_cache();
        const Array pinned = Array::pinned({1 << 20}, Dtype::float64, d);
        CHECK(pinned.is_pinned());
        CHECK(d.memory().cached < 4'000'000);
        workspace(9'000'000);
        const std::string text =
            what<MemoryError>([&] { Array::pinned({1 << 21}, Dtype::float64, d); });
        INFO(text);
        CHECK(has(text, refusal));
        CHECK(has(text, "(16777216 bytes of pinned host memory wanted)"));
    }
    SUBCASE("the launch of a recording") {
        Array z;
        const Capture capture(Stream(d), [&] { z = x + x; });
        fill_cache();
        capture.launch();
        CHECK(values(z) == same(6, 10));
        CHECK(d.memory().cached < 4'000'000);
        workspace(9'000'000);
        CHECK(has(what<MemoryError>([&] { capture.launch(); }), refusal));
    }
    SUBCASE("the call of an extension") {
        fill_cache();
        ExtensionCall call(d);
        CHECK_FALSE(call.makes_room(CATENA_OK));
        CHECK_FALSE(call.makes_room(CATENA_E_DEVICE));
        CHECK(d.memory().cached >= 4'000'000);
        CHECK(call.makes_room(CATENA_E_NOMEM));
        CHECK(d.memory().cached < 4'000'000);
        CHECK_FALSE(ExtensionCall().makes_room(CATENA_E_NOMEM));
    }
    SUBCASE("not what updates in place") {
        fill_cache();
        CHECK(has(what<MemoryError>([&] { sgd(w, x, 1); }), refusal));
        CHECK(values(w) == same(1, 10));
    }
    workspace(0);
    limit(std::int64_t{1} << 40);
}
