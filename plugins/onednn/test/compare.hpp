// Compares calls on this plugin's kernels with the same calls on the portable kernels in float64.
#pragma once

#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <algorithm>
#include <cmath>

namespace onednn_test {

using namespace catena::testing;

inline constexpr const char* onednn_id = "org.catena.onednn";

inline World& world() {
    static World world({CONNECTION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN, ONEDNN_PLUGIN});
    return world;
}

inline Array narrow(const Array& a) { return a && a.floating() ? a.to(dtype_of<float>()) : a; }
inline std::vector<Array> narrow(const std::vector<Array>& arrays) {
    std::vector<Array> result;
    for (const Array& a : arrays) result.push_back(narrow(a));
    return result;
}
inline Array plus_one(Array a) {
    for (std::int64_t i = 0; i < a.size(); ++i) a.set(i, a.at(i) + 1);
    return a;
}

struct Call {
    std::string function;
    std::vector<Array> inputs;  // float64
    Attrs attrs = {};
    Tolerance tolerance = {1e-4, 1e-4};
    std::uint32_t flags = 0;  // of the calls on this plugin's kernels
};

// If terms cancel, errors are relative to the terms, not to their sum: allows a larger error.
inline Tolerance scaled(Tolerance t, const Array& expected) {
    double largest = 0;
    for (std::int64_t i = 0; i < expected.size(); ++i)
        largest = std::max(largest, std::abs(expected.at(i)));
    return {t.relative, std::max(t.absolute, t.relative / 10 * largest)};
}

// Compares forward, and backward for every set of targets; with write and add; on one and three
// threads. Returns "" if all results agree and this plugin computed them.
inline std::string compare_plugins(const Call& c) {
    std::string problems;
    const auto note = [&](const std::string& where, const std::string& what) {
        if (!what.empty()) problems += c.function + ": " + where + ": " + what + "\n";
    };
    const auto ran = [&](const std::string& where) {
        note(where, world().ran() == onednn_id ? "" : "done by " + world().ran());
    };
    Options portable;
    portable.plugin = "org.catena.connection";
    const std::vector<Array> y = world().forward(c.function, c.inputs, c.attrs, portable);
    std::vector<Array> gy;
    for (const Array& a : y)
        gy.push_back(a.floating() ? narrow(Array::random<double>(a.shape(), 77)) : Array());
    std::vector<Array> wide;
    for (const Array& a : gy) wide.push_back(a ? a.to(dtype_of<double>()) : a);
    const std::vector<Array> gx =
        world().backward(c.function, c.inputs, y, wide, c.attrs, portable);

    const std::vector<Array> x = narrow(c.inputs);
    std::vector<Array> first_y;
    std::vector<Array> first_gx;
    for (const int threads : {1, 3})
        for (const bool add : {false, true}) {
            Options options;
            options.threads = threads;
            options.add = add;
            options.flags = c.flags;
            const std::string how = std::string(add ? " add, " : " ") + std::to_string(threads);
            const auto got = world().forward(c.function, x, c.attrs, options);
            ran("forward" + how);
            for (std::size_t i = 0; i < y.size(); ++i)
                note("forward" + how,
                     compare(got[i], add ? plus_one(y[i]) : y[i], scaled(c.tolerance, y[i])));
            if (!add && first_y.empty()) first_y = got;
            if (!add) note("forward" + how, got == first_y ? "" : "other bits");
            std::uint64_t all = 0;
            for (std::size_t i = 0; i < gx.size(); ++i) all |= std::uint64_t{bool(gx[i])} << i;
            for (std::uint64_t targets = all; targets > 0; targets = (targets - 1) & all) {
                options.targets = targets;
                const std::string whose = "backward" + how + " to " + std::to_string(targets);
                const auto part = world().backward(c.function, x, first_y, gy, c.attrs, options);
                ran(whose);
                for (std::size_t i = 0; i < gx.size(); ++i)
                    if (part[i])
                        note(whose, compare(part[i], add ? plus_one(gx[i]) : gx[i],
                                            scaled(c.tolerance, gx[i])));
                if (targets != all || add) continue;
                if (first_gx.empty()) first_gx = part;
                note(whose, part == first_gx ? "" : "other bits");
            }
        }
    return problems;
}

}  // namespace onednn_test
