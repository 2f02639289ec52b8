// Calls on a GPU through the core: recordings, and the calls that an error message lists.
#include "gpu.hpp"

#include <catena/catena.hpp>
#include <catena/cuda.hpp>

#include <thread>

#include <catena/core/memory.hpp>

namespace F = catena::functions;

namespace {

Array drawn(const Shape& shape, Device device, std::uint64_t state) {
    std::vector<float> values(static_cast<std::size_t>(Array::empty(shape).size()));
    for (float& value : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = static_cast<float>(state >> 40) / (1 << 23) - 1;
    }
    return Array::from(values, shape).to(device);
}
std::vector<float> values(const Array& array) { return array.to_vector<float>(); }

// Makes the device fail.
void break_down(const Array& x) {
    elementwise("float* p", "p[i + ((int64)1 << 40)] = 0", "wild")(x);
}

struct Mlp : Chain {
    links::Linear l1{7, 33}, l2{33, 5};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) override { return l2(F::relu(l1(x))); }
};

}  // namespace

TEST_CASE("a net that is recorded: the same numbers as call by call, on new inputs in place") {
    seed(1);
    Mlp net;
    net.to(gpu());
    const auto scale = elementwise("T x, float32 a", "T y", "y = x * a", "scale_in_recording");
    const auto predict = [&](const Array& x) {
        const no_backprop_mode scope;
        return scale(net(as_variable(x)).data(), 0.5f);
    };
    const Array x = drawn({11, 7}, gpu(), 1);
    Array y;
    const Capture capture(Stream(gpu()), [&] { y = predict(x); });
    CHECK(capture.size() >= 4);
    for (std::uint64_t i = 2; i < 6; ++i) {
        const Array next = drawn({11, 7}, gpu(), i);
        x.copy_from(next);
        capture.launch();
        const std::vector<float> expected = values(predict(next));
        CHECK(values(y) == expected);
        CHECK(values(predict(x)) == expected);
    }
}

TEST_CASE("a training step that is recorded learns what one learns that is not") {
    const auto train = [](bool recorded) {
        seed(1);
        Mlp net;
        net.to(gpu());
        optimizers::SGD optimizer(0.1);
        optimizer.setup(net);
        const Array x = drawn({16, 7}, gpu(), 100);
        const Array t = Array::zeros({16}, Dtype::int32, gpu());
        Variable loss;
        const auto step = [&] {
            loss = F::softmax_cross_entropy(net(as_variable(x)), as_variable(t));
            optimizer.cleargrads();
            loss.backward();
            optimizer.update();
        };
        const Stream stream(gpu());
        Capture capture;
        if (recorded) capture = Capture(stream, step, 2);
        else step(), step();
        std::vector<float> losses;
        for (std::uint64_t i = 0; i < 5; ++i) {
            x.copy_from(drawn({16, 7}, gpu(), i));
            if (recorded) capture.launch();
            else step();
            losses.push_back(loss.data().item<float>());
        }
        for (const Variable& parameter : net.parameters())
            for (const float value : values(parameter.data())) losses.push_back(value);
        return losses;
    };
    const std::vector<float> expected = train(false);
    CHECK(expected.size() == 5 + 7 * 33 + 33 + 33 * 5 + 5);
    CHECK(train(true) == expected);
}

TEST_CASE("recordings that are dropped, or came to nothing, leave their memory to the next") {
    const Stream stream(gpu());
    const Array x = drawn({100}, gpu(), 1);
    const std::vector<float> twice = values(x + x);
    Array y;
    const auto record = [&] {
        const Capture capture(
            stream, [&] { y = x + x; }, 0);
        capture.launch();
        CHECK(values(y) == twice);
        y = {};
    };
    record();
    const std::int64_t calls = gpu().memory().system_calls;
    for (int i = 0; i < 10; ++i) {
        record();
        const auto fails = [&] {
            y = x + x;
            throw InvalidError("on demand");
        };
        CHECK(failure_of<InvalidError>([&] { Capture(stream, fails, 0); }) == "on demand");
        y = {};
    }
    CHECK(gpu().memory().system_calls == calls);
}

TEST_CASE("a recording after another one keeps what the other wrote") {
    const Stream stream(gpu());
    const Array x = drawn({100}, gpu(), 1);
    Array total = Array::zeros({100}, Dtype::float32, gpu());
    const auto fails = [&] {
        total.copy_from(x);
        throw InvalidError("on demand");
    };
    for (const bool failed : {false, true}) {
        if (failed)
            CHECK(failure_of<InvalidError>([&] { Capture(stream, fails, 0); }) == "on demand");
        else
            Capture(
                stream, [&] { total.copy_from(x); }, 0)
                .launch();
        Array y;
        const Capture next(
            stream, [&] { y = total + x; }, 0);
        const std::vector<float> expected = values(x + x);
        if (failed) total = {};
        const Array other = Array::full({100}, 7, Dtype::float32, gpu());  // may take freed memory
        next.launch();
        CHECK(values(y) == expected);
    }
}

