// Optimizer: state, the step over all parameters, and hooks on gradients.
#include <catena/copy.hpp>
#include <catena/core/capture.hpp>
#include <catena/core/error.hpp>
#include <catena/core/small_vector.hpp>
#include <catena/operators.hpp>
#include <catena/optimizer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace catena {
namespace {

// The gradient, in memory that nobody else sees.
const Array& own_gradient(const Variable& variable) {
    const ArrayBody& body = *variable.grad().body();
    if (!body.unique() || (body.base && !body.base->unique())) {
        variable.set_grad(variable.grad().copy());
    }
    return variable.grad();
}

// State of halves is float32, else it has the parameter's dtype.
Dtype state_dtype(const Array& data) {
    return item_size(data.dtype()) < item_size(Dtype::float32) ? Dtype::float32 : data.dtype();
}

}  // namespace

void Optimizer::setup(std::vector<NamedParameter> parameters) {
    std::vector<Slot> slots;
    for (auto& parameter : each_once(std::move(parameters))) {
        Slot slot;
        const Array& data = parameter.variable.data();
        for (std::size_t i = 0; i < state_names_.size(); ++i) {
            slot.state.push_back(Array::zeros(data.shape(), state_dtype(data), data.device()));
        }
        slot.parameter = std::move(parameter);
        slots.push_back(std::move(slot));
    }
    slots_ = std::move(slots);
    memory_ = nullptr;
    t_ = 0;
    is_set_up_ = true;
}

void Optimizer::update() {
    if (!is_set_up_) throw InvalidError("[update] parameters: expected setup() first, got none");
    for (const auto& slot : slots_) {
        if (slot.parameter.variable.grad() && !slot.state.empty()) require_as_at_setup(slot);
    }
    for (auto& slot : slots_) {  // parameters may have moved
        const Device device = slot.parameter.variable.device();
        for (Array& state : slot.state) {
            if (state.device() != device) state = state.to(device);
        }
    }
    struct Count {
        std::int64_t& t;
        bool done = false;
        ~Count() {
            if (!done) --t;
        }
    } count{++t_};
    const PluginFunction function = step();
    if (!is_counted_) require_same_each_time(function.descriptor());
    SmallVector<Array, 8> inputs;
    const auto inputs_of = [&](std::size_t i) -> std::span<const Array> {
        const Variable& variable = slots_[i].parameter.variable;
        if (!variable.grad()) return {};
        inputs.assign({variable.data(), variable.grad()});
        inputs.append(slots_[i].state.begin(), slots_[i].state.end());
        return {inputs.data(), inputs.size()};
    };
    function.forward_each(slots_.size(), inputs_of, memory_.get());
    count.done = true;
}

void Optimizer::prepare_recording() {
    if (!memory_) memory_ = std::make_shared<AttributeMemory>();
}

void Optimizer::prepare_launch() {
    if (!memory_) {
        throw InvalidError("[prepare_launch] expected prepare_recording() first, got none");
    }
    struct Count {
        std::int64_t& t;
        bool done = false;
        ~Count() {
            if (!done) --t;
        }
    } count{++t_};
    memory_->write(step());
    count.done = true;
}

std::vector<const void*> Optimizer::identity() const {
    std::vector<const void*> list = {memory_.get()};
    for (const Slot& slot : slots_) {
        list.push_back(slot.parameter.variable.data().body());
        for (const Array& state : slot.state) list.push_back(state.body());
    }
    return list;
}

// A recording keeps attributes as they are.
void Optimizer::require_same_each_time(const catena_function& f) const {
    if (std::none_of(f.attrs, f.attrs + f.n_attrs,
                     [](const catena_attr_spec* a) { return std::string_view(a->name) == "t"; }))
        return;
    for (const auto& slot : slots_) {
        const Variable& variable = slot.parameter.variable;
        if (!variable.grad() || !is_recorded(variable.device())) continue;
        throw UnsupportedError(
            fmt::format("[update] {}: expected a call that is not recorded, as each launch would "
                        "be step t = {}, got a recording on {}",
                        f.name, t_, variable.device().name()));
    }
}

