// Registration: an optimizer says in its own file by which name options ask for it.
#pragma once

#include <catena/optimizer.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string_view>

namespace catena::optimizers {

struct Registered {
    std::optional<double> default_rate;  // none: it has no rate
    std::unique_ptr<Optimizer> (*make)(std::optional<double> rate);
};
std::map<std::string_view, Registered>& registered();

template <class T>
concept HasRate = requires {
    T::default_rate;
};

// One static object for each optimizer. Its rate, if any, is the first argument of the constructor,
// and T::default_rate the default.
template <class T>
class Registration {
public:
    explicit Registration(std::string_view name) {
        std::optional<double> rate;
        if constexpr (HasRate<T>) rate = T::default_rate;
        registered().emplace(name, Registered{rate, make});
    }

private:
    static std::unique_ptr<Optimizer> make(std::optional<double> rate) {
        if constexpr (HasRate<T>) return std::make_unique<T>(rate.value_or(T::default_rate));
        else return std::make_unique<T>();
    }
};

}  // namespace catena::optimizers
