// Tests of recorded work: repeated launches, the memory of a recording, the order of launches.
#include <catena/core/memory.hpp>
#include "river.hpp"

using namespace river;

namespace {

// Makes alloc() fail during recordings.
struct Strict {
    explicit Strict(Device d) : device(d) { control(device).strict(backend_device(device), 1); }
    ~Strict() { control(device).strict(backend_device(device), 0); }
    Device device;
};

}  // namespace

TEST_CASE("what is recorded computes when it is launched, on what its inputs are by then") {
    const Device d = device();
    const Strict strict(d);
    const Stream stream(d);
    for (const std::int64_t n : {3, 50'000}) {
        const Array x = full(1, n, d);
        Array y;
        const Capture capture(stream, [&] { y = x * x + F::relu(x); });
        CHECK(capture.size() == 3);
        CHECK(capture.stream() == stream);
        for (int i = 2; i < 12; ++i) {
            x.fill(i);  // on the main stream; the launch waits for it
            capture.launch();
            CHECK(values(y + full(0, n, d)) == same(i * i + i, n));
            CHECK(values(y) == same(i * i + i, n));
        }
        const river_counts before = counts(d);
        capture.launch();
        CHECK(counts(d).allocations == before.allocations);
        CHECK(counts(d).launches == before.launches + 1);
    }
}

TEST_CASE("a training step: gradients and updates in place") {
    const Device d = device();
    const Strict strict(d);
    const Stream stream(d);
    const Array w = full(1, 100, d), x = full(0, 100, d), one = full(1, 100, d);
    const Variable p(w);
    const auto step = [&] {
        const Variable y = p * as_variable(x);
        p.cleargrad();
        y.set_grad(one);
        y.backward();
        sgd(w, p.grad(), 0.5);
    };
    const Capture capture(stream, step);  // warm-up runs with x = 0 do not change w
    double expected = 1;
    for (int i = 0; i < 8; ++i) {
        x.fill(i);
        capture.launch();
        expected -= 0.5 * i;
        if (i % 2) CHECK(values(w) == same(expected, 100));
    }
    CHECK(values(p.grad()) == same(7, 100));
    const Array last = full(2, 100, d);
    x.copy_from(last);
    step();  // the same step without the recording
    CHECK(values(w) == same(expected - 1, 100));
}

TEST_CASE("memory of a recording is its own while it lives") {
    const Device d = device();
    const Stream stream(d);
    delay(d, 500);
    Array x = full(3, 3000, d), y, z;
    {
        const Capture capture(stream, [&] {
            const Array t = x * x;  // freed after the recording, but launches still write it
            y = t + t;
        });
        d.release_cached();
        const Array kept = x;
        std::vector<Array> others;
        {
            const using_stream scope(stream);
            for (int i = 0; i < 20; ++i) others.push_back(full(-1, 3000, d));
        }
        x = Array();  // the recording keeps it
        for (int i = 0; i < 5; ++i) {
            z = y + y;  // main stream, while the next launch writes y
            capture.launch();
            CHECK(values(z) == same(i ? 36 : values(z)[0], 3000));
        }
        CHECK(values(y) == same(18, 3000));
        for (const Array& other : others) CHECK(values(other) == same(-1, 3000));
    }
    CHECK(values(y) == same(18, 3000));  // y outlives the recording
    CHECK(values(y + y) == same(36, 3000));
    delay(d, 100);
}

TEST_CASE("launches and other uses of the same arrays are in order") {
    const Device d = device();
    const Stream stream(d), side(d);
    delay(d, 500);
    const Array x = full(1, 2000, d);
    Array y;
    const Capture capture(stream, [&] { y = x + x; });
    std::vector<Array> results;
    for (int i = 0; i < 20; ++i) {
        const using_stream scope(i % 2 ? side : Stream::current(d));
        x.fill(i);
        capture.launch();
        results.push_back(y * full(1, 2000, d));
        if (i % 3 == 0) y.fill(-7);  // written on another stream before the next launch
    }
    for (int i = 0; i < 20; ++i)
        CHECK(values(results[static_cast<std::size_t>(i)]) == same(2 * i, 2000));
    delay(d, 100);
}

TEST_CASE("pinned memory is read by each launch") {
    const Device d = device();
    const Stream stream(d);
    Array host = Array::pinned({500}, Dtype::float64, d);
    host.fill(0);
    Array y;
    const Capture capture(stream, [&] {
        const Array x = host.to(d, stream);
        y = x + x;
    });
    for (int i = 1; i < 5; ++i) {
        host.fill(i);  // waits until the previous launch has read it
        capture.launch();
        CHECK(values(y) == same(2 * i, 500));
    }
}

TEST_CASE("what cannot be recorded says so, and nothing is broken") {
    const Device d = device();
    const Stream stream(d), side(d);
    const Array x = full(2, 10, d);
    const auto refused = [&](const std::function<void()>& body) {
        const std::string text = what<UnsupportedError>([&] { Capture(stream, body, 0); });
        const using_stream scope(stream);
        CHECK(values(x * x) == same(4, 10));
        return text;
    };
    const std::string start =
        "[recording] river:0: expected work that stays on the recorded stream";
    CHECK(refused([&] { (x + x).to_vector<double>(); }) ==
          start + ", got a copy of host memory that is not pinned");
    CHECK(refused([&] {
              numbers({1, 2}, d);
          }) == start + ", got a copy of host memory that is not pinned");
    CHECK(refused([&] { stream.synchronize(); }) == start + ", got a wait of the host");
    CHECK(refused([&] { d.synchronize(); }) == start + ", got a wait of the host");
    CHECK(refused([&] { stream.done(); }) == start + ", got a question of the host");
    CHECK(refused([&] { stream.wait(side); }) == "nothing");  // side's work precedes the recording
    CHECK(refused([&] {
              Array y;
              {
                  const using_stream scope(side);
                  y = x + x;
              }
              y + y;
          }) == start + ", got a wait for another stream");
    CHECK(refused([&] { Event(d).record(stream); }) == start + ", got an event");
    const Event event(d);
    event.record(side);
    CHECK(refused([&] { stream.wait(event); }) == start + ", got a wait for an event");
    CHECK(has(refused([&] {
                  const using_fallback scope("cpu");
                  F::exp(x);
              }),
              start));
    CHECK(what<InvalidError>([&] { Capture(stream, [&] { Capture(stream, [] {}); }); }) ==
          "[capture] stream: expected one that is not recorded yet");
    CHECK(has(what<UnsupportedError>([&] { Capture(Stream(cpu()), [] {}); }),
              "expected one of a device that records, got cpu:0"));
    CHECK_THROWS_AS(Capture().launch(), InvalidError);
    CHECK_THROWS_AS(Capture(stream, [] { throw std::runtime_error("its own"); }),
                    std::runtime_error);
    const Strict strict(d);
    const std::string text = what<DeviceError>([&] {
        Capture(
            stream, [&] { full(1, 3'000'000, d); }, 0);
    });
    INFO(text);
    CHECK(has(text, "during a recording; run the body once before, so its memory is cached"));
    Array y;
    const Capture good(stream, [&] { y = x + x; });
    good.launch();
    CHECK(values(y) == same(4, 10));
}

TEST_CASE("nothing goes back to the backend while work is recorded" * doctest::skip(!recycle)) {
    const Device d = device(2);
    d.synchronize();
    d.release_cached();
    d.synchronize();
    const Stream stream(d), side(d);
    const Array x = full(3, 1000, d);
    const river_counts before = counts(d);
    const auto fill_cache = [&](std::int64_t n) {
        full(1, n, d);
        REQUIRE(d.memory().cached >= 8 * n);
    };
    Array y;
    SUBCASE("asked for: it is done when the recording ends") {
        fill_cache(500'000);
        Array::pinned({1000}, Dtype::float64, d);
        const std::int64_t pinned = counts(d).pinned;
        const Capture capture(
            stream,
            [&] {
                y = x * x;
                d.release_cached();
                CHECK(d.memory().cached >= 4'000'000);
                CHECK(counts(d).pinned == pinned);
            },
            0);
        CHECK(d.memory().cached < 4'000'000);
        CHECK(counts(d).pinned < pinned);
        capture.launch();
        CHECK(values(y) == same(9, 1000));
    }
    SUBCASE("asked for in a recording that fails") {
        fill_cache(500'000);
        CHECK_THROWS_AS(Capture(
                            stream,
                            [&] {
                                d.release_cached();
                                d.synchronize();
                            },
                            0),
                        UnsupportedError);
        CHECK(d.memory().cached < 4'000'000);
    }
    SUBCASE("too much is cached") {
        fill_cache(12'000'000);
        d.reset_peak_memory();
        const Capture capture(
            stream,
            [&] {
                y = full(2, 200'000, d);
                CHECK(d.memory().cached >= 96'000'000);
            },
            0);
        capture.launch();
        CHECK(values(y) == same(2, 200'000));
        const using_stream scope(side);
        full(1, 300'000, d);  // releases the cached memory
        CHECK(d.memory().cached < 96'000'000);
    }
    SUBCASE("out of memory: an error, and nothing is broken") {
        fill_cache(500'000);
        d.synchronize();
        control(d).limit(backend_device(d), counts(d).live_bytes + 1'000'000);
        const std::int64_t syncs = counts(d).device_syncs;
        const std::string text = what<MemoryError>([&] {
            Capture(
                stream, [&] { full(1, 400'000, d); }, 0);
        });
        INFO(text);
        CHECK(has(text, "[river] out of memory (3203072 bytes wanted, "));
        CHECK(counts(d).device_syncs == syncs);
        CHECK(
            has(text, "; during a recording; run the body once before, so its memory is cached)"));
        {
            const using_stream scope(side);
            CHECK(values(full(1, 400'000, d)) == same(1, 400'000));  // after the recording it fits
        }
        control(d).limit(backend_device(d), std::int64_t{1} << 40);
        const Capture good(stream, [&] { y = x + x; });
        good.launch();
        CHECK(values(y) == same(6, 1000));
    }
    CHECK(counts(d).frees_recording == before.frees_recording);
}

TEST_CASE("updates are recorded, but not those that count their steps") {
    const Device d = device();
    const auto learn = [&](Optimizer& optimizer, int warm_ups) {
        const Variable w(full(1, 10, d));
        w.set_grad(full(2, 10, d));
        optimizer.setup({{"w", w}});
        bool recorded = false;
        const Capture step(
            Stream(d),
            [&] {
                recorded = is_recorded(d);
                optimizer.update();
            },
            warm_ups);
        CHECK(recorded);
        CHECK_FALSE(is_recorded(d));
        CHECK(optimizer.t() == warm_ups + 1);
        const Values before = values(w.data());
        step.launch();
        step.launch();
        return before[0] - values(w.data())[9];
    };
    optimizers::SGD sgd(0.125);
    CHECK(learn(sgd, 0) == 0.5);
    CHECK(learn(sgd, 1) == 0.5);
    sgd.lr = 0.25;
    CHECK(learn(sgd, 0) == 1);
    optimizers::Adam adam;
    const std::string text = what<UnsupportedError>([&] { learn(adam, 0); });
    INFO(text);
    CHECK(has(text,
              "[update] catena.adam_update: expected a call that is not recorded, because each "
              "launch would repeat step t = 1, got a recording on river:0"));
    CHECK(adam.t() == 0);
    CHECK_FALSE(is_recorded(d));
    CHECK_FALSE(is_recorded(cpu()));
    CHECK_FALSE(is_recorded(Device()));
}
