// Compares CUDA kernels, of the modules in the folder CUDA_PLUGINS, with the CPU kernels.
#pragma once

#include <catena/testing.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>

using namespace catena::testing;
namespace plugin = catena::plugin;

inline const double inf = std::numeric_limits<double>::infinity();
inline const double no_number = std::numeric_limits<double>::quiet_NaN();

inline World& world() {
    static World the([] {
        const char* const folder = std::getenv("CUDA_PLUGINS");
        if (folder == nullptr) throw std::runtime_error("expected a folder in CUDA_PLUGINS");
        std::vector<std::string> files;
        for (const auto& file : std::filesystem::directory_iterator(folder))
            if (file.path().filename().string().ends_with("cuda.catena") &&
                file.path().filename() != "cudnn.cuda.catena")  // it would take precedence
                files.push_back(file.path());
        if (files.size() < 2)
            throw std::runtime_error(std::string(folder) + ": expected modules for CUDA, got none");
        std::sort(files.begin(), files.end());
        return files;
    }());
    return the;
}
inline Options on(const char* device, bool add = false) {
    Options options;
    options.device = device;
    options.add = add;
    return options;
}
template <class T>
Array draw(const Dims& shape, unsigned seed, double low = -2, double high = 2) {
    return Array::random<double>(shape, seed, low, high).to(plugin::dtype_of<T>());
}
// Tolerance of floats, which are compared with results of the CPU in float64.
template <class T>
Tolerance tolerance() {
    if (std::is_same_v<T, double>) return {1e-12, 1e-13};
    if (std::is_same_v<T, float>) return {2e-5, 2e-6};
    return std::is_same_v<T, Float16> ? Tolerance{4e-3, 1e-3} : Tolerance{2e-2, 1e-2};
}
inline Array wide(const Array& a) {
    if (!a) return a;
    const bool real = a.dtype().code == CATENA_CODE_FLOAT || a.dtype().code == CATENA_CODE_BFLOAT;
    return real ? a.to(plugin::dtype_of<double>()) : a;
}
inline std::vector<Array> wide(const std::vector<Array>& list) {
    std::vector<Array> result;
    for (const Array& a : list) result.push_back(wide(a));
    return result;
}

// Compares outputs and, if requested, gradients of CUDA with those of the CPU.
template <class T>
void check_both(const std::string& name, const std::vector<Array>& x, const Attrs& attrs = {},
                bool gradients = true, bool add = false) {
    CAPTURE(name);
    CAPTURE(plugin::text_of(plugin::dtype_of<T>()));
    const auto y = world().forward(name, x, attrs, on("cuda", add));
    CHECK(world().ran().ends_with(".cuda"));
    const auto expected = world().forward(name, wide(x), attrs, on("cpu", add));
    CHECK(compare(wide(y), wide(expected), tolerance<T>()) == "");
    if (!gradients) return;
    const catena_function& f = world().function(name);
    std::vector<Array> gy;
    for (std::size_t i = 0; i < f.n_outputs; ++i)
        gy.push_back((f.outputs[i]->flags & CATENA_PORT_HIDDEN) != 0
                         ? Array()
                         : draw<T>(y[i].shape(), 90 + static_cast<unsigned>(i)));
    const auto gx = world().backward(name, x, y, gy, attrs, on("cuda", add));
    CHECK(world().ran().ends_with(".cuda"));
    const auto wanted = world().backward(name, wide(x), wide(y), wide(gy), attrs, on("cpu", add));
    Tolerance t = tolerance<T>();
    t.absolute *= 10;  // gradients are sums, with larger errors
    CHECK(compare(wide(gx), wide(wanted), t) == "");
    // A second run gives the same bits.
    CHECK(compare(world().backward(name, x, y, gy, attrs, on("cuda", add)), gx, {0, 0}) == "");
}

// Compares a composition of functions that run on CUDA with the function on the CPU.
template <class T>
void check_composition(const std::string& name, const std::vector<Array>& x,
                       const Attrs& attrs = {}) {
    CAPTURE(name);
    CAPTURE(plugin::text_of(plugin::dtype_of<T>()));
    const auto y = world().forward(name, x, attrs, on("cuda"));
    const auto expected = world().forward(name, wide(x), attrs, on("cpu"));
    CHECK(compare(wide(y), wide(expected), tolerance<T>()) == "");
}
