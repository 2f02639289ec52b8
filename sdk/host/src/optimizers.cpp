// Optimizers by name.
#include <catena/fail.hpp>
#include <catena/optimizers.hpp>

#include <fmt/ranges.h>

namespace catena::optimizers {
namespace {

struct Entry {
    std::string_view name;
    std::optional<double> default_rate;  // none: it has no rate
    std::unique_ptr<Optimizer> (*make)(std::optional<double> rate);
};

template <class T>
constexpr std::optional<double> rate_of{};
template <class T>
requires(T::default_rate > 0) constexpr std::optional<double> rate_of<T> = T::default_rate;

// The rate, if there is one, is the constructor's first argument.
template <class T>
std::unique_ptr<Optimizer> make_one(std::optional<double> rate) {
    if constexpr (rate_of<T>.has_value())
        return std::make_unique<T>(rate ? *rate : T::default_rate);
    else return std::make_unique<T>();
}

constexpr auto all = []<class... T>(const std::tuple<T...>*) {
    return std::array{Entry{T::name, rate_of<T>, make_one<T>}...};
}(static_cast<const All*>(nullptr));

const Entry& find(std::string_view name) {
    const auto found = std::ranges::find(all, name, &Entry::name);
    if (found != all.end()) return *found;
    fail<InvalidError>("[optimizers] name: expected one of {}, got '{}'", fmt::join(names(), ", "),
                       name);
}

}  // namespace

std::vector<std::string_view> names() {
    std::vector<std::string_view> result;
    for (const Entry& optimizer : all) result.push_back(optimizer.name);
    return result;
}

std::optional<double> default_rate(std::string_view name) { return find(name).default_rate; }

std::unique_ptr<Optimizer> make(std::string_view name, std::optional<double> rate) {
    const Entry& optimizer = find(name);
    if (rate && !optimizer.default_rate)
        fail<InvalidError>("[optimizers] rate of {}: expected none, as it has no rate, got {}",
                           name, *rate);
    return optimizer.make(rate);
}

}  // namespace catena::optimizers