TEST_CASE("what cannot be recorded is refused in words, and all is as before") {
    const Stream stream(gpu()), side(gpu());
    const Array x = drawn({100}, gpu(), 1);
    const Array host = x.to(Device::get("cpu"));
    const std::vector<float> twice = values(x + x);
    Array y;
    const auto refused = [&](const auto& body) {
        int run = 0;
        const std::string text = failure_of([&] {
            Capture(stream, [&] {
                y = x + x;
                if (++run == 3) body();  // after both warm-ups
            });
        });
        const using_stream scope(stream);
        CHECK(values(x + x) == twice);
        return text;
    };
    const std::string start =
        "[recording] cuda:0: expected work that stays on the recorded stream, got ";
    CHECK(refused([&] { values(y); }) == start + "a copy of host memory that is not pinned");
    CHECK(refused([&] { x.copy_from(host); }) ==
          start + "a copy of host memory that is not pinned");
    CHECK(refused([&] { stream.synchronize(); }) == start + "a wait of the host");
    CHECK(refused([&] { gpu().synchronize(); }) == start + "a wait of the host");
    // Also in another thread, whose wait CUDA would let invalidate the recording.
    std::string elsewhere;
    CHECK(refused([&] {
              std::thread([&] { elsewhere = failure_of([] { gpu().synchronize(); }); }).join();
          }) == "none");
    CHECK(elsewhere == start + "a wait of the host");
    CHECK(refused([&] { Event(gpu()).record(stream); }) == start + "an event");
    CHECK(refused([&] { (void)stream.done(); }) == start + "a question of the host");
    // Memory runs out: during a recording, cached memory cannot be freed to make room.
    const std::string text =
        refused([&] { Array::zeros({std::int64_t{1} << 40}, Dtype::float32, gpu()); });
    INFO(text);
    CHECK(has(text, "[cuda alloc] cudaMalloc on device 0: "));
    CHECK(has(text, "during a recording; run the body once before, so its memory is cached)"));
    CHECK(has(failure_of<UnsupportedError>([] { Capture(Stream(Device::get("cpu")), [] {}); }),
              "expected one of a device that records, got cpu:0"));
}

TEST_CASE("random numbers are drawn anew in each launch: those that its calls would draw") {
    const Array x = Array::full({1000}, 1, Dtype::float32, gpu());
    std::vector<std::vector<float>> expected;
    seed(5);
    for (int i = 0; i < 4; ++i) {
        const Array once = F::dropout(x, 0.3);
        expected.push_back(values(F::dropout(once, 0.5)));
    }
    CHECK(expected[1] != expected[2]);
    seed(5);
    Array y;
    const Capture step(
        Stream(gpu()), [&] { y = F::dropout(F::dropout(x, 0.3), 0.5); }, 1);
    CHECK(values(F::dropout(F::dropout(x, 0.3), 0.5)) == expected[1]);  // recording drew none
    for (const std::size_t i : {2, 3}) {
        step.launch();
        CHECK(values(y) == expected[i]);
    }
    using_config test(&Config::train, false);
    step.launch();  // in the mode that was recorded
    CHECK(values(y) != values(x));
}

TEST_CASE("memory that no run before took, of the device and pinned, is made while it records") {
    const Stream stream(gpu());
    const Array x = drawn({2 << 20}, gpu(), 1);
    std::vector<Array> on_gpu, on_cpu;  // one array of each run
    const Capture capture(stream, [&] {
        on_gpu.push_back(x + x);
        on_cpu.push_back(cuda::to_cpu_async(on_gpu.back(), stream));
    });
    REQUIRE(on_cpu.size() == 3);  // both warm-ups and the recording
    CHECK(on_cpu[2].is_pinned());
    const std::vector<float> before = values(on_cpu[1]);
    for (std::uint64_t i = 2; i < 4; ++i) {
        x.copy_from(drawn({2 << 20}, gpu(), i));
        capture.launch();
        CHECK(values(on_cpu[2]) == values(x + x));
        CHECK(values(on_gpu[2]) == values(x + x));
    }
    CHECK(values(on_cpu[1]) == before);
    // Memory that a launch writes is not reused, although only the recording still refers to it.
    on_cpu.clear();
    const Array other = Array::pinned(x.shape(), Dtype::float32, gpu());
    other.fill(7);
    capture.launch();
    stream.synchronize();
    CHECK(values(other) == std::vector<float>(2 << 20, 7));
}

TEST_CASE("memory is given back when the recording is over, which CUDA would not survive" *
          doctest::skip(!recycle)) {
    gpu().synchronize();
    const Array x = drawn({100}, gpu(), 1);
    Array::zeros({1 << 20}, Dtype::float32, gpu());  // 4 MiB, which stay cached
    Array::pinned({1 << 12}, Dtype::float32, gpu());
    REQUIRE(gpu().memory().cached >= 4 << 20);
    Array y;
    int run = 0;
    const auto body = [&] {
        y = x + x;
        if (++run == 3) gpu().release_cached();  // after both warm-ups
        y = y + x;
    };
    Capture capture;
    CHECK(failure_of([&] { capture = Capture(Stream(gpu()), body); }) == "none");
    CHECK(gpu().memory().cached < 4 << 20);
    y.fill(0);
    REQUIRE(capture);
    capture.launch();
    CHECK(values(y) == values(x + x + x));
}

