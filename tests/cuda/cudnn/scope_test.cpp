// cuDNN in the core: enabled or disabled per call and per thread, and used in recordings.
#include <catena/catena.hpp>
#include <catena/core/array.hpp>
#include <catena/cuda.hpp>

#include <thread>

#include "stand_in.hpp"

using namespace catena;
namespace F = catena::functions;

namespace {

Array drawn(const Shape& shape, std::uint64_t state) {
    std::vector<float> values(static_cast<std::size_t>(Array::empty(shape).size()));
    for (float& value : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = static_cast<float>(state >> 40) / (1 << 23) - 1;
    }
    return Array::from(values, shape);
}
Device gpu() { return Device::get("cuda:0"); }

struct Call {
    Variable x{drawn({2, 2, 9, 9}, 1).to(gpu())};
    Variable w{drawn({3, 2, 3, 3}, 2).to(gpu())};
    Variable operator()() const { return F::convolution_2d(x, w, Variable()); }
};
// Whether body ran something on cuDNN.
template <class Body>
bool uses(const Body& body) {
    const long before = counted().runs;
    body();
    return counted().runs != before;
}

// Whether another plugin has CUDA kernels for convolutions; without one, a pin has no effect.
bool has_others() {
    for (const KernelInfo& kernel : kernels_of("catena.convolution_2d"))
        if (kernel.plugin == "org.catena.connection.cuda") return true;
    return false;
}

}  // namespace

TEST_CASE("a thread says whether it uses cuDNN, and what is in it") {
    const Call call;
    CHECK(uses(call));
    {
        const cuda::use_cudnn scope(false);
        CHECK_FALSE(uses(call));
        std::thread([&] { CHECK(uses(call)); }).join();
        {
            const cuda::use_cudnn inner(true);
            CHECK(uses(call));
        }
        CHECK_FALSE(uses(call));
    }
    CHECK(uses(call));
}

TEST_CASE("one call, and a link, say whether they use cuDNN; their gradients follow") {
    const Call call;
    const auto gradients_use = [](const Variable& y) {
        y.set_grad(Array::ones(y.shape()).to(y.device()));
        return uses([&] { y.backward(true); });
    };
    Variable y;
    CHECK_FALSE(uses([&] { y = cuda::with_cudnn(false, call); }));
    CHECK_FALSE(gradients_use(y));
    CHECK(uses(call));
    {
        const cuda::use_cudnn scope(false);
        CHECK(uses([&] { y = cuda::with_cudnn(true, call); }));
        CHECK(gradients_use(y));
    }
    const using_device device(gpu());
    cuda::WithCudnn<links::Convolution2D> without(false, 2, 3, 3), with(true, 2, 3, 3);
    CHECK_FALSE(uses([&] { y = without(call.x); }));
    CHECK_FALSE(gradients_use(y));
    CHECK(uses([&] { y = with(call.x); }));
    const cuda::use_cudnn scope(false);
    CHECK(gradients_use(y));
}

TEST_CASE("gradients of calls that were made without a choice use it where they are computed") {
    const Call call;
    Variable y = call();
    y.set_grad(Array::ones(y.shape()).to(gpu()));
    CHECK(uses([&] { y.backward(true); }));
    const auto with = call.w.grad().to_vector<float>();
    call.w.cleargrad();
    const cuda::use_cudnn scope(false);
    CHECK_FALSE(uses([&] { y.backward(true); }));
    const auto without = call.w.grad().to_vector<float>();
    for (std::size_t i = 0; i < with.size(); ++i) CHECK(with[i] == doctest::Approx(without[i]));
}

TEST_CASE("a pin leaves it out of single functions") {
    const Call call;
    if (!has_others()) return;
    pin_kernels("catena.convolution_2d", "org.catena.connection.cuda");
    CHECK_FALSE(uses(call));
    pin_kernels("catena.convolution_2d", "");
    CHECK(uses(call));
}

TEST_CASE("threads have plans of their own") {
    const Call call;
    const auto expected = call().data().to_vector<float>();
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (int& mine : wrong)
        threads.emplace_back([&] {
            const Stream stream(gpu());
            const using_stream scope(stream);
            for (int i = 0; i < 20; ++i) mine += call().data().to_vector<float>() != expected;
        });
    for (std::thread& thread : threads) thread.join();
    for (const int mine : wrong) CHECK(mine == 0);
}

