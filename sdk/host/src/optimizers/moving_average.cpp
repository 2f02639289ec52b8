// ExponentialMovingAverage: updates averages in place, and exchanges them with the parameters.
#include "../support.hpp"

#include <catena/forward_each.hpp>
#include <catena/moving_average.hpp>

namespace catena {

ExponentialMovingAverage::ExponentialMovingAverage(const Link& link, double decay) : decay_(decay) {
    if (!(decay >= 0 && decay <= 1))
        fail<InvalidError>("[ExponentialMovingAverage] decay: expected 0 to 1, got {}", decay);
    for (NamedParameter& parameter : each_once(link.collect_parameters())) {
        const Array& data = parameter.variable.data();
        const bool half = item_size(data.dtype()) < item_size(Dtype::float32);
        Array average = half ? data.astype(Dtype::float32) : data.copy();
        entries_.push_back({std::move(parameter), std::move(average)});
    }
}

void ExponentialMovingAverage::update() {
    check("update");
    Array inputs[2];
    const auto inputs_of = [&](std::size_t i) -> std::span<const Array> {
        inputs[0] = entries_[i].parameter.variable.data();
        inputs[1] = entries_[i].average;
        return inputs;
    };
    forward_each(with<"catena.average_update", "rate">(1 - decay_), entries_.size(), inputs_of);
}

void ExponentialMovingAverage::swap() {
    check("swap");
    for (const Entry& entry : entries_) {
        const Array& data = entry.parameter.variable.data();
        const Array value = data.dtype() == entry.average.dtype()
                                ? data.copy()
                                : data.astype(entry.average.dtype());
        data.copy_from(entry.average.astype(data.dtype()));
        entry.average.copy_from(value);
    }
}

void ExponentialMovingAverage::check(std::string_view where) const {
    for (const auto& [parameter, average] : entries_) {
        const Array& data = parameter.variable.data();
        if (data.shape() == average.shape() && data.device() == average.device()) continue;
        fail<InvalidError>("[{}] {}: expected {} on {}, as the average, got {} on {}", where,
                           parameter.name, to_string(average.shape()), average.device().name(),
                           to_string(data.shape()), data.device().name());
    }
}

void ExponentialMovingAverage::visit(Visitor& visitor) {
    for (auto& [parameter, average] : entries_) visitor(parameter.name, average);
}

}  // namespace catena