TEST_CASE("a reduction from a formula joins each element once, whatever their number") {
    const auto run = reduction(
        "int64 x", "int64 y", "Run{x, x, 1}",
        "Run{min(a.first, b.first), max(a.last, b.last), a.count + b.count}",
        "y = a.first == 0 && a.last + 1 == a.count ? a.count : -1", "", "run",
        {.reduce_type = "Run", .preamble = "struct Run { int64 first, last, count; };"});
    for (const std::int64_t n : {1, 2, 3, 31, 32, 33, 64, 100, 255, 256, 257, 1030, 70000}) {
        CAPTURE(n);
        const Array x = ramp(n).astype(Dtype::int64).to(gpu());
        CHECK(run(x).item<std::int64_t>() == n);
        if (n > 2000) continue;
        const std::vector<std::int64_t> expected(3, n);
        const Array rows = F::broadcast_to(x, {3, n});
        const Array columns = F::broadcast_to(F::reshape(x, {n, 1}), {n, 3});
        CHECK(run(rows, 1).to_vector<std::int64_t>() == expected);
        CHECK(run(columns, 0).to_vector<std::int64_t>() == expected);
    }
}

// A GPU fails until the process ends, so there this case runs in a process of its own.
TEST_CASE("a fault comes with the names of the last calls: functions, formulas, recordings" *
          doctest::skip(!emulated)) {
    const Device device = second();
    const Array x = drawn({100}, device, 1);
    const Array other = drawn({100}, device, 2);
    const auto muladd = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd_fwd");
    const auto l1 = reduction("T x", "T y", "abs(x)", "a + b", "y = a", "0", "l1_norm");
    const auto calls = [&] {
        F::exp(x);
        muladd(x, x, x);
        l1(x);
    };
    calls();  // compiles them
    Array y;
    const Capture nameless(Stream(device), [&] { y = F::exp(x) + x; });
    const Capture named(
        Stream(device), [&] { y = muladd(x, x, x); }, 2, "muladd step");
    calls();
    nameless.launch();
    named.launch();
    device.synchronize();
    break_down(other);
    const std::string before = "[wild], [recording muladd step], ";
    const std::string expected = "\nthe last calls on " + device.name() +
                                 ", newest first: " + before +
                                 "[recording of 2 kernels, copies and fills], [l1_norm], "
                                 "[muladd_fwd], [catena.exp forward], ";
    const std::string waited = failure_of<DeviceError>([&] { device.synchronize(); });
    INFO(waited);
    CHECK(
        has(waited, "on device " + std::to_string(device.ordinal()) + ": cudaErrorIllegalAddress"));
    CHECK(has(waited, expected));
    const std::string read = failure_of<DeviceError>([&] { values(x); });
    CHECK(has(read, expected));
    const std::string called = failure_of<DeviceError>([&] { muladd(x, x, x); });
    INFO(called);
    // Without cached memory, the call already fails when it allocates its result.
    CHECK(has(called, recycle ? "newest first: [muladd_fwd], " + before : expected));
    const std::string launched = failure_of<DeviceError>([&] { named.launch(); });
    INFO(launched);
    CHECK(has(launched,
              "newest first: [recording muladd step], " + (recycle ? "[muladd_fwd], " : before)));
    if (device != gpu(0)) CHECK(values(drawn({3}, gpu(0), 1)).size() == 3);  // no fault on this one
    if (!emulated) return;
    REQUIRE(cudaSetDevice(device.ordinal()) == cudaErrorIllegalAddress);
    REQUIRE(cudaDeviceReset() == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("a formula that finds no memory runs again, unless it writes what was there" *
          doctest::skip(!emulated)) {
    const auto muladd = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd_again");
    const Array x = drawn({100}, gpu(), 1);
    const std::vector<float> expected = values(muladd(x, x, x));
    int calls = 0;
    for (int number = 0; number <= calls; ++number) {
        CAPTURE(number);
        Array y;
        catena_emulator_fail(number, cudaErrorMemoryAllocation);
        CHECK(failure_of([&] { y = muladd(x, x, x); }) == "none");
        calls = catena_emulator_fail(-1, cudaSuccess);
        REQUIRE(y);
        CHECK(values(y) == expected);
    }
    CHECK(calls > 0);
    const auto twice = elementwise("T x", "T y", "y = x * 2", "twice_in_place");
    const Array changed = x.copy();
    twice(changed, changed);
    gpu().synchronize();
    catena_emulator_fail(0, cudaErrorMemoryAllocation);
    const std::string text = failure_of<MemoryError>([&] { twice(changed, changed); });
    catena_emulator_fail(-1, cudaSuccess);
    INFO(text);
    CHECK(has(text, "on device 0: cudaErrorMemoryAllocation"));
    CHECK(values(changed) == values(x + x));
}
