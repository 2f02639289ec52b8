// Functions for tests of the device "river": see ../river/control.h.
#pragma once

#include "../river/control.h"

#include <catena/catena.hpp>

#include <doctest/doctest.h>

#include <string>

namespace river {

using namespace catena;
namespace F = catena::functions;
using Values = std::vector<double>;

inline Device device(int ordinal = 0) {
    load_plugin(DEVICE_PLUGIN);
    return Device::get("river:" + std::to_string(ordinal));
}
inline Device cpu() { return Device::get("cpu"); }

inline const river_control& control(Device device) {
    return *static_cast<const river_control*>(backend_extension(device, RIVER_CONTROL));
}
inline river_counts counts(Device device) {
    river_counts counts{};
    control(device).counts(backend_device(device), &counts);
    return counts;
}
inline void delay(Device device, int microseconds) {
    control(device).delay(backend_device(device), microseconds);
}

// Pauses the device's work while it exists.
class Hold {
public:
    explicit Hold(Device device) : device_(device) { set(1); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { set(0); }
    void let_go() const { set(0); }  // ends the pause early

private:
    void set(int held) const { control(device_).hold(backend_device(device_), held); }
    Device device_;
};

inline Array numbers(const Values& values, Device device) {
    return Array::from<double>(values, {static_cast<std::int64_t>(values.size())}, device);
}
inline Array full(double value, std::int64_t n, Device device) {
    return Array::full({n}, value, Dtype::float64, device);
}
inline Values values(const Array& array) { return array.to_vector<double>(); }
inline Values same(double value, std::int64_t n) {
    return Values(static_cast<std::size_t>(n), value);
}
// param -= lr * grad
inline void sgd(const Array& param, const Array& grad, double lr) {
    static const PluginFunction update("catena.sgd_update");
    const Array inputs[] = {param, grad};
    update.with({{"lr", lr}}).forward(inputs);
}

template <class Error>
std::string what(const auto& body) {
    try {
        body();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing";
}
inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace river
