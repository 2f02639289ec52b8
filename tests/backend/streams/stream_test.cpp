// Tests of streams and events: calls wait for the work they need, and for no other work.
#include "river.hpp"

#include <catena/diagnostics/call_observer.hpp>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

using namespace river;

TEST_CASE("calls return before the work is done, reading waits") {
    const Device d = device();
    const Array x = numbers({1, -2, 3}, d);
    const Stream main = Stream::current(d);
    Array y;
    {
        const Hold hold(d);
        y = x * x + x;
        CHECK_FALSE(main.done());
    }
    CHECK(values(y) == Values{2, 2, 12});
    CHECK(main.done());
    CHECK_FALSE(d.host_accessible());
    CHECK_THROWS_AS(y.host<double>(), DeviceError);
    CHECK(values(Array::empty({0, 3}, Dtype::float64, d)).empty());
    CHECK(full(7, 1, d).item<double>() == 7);
    CHECK(values(numbers({4, 5}, d).astype(Dtype::int32)) == Values{4, 5});
}

TEST_CASE("who watches sees a kernel's own time, not that of what was under way") {
    struct Watch final : CallObserver {
        std::vector<KernelCall> calls;
        void called(const KernelCall& call) noexcept override { calls.push_back(call); }
    } watch;
    const Device d = device();
    const Array x = numbers({1, -2, 3}, d);
    constexpr std::chrono::milliseconds slow(200);
    std::thread release;
    std::int64_t released = 0;
    Array before;
    {
        const Hold hold(d);
        before = x * x;  // not observed, and slow
        set_call_observer(&watch);
        const auto began = std::chrono::steady_clock::now();
        release = std::thread([&] {
            std::this_thread::sleep_for(slow);
            released = call_time();
            hold.let_go();
        });
        const Array after = F::relu(x);
        CHECK(std::chrono::steady_clock::now() - began > slow / 2);
    }
    release.join();
    set_call_observer(nullptr);
    REQUIRE(watch.calls.size() == 1);
    CHECK(watch.calls[0].begin >= released);
    CHECK(watch.calls[0].bytes == 3 * sizeof(double));
    CHECK(watch.calls[0].memory >= 3 * 3 * sizeof(double));
    CHECK(values(before) == Values{1, 4, 9});
}

TEST_CASE("a program with one stream records no event and waits only where it reads") {
    const Device d = device();
    const auto step = [&, w = full(1, 1000, d)] {
        const Variable p(w);
        const Variable y = F::relu(p * p + p);
        y.set_grad(full(1, 1000, d));
        y.backward();
        sgd(w, p.grad(), 0.01);
    };
    step();
    d.synchronize();
    const river_counts before = counts(d);
    for (int i = 0; i < 20; ++i) step();
    const river_counts after = counts(d);
    CHECK(after.event_records == before.event_records);
    CHECK(after.event_waits == before.event_waits);
    CHECK(after.stream_syncs == before.stream_syncs);
    CHECK(after.device_syncs == before.device_syncs);
    d.synchronize();
}

TEST_CASE("a call on another stream waits for what it needs") {
    const Device d = device();
    const Stream side(d);
    CHECK(side.device() == d);
    CHECK_FALSE(side == Stream::current(d));
    for (int i = 0; i < 20; ++i) {
        const Array x = full(i, 5000, d) + full(1, 5000, d);
        Array y;
        {
            const using_stream scope(side);
            CHECK(Stream::current(d) == side);
            y = x * x;
        }
        const Array z = y + x;  // back on the main stream
        CHECK(values(z) == same((i + 1.0) * (i + 1) + i + 1, 5000));
    }
}

TEST_CASE("one wait serves many uses") {
    const Device d = device();
    const Stream side(d);
    const Array w = full(2, 10, d) + full(1, 10, d);
    const river_counts before = counts(d);
    const using_stream scope(side);
    Array y = w;
    for (int i = 0; i < 50; ++i) y = y + w;
    CHECK(counts(d).event_waits == before.event_waits + 1);
    CHECK(values(y) == same(153, 10));
}

