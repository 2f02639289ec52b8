// Tests of arrays on GPUs: creation, copies between GPUs and the host, memory.
#include "gpus.hpp"

#include <cmath>

using namespace gpus;

namespace {

Array on_cpu() { return Array::from({1.F, -2.F, 3.F, 4.F, 5.F, 6.F}, {2, 3}, cuda::host()); }
bool is(const Array& array, Device device, const Shape& shape, Dtype dtype, double value) {
    for (const double v : array.to_vector<double>()) CHECK(v == value);
    CHECK(array.device() == device);
    CHECK(array.shape() == shape);
    CHECK(array.dtype() == dtype);
    return array.device() == device;
}

}  // namespace

TEST_CASE("to_gpu and to_cpu") {
    const SameDevice same;
    const Array x = on_cpu();
    const Array there = cuda::to_gpu(x);
    CHECK(there.device() == first());
    CHECK(values(there) == values(x));
    const Array other = cuda::to_gpu(x, second_id());
    CHECK(other.device() == second());
    CHECK(values(other) == values(x));
    CHECK(cuda::to_gpu(x, other).device() == second());
    // Arrays that are already on a GPU, or already on the host, are returned themselves.
    CHECK(cuda::to_gpu(other, 0).body() == other.body());
    CHECK(cuda::to_cpu(x).body() == x.body());
    const Array back = cuda::to_cpu(other);
    CHECK(back.device() == cuda::host());
    CHECK(values(back) == values(x));
    other.fill(9);
    CHECK(values(back) == values(x));
    {
        const cuda::using_device scope(second_id());
        CHECK(cuda::to_gpu(x).device() == second());
        CHECK(cuda::to_cpu(other).device() == cuda::host());
    }
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float64, Dtype::int32,
                              Dtype::int64, Dtype::uint8}) {
        for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{5, 7}}) {
            const Array a = Array::full(shape, 3, dtype, cuda::host());
            is(cuda::to_gpu(a, second_id()), second(), shape, dtype, 3);
            is(cuda::to_cpu(cuda::to_gpu(a, second_id())), cuda::host(), shape, dtype, 3);
        }
    }
    contains(error_of<InvalidError>([] { (void)cuda::to_gpu(Array()); }), "[to_gpu] array");
    contains(error_of<InvalidError>([] { (void)cuda::to_cpu(Array()); }), "[to_cpu] array");
    CHECK_THROWS_AS((void)cuda::to_gpu(x, 99), DeviceError);
    contains(error_of<InvalidError>([&] { (void)cuda::to_gpu(x, cuda::host()); }),
             "[to_gpu] device: expected a GPU, got " + cuda::host().name());
}

TEST_CASE("copy: new memory, another GPU, or into an array") {
    const SameDevice same;
    const Array x = cuda::to_gpu(on_cpu(), 0);
    const Array here = cuda::copy(x);
    CHECK(here.device() == first());
    CHECK(here.body() != x.body());
    CHECK(values(here) == values(x));
    here.fill(7);
    CHECK(values(x) == values(on_cpu()));
    const Array there = cuda::copy(x, {.out_device = second_id()});
    CHECK(there.device() == second());
    CHECK(values(there) == values(x));
    CHECK(cuda::copy(x, {.out_device = 0}).body() != x.body());
    CHECK(cuda::copy(x, {.out_device = there}).device() == second());
    const Array out = cuda::zeros_like(there);
    CHECK(cuda::copy(x, {.out = out, .out_device = 0}).body() == out.body());  // out has priority
    CHECK(values(out) == values(x));
    CHECK(cuda::copy(on_cpu(), {.out_device = second_id()}).device() == second());
    CHECK(cuda::copy(on_cpu()).device() == cuda::host());
    CHECK_THROWS_AS((void)cuda::copy(x, {.out = cuda::zeros({3, 2})}), ShapeError);
    CHECK_THROWS_AS((void)cuda::copy(x, {.out = cuda::zeros({2, 3}, Dtype::float64)}), ShapeError);
    CHECK_THROWS_AS((void)cuda::copy(x, {.out_device = 99}), DeviceError);
    CHECK_THROWS_AS((void)cuda::copy(x, {.out_device = cuda::host()}), InvalidError);
    CHECK_THROWS_AS((void)cuda::copy(Array()), InvalidError);
}