// All parameters are asked before the first one is changed.
void Optimizer::require_as_at_setup(const Slot& slot) {
    const Array& data = slot.parameter.variable.data();
    const Array& state = slot.state[0];
    if (state.shape() == data.shape() && state.dtype() == state_dtype(data)) return;
    const auto text = [](const Array& array) {
        return fmt::format("{} {}", to_string(array.shape()), name(state_dtype(array)));
    };
    throw InvalidError(fmt::format("[update] {}: expected {} as at setup(), got {}",
                                   slot.parameter.name, text(state), text(data)));
}

void Optimizer::cleargrads() const {
    for (const auto& slot : slots_) slot.parameter.variable.cleargrad();
}

void Optimizer::zero_grads() const {
    for (const auto& slot : slots_) slot.parameter.variable.zerograd();
}

double Optimizer::compute_grads_norm() const {
    static const PluginFunction sum_of_squares("catena.sum_of_squares");
    std::vector<Array> sums;  // all begun before the first is waited for
    for (const auto& slot : slots_) {
        if (const Array& grad = slot.parameter.variable.grad())
            sums.push_back(sum_of_squares.forward(std::span(&grad, 1))[0]);
    }
    double sum = 0;
    for (const Array& each : sums) sum += each.item<double>();
    return std::sqrt(sum);
}

void Optimizer::clip_grads(double maxnorm) const {
    if (!(maxnorm >= 0)) {
        throw InvalidError(
            fmt::format("[clip_grads] maxnorm: expected at least 0, got {}", maxnorm));
    }
    const double norm = compute_grads_norm();
    if (!(norm > maxnorm)) return;
    const auto gradient = [&](std::size_t i) -> std::span<const Array> {
        const Variable& variable = slots_[i].parameter.variable;
        if (!variable.grad()) return {};
        return std::span(&own_gradient(variable), 1);
    };
    PluginFunction("catena.scale_update", {{"value", maxnorm / norm}})
        .forward_each(slots_.size(), gradient);
}

void Optimizer::weight_decay(double decay) const {
    Array inputs[2];
    const auto inputs_of = [&](std::size_t i) -> std::span<const Array> {
        const Variable& variable = slots_[i].parameter.variable;
        if (!variable.grad()) variable.zerograd();
        inputs[0] = own_gradient(variable);
        inputs[1] = variable.data();
        return inputs;
    };
    PluginFunction("catena.decay_update", {{"rate", decay}}).forward_each(slots_.size(), inputs_of);
}

void Optimizer::accumulate_grads(std::span<const Array> gradients) const {
    if (gradients.size() != slots_.size()) {
        throw ShapeError(fmt::format("[accumulate_grads] gradients: expected {}, got {}",
                                     slots_.size(), gradients.size()));
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Variable& variable = slots_[i].parameter.variable;
        if (!gradients[i]) continue;
        if (gradients[i].shape() != variable.shape() || gradients[i].dtype() != variable.dtype()) {
            throw ShapeError(fmt::format("[accumulate_grads] {}: expected {} {}, got {} {}",
                                         slots_[i].parameter.name, to_string(variable.shape()),
                                         name(variable.dtype()), to_string(gradients[i].shape()),
                                         name(gradients[i].dtype())));
        }
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Variable& variable = slots_[i].parameter.variable;
        if (gradients[i])
            accumulate(variable.node(), functions::copy(gradients[i], variable.device()));
    }
}

void Optimizer::visit(Visitor& visitor) {
    visitor("t", t_);
    for (auto& slot : slots_) {
        for (std::size_t i = 0; i < state_names_.size(); ++i) {
            visitor(slot.parameter.name + '/' + state_names_[i], slot.state[i]);
        }
    }
}

}  // namespace catena