TEST_CASE("a user of a copy does not wait for later work of its stream") {
    const Device d = device(), other = device(1);
    const Stream copies(d);
    Array host = Array::pinned({100}, Dtype::float64, d);
    host.fill(3);
    const Array x = host.to(d, copies);
    const Event never(other);
    {
        const Hold hold(other);
        full(1, 10, other);
        never.record(Stream::current(other));
        copies.wait(never);
        const Array later = host.to(d, copies);  // waits for an event not reached yet
        CHECK(values(x + x) == same(6, 100));    // waiting for the stream would hang
        CHECK_FALSE(copies.done());
    }
    copies.synchronize();
}

TEST_CASE("memory that another stream reads is not written before") {
    const Device d = device();
    const Stream side(d);
    delay(d, 1000);
    for (int i = 0; i < 30; ++i) {
        Array x = full(i, 3000, d), y;
        {
            const using_stream scope(side);
            y = x * x;
        }
        if (i % 3 == 0) x = Array();         // frees memory that the next array uses
        else if (i % 3 == 1) x.fill(-1);     // written in place
        else sgd(x, full(1, 3000, d), 100);  // written in place by a call
        const Array again = full(-5, 3000, d);
        CHECK(values(y) == same(i * 1.0 * i, 3000));
        CHECK(values(again) == same(-5, 3000));
    }
    delay(d, 100);
}

TEST_CASE("in-place writes on another stream wait for readers and writers") {
    const Device d = device();
    const Stream a(d), b(d);
    const Array x = full(0, 4000, d), minus_one = full(-1, 4000, d);
    std::vector<Array> seen;
    for (int i = 0; i < 30; ++i) {
        const using_stream scope(i % 3 == 0 ? a : i % 3 == 1 ? b : Stream::current(d));
        sgd(x, minus_one, 1);  // x += 1
        const using_stream reader(i % 2 ? a : b);
        seen.push_back(x + x);
    }
    for (int i = 0; i < 30; ++i)
        CHECK(values(seen[static_cast<std::size_t>(i)]) == same(2 * i + 2, 4000));
    CHECK(values(x) == same(30, 4000));
}

