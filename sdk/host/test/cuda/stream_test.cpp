// Tests of streams, events, asynchronous copies, arrays filled on a stream, library handles.
#include "gpus.hpp"

#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

using namespace gpus;

namespace {

Array large(float value) { return Array::full({64, 1024}, value, Dtype::float32, cuda::host()); }
bool all_are(const Array& array, float value) {
    bool all = true;
    for (const float v : values(array)) all = all && v == value;
    return all;
}

}  // namespace

TEST_CASE("there and back by a stream, without waiting") {
    const SameDevice same;
    const cuda::Stream stream(second());
    CHECK(stream.device() == second());
    const Array source = cuda::pinned({64, 1024}, Dtype::float32, second_id());
    CHECK(source.device() == cuda::host());
    CHECK(source.shape() == Shape{64, 1024});
    source.fill(3);
    const Array there = cuda::to_gpu_async(source, stream);
    CHECK(there.device() == second());
    const Array back = cuda::to_cpu_async(there, stream);
    CHECK(back.device() == cuda::host());
    CHECK(all_are(back, 3));  // reading waits for the copy
    stream.synchronize();
    CHECK(stream.done());
    // Other streams also wait before they use an array that a stream is copying.
    for (int i = 0; i < 20; ++i) {
        const auto value = static_cast<float>(i);
        const Variable x(cuda::to_gpu_async(large(value), stream));
        CHECK(all_are((x + x).data(), 2 * value));
    }
    // The source may be overwritten at once: the copy has the values at the time of the call.
    const Array first_copy = cuda::to_gpu_async(source, stream);
    source.fill(4);
    CHECK(all_are(first_copy, 3));
    CHECK(all_are(cuda::to_gpu_async(source), 4));
    CHECK(cuda::to_gpu_async(source).device() == first());
    {
        const cuda::using_device scope(second_id());
        CHECK(cuda::to_gpu_async(source).device() == second());
    }
}

TEST_CASE("what is there already stays") {
    const SameDevice same;
    const cuda::Stream stream(second());
    const Array here = large(1);
    const Array there = cuda::to_gpu(here, 0);
    CHECK(cuda::to_gpu_async(there, stream).body() == there.body());
    CHECK(cuda::to_cpu_async(here, stream).body() == here.body());
    CHECK_THROWS_AS((void)cuda::to_gpu_async(Array(), stream), InvalidError);
    CHECK_THROWS_AS((void)cuda::to_cpu_async(Array()), InvalidError);
    CHECK_THROWS_AS((void)cuda::to_gpu_async(here, cuda::Stream(cuda::host())), InvalidError);
}

TEST_CASE("copy_async: new memory, another GPU, or into an array") {
    const SameDevice same;
    const cuda::Stream on_0(first()), on_1(second());
    const Array x = cuda::to_gpu(large(5), 0);
    const Array here = cuda::copy_async(x, {}, on_0);
    CHECK(here.device() == first());
    CHECK(here.body() != x.body());
    CHECK(all_are(here, 5));
    const Array there = cuda::copy_async(x, {.out_device = second_id()}, on_1);
    CHECK(there.device() == second());
    CHECK(all_are(there, 5));
    const Array out = cuda::zeros(x.shape(), Dtype::float32, on_1);
    CHECK(cuda::copy_async(x, {.out = out}, on_1).body() == out.body());
    CHECK(all_are(out, 5));
    CHECK(all_are(cuda::copy_async(x, {.out_device = second_id()}), 5));
    const Array host_out = Array::zeros(x.shape(), Dtype::float32, cuda::host());
    CHECK(cuda::copy_async(x, {.out = host_out}, on_0).body() == host_out.body());
    CHECK(all_are(host_out, 5));
    CHECK_THROWS_AS((void)cuda::copy_async(x, {.out = cuda::zeros({3})}, on_0), ShapeError);
    CHECK_THROWS_AS((void)cuda::copy_async(Array()), InvalidError);
    CHECK_THROWS_AS((void)cuda::copy_async(x, {.out_device = 99}), DeviceError);
}

TEST_CASE("arrays filled by a stream") {
    const SameDevice same;
    const cuda::Stream stream(second());
    const Array like = cuda::ones({3, 2}, Dtype::float64, stream);
    CHECK(like.device() == second());
    CHECK(like.dtype() == Dtype::float64);
    CHECK(all_are(like, 1));
    CHECK(all_are(cuda::full({100000}, 2.5, Dtype::float32, stream), 2.5));
    CHECK(all_are(cuda::zeros({7}, Dtype::int32, stream), 0));
    CHECK(all_are(cuda::full_like(like, 4, stream), 4));
    CHECK(cuda::zeros_like(like, stream).dtype() == Dtype::float64);
    CHECK(all_are(cuda::ones_like(like, stream), 1));
    CHECK(cuda::full({1}, 1, Dtype::float32, cuda::Stream()).device() == first());
    CHECK_THROWS_AS((void)cuda::ones_like(Array(), stream), InvalidError);
    CHECK_THROWS_AS((void)cuda::ones({1}, Dtype::float32, cuda::Stream(cuda::host())),
                    InvalidError);
}