TEST_CASE("new arrays") {
    const SameDevice same;
    const auto f32 = Dtype::float32;
    CHECK(cuda::empty({2, 3}).shape() == Shape{2, 3});
    CHECK(cuda::empty({2, 3}).dtype() == f32);
    CHECK(cuda::empty({2, 3}, Dtype::int64).dtype() == Dtype::int64);
    is(cuda::full({2, 3}, 1.5), first(), {2, 3}, f32, 1.5);
    is(cuda::full({3}, 4, Dtype::int32), first(), {3}, Dtype::int32, 4);
    is(cuda::zeros({4}), first(), {4}, f32, 0);
    is(cuda::ones({}), first(), {}, f32, 1);
    is(cuda::ones({0, 2}, Dtype::float16), first(), {0, 2}, Dtype::float16, 1);
    CHECK(std::isnan(cuda::full({1}, std::nan("")).item<double>()));
    CHECK(cuda::empty({}).size() == 1);
    // zeros_like() and the others use the GPU of their argument, else the current one.
    const Array like = Array::full({2, 2}, 8, Dtype::float64, second());
    CHECK(cuda::empty_like(like).device() == second());
    is(cuda::full_like(like, 3), second(), {2, 2}, Dtype::float64, 3);
    is(cuda::zeros_like(like), second(), {2, 2}, Dtype::float64, 0);
    is(cuda::ones_like(like), second(), {2, 2}, Dtype::float64, 1);
    is(cuda::ones_like(on_cpu()), first(), {2, 3}, f32, 1);
    const cuda::using_device scope(second_id());
    is(cuda::ones_like(on_cpu()), second(), {2, 3}, f32, 1);
    is(cuda::zeros({2}), second(), {2}, f32, 0);
    CHECK_THROWS_AS((void)cuda::zeros_like(Array()), InvalidError);
    CHECK_THROWS_AS((void)cuda::zeros({-1}), ShapeError);
}

TEST_CASE("F::copy by a GPU's number, and the gradient back") {
    const SameDevice same;
    const Variable x(on_cpu());
    const Variable y = F::copy(F::copy(x, 0), second_id());
    CHECK(y.device() == second());
    F::sum(y * y).backward();
    CHECK(x.grad().device() == cuda::host());
    CHECK(values(x.grad()) == Floats{2, -4, 6, 8, 10, 12});
    CHECK(F::copy(y.data(), 0).device() == first());
    CHECK(values(F::copy(y.data(), 0)) == values(on_cpu()));
    CHECK_THROWS_AS((void)F::copy(x, 99), DeviceError);
    CHECK_THROWS_AS((void)F::copy(x, -2), DeviceError);
    CHECK(F::copy(y, -1).device() == cuda::host());
}

TEST_CASE("memory of the pool") {
    const SameDevice same;
    const std::int64_t before = cuda::memory_stats(second_id()).in_use;
    const std::int64_t large = std::int64_t{1} << 20;
    cuda::Memory block = cuda::mem_alloc(large, second_id());
    REQUIRE(block.data() != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block.data()) % 64 == 0);
    CHECK(block.size() == large);
    CHECK(block.device() == second());
    CHECK(cuda::memory_stats(second_id()).in_use >= before + large);
    const cuda::Memory second_handle = block;
    block = {};
    CHECK(cuda::memory_stats(second_id()).in_use >= before + large);
    CHECK(second_handle.array().shape() == Shape{large});
    block = cuda::mem_alloc(0);
    CHECK(block.size() == 0);
    CHECK(block.device() == first());
    CHECK(cuda::Memory().data() == nullptr);
    CHECK(cuda::Memory().size() == 0);
    CHECK_FALSE(cuda::Memory().device());
    contains(error_of<InvalidError>([] { (void)cuda::mem_alloc(-1); }), "[mem_alloc] nbytes");
    CHECK_THROWS_AS((void)cuda::mem_alloc(std::int64_t{1} << 62), MemoryError);
    CHECK_THROWS_AS((void)cuda::mem_alloc(1, 99), DeviceError);
}

