// Optimizers by name.
#include "registration.hpp"

#include <catena/core/error.hpp>
#include <catena/optimizers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace catena::optimizers {
namespace {

const Registered& find(std::string_view name) {
    const auto found = registered().find(name);
    if (found != registered().end()) return found->second;
    throw InvalidError(fmt::format("[optimizers] name: expected one of {}, got '{}'",
                                   fmt::join(names(), ", "), name));
}

}  // namespace

// Filled by the static objects of other files.
std::map<std::string_view, Registered>& registered() {
    static std::map<std::string_view, Registered> all;
    return all;
}

std::vector<std::string_view> names() {
    std::vector<std::string_view> result;
    for (const auto& [name, optimizer] : registered()) result.push_back(name);
    return result;
}

std::optional<double> default_rate(std::string_view name) { return find(name).default_rate; }

std::unique_ptr<Optimizer> make(std::string_view name, std::optional<double> rate) {
    const Registered& optimizer = find(name);
    if (rate && !optimizer.default_rate) {
        throw InvalidError(fmt::format(
            "[optimizers] rate of {}: expected none, as it has no rate, got {}", name, *rate));
    }
    return optimizer.make(rate);
}

}  // namespace catena::optimizers