// The cuDNN stand-in checks the alignment of every address.
TEST_CASE("data that is aligned to its elements alone has plans of its own") {
    const Call call;
    const auto expected = call().data().to_vector<float>();
    const std::int64_t n = call.x.data().size();
    const Array room = Array::empty({n + 1}, Dtype::float32, gpu());
    const Array x =
        Array::wrap(gpu(), static_cast<float*>(room.body()->tensor.dl.data) + 1, call.x.shape());
    x.copy_from(call.x.data());
    CHECK(uses([&] {
        CHECK(F::convolution_2d(Variable(x), call.w, Variable()).data().to_vector<float>() ==
              expected);
    }));
}

TEST_CASE("attention: scopes, gradients that are added, unaligned data, recordings") {
    const auto half = [](const Shape& shape, std::uint64_t state) {
        return Variable(drawn(shape, state).astype(Dtype::float16).to(gpu()));
    };
    const Variable q = half({2, 2, 5, 8}, 1), k = half({2, 1, 7, 8}, 2), v = half({2, 1, 7, 8}, 3);
    const auto attend = [&] { return F::scaled_dot_product_attention(q, k, v); };
    const auto values = [](const Array& x) { return x.astype(Dtype::float32).to_vector<float>(); };
    Variable y;
    CHECK(uses([&] { y = attend(); }));
    const auto expected = values(y.data());
    const auto is_expected = [&](const Array& x) {
        const auto got = values(x);
        return std::ranges::equal(
            got, expected, [](float a, float b) { return a == doctest::Approx(b).epsilon(4e-3); });
    };
    y.set_grad(Array::ones(y.shape(), Dtype::float16).to(gpu()));
    CHECK(uses([&] { y.backward(true); }));
    const auto once = values(k.grad());
    CHECK(uses([&] { y.backward(true); }));
    const auto twice = values(k.grad());
    for (std::size_t i = 0; i < once.size(); ++i)
        CHECK(twice[i] == doctest::Approx(2 * once[i]).epsilon(4e-3));

    const no_backprop_mode inference;
    CHECK_FALSE(uses([&] { CHECK(is_expected(cuda::with_cudnn(false, attend).data())); }));
    const Array room = Array::empty({q.data().size() + 1}, Dtype::float16, gpu());
    const Array moved = Array::wrap(gpu(), static_cast<std::byte*>(room.body()->tensor.dl.data) + 2,
                                    q.shape(), Dtype::float16);
    moved.copy_from(q.data());
    CHECK(uses([&] {
        CHECK(is_expected(F::scaled_dot_product_attention(Variable(moved), k, v).data()));
    }));
    Array recorded;
    const Capture capture(Stream(gpu()), [&] { recorded = attend().data(); });
    capture.launch();
    CHECK(is_expected(recorded));
}

TEST_CASE("a recording computes what the calls compute") {
    const Call call;
    const no_backprop_mode scope;
    const auto expected = call().data().to_vector<float>();
    Array y;
    const Capture capture(Stream(gpu()), [&] { y = call().data(); });
    capture.launch();
    CHECK(y.to_vector<float>() == expected);
}

// The cuDNN stand-in aborts if a plan is destroyed that a recording launches.
TEST_CASE("the plan of a recording stays, however many come after it") {
    const Variable x(drawn({3, 2, 7, 9}, 1).to(gpu())), w(drawn({4, 2, 3, 3}, 2).to(gpu()));
    const no_backprop_mode scope;
    Array y;
    const Capture capture(
        Stream(gpu()), [&] { y = F::convolution_2d(x, w, Variable()).data(); }, 0);
    const auto expected = F::convolution_2d(x, w, Variable()).data().to_vector<float>();
    const Variable tap(drawn({1, 2, 1, 1}, 3).to(gpu()));
    for (std::int64_t i = 1; i <= 1100; ++i)  // more than the cache keeps
        F::convolution_2d(as_variable(Array::zeros({1, 2, 1, i}, Dtype::float32, gpu())), tap,
                          Variable());
    capture.launch();
    const std::vector<float> got = y.to_vector<float>();
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("calls that are to be deterministic do not measure") {
    const using_config exact(&Config::deterministic, true);
    const Call call;
    CHECK(uses(call));
    CHECK(counted().engine == wide);
    CHECK(counted().runs == 1);
}