TEST_CASE("what is free goes back to the driver") {
    const std::int64_t large = std::int64_t{8} << 20;
    (void)cuda::mem_alloc(large, second_id());
#if !defined(__SANITIZE_ADDRESS__)  // address sanitizer disables the cache
    CHECK(cuda::memory_stats(second_id()).cached >= large);
#endif
    cuda::release_cached(second_id());
    CHECK(cuda::memory_stats(second_id()).cached < large);
}

TEST_CASE("random numbers of a GPU") {
    const SameDevice same;
    catena::seed(3);
    const cuda::RandomGenerator generator = cuda::get_generator(second_id());
    CHECK(generator.device() == second());
    CHECK(cuda::get_generator().device() == first());
    const RandomState start = generator.state();
    const Array u = generator.gen_uniform({50, 20});
    CHECK(u.device() == second());
    CHECK(u.dtype() == Dtype::float32);
    double mean = 0;
    for (const float v : values(u)) {
        CHECK((v >= 0 && v <= 1));
        mean += v / 1000;
    }
    CHECK(std::abs(mean - 0.5) < 0.05);
    CHECK(values(generator.gen_uniform({50, 20})) != values(u));
    generator.set_state(start);
    CHECK(values(generator.gen_uniform({50, 20})) == values(u));
    const Array n = generator.gen_normal({1000}, Dtype::float64);
    double square = 0;
    for (const double v : n.to_vector<double>()) square += v * v / 1000;
    CHECK(std::abs(square - 1) < 0.2);
    CHECK(n.dtype() == Dtype::float64);
    CHECK(generator.gen_normal({0}).size() == 0);
    // Draws have the same bits as the host's, and advance the random stream by the same amount.
    for (const std::int64_t size : {1, 7, 512, 513, 2000}) {
        for (const Dtype dtype :
             {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
            CAPTURE(size);
            std::vector<double> doubles(static_cast<std::size_t>(size));
            const auto as_drawn = [&] {
                return Array::from(doubles, {size}, cuda::host()).astype(dtype).to_vector<double>();
            };
            generator.set_state(start);
            {
                const catena::using_device scope(second());
                fill_uniform(doubles, 0, 1);
                const std::vector<double> expected = as_drawn();
                fill_normal(doubles, 0, 1);
                const RandomState end = generator.state();
                generator.set_state(start);
                CHECK(generator.gen_uniform({size}, dtype).to_vector<double>() == expected);
                CHECK(generator.gen_normal({size}, dtype).to_vector<double>() == as_drawn());
                CHECK(generator.state().offset == end.offset);
            }
        }
    }
    CHECK_THROWS_AS((void)generator.gen_normal({1}, Dtype::int32), DtypeError);

    // seed() for one GPU gives it the same seed as seed() for all, and leaves the others unchanged.
    const RandomState other = cuda::get_generator(0).state();
    cuda::seed(3, second_id());
    CHECK(generator.state().seed == start.seed);
    CHECK(generator.state().offset == 0);
    CHECK(values(generator.gen_uniform({50, 20})) == values(u));
    CHECK(cuda::get_generator(0).state().seed == other.seed);
    cuda::seed(4, second_id());
    CHECK(values(generator.gen_uniform({50, 20})) != values(u));
    cuda::seed({}, second_id());
    const std::uint64_t drawn = generator.state().seed;
    cuda::seed({}, second_id());
    CHECK(generator.state().seed != drawn);
    cuda::seed(5);
    CHECK(cuda::get_generator(0).state().seed != other.seed);
    CHECK_THROWS_AS((void)cuda::get_generator(99), DeviceError);
    CHECK_THROWS_AS(cuda::seed(1, 99), DeviceError);
    CHECK_THROWS_AS(cuda::seed(1, cuda::host()), InvalidError);
    // Dropout draws from the same generator.
    const Variable x(Array::ones({100}, Dtype::float32, second()));
    cuda::seed(6, second_id());
    const Floats dropped = values(F::dropout(x, 0.5).data());
    cuda::seed(6, second_id());
    CHECK(values(F::dropout(x, 0.5).data()) == dropped);
    CHECK(values(F::dropout(x, 0.5).data()) != dropped);
    catena::seed(0);
}
