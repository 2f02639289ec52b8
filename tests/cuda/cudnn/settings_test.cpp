// Settings in the environment; each test case runs in a process of its own.
#include <catena/testing.hpp>

#include <cstdlib>

#include "stand_in.hpp"

using namespace catena::testing;
namespace plugin = catena::plugin;

namespace {

constexpr const char* cudnn_id = "org.catena.cudnn";
constexpr const char* convolution = "catena.convolution_2d";

World& world() {
    static World the([] {
        const std::string folder = std::getenv("CUDA_PLUGINS");
        return std::vector<std::string>{folder + "/cuda.catena", folder + "/cudnn.cuda.catena"};
    }());
    return the;
}
Options on(const char* device, bool add = false) {
    Options options;
    options.device = device;
    options.add = add;
    return options;
}
template <class T = float>
Array draw(const Dims& shape, unsigned seed) {
    return Array::random<double>(shape, seed).to(plugin::dtype_of<T>());
}

const Dims x_shape = {2, 2, 9, 9};
const Dims w_shape = {3, 2, 3, 3};
template <class T = float>
std::vector<Array> inputs(const Dims& x = x_shape, const Dims& w = w_shape) {
    return {draw<T>(x, 1), draw<T>(w, 2), Array()};
}

// Describes how the result differs from the CPU's; empty if it does not.
template <class T = float>
std::string wrong(const std::vector<Array>& x, bool add = false, Tolerance t = {1e-4, 1e-5}) {
    const auto expected = world().forward(convolution, x, {}, on("cpu", add));
    return compare(world().forward(convolution, x, {}, on("cuda", add)), expected, t);
}
std::string done_by(const std::vector<Array>& x) {
    try {
        world().forward(convolution, x, {}, on("cuda"));
    } catch (const Failure&) {
        return "none";
    }
    return world().ran();
}

// Checks attention of more scores than 600 bytes hold; returns whether cuDNN computes its gradients.
bool has_gradients_of_attention() {
    const std::string name = "catena.scaled_dot_product_attention";
    const auto wide = [](std::vector<Array> list) {
        for (Array& x : list)
            if (x && x.dtype().bits == 16) x = x.to(plugin::dtype_of<float>());
        return list;
    };
    const std::vector<Array> x = {draw<Float16>({2, 2, 5, 8}, 1),
                                  draw<Float16>({2, 1, 40, 8}, 2),
                                  draw<Float16>({2, 1, 40, 8}, 3),
                                  Array(),
                                  Array(),
                                  Array()};
    const auto y = world().forward(name, x, {}, on("cuda"));
    CHECK(world().ran() == cudnn_id);
    CHECK(compare(wide(y), world().forward(name, wide(x), {}, on("cpu")), {1e-2, 1e-3}) == "");
    const std::vector<Array> gy = {draw<Float16>({2, 2, 5, 8}, 4), Array(), Array(), Array()};
    std::vector<Array> gx;
    try {
        gx = world().backward(name, x, y, gy, {}, on("cuda"));
    } catch (const Failure&) {
        return false;
    }
    CHECK(world().ran() == cudnn_id);
    CHECK(compare(wide(gx), world().backward(name, wide(x), wide(y), wide(gy), {}, on("cpu")),
                  {1e-2, 1e-2}) == "");
    return true;
}

}  // namespace

TEST_CASE("plans are made once, of what is allowed") {
    CHECK(wrong(inputs()) == "");
    CHECK(counted().engine == wide);
    const CudnnCounts first = counted();
    CHECK(first.plans == 1);
    CHECK(first.heuristics == 1);
    CHECK(first.runs == 1);
    CHECK(wrong(inputs()) == "");
    CHECK(counted().plans == 1);
    CHECK(counted().heuristics == 1);
    CHECK(counted().runs == 2);
    CHECK(counted().descriptors == first.descriptors);
    CHECK(done_by(inputs<double>()) == cudnn_id);  // tensor cores do not round float64
    CHECK(counted().engine == tensor_core);
    CHECK(done_by(inputs<Float16>()) == cudnn_id);
    CHECK(counted().engine == tensor_core);
    CHECK(counted().plans == 3);
}

