// Optimizers by name.
#include <catena/core/error.hpp>
#include <catena/optimizers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace catena::optimizers {
namespace {

template <class T>
std::unique_ptr<Optimizer> make_one(double rate) {
    return std::make_unique<T>(rate);
}

struct Named {
    std::string_view name;
    std::unique_ptr<Optimizer> (*make)(double rate);
};
constexpr Named all[] = {{"sgd", make_one<SGD>},
                         {"momentum_sgd", make_one<MomentumSGD>},
                         {"rmsprop", make_one<RMSprop>},
                         {"ada_grad", make_one<AdaGrad>},
                         {"adam", make_one<Adam>}};

}  // namespace

std::vector<std::string_view> names() {
    std::vector<std::string_view> result;
    for (const Named& each : all) result.push_back(each.name);
    return result;
}

std::unique_ptr<Optimizer> make(std::string_view name, double rate) {
    for (const Named& each : all) {
        if (each.name == name) return each.make(rate);
    }
    throw InvalidError(fmt::format("[optimizers] name: expected one of {}, got '{}'",
                                   fmt::join(names(), ", "), name));
}

}  // namespace catena::optimizers
