// Tests half precision: conversion of all values with every instruction set, kernels on copies.
#include <doctest/doctest.h>

#include <catena/plugin/half.hpp>
#include <catena/testing.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

using namespace catena::testing;
using catena::plugin::convert_halves;
using catena::plugin::Isa;
using catena::plugin::to_float;
using catena::plugin::to_half;

namespace {

// Returns the value of the bits, by the definition of binary16.
double value_of(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const double mantissa = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31)
        return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                             : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(mantissa, -24);
    return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

template <class From, class To>
std::vector<To> convert(Isa isa, const std::vector<From>& from) {
    std::vector<To> to(from.size());
    const auto n = static_cast<std::int64_t>(from.size());
#if defined(CATENA_X86)
    if (isa == Isa::x86_64_v4) convert_halves<Isa::x86_64_v4>(from.data(), to.data(), n);
    else if (isa == Isa::x86_64_v3) convert_halves<Isa::x86_64_v3>(from.data(), to.data(), n);
    else
#endif
        convert_halves<Isa::baseline>(from.data(), to.data(), n);
    return to;
}

std::vector<Isa> isas() {
    std::vector<Isa> list{Isa::baseline};
#if defined(CATENA_X86)
    if (__builtin_cpu_supports("f16c") && __builtin_cpu_supports("avx2"))
        list.push_back(Isa::x86_64_v3);
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        list.push_back(Isa::x86_64_v4);
#endif
    return list;
}

template <class Half>
std::vector<Half> all_halves() {
    std::vector<Half> all;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
        all.push_back({static_cast<std::uint16_t>(bits)});
    return all;
}

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

}  // namespace

