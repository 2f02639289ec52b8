// Shared by tests of formulas: arrays of numbered elements, and texts of expected errors.
#pragma once

#include "test_device.hpp"

#include <catena/catena.hpp>

#include <numeric>
#include <string>
#include <vector>

using namespace catena;

using Floats = std::vector<float>;

inline Array iota(const Shape& shape, Dtype dtype = Dtype::float32) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    std::iota(values.begin(), values.end(), 1.0);
    return Array::from(values, shape).astype(dtype);
}
inline Floats floats(const Array& array) { return array.to_vector<float>(); }

template <class E, class F>
std::string thrown(F&& f) {
    try {
        f();
    } catch (const E& error) {
        return error.what();
    }
    return "nothing was thrown";
}

inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}
