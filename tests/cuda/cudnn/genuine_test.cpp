// Tests that NVIDIA's cuDNN accepts the plugin's graphs, on a machine without a GPU: since cuDNN
// 9.8, plans can be made for a device that is only described. Nothing is computed.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "graph.hpp"

using namespace catena_cudnn;

namespace {

// Opens cuDNN by its usual name or in CUDA's default folder; null if neither is found.
void* opened() {
    static void* const dl = [] {
        void* const usual = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
        return usual != nullptr
                   ? usual
                   : dlopen("/usr/local/cuda/lib64/libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    }();
    return dl;
}
const Library* cudnn() {
    static Library found;
    static const bool here = [] {
        void* const dl = opened();
        if (dl == nullptr || !found.find(dl)) return false;
        auto* const version = reinterpret_cast<size_t (*)()>(dlsym(dl, "cudnnGetVersion"));
        return version != nullptr && version() >= 90800;
    }();
    return here ? &found : nullptr;
}

// The properties that cuDNN's description of a device contains; NVIDIA publishes these values.
struct Chip {
    int capability;
    int processors;
    int shared;  // maximum shared memory of a block, in bytes
    int cache;
};
constexpr Chip chips[] = {{800, 108, 166912, 40 << 20},   // A100
                          {900, 132, 232448, 60 << 20}};  // H200

std::string described(const Chip& chip) {
    const auto number = [](const char* name, std::int64_t value) {
        return std::string(", \"") + name + "\": " + std::to_string(value);
    };
    return std::string("{\"maxGridSize\": [2147483647, 65535, 65535]") +
           ", \"maxBlockSize\": [1024, 1024, 64]" + number("regsPerBlock", 65536) +
           number("multiProcessorCount", chip.processors) + number("smClockRateKHz", 1410000) +
           number("memClockRateKHz", 1215000) + number("l2CacheSize", chip.cache) +
           number("warpSize", 32) + number("maxSharedMemoryPerBlock", 49152) +
           number("maxSharedMemoryPerBlockOptin", chip.shared) +
           number("reservedSharedMemoryPerBlock", 1024) + number("maxRegistersPerSM", 65536) +
           number("pciDeviceId", 0) + number("maxCtasPerSM", 32) +
           number("maxThreadsPerBlock", 1024) + number("maxThreadsPerSM", 2048) +
           number("isTccDriver", 0) + number("supportCoopLaunch", 1) +
           number("deviceVer", chip.capability) + number("driverVer", 13000) +
           number("cudaDeviceId", 0) + number("totalGlobalMem", std::int64_t{80} << 30) +
           ", \"deviceName\": \"described\"}";
}

// Sets the described device in descriptors that would otherwise need a handle, and thus a GPU.
Teller teller_of(const Descriptor& properties) {
    return [&properties](Descriptor& descriptor) {
        if (descriptor.type() == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
            descriptor.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
        if (descriptor.type() == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
            descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties);
    };
}

Descriptor properties_of(const Chip& chip) {
    Descriptor d(*cudnn(), CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    const std::string text = described(chip);
    check(*cudnn(), "cudnnBackendSetAttribute",
          cudnn()->set(d.raw(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                       static_cast<std::int64_t>(text.size()), text.data()));
    d.finalize();
    return d;
}

Geometry geometry(std::int64_t n, std::int64_t channels, std::int64_t side, std::int64_t outputs,
                  std::int64_t filter, std::int64_t stride, std::int64_t pad) {
    const std::int64_t positions = (side + 2 * pad - filter) / stride + 1;
    return {n,      channels, side,   side, outputs, positions, positions, filter,
            filter, stride,   stride, pad,  pad,     1,         1,         1};
}
const Geometry geometries[] = {
    geometry(32, 64, 56, 64, 3, 1, 1),
    geometry(32, 3, 224, 64, 7, 2, 3),
    geometry(1, 256, 14, 1024, 1, 1, 0),
    geometry(7, 3, 13, 5, 3, 2, 1),
    geometry(1, 1, 1, 1, 1, 1, 0),
    geometry(5, 2, 9, 3, 2, 3, 4),  // padding larger than the filter
    {2, 3, 11, 8, 4, 3, 7, 5, 2, 3, 1, 1, 0, 1, 1, 1},
    {3, 2, 12, 9, 4, 6, 4, 3, 2, 2, 2, 1, 0, 1, 1, 1},  // rows that no filter covers
    {2, 3, 11, 8, 4, 5, 2, 3, 3, 1, 1, 0, 0, 3, 3, 1},  // filters whose elements are apart
    {2, 8, 9, 9, 16, 9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 4},  // groups
};
constexpr cudnnDataType_t dtypes[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                      CUDNN_DATA_BFLOAT16};
constexpr std::int64_t limit = 1 << 28;

std::int64_t size_of_element(cudnnDataType_t t) {
    return t == CUDNN_DATA_DOUBLE ? 8 : t == CUDNN_DATA_FLOAT ? 4 : 2;
}

// Calls body with every kind of problem that the plugin can have.
template <class Body>
void for_each_problem(const Body& body) {
    for (const Geometry& g : geometries)
        for (const cudnnDataType_t dtype : dtypes)
            for (const Direction direction :
                 {Direction::forward, Direction::data, Direction::filter})
                for (const bool bias : {false, true})
                    for (const bool add : {false, true}) {
                        if (bias && (add || direction != Direction::forward)) continue;
                        Problem p = {Convolution{direction, g, bias}, dtype, add, true, false, 16};
                        body(p);
                        p.alignment = size_of_element(dtype);
                        if (g.channels == 3) body(p);
                    }
}

std::set<int> notes_of(const Plan& plan) {
    const auto engine =
        plan.config.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    std::set<int> all;
    for (const auto note : engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT))
        all.insert(note);
    return all;
}

// Returns NVIDIA's library; null if it is missing, too old, or does not accept the descriptions.
const Library* ready() {
    const Library* found = cudnn();
    try {
        if (found != nullptr) properties_of(chips[0]);
    } catch (const Refusal&) {
        found = nullptr;
    }
    if (found == nullptr) MESSAGE("skipped: expected a cuDNN from 9.8 on that takes descriptions");
    return found;
}

}  // namespace

TEST_CASE("NVIDIA's cuDNN takes every graph, and has a plan for it") {
    const Library* const library = ready();
    if (library == nullptr) return;
    for (const Chip& chip : chips) {
        Descriptor properties = properties_of(chip);
        int all = 0;
        for_each_problem([&](const Problem& p) {
            CAPTURE(chip.capability);
            const auto& c = std::get<Convolution>(p.operation);
            CAPTURE(static_cast<int>(c.direction));
            CAPTURE(static_cast<int>(p.dtype));
            CAPTURE(c.g.channels);
            CAPTURE(c.g.stride_y);
            CAPTURE(c.bias);
            CAPTURE(p.add);
            CAPTURE(p.alignment);
            const auto plans = plans_for(*library, p, teller_of(properties), false, limit, 3);
            CHECK(!plans.empty());
            for (const Plan& plan : plans) {
                CHECK(plan.workspace <= limit);
                const auto notes = notes_of(plan);
                CHECK(!notes.contains(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
                CHECK(!notes.contains(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
                CHECK(!notes.contains(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
                if (p.dtype == CUDNN_DATA_FLOAT)
                    CHECK(!notes.contains(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
            }
            ++all;
        });
        MESSAGE(all, " plans for capability ", chip.capability);
    }
}

TEST_CASE("what is not allowed, and not within the limit, it would propose") {
    const Library* const library = ready();
    if (library == nullptr) return;
    Descriptor properties = properties_of(chips[1]);
    const Teller teller = teller_of(properties);
    Problem p = {Convolution{Direction::forward, geometries[0], false},
                 CUDNN_DATA_FLOAT,
                 false,
                 true,
                 false,
                 16};
    const auto rounding = plans_for(*library, p, teller, true, limit, 1);
    REQUIRE(!rounding.empty());
    CHECK(notes_of(rounding[0]).contains(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
    std::get<Convolution>(p.operation).direction = Direction::data;
    p.dtype = CUDNN_DATA_DOUBLE;
    p.deterministic = false;
    const auto free = plans_for(*library, p, teller, false, limit, 1);
    REQUIRE(!free.empty());
    CHECK(notes_of(free[0]).contains(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
    p.dtype = CUDNN_DATA_HALF;
    p.deterministic = true;
    const auto large = plans_for(*library, p, teller, false, limit, 1);
    const auto small = plans_for(*library, p, teller, false, 0, 1);
    REQUIRE((!large.empty() && !small.empty()));
    CHECK(large[0].workspace > 0);
    CHECK(small[0].workspace == 0);
}

TEST_CASE("what a run tells it is taken, up to the handle that there is none of") {
    const Library* const library = ready();
    if (library == nullptr) return;
    Descriptor properties = properties_of(chips[0]);
    const Problem p = {Convolution{Direction::forward, geometries[3], true},
                       CUDNN_DATA_FLOAT,
                       false,
                       true,
                       false,
                       16};
    const auto plans = plans_for(*library, p, teller_of(properties), false, limit, 1);
    REQUIRE(!plans.empty());
    alignas(16) char somewhere[64] = {};
    Pointers data = {};
    for (const Role t : {tensor_x, tensor_w, tensor_y, tensor_b}) data[t] = somewhere;
    CHECK_THROWS_WITH(execute(*library, nullptr, plans[0], data, somewhere),
                      doctest::Contains("[cudnn] cudnnBackendExecute: expected success"));
}

// In a process of its own: with a driver, cuDNN would propose more engines for convolutions.
TEST_CASE("attention: NVIDIA's cuDNN takes every graph, and has a plan for it") {
    REQUIRE(dlopen(std::getenv("DRIVER"), RTLD_NOW | RTLD_GLOBAL) != nullptr);
    const Library* const library = ready();
    if (library == nullptr) return;
    for (const Chip& chip : chips) {
        Descriptor properties = properties_of(chip);
        const auto plans = [&](Attention a, cudnnDataType_t dtype, std::int64_t alignment) {
            const Problem p = {a, dtype, false, !a.accumulate, false, alignment};
            return plans_for(*library, p, teller_of(properties), false, limit, 1);
        };
        int all = 0;
        // Flags, then sizes.
        for (Attention a : {Attention{0, 0, 0, 0, 2, 8, 8, 256, 256, 64, 64},
                            Attention{0, 0, 1, 0, 3, 6, 2, 17, 33, 40, 128},
                            Attention{0, 0, 1, 0, 2, 4, 1, 1, 50, 8, 16}})
            for (const int way : {0, 1, 2})
                for (const bool causal : {false, true})
                    for (const auto dtype : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
                        a.backward = way > 0;
                        a.accumulate = way == 2;
                        a.causal = causal;
                        CAPTURE(chip.capability);
                        CAPTURE(a.t);
                        CAPTURE(way);
                        CAPTURE(causal);
                        CAPTURE(static_cast<int>(dtype));
                        const auto found = plans(a, dtype, 16);
                        REQUIRE(!found.empty());
                        // Gradients that do not accumulate store those of all scores.
                        if (way == 0) CHECK(found[0].workspace <= 256);
                        if (way == 1) CHECK(found[0].workspace >= a.b * a.h * a.t * a.s * 2);
                        ++all;
                        if (way > 0 || dtype == CUDNN_DATA_HALF) continue;
                        CHECK(plans(a, CUDNN_DATA_FLOAT, 16).empty());
                        CHECK_THROWS_AS(plans(a, dtype, 2), Refusal);
                    }
        MESSAGE(all, " plans of attention for capability ", chip.capability);
    }
}
