// The checks of the program.
#include "check.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <string_view>

namespace catena::check {
namespace {

std::deque<Check>& registered() {
    static std::deque<Check> all;
    return all;
}

// From what needs least of the plugin to what needs most.
std::size_t rank(std::string_view group) {
    static constexpr std::string_view order[] = {"static",    "load",   "schema",    "backend",
                                                 "inference", "values", "gradients", "determinism",
                                                 "faults",    "skew",   "fuzz"};
    return static_cast<std::size_t>(std::ranges::find(order, group) - std::begin(order));
}

}  // namespace

Registered::Registered(const Check& check) { registered().push_back(check); }

std::vector<const Check*> all_checks() {
    std::vector<const Check*> result;
    for (const Check& check : registered()) result.push_back(&check);
    std::ranges::stable_sort(result, {}, [](const Check* check) {
        return std::pair(rank(check->group), std::string_view(check->group));
    });
    return result;
}

std::vector<const Check*> together_with(const Check& check) {
    std::vector<const Check*> result;
    for (const Check& other : registered())
        if (other.run == check.run) result.push_back(&other);
    return result;
}

}  // namespace catena::check