TEST_CASE("events: waited for by streams and by the host, and measured") {
    const Device d = device();
    const Stream side(d);
    const Event begin(d), end(d);
    CHECK(begin.done());  // never recorded
    CHECK_THROWS_AS(end.elapsed_since(begin), InvalidError);
    CHECK_THROWS_AS(Event().record(side), InvalidError);
    CHECK_THROWS_AS(begin.record(Stream::current(device(1))), DeviceError);
    begin.record(side);
    begin.synchronize();
    {
        const Hold hold(d);
        const using_stream scope(side);
        const Array x = full(1, 100, d) + full(2, 100, d);
        end.record(side);
        CHECK_FALSE(end.done());
        Stream::current(d).wait(end);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    end.synchronize();
    CHECK(end.done());
    CHECK(begin.done());
    CHECK(end.elapsed_since(begin) >= 4);
    CHECK(end.elapsed_since(begin) < 1e7);
}

TEST_CASE("on a device that does all at once streams never wait") {
    const Stream stream(cpu());
    CHECK(stream == Stream::current(cpu()));
    CHECK(stream.done());
    CHECK(stream.native() == nullptr);
    const using_stream scope(stream);
    const Array x = full(2, 3, cpu());
    CHECK(values(x * x) == same(4, 3));
    const Event a(cpu()), b(cpu());
    a.record(stream);
    b.record(stream);
    stream.wait(b);
    stream.synchronize();
    CHECK(b.done());
    CHECK(b.elapsed_since(a) >= 0);
    CHECK_THROWS_AS(Stream().synchronize(), InvalidError);
    CHECK_THROWS_AS(using_stream{Stream()}, InvalidError);
}

TEST_CASE("streams that nobody has any more serve again") {
    const Device d = device(2);
    { const Stream a(d), b(d); }
    const std::int64_t made = counts(d).streams;
    for (int i = 0; i < 20; ++i) {
        const Stream a(d), b(d);
        CHECK_FALSE(a == b);
        const using_stream scope(a);
        CHECK(values(full(i, 10, d) + full(1, 10, d)) == same(i + 1, 10));
    }
    CHECK(counts(d).streams == made);
}

TEST_CASE("scopes of several devices go together, and are the thread's own") {
    const Device d0 = device(0), d1 = device(1);
    const Stream s0(d0), s1(d1);
    const using_stream first(s0);
    {
        const using_stream second(s1);
        CHECK(Stream::current(d0) == s0);
        CHECK(Stream::current(d1) == s1);
        bool same_there = true;
        std::thread([&] { same_there = Stream::current(d0) == s0; }).join();
        CHECK_FALSE(same_there);
    }
    CHECK_FALSE(Stream::current(d1) == s1);
}

TEST_CASE("gradients are computed on the stream of who asks for them") {
    const Device d = device();
    const Stream side(d);
    const Variable x(full(3, 200, d)), w(full(2, 200, d));
    const Variable y = F::relu(x * w) * x;  // y = w x^2 for w x > 0
    y.set_grad(full(1, 200, d));
    const MemoryStats before = side.memory();
    {
        const using_stream scope(side);
        y.backward();
    }
    CHECK(side.memory().in_use > before.in_use);
    CHECK(values(x.grad()) == same(12, 200));
    CHECK(values(w.grad()) == same(9, 200));
    y.backward();  // accumulates in place, on the main stream
    CHECK(values(x.grad()) == same(24, 200));
}

TEST_CASE("threads with a stream each share what they read") {
    const Device d = device();
    const Array shared = full(1, 500, d) + full(2, 500, d);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            const Stream mine(d);
            const using_stream scope(mine);
            Array sum = full(t, 500, d);
            for (int i = 0; i < 20; ++i) sum = sum + shared * shared;
            if (values(sum) != same(t + 180, 500)) ++wrong;
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
}

// Compares random calls, copies and fills on random streams, with arrays created and freed at
// random, with the values that the same operations give in program order.
TEST_CASE("any order on any streams gives what one after the other gives") {
    const Device d = device(), e = device(1);
    for (unsigned run = 0; run < 6; ++run) {
        CAPTURE(run);
        std::mt19937 random(run);
        const auto below = [&](std::size_t n) { return random() % n; };
        const std::int64_t n = run % 2 ? 100'000 : 300;  // large and small blocks
        std::vector<Stream> streams{Stream::current(d), Stream(d), Stream(d)};
        struct Pair {
            Array there;
            double value;
        };
        std::vector<Pair> pairs;
        for (int i = 0; i < 6; ++i) pairs.push_back({full(i, n, d), static_cast<double>(i)});
        for (int i = 0; i < 150; ++i) {
            const using_stream scope(streams[below(3)]);
            Pair& a = pairs[below(pairs.size())];
            Pair& b = pairs[below(pairs.size())];
            Pair& c = pairs[below(pairs.size())];
            switch (below(8)) {
                case 0: c = {a.there + b.there, a.value + b.value}; break;
                case 1: c = {a.there * full(0.5, n, d), a.value * 0.5}; break;
                case 2:
                    if (&a == &b || a.there.body() == b.there.body()) break;
                    sgd(a.there, b.there, 0.25);
                    for (Pair& p : pairs) {
                        if (&p != &a && p.there.body() == a.there.body()) p.value -= 0.25 * b.value;
                    }
                    a.value -= 0.25 * b.value;
                    break;
                case 3: c = {a.there.copy(), a.value}; break;
                case 4: c = {full(i, n, d), static_cast<double>(i)}; break;
                case 5: c = {a.there.to(e).to(d), a.value}; break;
                case 6:
                    c = {a.there.to(cpu(), streams[below(3)]).to(d, streams[below(3)]), a.value};
                    break;
                default: c = {a.there.reshape({n, 1}).reshape({n}) + b.there, a.value + b.value};
            }
        }
        for (const Pair& p : pairs) CHECK(values(p.there) == same(p.value, n));
    }
}
