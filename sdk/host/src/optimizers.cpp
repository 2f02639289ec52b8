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

// The rate, if there is one, is the constructor's first argument.
template <class T>
Entry entry(const T*) {
    if constexpr (requires { T::default_rate; }) {
        return {T::name, T::default_rate,
                [](std::optional<double> rate) -> std::unique_ptr<Optimizer> {
                    return std::make_unique<T>(rate.value_or(T::default_rate));
                }};
    } else {
        return {T::name, {}, [](std::optional<double>) -> std::unique_ptr<Optimizer> {
                    return std::make_unique<T>();
                }};
    }
}

template <class... T>
std::array<Entry, sizeof...(T)> entries(const std::tuple<T...>*) {
    return {entry(static_cast<const T*>(nullptr))...};
}

const auto& all() {
    static const auto list = entries(static_cast<const All*>(nullptr));
    return list;
}

const Entry& find(std::string_view name) {
    const auto found = std::ranges::find(all(), name, &Entry::name);
    if (found != all().end()) return *found;
    fail<InvalidError>("[optimizers] name: expected one of {}, got '{}'", fmt::join(names(), ", "),
                       name);
}

}  // namespace

std::vector<std::string_view> names() {
    std::vector<std::string_view> result;
    for (const Entry& optimizer : all()) result.push_back(optimizer.name);
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