TEST_CASE("what no engine does is left to others, and asked once") {
    const auto large = inputs({1, 1, 13, 13}, {1, 1, 13, 13});
    CHECK(done_by(large) != cudnn_id);
    const long asked = counted().heuristics;
    CHECK(asked == 2);
    CHECK(done_by(large) != cudnn_id);
    CHECK(counted().heuristics == asked);
    CHECK(counted().runs == 0);
}

TEST_CASE("a plan that is refused when it runs gives way to the next") {
    const auto refused = inputs({1, 1, 11, 3}, {2, 1, 11, 2});
    CHECK(wrong(refused) == "");
    CHECK(counted().engine == lean);
    const long plans = counted().plans, heuristics = counted().heuristics;
    CHECK(plans > 1);
    CHECK(wrong(refused) == "");
    CHECK(counted().engine == lean);
    CHECK(counted().plans == plans);  // the refusal is remembered
    CHECK(counted().heuristics == heuristics);
    const auto hopeless = inputs({1, 1, 12, 3}, {1, 1, 12, 2});
    CHECK_THROWS_WITH(world().forward(convolution, hopeless, {}, on("cuda")),
                      doctest::Contains("cudnnBackendExecute"));
    CHECK(done_by(hopeless) != cudnn_id);  // from now on left to other plugins
}

TEST_CASE("more plans than are kept") {
    const long before = counted().descriptors;
    for (std::int64_t width = 1; width <= 1100; ++width)
        CHECK(done_by(inputs({1, 1, 1, width}, {1, 1, 1, 1})) == cudnn_id);
    const long full = counted().descriptors;
    CHECK(counted().plans == 1100);
    for (std::int64_t width = 1; width <= 50; ++width)  // the oldest plans, which were evicted
        CHECK(done_by(inputs({1, 1, 1, width}, {1, 1, 1, 1})) == cudnn_id);
    CHECK(counted().plans == 1150);
    CHECK(counted().descriptors == full);
    CHECK(full > before);
}

TEST_CASE("a limit of workspace") {  // 600 bytes
    CHECK(wrong(inputs()) == "");
    CHECK(counted().engine == lean);
    CHECK(wrong(inputs({1, 9, 9, 9}, {3, 9, 3, 3})) == "");
    CHECK(counted().engine == plain);
    CHECK_FALSE(has_gradients_of_attention());
}

TEST_CASE("the first call measures, and the fastest stays") {
    for (const bool add : {false, true}) {
        CAPTURE(add);
        const long before = counted().runs;
        CHECK(wrong(inputs(), add) == "");
        CHECK(counted().runs > before + 10);
        const long chosen = counted().engine;
        CHECK((chosen == lean || chosen == atomics));  // the other engines are slow
        const long after = counted().runs;
        CHECK(wrong(inputs(), add) == "");
        CHECK(counted().runs == after + 1);
        CHECK(counted().engine == chosen);
    }
}

TEST_CASE("other bits each time, where that is asked for") {
    CHECK(wrong(inputs()) == "");
    CHECK(counted().engine == atomics);
    CHECK(has_gradients_of_attention());  // they accumulate, within the same 600 bytes
}

TEST_CASE("tensor cores for float32, where they are asked for") {
    CHECK(wrong(inputs(), false, {1e-2, 1e-2}) == "");
    CHECK(counted().engine == tensor_core);
}

TEST_CASE("no cuDNN") { CHECK(done_by(inputs()) != cudnn_id); }

TEST_CASE("a setting that is no number") {
    CHECK_THROWS_WITH(world(), doctest::Contains("[cudnn] CATENA_CUDNN_WORKSPACE: expected a "
                                                 "number of bytes, got much"));
}