TEST_CASE("events: points in streams, and the time between them") {
    const SameDevice same;
    const cuda::Stream stream(second()), other(second());
    const cuda::Event begin(second()), end(second());
    begin.record(stream);
    Variable x(cuda::full({256, 256}, 0.01, Dtype::float32, stream));
    {
        const cuda::using_stream scope(stream);
        for (int i = 0; i < 10; ++i) x = F::tanh(x);
    }
    end.record(stream);
    other.wait(end);
    other.synchronize();
    CHECK(end.done());
    CHECK(end.elapsed_since(begin) >= 0);
    end.synchronize();
    CHECK(end.device() == second());
}

TEST_CASE("a stream of another GPU is refused" * two_gpus) {
    const cuda::Stream on_0(first()), on_1(second());
    const Array x = cuda::to_gpu(large(5), 0);
    CHECK_THROWS_AS((void)cuda::to_cpu_async(x, on_1), DeviceError);
    CHECK_THROWS_AS((void)cuda::copy_async(x, {.out_device = 1}, on_0), DeviceError);
    CHECK_THROWS_AS((void)cuda::copy_async(x, {}, on_1), DeviceError);
    CHECK_THROWS_AS(cuda::Event(second()).record(on_0), DeviceError);
}

TEST_CASE("a net learns the same by a stream of its own") {
    const SameDevice same;
    const auto train = [](const cuda::Stream& stream) {
        const cuda::using_stream scope(stream);
        seed(4);
        links::Linear link(3, 2);
        link.to_gpu(stream.device());
        optimizers::Adam adam(0.1);
        adam.setup(link);
        for (int i = 0; i < 5; ++i) {
            const Array data = Array::full({4, 3}, i, Dtype::float32, cuda::host());
            const Variable y = link(Variable(cuda::to_gpu_async(data, stream)));
            adam.cleargrads();
            F::sum(y * y).backward();
            adam.update();
        }
        return values(link);
    };
    const Floats expected = train(cuda::Stream::current(second()));
    CHECK(train(cuda::Stream(second())) == expected);
}

TEST_CASE("threads with a stream each learn what one thread learns, with cuDNN and without") {
    struct Net : Chain {
        links::Convolution2D conv{2, 3, 3, 1, 1};
        links::BatchNormalization bn{3};
        links::Linear l1{48, 7}, l2{7, 4};
        void visit(Visitor& v) override { v("conv", conv)("bn", bn)("l1", l1)("l2", l2); }
        Variable operator()(const Variable& x) override {
            return l2(F::relu(l1(F::max_pooling_2d(F::relu(bn(conv(x))), 2))));
        }
    };
    constexpr std::size_t n = 4;
    std::vector<Net> nets(n + 2);
    for (Net& net : nets) {
        net.copy_parameters_from(nets[0]);
        net.to(second());
    }
    std::vector<float> numbers;
    for (int i = 0; i < 5 * 2 * 8 * 8; ++i)
        numbers.push_back(static_cast<float>(i * 37 % 101) / 50 - 1);
    const Array images = Array::from(numbers, {5, 2, 8, 8}).to(second());
    const Array labels = Array::from({0, 1, 2, 3, 1}, {5}).to(second());
    const auto train = [&](Net& net, bool with_cudnn) {
        const cuda::using_stream scope{cuda::Stream(second())};
        const cuda::use_cudnn use(with_cudnn);
        optimizers::Adam adam;
        adam.setup(net);
        for (int i = 0; i < 10; ++i) {
            const Variable loss =
                F::softmax_cross_entropy(net(as_variable(images)), as_variable(labels));
            adam.cleargrads();
            loss.backward();
            adam.update();
        }
    };
    train(nets[n], false);
    train(nets[n + 1], true);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < n; ++i) threads.emplace_back(train, std::ref(nets[i]), i % 2 != 0);
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < n; ++i) CHECK(values(nets[i]) == values(nets[n + i % 2]));
}

TEST_CASE("handles of vendors' libraries, or a refusal") {
    const SameDevice same;
    CHECK_THROWS_AS((void)cuda::get_handle("no such library", second_id()), UnsupportedError);
    CHECK_THROWS_AS((void)cuda::get_cublas_handle(99), DeviceError);
    CHECK_THROWS_AS((void)cuda::get_cublas_handle(cuda::host()), InvalidError);
    void* handle = nullptr;
    try {
        handle = cuda::get_cublas_handle(second_id());
    } catch (const Error& error) {
        CAPTURE(error.what());
        REQUIRE(second().backend() != "cuda");
        contains(error.what(), "cublas");
        std::puts("skipped: handles of vendors' libraries, of which this backend has none");
        return;
    }
    CHECK(handle != nullptr);
    CHECK(cuda::get_cublas_handle(second_id()) == handle);
    const cuda::using_stream scope{cuda::Stream(second())};
    CHECK(cuda::get_cublas_handle(second_id()) != nullptr);
}