TEST_CASE("float16: every value to float32 and back") {
    const auto all = all_halves<Float16>();
    for (const Isa isa : isas()) {
        CAPTURE(isa_name(isa));
        const auto wide = convert<Float16, float>(isa, all);
        const auto back = convert<float, Float16>(isa, wide);
        int wrong = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const double exact = value_of(all[i].bits);
            const bool nan = std::isnan(exact);
            const bool sign = std::signbit(wide[i]) == ((all[i].bits & 0x8000) != 0);
            wrong += sign && (nan ? std::isnan(wide[i]) : wide[i] == exact) ? 0 : 1;
            wrong += back[i].bits == (nan ? all[i].bits | 0x200 : all[i].bits) ? 0 : 1;
            wrong += bits_of(wide[i]) == bits_of(to_float(all[i])) ? 0 : 1;
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("bfloat16: every value to float32 and back") {
    const auto all = all_halves<BFloat16>();
    for (const Isa isa : isas()) {
        CAPTURE(isa_name(isa));
        const auto wide = convert<BFloat16, float>(isa, all);
        const auto back = convert<float, BFloat16>(isa, wide);
        int wrong = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            wrong += bits_of(wide[i]) == std::uint32_t{all[i].bits} << 16 ? 0 : 1;
            const bool nan = std::isnan(wide[i]);
            wrong += back[i].bits == (nan ? all[i].bits | 0x40 : all[i].bits) ? 0 : 1;
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("rounding to float16: to the nearest, ties to even, overflow to infinity") {
    std::vector<float> x;
    std::vector<std::uint16_t> expected;
    const auto add = [&](float value, std::uint32_t bits) {
        x.push_back(value);
        expected.push_back(static_cast<std::uint16_t>(bits));
        x.push_back(-value);
        expected.push_back(static_cast<std::uint16_t>(bits | 0x8000));
    };
    constexpr float inf = std::numeric_limits<float>::infinity();
    // Numbers around the middle of all neighbours, including subnormals and the step to infinity.
    for (std::uint32_t h = 0; h < 0x7c00; ++h) {
        const double low = value_of(static_cast<std::uint16_t>(h));
        const double high = h == 0x7bff ? 65536 : value_of(static_cast<std::uint16_t>(h + 1));
        const auto middle = static_cast<float>((low + high) / 2);
        add(middle, h + (h & 1));
        add(std::nextafter(middle, 0.0f), h);
        add(std::nextafter(middle, inf), h + 1);
    }
    add(65519.996f, 0x7bff);
    add(65520, 0x7c00);
    add(1e10f, 0x7c00);
    add(inf, 0x7c00);
    add(std::numeric_limits<float>::max(), 0x7c00);
    add(std::numeric_limits<float>::denorm_min(), 0);
    add(0x1p-25f, 0);
    add(0x1.8p-24f, 2);
    for (const Isa isa : isas()) {
        CAPTURE(isa_name(isa));
        const auto half = convert<float, Float16>(isa, x);
        int wrong = 0;
        for (std::size_t i = 0; i < x.size(); ++i) wrong += half[i].bits == expected[i] ? 0 : 1;
        CHECK(wrong == 0);
    }
    CHECK(to_half<BFloat16>(std::bit_cast<float>(0x3f808000u)).bits == 0x3f80);  // ties to even
    CHECK(to_half<BFloat16>(std::bit_cast<float>(0x3f818000u)).bits == 0x3f82);
    CHECK(to_half<BFloat16>(std::numeric_limits<float>::max()).bits == 0x7f80);
}

TEST_CASE("lengths that fill no vector") {
    for (const Isa isa : isas())
        for (std::size_t n = 0; n < 40; ++n) {
            std::vector<float> x(n);
            for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i) - 7.5f;
            const auto there = convert<float, Float16>(isa, x);
            CHECK(convert<Float16, float>(isa, there) == x);
        }
}

namespace {

World& world() {
    static World world({MATH_PLUGIN, ARRAY_PLUGIN, ACTIVATION_PLUGIN, OPTIMIZER_PLUGIN});
    return world;
}

std::size_t type_vars(const std::string& name) {
    const catena_function& f = world().function(name);
    std::set<std::string> variables;
    for (std::uint32_t i = 0; i < f.n_inputs; ++i) variables.insert(f.inputs[i]->type_var);
    for (std::uint32_t i = 0; i < f.n_outputs; ++i) variables.insert(f.outputs[i]->type_var);
    return variables.size();
}

template <class Half>
Array to_halves(const Array& a) {
    Array h(a.shape(), dtype_of<Half>());
    for (std::int64_t i = 0; i < a.size(); ++i)
        h.data<Half>()[i] = to_half<Half>(static_cast<float>(a.at(i)));
    return h;
}
template <class Half>
Array to_floats(const Array& h) {
    Array a(h.shape(), dtype_of<float>());
    for (std::int64_t i = 0; i < h.size(); ++i) a.data<float>()[i] = to_float(h.data<Half>()[i]);
    return a;
}

// Runs the kernel for one dtype and instruction set on given tensors, as World does.
struct Direct {
    Direct(const std::string& name, int phase, catena_dtype dtype, const char* isa)
        : f(world().function(name)) {
        for (const catena_kernel* k : world().kernels())
            for (std::uint32_t i = 0; i < k->n_types; ++i)
                if (name == k->function && k->phase == phase && std::string(isa) == k->isa &&
                    catena::plugin::same(k->types[i * type_vars(name)], dtype))
                    kernel = k;
    }
    std::string run(const std::vector<catena_value>& attrs, std::vector<Array>& x,
                    std::vector<Array>& y, std::vector<Array>& gy, std::vector<Array>& gx,
                    bool add) {
        if (kernel == nullptr) return "no kernel";
        const auto list = [&](std::vector<Array>& arrays) {
            std::vector<catena_tensor*> result;
            for (Array& a : arrays)
                result.push_back(a ? &tensors.emplace_back(a.tensor()) : nullptr);
            return result;
        };
        const auto xs = list(x);
        const auto ys = list(y);
        const auto gys = list(gy);
        const auto gxs = list(gx);
        const std::vector<std::uint8_t> req(
            std::max(x.size(), y.size()),
            static_cast<std::uint8_t>(add ? CATENA_REQ_ADD : CATENA_REQ_WRITE));
        catena_call call = {};
        call.struct_size = sizeof call;
        call.phase = kernel->phase;
        call.function = &f;
        call.attrs = attrs.data();
        call.n_x = static_cast<std::uint32_t>(x.size());
        call.n_y = static_cast<std::uint32_t>(y.size());
        call.x = xs.data();
        call.y = ys.data();
        call.gy = gys.data();
        call.gx = gxs.data();
        call.req = req.data();
        const std::uint64_t targets = ~std::uint64_t{0};
        call.targets = &targets;
        catena_ctx ctx{&world(), {}, {}};
        ctx.device = kernel->device;
        catena_plan plan = {};
        plan.struct_size = sizeof plan;
        if (kernel->plan != nullptr && kernel->plan(&ctx, &call, &plan) != CATENA_OK)
            return ctx.error;
        std::vector<std::byte> scratch(plan.scratch_bytes + 192, std::byte{0xff});
        void* p = scratch.data();
        std::size_t space = scratch.size();
        call.scratch =
            plan.scratch_bytes == 0 ? nullptr : std::align(64, plan.scratch_bytes + 64, p, space);
        call.scratch_bytes = plan.scratch_bytes;
        if (kernel->run(&ctx, &call) != CATENA_OK) return "run: " + ctx.error;
        for (std::size_t i = 0; call.scratch != nullptr && i < 64; ++i)
            if (static_cast<std::byte*>(call.scratch)[plan.scratch_bytes + i] != std::byte{0xff})
                return "wrote behind its scratch";
        for (const auto* arrays : {&x, &y, &gy, &gx})
            for (const Array& a : *arrays)
                if (a && !a.intact()) return "wrote out of bounds";
        return "";
    }

    const catena_function& f;
    const catena_kernel* kernel = nullptr;
    std::deque<catena_tensor> tensors;
};

// Checks that half kernels give the rounded results of float kernels with the same instructions.
template <class Half>
struct Comparison {
    std::string name;
    std::vector<catena_value> attrs;
    std::vector<Array> x;  // halves
    Dims y_shape;
    bool mutates = false;

    static std::vector<Array> wide(const std::vector<Array>& arrays) {
        std::vector<Array> result;
        for (const Array& a : arrays) result.push_back(a ? to_floats<Half>(a) : Array());
        return result;
    }
    void compare(const std::vector<Array>& half, const std::vector<Array>& reference) const {
        for (std::size_t i = 0; i < half.size(); ++i)
            if (half[i]) CHECK(half[i] == to_halves<Half>(reference[i]));
    }
    void check() const {
        for (const char* isa : {"", "x86-64-v3", "x86-64-v4"})
            for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD})
                for (const bool add : {false, true}) one(isa, phase, add);
    }
    void one(const char* isa, int phase, bool add) const {
        const auto list = world().isas("catena.add");
        if (std::none_of(list.begin(), list.end(),
                         [&](const char* has) { return std::string(has) == isa; }))
            return;
        CAPTURE(name);
        CAPTURE(isa);
        CAPTURE(phase);
        CAPTURE(add);
        Direct half(name, phase, dtype_of<Half>(), isa);
        Direct single(name, phase, dtype_of<float>(), isa);
        if (mutates && (phase == CATENA_PHASE_BACKWARD || add)) return;
        // Compares with the baseline kernel if there is no float32 kernel for this instruction set.
        if (single.kernel == nullptr)
            single.kernel = Direct(name, phase, dtype_of<float>(), "").kernel;
        const bool forward = phase == CATENA_PHASE_FORWARD;
        std::vector<Array> xs = x;
        std::vector<Array> y;
        if (!mutates) y.push_back(to_halves<Half>(Array::random<float>(y_shape, 21)));
        std::vector<Array> gy = forward ? std::vector<Array>() : y;
        std::vector<Array> gx;
        for (std::size_t i = 0; i < x.size(); ++i)
            gx.push_back(forward ? Array()
                                 : to_halves<Half>(Array::random<float>(x[i].shape(), 31)));
        auto x1 = wide(xs);
        auto y1 = wide(y);
        auto gy1 = wide(gy);
        auto gx1 = wide(gx);
        REQUIRE(half.run(attrs, xs, y, gy, gx, add) == "");
        REQUIRE(single.run(attrs, x1, y1, gy1, gx1, add) == "");
        compare(forward ? y : gx, forward ? y1 : gx1);
        if (mutates) compare(xs, x1);
        else CHECK(xs == x);
    }
};

template <class Half>
void check_functions() {
    const auto draw = [](Dims shape, unsigned seed, float low = -1, float high = 1) {
        return to_halves<Half>(Array::random<float>(std::move(shape), seed, low, high));
    };
    using catena::plugin::Ints;
    using catena::plugin::value_of;
    using C = Comparison<Half>;
    C{"catena.add", {}, {draw({5, 7}, 1), draw({5, 7}, 2)}, {5, 7}}.check();
    C{"catena.mul", {}, {draw({5, 7}, 1), draw({7}, 2)}, {5, 7}}.check();
    C{"catena.exp", {}, {draw({40000}, 3, -4, 4)}, {40000}}.check();
    C{"catena.where", {}, {draw({}, 1), draw({0, 3}, 2), draw({3}, 3)}, {0, 3}}.check();
    C{"catena.matmul",
      {value_of(false), value_of(true)},
      {draw({3, 19}, 1), draw({5, 19}, 2)},
      {3, 5}}
        .check();
    C{"catena.softmax", {value_of(std::int64_t{1})}, {draw({3, 33}, 1, -3, 3)}, {3, 33}}.check();
    const std::int64_t axis = 0;
    C{"catena.sum", {value_of(Ints(&axis, 1)), value_of(false)}, {draw({70, 9}, 1)}, {9}}.check();
    C{"catena.transpose", {value_of(Ints())}, {draw({4, 5}, 1)}, {5, 4}}.check();
    C{"catena.sgd_update", {value_of(0.1)}, {draw({33}, 1), draw({33}, 2)}, {}, true}.check();
    C{"catena.adam_update",
      {value_of(0.1), value_of(0.9), value_of(0.999), value_of(1e-8), value_of(1.0), value_of(0.0),
       value_of(false), value_of(false), value_of(0.1), value_of(1e-3), value_of(std::int64_t{3}),
       value_of(0.0), value_of(1.0)},
      {draw({2, 9}, 1), draw({2, 9}, 2), draw({2, 9}, 3), draw({2, 9}, 4, 0, 1)},
      {},
      true}
        .check();
}

}  // namespace

TEST_CASE("float16 and bfloat16: what float32 gives, rounded once") {
    check_functions<Float16>();
    check_functions<BFloat16>();
}

TEST_CASE("a sum in float16 does not lose what its result can hold") {
    Array ones(Dims{5000}, dtype_of<float>());
    for (std::int64_t i = 0; i < 5000; ++i) ones.set(i, 1);
    const Array y = world().forward("catena.sum", {to_halves<Float16>(ones)})[0];
    CHECK(to_float(y.data<Float16>()[0]) == 5000);
}

TEST_CASE("every kernel for float has one for float16 and bfloat16 beside it") {
    const auto has = [](const catena_kernel& like, catena_dtype dtype) {
        for (const catena_kernel* k : world().kernels())
            if (std::string(k->function) == like.function && k->phase == like.phase &&
                std::string(k->isa) == like.isa) {
                const std::size_t row = type_vars(k->function);
                for (std::uint32_t i = 0; i < k->n_types; ++i)
                    if (catena::plugin::same(k->types[i * row], dtype)) return true;
            }
        return false;
    };
    for (const catena_kernel* k : world().kernels()) {
        if (!catena::plugin::same(k->types[0], dtype_of<float>())) continue;
        CAPTURE(std::string(k->function));
        CHECK(has(*k, dtype_of<Float16>()));
        CHECK(has(*k, dtype_of<BFloat16>()));
    }
}
